package arpcheck_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck"
)

// A client whose cache holds the wrong node fails, and heals when the right node
// announces; the Soak says that the two coincide.
func TestLabSoak(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 2)
	right, wrong := nodes[0], nodes[1]
	_, err := right.Serve(netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	for _, n := range nodes {
		require.NoError(t, n.SetStrictARP(true))
	}
	var dialer *arpcheck.Dialer
	require.NoError(t, from.Do(func() (err error) {
		dialer, err = arpcheck.OpenDialer()
		return err
	}))
	defer func() { assert.NoError(t, dialer.Close()) }()
	p := openIn(t, from, "eth0")
	setNeighbour(t, from, vip, wrong.MAC(), netlink.NUD_REACHABLE)
	plan := arpcheck.SoakPlan{
		Target: vip, Every: 500 * time.Millisecond, Port: 80, Dial: dialer.DialContext,
		Neighbours: neighboursOf(t, from), Expected: []arpcheck.MAC{right.MAC()},
	}
	var sum arpcheck.SoakSummary
	announced := false
	for s, err := range p.Soak(t.Context(), plan) {
		require.NoError(t, err)
		sum.Add(s)
		require.Empty(t, s.CacheError)
		if !announced {
			announced = true
			assert.False(t, s.Check.OK)
			assert.Contains(t, s.Check.Err, "refused", "the wrong node holds the VIP and serves nothing")
			assert.Equal(t, arpcheck.NeighbourStaleWrong, s.Match)
			assert.Zero(t, s.Winner)
			announce(t, right, false)
		}
		if s.Check.OK && sum.Answered > 0 {
			assert.Equal(t, arpcheck.NeighbourFresh, s.Match)
			assert.Equal(t, right.MAC(), s.Winner)
			assert.Positive(t, s.Check.Latency)
			break
		}
		require.Less(t, sum.Samples, 60)
	}
	assert.Positive(t, sum.FailuresWrongMAC)
	assert.Equal(t, sum.Failures, sum.FailuresWrongMAC)
	assert.Positive(t, sum.Gratuitous)
}

func TestLabDialer(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	at := netip.AddrPortFrom(vip, 80)
	_, err := nodes[0].Serve(at)
	require.NoError(t, err)
	var dialer *arpcheck.Dialer
	require.NoError(t, from.Do(func() (err error) {
		dialer, err = arpcheck.OpenDialer()
		return err
	}))
	conn, err := dialer.DialContext(t.Context(), "tcp", at.String())
	require.NoError(t, err)
	assert.Contains(t, conn.LocalAddr().String(), client.String(), "it is the namespace's")
	require.NoError(t, conn.Close())
	_, err = dialer.DialContext(t.Context(), "tcp", "localhost:80")
	require.ErrorContains(t, err, "an IP address and a port")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dialer.DialContext(ctx, "tcp", at.String())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, dialer.Close())
	require.NoError(t, dialer.Close())
	_, err = dialer.DialContext(t.Context(), "tcp", at.String())
	require.Error(t, err)
}
