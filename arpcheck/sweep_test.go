package arpcheck_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// sweepSegment is a segment whose nodes all hold the targets, and a client.
func sweepSegment(t testing.TB, nodes int, targets []netip.Addr) ([]*arpchecktest.Host, *arpcheck.Prober) {
	t.Helper()
	s := arpchecktest.New(t)
	var all []*arpchecktest.Host
	for i := range nodes {
		h := s.AddNode(fmt.Sprintf("w%d", i), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(8 + i/250), byte(1 + i%250)}), 8))
		for _, target := range targets {
			require.NoError(t, h.HoldVIP(target))
		}
		all = append(all, h)
	}
	p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/8")).Open()
	require.NoError(t, err)
	return all, p
}

// sweepAll runs a sweep to its end.
func sweepAll(t testing.TB, s arpcheck.Sweep, targets []netip.Addr) map[netip.Addr]arpcheck.Result {
	t.Helper()
	all := make(map[netip.Addr]arpcheck.Result)
	for r, err := range s.Run(t.Context(), slices.Values(targets)) {
		require.NoError(t, err)
		if _, twice := all[r.Target]; twice {
			t.Fatalf("%s is yielded twice", r.Target)
		}
		all[r.Target] = r
	}
	return all
}

// Every pair is found though the receive buffer holds a fraction of the replies.
func TestSweepFindsEveryPair(t *testing.T) {
	for _, row := range []struct{ targets, nodes int }{{1, 0}, {306, 1}, {306, 3}, {306, 50}, {64, 200}, {1000, 3}} {
		t.Run(fmt.Sprintf("%dx%d", row.targets, row.nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				targets := addrs(row.targets)
				nodes, p := sweepSegment(t, row.nodes, targets)
				var last arpcheck.SweepProgress
				results := sweepAll(t, arpcheck.Sweep{Prober: p, Progress: func(p arpcheck.SweepProgress) { last = p }}, targets)
				require.Len(t, results, row.targets)
				for _, r := range results {
					require.Len(t, r.Responders, len(nodes))
					require.Empty(t, r.Reasons)
					for _, got := range r.Responders {
						require.False(t, got.DoubleAnswer)
					}
				}
				assert.Zero(t, last.Drops)
				t.Logf("%+v", last)
			})
		})
	}
}
