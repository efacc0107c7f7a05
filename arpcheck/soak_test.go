package arpcheck_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// cacheOf is the neighbour cache of a host in memory.
type cacheOf struct{ *arpchecktest.Host }

func (c cacheOf) Get(link string, addr netip.Addr) (arpcheck.Neighbour, error) {
	mac, ok := c.Neighbour(addr)
	if !ok {
		return arpcheck.Neighbour{}, fmt.Errorf("no entry: %w", fs.ErrNotExist)
	}
	return arpcheck.Neighbour{Addr: addr, MAC: mac, Link: link, State: arpcheck.NeighbourReachable}, nil
}

// soak collects the samples of a plan that ends by itself.
func soak(t *testing.T, p *arpcheck.Prober, plan arpcheck.SoakPlan) (all []arpcheck.Sample, sum arpcheck.SoakSummary) {
	t.Helper()
	for s, err := range p.Soak(t.Context(), plan) {
		require.NoError(t, err)
		all = append(all, s)
		sum.Add(s)
	}
	return all, sum
}

// An hour in a second: samples are due to the nanosecond, nothing is skipped, and
// what is kept stays.
func TestSoakHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		require.NoError(t, nodes[0].Serve(netip.AddrPortFrom(vip, 80)))
		p, err := from.Open()
		require.NoError(t, err)
		var sum arpcheck.SoakSummary
		var at []uint64
		begun := time.Now()
		for s, err := range p.Soak(t.Context(), arpcheck.SoakPlan{
			Target: vip, For: time.Hour, Neighbours: cacheOf{from}, Expected: []arpcheck.MAC{nodes[0].MAC()},
			Check: func(ctx context.Context) error {
				_, err := from.Visit(ctx, netip.AddrPortFrom(vip, 80))
				return err
			},
		}) {
			require.NoError(t, err)
			require.Equal(t, begun.Add(time.Duration(s.N)*time.Second), s.At)
			require.Equal(t, s.At, s.Began)
			require.Equal(t, sum.Samples, s.N)
			require.Len(t, s.ARP.Responders, 3)
			sum.Add(s)
			if s.N%600 == 599 {
				at = append(at, heap())
			}
		}
		assert.Equal(t, 3600, sum.Samples)
		assert.Equal(t, 3600, sum.Checks)
		assert.Equal(t, 3600, sum.Several)
		assert.Zero(t, sum.Skipped)
		require.Len(t, at, 6)
		assert.Less(t, at[5], at[0]+1<<20, "the heap is flat: %v", at)
	})
}

// A wrong entry in the cache and failures of TCP coincide; a gratuitous frame heals
// both. The probes come from another host than the client, whose entry they would
// change.
func TestSoakFindsTheWrongMAC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segment := arpchecktest.New(t)
		var nodes []*arpchecktest.Host
		for i := range 3 {
			addr := netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)})
			n := segment.AddNode(fmt.Sprintf("w%d", i+1), netip.PrefixFrom(addr, 24))
			require.NoError(t, n.HoldVIP(vip))
			n.SetLatency(time.Duration(i) * time.Millisecond) // w1 wins
			nodes = append(nodes, n)
		}
		from := segment.AddClient("client", netip.PrefixFrom(client, 24))
		at := netip.AddrPortFrom(vip, 80)
		require.NoError(t, nodes[2].Serve(at))
		p, err := segment.AddClient("beside", netip.PrefixFrom(client.Next(), 24)).Open()
		require.NoError(t, err)
		time.AfterFunc(5500*time.Millisecond, func() {
			for _, n := range nodes {
				_ = n.SetStrictARP(true)
			}
			_, _ = nodes[2].Announce(vip)
		})
		all, sum := soak(t, p, arpcheck.SoakPlan{
			Target: vip, For: 10 * time.Second, Timeout: 900 * time.Millisecond, // before a second SYN
			Neighbours: cacheOf{from}, Expected: []arpcheck.MAC{nodes[2].MAC()},
			Check: func(ctx context.Context) error {
				_, err := from.Visit(ctx, at)
				return err
			},
		})
		require.Len(t, all, 10)
		assert.Equal(t, "", all[9].Check.Err)
		assert.Contains(t, all[0].Check.Err, "deadline exceeded")
		assert.Zero(t, all[0].CachedBefore.MAC)
		assert.Equal(t, nodes[0].MAC(), all[0].Cached.MAC)
		assert.Equal(t, arpcheck.NeighbourStaleWrong, all[0].Match)
		assert.Equal(t, arpcheck.NeighbourFresh, all[9].Match)
		assert.Equal(t, nodes[2].MAC(), all[9].Winner)
		assert.Equal(t, 10, sum.Checks)
		assert.Equal(t, 6, sum.Failures)
		assert.Equal(t, 6, sum.FailuresWrongMAC)
		assert.Zero(t, sum.FailuresRightMAC)
		assert.Zero(t, sum.SuccessesWrongMAC)
		assert.Equal(t, 1, sum.Flips)
		assert.Equal(t, 8, sum.Gratuitous, "four announcements and four replies until the last sample")
		assert.InDelta(t, 0.6, sum.Share(nodes[0].MAC()), 1e-9)
		assert.InDelta(t, 0.4, sum.Share(nodes[2].MAC()), 1e-9)
		assert.Zero(t, sum.Share(node(9)))
		for _, s := range all {
			for _, r := range s.ARP.Responders {
				assert.False(t, r.DoubleAnswer, "sample %d: the client's own questions are no probes", s.N)
			}
		}
	})
}

