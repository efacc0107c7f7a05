package arpcheck_test

import (
	"context"
	"io/fs"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// neighboursOf returns a host's cache, used from here.
func neighboursOf(t *testing.T, h *netnstest.Host) *arpcheck.Neighbours {
	t.Helper()
	var n *arpcheck.Neighbours
	require.NoError(t, h.Do(func() (err error) {
		n, err = arpcheck.OpenNeighbours()
		return err
	}))
	t.Cleanup(func() { assert.NoError(t, n.Close()) })
	return n
}

// setNeighbour makes an entry as "ip neigh replace" does, or one after another.
func setNeighbour(t *testing.T, h *netnstest.Host, addr netip.Addr, mac arpcheck.MAC, state int, then ...arpcheck.MAC) {
	t.Helper()
	require.NoError(t, h.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		for _, mac := range append([]arpcheck.MAC{mac}, then...) {
			if err != nil {
				return err
			}
			err = netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, IP: net.IP(addr.AsSlice()), HardwareAddr: mac[:], State: state,
			})
		}
		return err
	}))
}

func TestLabNeighbours(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 2)
	n, other := neighboursOf(t, from), neighboursOf(t, nodes[0])
	list, err := n.List("")
	require.NoError(t, err)
	assert.Equal(t, []arpcheck.Neighbour{}, list)
	_, err = n.Get("eth0", vip)
	require.ErrorIs(t, err, fs.ErrNotExist)

	mac, err := from.Resolve(t.Context(), vip)
	require.NoError(t, err)
	got, err := n.Get("eth0", vip)
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Neighbour{Addr: vip, MAC: mac, Link: "eth0", State: got.State}, got)
	assert.Equal(t, arpcheck.NeighbourFresh, got.Match(mac))
	assert.Equal(t, arpcheck.NeighbourStaleWrong, got.Match(from.MAC()))

	gateway := netip.MustParseAddr("10.0.3.1")
	for _, row := range []struct {
		state int
		want  arpcheck.NeighbourState
		match arpcheck.NeighbourMatch
	}{
		{netlink.NUD_REACHABLE, arpcheck.NeighbourReachable, arpcheck.NeighbourFresh},
		{netlink.NUD_STALE, arpcheck.NeighbourStale, arpcheck.NeighbourFresh},
		{netlink.NUD_NOARP, arpcheck.NeighbourNoARP, arpcheck.NeighbourFresh},
		{netlink.NUD_PERMANENT, arpcheck.NeighbourPermanent, arpcheck.NeighbourByHand},
	} {
		setNeighbour(t, from, gateway, node(9), row.state)
		got, err := n.Get("eth0", gateway)
		require.NoError(t, err)
		assert.Equal(t, arpcheck.Neighbour{Addr: gateway, MAC: node(9), Link: "eth0", State: row.want}, got)
		assert.Equal(t, row.match, got.Match(node(9)))
	}
	list, err = n.List("eth0")
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, gateway, list[0].Addr, "they are sorted")

	list, err = other.List("")
	require.NoError(t, err)
	for _, entry := range list {
		assert.NotEqual(t, gateway, entry.Addr, "another namespace has a cache of its own")
	}
	require.ErrorIs(t, other.Forget("eth0", gateway), fs.ErrNotExist)
	require.NoError(t, n.Forget("eth0", gateway))
	_, err = n.Get("eth0", gateway)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLabNeighboursErrors(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	n := neighboursOf(t, from)
	_, err := n.List("eth7")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = n.List("a-name-that-is-too-long-for-linux")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = n.Get("", vip)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = n.Get("eth0", netip.MustParseAddr("fd00::1"))
	require.ErrorIs(t, err, arpcheck.ErrBadTarget)
	require.ErrorIs(t, n.Forget("eth0", netip.Addr{}), arpcheck.ErrBadTarget)

	// A closed one must not go on in the namespace of whoever calls.
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
	_, err = n.List("")
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, n.Forget("lo", netip.MustParseAddr("127.0.0.1")), fs.ErrClosed)
	for _, err := range n.Watch(t.Context(), "") {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

func TestLabNeighboursWatch(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	n := neighboursOf(t, from)
	setNeighbour(t, from, client.Next(), node(9), netlink.NUD_PERMANENT)
	steps := []func(){
		func() { setNeighbour(t, from, vip, node(1), netlink.NUD_PERMANENT) },
		func() { setNeighbour(t, from, vip, node(2), netlink.NUD_PERMANENT) },
		func() { require.NoError(t, n.Forget("eth0", vip)) },
	}
	// Forget makes an entry FAILED before it removes it (neigh_delete in net/core/neighbour.c).
	var got []arpcheck.NeighbourEvent
	for e, err := range n.Watch(t.Context(), "eth0") {
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), e.At, time.Minute)
		e.At = time.Time{}
		got = append(got, e)
		if e.Type == arpcheck.NeighbourGone {
			break
		}
		for _, err := range n.Watch(t.Context(), "") {
			require.ErrorIs(t, err, arpcheck.ErrBusy)
		}
		if len(got) <= len(steps) {
			steps[len(got)-1]()
		}
	}
	entry := arpcheck.Neighbour{Addr: vip, MAC: node(1), Link: "eth0", State: arpcheck.NeighbourPermanent}
	second := entry
	second.MAC = node(2)
	require.GreaterOrEqual(t, len(got), 4)
	assert.Equal(t, []arpcheck.NeighbourEvent{
		{Type: arpcheck.NeighboursRead, Entries: []arpcheck.Neighbour{
			{Addr: client.Next(), MAC: node(9), Link: "eth0", State: arpcheck.NeighbourPermanent}}},
		{Type: arpcheck.NeighbourChanged, Neighbour: entry},
		{Type: arpcheck.NeighbourChanged, Neighbour: second, Before: node(1)},
	}, got[:3])
	assert.Equal(t, vip, got[len(got)-1].Neighbour.Addr)
}

func TestLabNeighboursWatchEnds(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	n := neighboursOf(t, from)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := 0
	for e, err := range n.Watch(ctx, "") {
		if events++; events == 1 {
			require.NoError(t, err)
			assert.Equal(t, []arpcheck.Neighbour{}, e.Entries)
			cancel()
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, 2, events)

	events = 0
	for _, err := range n.Watch(t.Context(), "eth7") { // it may come
		if events++; events == 1 {
			require.NoError(t, err)
			require.NoError(t, n.Close())
			continue
		}
		require.ErrorIs(t, err, fs.ErrClosed)
	}
	assert.Equal(t, 2, events)
}

// Who does not keep up loses changes, and is told all that there is then.
func TestLabNeighboursWatchOverrun(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	n := neighboursOf(t, from)
	var many []arpcheck.MAC
	for i := range 6000 {
		many = append(many, node(i))
	}
	reads := 0
	for e, err := range n.Watch(t.Context(), "") {
		require.NoError(t, err)
		if e.Type != arpcheck.NeighboursRead {
			continue
		}
		if reads++; reads == 1 {
			setNeighbour(t, from, vip, node(1), netlink.NUD_PERMANENT, many...)
			continue
		}
		assert.Equal(t, []arpcheck.Neighbour{{Addr: vip, MAC: many[len(many)-1], Link: "eth0", State: arpcheck.NeighbourPermanent}}, e.Entries)
		break
	}
	assert.Equal(t, 2, reads)
}
