package arpcheck_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// peer is what hosts in memory and in the lab have in common.
type peer interface {
	MAC() arpcheck.MAC
	HoldVIP(netip.Addr) error
	BindOnNIC(netip.Addr) error
	SetStrictARP(bool) error
	SetLink(string, bool) error
	SendFrom(source, to netip.Addr) error
	Forget(netip.Addr) error
	Inject([]byte) error
	Open() (*arpcheck.Prober, error)
}

// scene is a segment with three nodes that hold the VIP, and a client.
type scene struct {
	nodes []peer
	from  peer
}

// inBoth runs a test on a segment in memory and on one of the kernel, which is to
// make no difference.
func inBoth(t *testing.T, test func(*testing.T, scene)) {
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			nodes, from := cluster(t, vip)
			s := scene{from: from}
			for _, n := range nodes {
				s.nodes = append(s.nodes, n)
			}
			test(t, s)
		})
	})
	t.Run("kernel", func(t *testing.T) {
		t.Parallel()
		test(t, labScene(t))
	})
}

// strict makes all nodes strict.
func (s scene) strict(t *testing.T) {
	t.Helper()
	for _, n := range s.nodes {
		require.NoError(t, n.SetStrictARP(true))
	}
}

// announce lets a node announce the VIP, with or without gratuitous frames.
func announce(t *testing.T, on peer, quiet bool) {
	t.Helper()
	var err error
	switch h := on.(type) {
	case *arpchecktest.Host:
		_, err = h.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: quiet})
	case *netnstest.Host:
		_, err = h.AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: quiet})
	}
	require.NoError(t, err)
}

// openOn returns a Prober of a host that is closed when the test ends.
func openOn(t *testing.T, h peer) *arpcheck.Prober {
	t.Helper()
	p, err := h.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	p.Wait = 100 * time.Millisecond
	return p
}