// A slow check costs samples, and does not shift the rest.
func TestSoakSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := 0
		all, sum := soak(t, answering(time.Millisecond, node(1)).prober(), arpcheck.SoakPlan{
			Target: vip, For: 10 * time.Second, Timeout: time.Minute,
			Check: func(ctx context.Context) error {
				if slow++; slow == 2 {
					time.Sleep(3500 * time.Millisecond)
				}
				if slow == 3 {
					time.Sleep(2 * time.Second) // until the next but one is due
				}
				return nil
			},
		})
		var due []int
		for _, s := range all {
			due = append(due, s.N)
			assert.Equal(t, s.At, s.Began)
			assert.Equal(t, time.Duration(s.N)*time.Second, s.At.Sub(all[0].At))
		}
		assert.Equal(t, []int{0, 1, 5, 7, 8, 9}, due)
		assert.Equal(t, 4, sum.Skipped)
		assert.Equal(t, 3500*time.Millisecond, sum.MaxLatency)
		assert.Equal(t, (5500*time.Millisecond)/6, sum.MeanLatency())
	})
}

// The slow body of a loop costs samples, too, and its end ends all.
func TestSoakBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var due []int
		for s, err := range answering(time.Millisecond, node(1)).prober().Soak(t.Context(), arpcheck.SoakPlan{Target: vip}) {
			require.NoError(t, err)
			due = append(due, s.N)
			time.Sleep(2 * time.Second)
			if len(due) == 3 {
				break
			}
		}
		assert.Equal(t, []int{0, 3, 6}, due)
	})
}

// Silence, an interface that is down and the return of both.
func TestSoakSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		link := func(after time.Duration, up bool) {
			time.AfterFunc(after, func() { _ = from.SetLink("eth0", up) })
		}
		silent := func(after time.Duration, is bool) {
			time.AfterFunc(after, func() {
				for _, n := range nodes {
					n.SetFault(arpchecktest.Fault{Silent: is})
				}
			})
		}
		silent(1900*time.Millisecond, true)
		silent(5900*time.Millisecond, false)
		link(7900*time.Millisecond, false)
		link(9900*time.Millisecond, true)
		silent(11900*time.Millisecond, true)
		_, sum := soak(t, p, arpcheck.SoakPlan{Target: vip, For: 14 * time.Second})
		assert.Equal(t, 14, sum.Samples)
		assert.Equal(t, 6, sum.Answered)
		assert.Equal(t, 6, sum.Silent)
		assert.Equal(t, 2, sum.Unknown)
		assert.Equal(t, 4*time.Second, sum.LongestSilence)
		assert.Zero(t, sum.Checks)
		assert.Zero(t, sum.MeanLatency())
	})
}

