package main

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) { netnstest.Main(m) }

// The outage and its cure on the kernel, recorded, and judged again from the record.
func TestLab(t *testing.T) {
	t.Parallel()
	s := netnstest.New(t)
	var nodes []*netnstest.Host
	for i, name := range []string{"w1", "w2"} {
		n, err := s.AddNode(name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
		require.NoError(t, err)
		require.NoError(t, n.HoldVIP(vip))
		nodes = append(nodes, n)
	}
	client, err := s.AddClient("balancer", netip.MustParsePrefix("10.0.3.50/24"))
	require.NoError(t, err)
	_, err = nodes[0].Announce(vip)
	require.NoError(t, err)
	server, err := nodes[0].Serve(netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	sys := labSystem(t, client)
	call := func(want int, args ...string) string {
		var out, errOut bytes.Buffer
		assert.Equal(t, want, run(t.Context(), args, &out, &errOut, sys), "%v\n%s", args, &out)
		assert.Empty(t, errOut.String())
		return out.String()
	}
	file := filepath.Join(t.TempDir(), "arp.pcapng")
	link := netnstest.NIC
	call(exitWrong, "-i", link, "--pcap", file, "10.0.3.20")
	assert.Contains(t, call(exitWrong, "--replay", file, "10.0.3.20"), nodes[1].MAC().String())
	var out, errOut bytes.Buffer
	assert.Equal(t, exitError, run(t.Context(), []string{"-i", link, "--pcap", "/dev/full", "10.0.3.20"}, &out, &errOut, sys))
	assert.Contains(t, out.String(), "multiple", "a record that cannot be written does not cost the answer")
	assert.Equal(t, 1, strings.Count(errOut.String(), "no space left"), errOut.String())
	for _, n := range nodes {
		require.NoError(t, n.SetStrictARP(true))
	}
	require.NoError(t, client.Forget(vip))
	call(exitSingle, "-i", link, "--sweep", "--pcap", file, "--expect", nodes[0].MAC().String(), "10.0.3.20", "10.0.3.96/28")
	call(exitSingle, "--replay", file, "10.0.3.20", "10.0.3.96/28")
	soaked := call(exitSingle, "-i", link, "--soak", "1s", "--every", "500ms", "--connect", "80", "--expect", nodes[0].MAC().String(), "10.0.3.20")
	assert.Contains(t, soaked, "connect ok; cached "+nodes[0].MAC().String())
}
