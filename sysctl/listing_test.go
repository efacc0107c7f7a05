package sysctl_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

func TestParseListing(t *testing.T) {
	t.Parallel()
	l, warnings, err := sysctl.ParseListing(strings.NewReader(`
net.ipv4.conf.all.arp_ignore = 1
net.ipv4.conf.eth0/100.arp_ignore = 9
net.ipv4.conf.eth0.arp_ignore=0
net.ipv4.conf.default.arp_ignore = 0
sysctl: permission denied on key 'fs.protected_fifos'
net.ipv4.ip_local_port_range = 32768	60999
net.ipv4.ip_forward = 1
.. = 3
kernel.domainname = (none)
kernel.core_pattern = |/x %e=%p
`))
	require.NoError(t, err)
	assert.Equal(t, sysctl.Listing{
		"net/ipv4/conf/all/arp_ignore": "1", "net/ipv4/conf/eth0.100/arp_ignore": "9", "net/ipv4/conf/eth0/arp_ignore": "0", "net/ipv4/conf/default/arp_ignore": "0",
		"net/ipv4/ip_local_port_range": "32768\t60999", "net/ipv4/ip_forward": "1", "kernel/domainname": "(none)", "kernel/core_pattern": "|/x %e=%p",
	}, l)
	require.Len(t, warnings, 2)
	assert.Equal(t, 6, warnings[0].Line)
	assert.Equal(t, 9, warnings[1].Line)

	a, err := l.ARP()
	require.NoError(t, err)
	assert.Equal(t, sysctl.ARP{
		All:     sysctl.Values{sysctl.ARPIgnore: 1},
		Default: sysctl.Values{sysctl.ARPIgnore: 0},
		Interfaces: map[string]sysctl.Values{
			"eth0": {sysctl.ARPIgnore: 0}, "eth0.100": {sysctl.ARPIgnore: 9},
		},
	}, a)
}

func TestListingFails(t *testing.T) {
	t.Parallel()
	_, _, err := sysctl.ParseListing(iotest.ErrReader(errors.ErrUnsupported))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = sysctl.Listing{"net/ipv4/conf/eth0/arp_ignore": "0", "net/ipv4/ip_forward": "1"}.ARP()
	require.ErrorIs(t, err, fs.ErrNotExist)
	a, err := sysctl.Listing{"net/ipv4/conf/all/arp_ignore": "1", "net/ipv4/conf/eth0/arp_ignore": "many", "net/ipv4/conf/eth0/rp_filter": "2"}.ARP()
	require.ErrorIs(t, err, strconv.ErrSyntax)
	assert.Equal(t, sysctl.Values{sysctl.RPFilter: 2}, a.Interfaces["eth0"])
}

func FuzzParseListing(f *testing.F) {
	f.Add("net.ipv4.conf.eth0/100.arp_ignore = 9\nx\n=\na=b=c")
	f.Fuzz(func(t *testing.T, s string) {
		l, _, err := sysctl.ParseListing(strings.NewReader(s))
		if err != nil {
			return
		}
		for k := range l {
			if leadsOut(string(k)) {
				t.Fatalf("%q became %q", s, k)
			}
		}
		_, _ = l.ARP()
	})
}
