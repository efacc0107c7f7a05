package arpcheck_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// onLink does something to a host's eth0.
func onLink(t *testing.T, h *netnstest.Host, f func(netlink.Link) error) {
	t.Helper()
	require.NoError(t, h.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return f(link)
	}))
}

// A renamed interface is watched on, under its new name; one that is gone is an
// error that says what to do.
func TestLabWatchRenameAndGone(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	time.AfterFunc(labWait, func() { _, _ = nodes[0].Announce(vip) })
	names := map[string]bool{}
	renamed := false
	var last error
	for e, err := range p.Watch(t.Context(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}, Every: time.Second}) {
		last = err
		if err != nil {
			break
		}
		names[e.Interface] = true
		if !renamed {
			renamed = true
			onLink(t, from, func(l netlink.Link) error {
				for _, change := range []func() error{
					func() error { return netlink.LinkSetDown(l) },
					func() error { return netlink.LinkSetName(l, "lan0") },
					func() error { return netlink.LinkSetUp(l) },
				} {
					if err := change(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if e.Interface == "lan0" && e.Kind == arpcheck.ClaimGratuitous {
			require.NoError(t, from.Do(func() error {
				l, err := netlink.LinkByName("lan0")
				if err != nil {
					return err
				}
				return netlink.LinkDel(l)
			}))
		}
	}
	assert.Equal(t, map[string]bool{"eth0": true, "lan0": true}, names)
	require.ErrorIs(t, last, arpcheck.ErrLinkDown)
	require.ErrorContains(t, last, "open another Prober")
}

// The socket filter keeps out what is not watched, and is taken off again.
func TestLabWatchFilter(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	frames := make([]arpcheck.Frame, 64)
	heard := func() (n int) {
		require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(labWait)))
		for {
			got, err := p.Conn.Receive(frames)
			if err != nil {
				return n
			}
			n += got
		}
	}
	other := arpwire.Request(nodes[0].MAC(), vip.Next(), vip.Next().Next()).Append(nil, 60)
	watched := arpwire.Request(nodes[0].MAC(), vip.Next(), vip).Append(nil, 60)
	inject := func() {
		for _, frame := range [][]byte{other, watched, other} {
			require.NoError(t, nodes[0].Inject(frame))
		}
	}
	time.AfterFunc(labWait, func() { _, _ = nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}}) })
	for _, err := range p.Watch(t.Context(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}}) {
		require.NoError(t, err)
		heard() // in the loop's body the filter is on
		inject()
		assert.Equal(t, 1, heard())
		break
	}
	inject()
	assert.GreaterOrEqual(t, heard(), 3)
}
