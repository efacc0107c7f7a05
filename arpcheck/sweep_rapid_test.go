package arpcheck_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// conclusion is what a sweep and a probe have to agree on.
type conclusion struct {
	verdict arpcheck.Verdict
	reasons []arpcheck.Reason
	sender  arpcheck.Sender
	doubles map[arpcheck.MAC]bool // of each responder
}

func concluded(r arpcheck.Result) conclusion {
	c := conclusion{r.Verdict, r.Reasons, r.Sender, map[arpcheck.MAC]bool{}}
	for _, responder := range r.Responders {
		c.doubles[responder.MAC] = responder.DoubleAnswer
	}
	return c
}

// On any sound segment a sweep says of each target what ProbeAll says: who
// answers, who answers twice, and how sure that is.
func TestSweepSaysWhatAProbeSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		targets := addrs(rapid.IntRange(1, 90).Draw(rt, "targets"))
		nodes := rapid.IntRange(0, 5).Draw(rt, "nodes")
		seed := rapid.Uint64().Draw(rt, "seed")
		jitter := time.Duration(rapid.Int64Range(0, int64(8*time.Millisecond)).Draw(rt, "jitter"))
		held := rapid.SliceOfN(rapid.IntRange(0, 1<<nodes-1), len(targets), len(targets)).Draw(rt, "held")
		announced := rapid.SliceOfN(rapid.IntRange(0, 7), len(targets), len(targets)).Draw(rt, "announced")
		var swept map[netip.Addr]arpcheck.Result
		var probed []arpcheck.Result
		synctest.Test(t, func(t *testing.T) {
			s := arpchecktest.New(t)
			s.Seed = seed
			for n := range nodes {
				h := s.AddNode(fmt.Sprintf("w%d", n), netip.MustParsePrefix(fmt.Sprintf("10.0.3.%d/24", 11+n)))
				h.SetFault(arpchecktest.Fault{Jitter: jitter})
				for i, target := range targets {
					if held[i]&(1<<n) != 0 {
						require.NoError(t, h.HoldVIP(target))
					}
					if announced[i] == n {
						_, err := h.Announce(target)
						require.NoError(t, err)
					}
				}
			}
			p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
			require.NoError(t, err)
			swept = sweepAll(t, arpcheck.Sweep{Prober: p, Seed: seed}, targets)
			probed, err = p.ProbeAll(t.Context(), slices.Clone(targets))
			require.NoError(t, err)
		})
		for _, r := range probed {
			require.Equal(rt, concluded(r), concluded(swept[r.Target]), "%s", r.Target)
		}
	})
}
