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
)

// late is a Conn on a machine that stands still for a while in each window.
type late struct{ arpcheck.Conn }

func (c late) Receive(frames []arpcheck.Frame) (int, error) {
	time.Sleep(2 * arpcheck.DefaultWait)
	return c.Conn.Receive(frames)
}

// What arrived in time is seen even if it is read when the window is over.
func TestFramesReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(199) // more replies than one Receive returns
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		p.Conn = late{w}
		results, err := p.ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
			require.Equal(t, 3, r.Responders[0].Replies)
			require.False(t, r.Responders[0].DoubleAnswer)
		}
	})
}

// A Linux host delays at most 64 answers by proxy ARP and loses the others.
func TestProxyARPForMoreTargetsThanItsQueueHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := arpchecktest.New(t)
		router := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
		require.NoError(t, router.AddLink("eth9"))
		require.NoError(t, router.AddRoute(arpchecktest.Route{To: netip.MustParsePrefix("10.1.0.0/16"), Link: "eth9"}))
		require.NoError(t, router.SetProxyARP(true))
		p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
		require.NoError(t, err)
		results, err := p.ProbeAll(t.Context(), addrs(306))
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
			require.Equal(t, router.MAC(), r.Responders[0].MAC)
			require.False(t, r.Responders[0].DoubleAnswer, "%+v", r)
		}
	})
}

// A host does not hear its own answers, so its address controls nothing.
func TestControlIsThisHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := arpchecktest.New(t).AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
		p, err := client.Open()
		require.NoError(t, err)
		p.Control = client.Addr()
		_, err = p.Probe(t.Context(), vip)
		require.ErrorIs(t, err, arpcheck.ErrBadTarget)
		assert.ErrorContains(t, err, "control")
	})
}
