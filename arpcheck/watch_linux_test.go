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

// heard is how many frames come within a window.
func heard(t *testing.T, p *arpcheck.Prober) (n int) {
	t.Helper()
	frames := make([]arpcheck.Frame, 64)
	require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(labWait)))
	for {
		got, err := p.Conn.Receive(frames)
		if err != nil {
			return n
		}
		n += got
	}
}

// While only some addresses are of interest the socket filter keeps out the rest;
// afterwards the Conn is as before.
func TestLabWatchRestoresTheConn(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	inject := func() {
		other := arpwire.Request(nodes[0].MAC(), vip.Next(), vip.Next().Next()).Append(nil, 60)
		watched := arpwire.Request(nodes[0].MAC(), vip.Next(), vip).Append(nil, 60)
		for _, frame := range [][]byte{other, watched, other} {
			require.NoError(t, nodes[0].Inject(frame))
		}
	}
	for _, err := range p.Soak(t.Context(), arpcheck.SoakPlan{Target: vip}) {
		require.NoError(t, err)
		inject()
		assert.Equal(t, 1, heard(t, p), "in the loop's body the filter is on")
		break
	}
	time.AfterFunc(labWait, func() { _, _ = nodes[0].Announce(vip) })
	for _, err := range p.Watch(t.Context(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}}) {
		require.NoError(t, err)
		break
	}
	inject()
	assert.GreaterOrEqual(t, heard(t, p), 3)
	assert.Equal(t, arpcheck.Single, probe(t, p).Verdict)
}

// More frames than one Receive takes, or a block of the ring holds, all arrive, with
// what is known of them; what does not fit is counted.
func TestLabWatchManyFrames(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	sender := openIn(t, nodes[0], "eth0")
	const macs, times = 7, 500
	var frames [][]byte
	for i := range macs * times {
		q := arpwire.Request([6]byte{2, 8, 0, 0, 0, byte(i % macs)}, vip, vip)
		if i%macs == 0 {
			q.VLAN = 9
		}
		frames = append(frames, q.Append(nil, 60))
	}
	time.AfterFunc(labWait, func() {
		for rest := frames; len(rest) > 0; {
			n, err := sender.Conn.Send(rest)
			if err != nil {
				return
			}
			rest = rest[n:]
		}
	})
	count := map[arpcheck.MAC]int{}
	total := 0
	o := arpcheck.WatchOptions{Addrs: []netip.Addr{vip}, Every: time.Second}
	for e, err := range p.Watch(t.Context(), o) {
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), e.At, 10*time.Second)
		switch e.Kind {
		case arpcheck.ClaimGratuitous:
			count[e.MAC] += e.Count
			assert.Equal(t, e.MAC[5] == 0, e.VLAN == 9, "%+v", e)
			total += e.Count
		case arpcheck.WatchDropped:
			total += e.Count
		}
		if total >= macs*times {
			break
		}
	}
	assert.Equal(t, macs*times, total)
	assert.Len(t, count, macs)
}

// A flood of claims by made-up MACs, as fast as they can be sent, does not end the
// Watch, and is told in few events.
func TestLabWatchFlood(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	sender := openIn(t, nodes[0], "eth0")
	const flood = 100_000
	time.AfterFunc(labWait, func() {
		batch := make([][]byte, 50)
		for n := 0; n < flood; n += len(batch) {
			for i := range batch {
				k := n + i
				batch[i] = arpwire.Request([6]byte{2, 8, 0, byte(k >> 16), byte(k >> 8), byte(k)}, vip, vip).Append(nil, 60)
			}
			_, _ = sender.Conn.Send(batch)
		}
		_, _ = nodes[0].Announce(vip)
	})
	events, last := 0, time.Now()
	for e, err := range p.Watch(t.Context(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}, Every: time.Second}) {
		require.NoError(t, err)
		events++
		if e.MAC == nodes[0].MAC() {
			last = time.Now()
			break
		}
	}
	assert.WithinDuration(t, time.Now(), last, time.Second)
	assert.Less(t, events, 500)
}