// Claims between samples are told, and a question of this host's kernel just before
// a probe makes no double answer.
func TestSoakBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		w.later(900*time.Millisecond, toHost(claimAnnouncement(2)), toHost(claimAnnouncement(2)), toHost(claimRequest(3)))
		w.later(999*time.Millisecond, otherAsks(vip, arpcheck.Broadcast))
		w.later(1001*time.Millisecond, toHost(claimReply(1)))
		all, sum := soak(t, w.prober(), arpcheck.SoakPlan{Target: vip, For: 3 * time.Second})
		require.Len(t, all, 3)
		assert.Empty(t, all[0].Between)
		require.Len(t, all[1].Between, 2)
		assert.Equal(t, arpcheck.Announcement, all[1].Between[0].Kind)
		assert.Equal(t, 2, all[1].Between[0].Frames)
		assert.Equal(t, arpcheck.Request, all[1].Between[1].Kind)
		assert.Empty(t, all[2].Between)
		assert.Equal(t, 2, sum.Gratuitous)
		assert.Equal(t, 2, all[1].ARP.Responders[0].Replies)
		assert.False(t, all[1].ARP.Responders[0].DoubleAnswer)
	})
}

// brokenCache cannot be read.
type brokenCache struct{}

func (brokenCache) Get(string, netip.Addr) (arpcheck.Neighbour, error) {
	return arpcheck.Neighbour{}, errors.New("no netlink")
}

func TestSoakCacheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := soak(t, newWire().prober(), arpcheck.SoakPlan{Target: vip, For: 1, Neighbours: brokenCache{}})
		require.Len(t, all, 1)
		assert.Nil(t, all[0].Cached)
		assert.Equal(t, "no netlink", all[0].CacheError)
		assert.Empty(t, all[0].Match)
	})
}

func TestSoakErrors(t *testing.T) {
	last := func(p *arpcheck.Prober, ctx context.Context, plan arpcheck.SoakPlan) (last error) {
		for _, err := range p.Soak(ctx, plan) {
			last = err
		}
		return last
	}
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		require.ErrorIs(t, last(p, t.Context(), arpcheck.SoakPlan{}), arpcheck.ErrBadTarget)
		require.ErrorContains(t, last(p, t.Context(), arpcheck.SoakPlan{Target: vip, Every: -1}), "negative Every")
		require.ErrorContains(t, last(&arpcheck.Prober{}, t.Context(), arpcheck.SoakPlan{Target: vip}), "without a Conn")
		for _, d := range []time.Duration{time.Millisecond, 1300 * time.Millisecond, 1999 * time.Millisecond} { // in a probe, a check, a pause
			begun := time.Now()
			require.ErrorIs(t, last(p, within(t, d), arpcheck.SoakPlan{Target: vip, Check: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}}), context.DeadlineExceeded)
			assert.Equal(t, d, time.Since(begun))
		}
		time.AfterFunc(time.Minute, func() { _ = w.Close() })
		require.ErrorIs(t, last(p, t.Context(), arpcheck.SoakPlan{Target: vip}), net.ErrClosed)
	})
}

// The summary keeps a bounded number of MACs.
func TestSoakSummaryIsBounded(t *testing.T) {
	t.Parallel()
	var sum arpcheck.SoakSummary
	for n := range 2000 {
		sum.Add(arpcheck.Sample{Winner: node(n), ARP: arpcheck.Result{Responders: []arpcheck.Responder{{MAC: node(n)}}}})
	}
	assert.Len(t, sum.MACs, arpcheck.DefaultMaxResponders)
	assert.Equal(t, 1999, sum.Flips)
}

// ARP and a request together, for as long as it takes to see the fault. Check can
// be anything, such as a request of an http.Client whose Transport has the Dialer's
// DialContext.
func ExampleProber_Soak() {
	segment, prober := office()
	defer segment.Close()

	var sum arpcheck.SoakSummary
	for sample, err := range prober.Soak(context.Background(), arpcheck.SoakPlan{
		Target: netip.MustParseAddr("10.0.3.21"),
		Every:  100 * time.Millisecond,
		For:    300 * time.Millisecond,
		Check:  func(context.Context) error { return nil },
	}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		sum.Add(sample)
	}
	fmt.Println(sum.Answered, "answered,", sum.Flips, "flips,", sum.Failures, "failures")
	// Output: 3 answered, 0 flips, 0 failures
}
