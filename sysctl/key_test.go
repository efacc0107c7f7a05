package sysctl_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want, dotted string }{
		{"net/ipv4/ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"},
		{"net.ipv4.ip_forward", "net/ipv4/ip_forward", "net.ipv4.ip_forward"},
		{"net.ipv4.conf.eth0/100.arp_ignore", "net/ipv4/conf/eth0.100/arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"},
		{"net/ipv4/conf/eth0.100/arp_ignore", "net/ipv4/conf/eth0.100/arp_ignore", "net.ipv4.conf.eth0/100.arp_ignore"},
		{"net/ipv4/conf/a..b/arp_ignore", "net/ipv4/conf/a..b/arp_ignore", "net.ipv4.conf.a//b.arp_ignore"},
		{"net/ipv4/conf/\xff/arp_ignore", "net/ipv4/conf/\xff/arp_ignore", "net.ipv4.conf.\xff.arp_ignore"},
		{"kernel", "kernel", "kernel"},
		{"dev.cdrom/x", "dev/cdrom.x", "dev.cdrom/x"},
	} {
		k, err := sysctl.ParseKey(tt.in)
		require.NoError(t, err, tt.in)
		assert.Equal(t, sysctl.Key(tt.want), k)
		assert.Equal(t, tt.dotted, k.Dotted())
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", ".", "..", "/", "net/../kernel", "../etc/passwd", "/net/ipv4", ".net.ipv4", "net//ipv4", "net..ipv4",
		"net/ipv4/", "net.ipv4.", "net/./ipv4", "net.//.x", "net/ipv4\x00", "net.a.//.b",
	} {
		_, err := sysctl.ParseKey(in)
		assert.Error(t, err, "%q", in)
	}
}

func TestKeyIsTextInJSON(t *testing.T) {
	t.Parallel()
	var k sysctl.Key
	require.NoError(t, json.Unmarshal([]byte(`"net.ipv4.ip_forward"`), &k))
	b, err := json.Marshal(k)
	require.NoError(t, err)
	assert.Equal(t, `"net/ipv4/ip_forward"`, string(b))
	assert.Error(t, json.Unmarshal([]byte(`"net/../x"`), &k))
}

func TestConfKey(t *testing.T) {
	t.Parallel()
	for iface, want := range map[string]sysctl.Key{
		"all":             "net/ipv4/conf/all/arp_ignore",
		"default":         "net/ipv4/conf/default/arp_ignore",
		"eth0.100":        "net/ipv4/conf/eth0.100/arp_ignore",
		"123456789012345": "net/ipv4/conf/123456789012345/arp_ignore",
	} {
		k, err := sysctl.ConfKey(iface, sysctl.ARPIgnore)
		require.NoError(t, err)
		assert.Equal(t, want, k)
	}
	for _, iface := range []string{"", ".", "..", "a/b", "a:1", "a b", "a\tb", "a\nb", "a\x00", "1234567890123456"} {
		_, err := sysctl.ConfKey(iface, sysctl.ARPIgnore)
		assert.Error(t, err, "%q", iface)
	}
	for _, p := range []sysctl.Param{"", "..", "a/b", "a\x00"} {
		_, err := sysctl.ConfKey("eth0", p)
		assert.Error(t, err, "%q", p)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"net.ipv4.conf.eth0/100.arp_ignore", "net/ipv4/conf/eth0.100/arp_ignore", "a", "a..b", "../x", "a/.b", "a.b/../c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := sysctl.ParseKey(s)
		if err != nil {
			return
		}
		if leadsOut(string(k)) {
			t.Fatalf("%q became %q", s, k)
		}
		if first, _, more := strings.Cut(string(k), "/"); more && !strings.Contains(first, ".") {
			for _, again := range []string{string(k), k.Dotted()} {
				same, err := sysctl.ParseKey(again)
				if err != nil || same != k {
					t.Fatalf("%q became %q, and as %q it became %q, %v", s, k, again, same, err)
				}
			}
		}
	})
}

// leadsOut reports whether a key could lead out of the tree, or is none.
func leadsOut(k string) bool {
	for part := range strings.SplitSeq(k, "/") {
		if part == "" || part == "." || part == ".." || strings.Contains(part, "\x00") {
			return true
		}
	}
	return false
}
