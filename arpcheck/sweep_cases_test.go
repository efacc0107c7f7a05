package arpcheck_test

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// targetsSent returns the targets of the requests that a wire has sent, in order.
func targetsSent(t *testing.T, w *wire) []netip.Addr {
	t.Helper()
	var all []netip.Addr
	for _, s := range w.sentFrames() {
		p, err := arpwire.Parse(s.data)
		require.NoError(t, err)
		all = append(all, p.Target)
	}
	return all
}

func TestSweepSilentAndSingleAreAskedAsByAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(2)
		s := arpchecktest.New(t)
		n := s.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
		require.NoError(t, n.HoldVIP(targets[0]))
		p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
		require.NoError(t, err)
		got := sweepAll(t, arpcheck.Sweep{Prober: p}, targets)
		single, none := got[targets[0]], got[targets[1]]
		assert.Equal(t, arpcheck.Single, single.Verdict)
		assert.Equal(t, []arpcheck.MAC{n.MAC()}, macs(single))
		assert.Equal(t, 3, single.Rounds)
		assert.Equal(t, 3, single.Responders[0].Replies)
		assert.Equal(t, 1, single.Responders[0].WonRounds)
		assert.Equal(t, arpchecktest.DefaultLatency, single.Responders[0].RTT.Mean)
		assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 3}}, single.Responders[0].Lengths)
		assert.Equal(t, arpcheck.None, none.Verdict)
		assert.Equal(t, 3, none.Rounds)
		assert.GreaterOrEqual(t, none.Ended.Sub(none.Started), arpcheck.DefaultWait)
	})
}

// One silent round does not settle anything, one that is told to be enough does
// not either.
func TestSweepOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWire().prober()
		p.Rounds = 1
		got := sweepAll(t, arpcheck.Sweep{Prober: p}, addrs(1))[addrs(1)[0]]
		assert.Equal(t, arpcheck.Inconclusive, got.Verdict)
		assert.Equal(t, reasons(arpcheck.TooFewRounds), got.Reasons)
	})
}

// A responder whose first answer was lost for every target is seen all the same.
func TestSweepResponderLostEveryTime(t *testing.T) {
	for _, nodes := range []int{2, 3, 20} {
		synctest.Test(t, func(t *testing.T) {
			targets := addrs(306)
			hosts, p := sweepSegment(t, nodes, targets)
			hosts[0].SetFault(arpchecktest.Fault{LoseFirst: len(targets)})
			for _, r := range sweepAll(t, arpcheck.Sweep{Prober: p}, targets) {
				require.Len(t, r.Responders, nodes)
				require.Equal(t, arpcheck.Multiple, r.Verdict)
			}
		})
	}
}

// A receive queue that is smaller than it should be loses frames. The sweep slows
// down and asks again; what it cannot know it says.
func TestSweepDrops(t *testing.T) {
	for _, queue := range []int{40, 100} {
		synctest.Test(t, func(t *testing.T) {
			targets := addrs(306)
			hosts, p := sweepSegment(t, 30, targets)
			p.Conn.(*arpchecktest.Conn).SetReceiveQueue(queue)
			var last arpcheck.SweepProgress
			s := arpcheck.Sweep{Prober: p, Progress: func(p arpcheck.SweepProgress) { last = p }}
			for _, r := range sweepAll(t, s, targets) {
				if len(r.Reasons) == 0 {
					require.Len(t, r.Responders, len(hosts))
				}
				require.NotEqual(t, arpcheck.Single, r.Verdict)
				require.NotEqual(t, arpcheck.None, r.Verdict)
			}
			assert.Positive(t, last.Drops)
			assert.Equal(t, len(hosts)*len(targets), last.Pairs)
		})
	}
}

// A queue that is full is waited for.
func TestSweepSendQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(306)
		_, p := sweepSegment(t, 3, targets)
		p.Conn.(*arpchecktest.Conn).SetSendQueue(4, time.Millisecond)
		var last arpcheck.SweepProgress
		s := arpcheck.Sweep{Prober: p, Progress: func(p arpcheck.SweepProgress) { last = p }}
		for _, r := range sweepAll(t, s, targets) {
			require.Len(t, r.Responders, 3)
			require.Empty(t, r.Reasons)
		}
		assert.Positive(t, last.QueueFull)
		assert.Equal(t, len(targets), last.Settled)
	})
}

func TestSweepSendQueueStaysFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(100)
		_, p := sweepSegment(t, 1, targets)
		p.Conn.(*arpchecktest.Conn).SetSendQueue(0, 0)
		for _, r := range sweepAll(t, arpcheck.Sweep{Prober: p}, targets) {
			require.Equal(t, arpcheck.Inconclusive, r.Verdict)
			require.Contains(t, r.Reasons, arpcheck.NotSent)
			require.Zero(t, r.Quality.Requests)
		}
	})
}

// A router that answers by proxy answers late and loses what its queue cannot
// hold; asked alone it answers for all.
func TestSweepProxyARP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := arpchecktest.New(t)
		router := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
		require.NoError(t, router.AddLink("eth9"))
		require.NoError(t, router.AddRoute(arpchecktest.Route{To: netip.MustParsePrefix("10.1.0.0/16"), Link: "eth9"}))
		require.NoError(t, router.SetProxyARP(true))
		p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
		require.NoError(t, err)
		begun := time.Now()
		got := sweepAll(t, arpcheck.Sweep{Prober: p}, addrs(306))
		for _, r := range got {
			require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
			require.Equal(t, router.MAC(), r.Responders[0].MAC)
			require.False(t, r.Responders[0].DoubleAnswer, "%+v", r)
		}
		assert.Less(t, time.Since(begun), 2*arpcheck.DefaultWait)
	})
}

func TestSweepSeed(t *testing.T) {
	order := func(seed uint64) (all []netip.Addr) {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			p := w.prober()
			p.Rounds = 1
			sweepAll(t, arpcheck.Sweep{Prober: p, Seed: seed}, addrs(100))
			all = targetsSent(t, w)
		})
		return all
	}
	assert.Equal(t, order(1), order(1))
	assert.NotEqual(t, order(1), order(2))
	assert.NotEqual(t, addrs(100), order(1))
	assert.Equal(t, addrs(100), order(0))
	assert.ElementsMatch(t, addrs(100), order(1))
}

func TestSweepTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(2))
		targets := addrs(8)
		given := slices.Concat(targets, targets[:3], []netip.Addr{netip.AddrFrom16(targets[0].As16())})
		s := arpcheck.Sweep{Prober: w.prober(), Exclude: []netip.Prefix{netip.PrefixFrom(targets[7], 32), netip.MustParsePrefix("10.9.0.0/16")}}
		got := sweepAll(t, s, given)
		assert.Len(t, got, 7)
		assert.NotContains(t, got, targets[7])
		assert.NotContains(t, targetsSent(t, w), targets[7])
	})
}

func TestSweepNoTargets(t *testing.T) {
	w := newWire()
	assert.Empty(t, sweepAll(t, arpcheck.Sweep{Prober: w.prober()}, nil))
	assert.Empty(t, sweepAll(t, arpcheck.Sweep{Prober: w.prober(), Exclude: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, addrs(3)))
	assert.Empty(t, w.sentFrames())
}

// endless yields one address for ever.
func endless(next func(netip.Addr) netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for a := addrs(1)[0]; yield(a); a = next(a) {
		}
	}
}

func TestSweepErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWire()
	p := w.prober()
	held := w.prober()
	held.Sender = addrs(3)[1]
	for _, row := range []struct {
		name    string
		ctx     context.Context
		sweep   arpcheck.Sweep
		targets iter.Seq[netip.Addr]
		want    error
		text    string
	}{
		{"IPv6", t.Context(), arpcheck.Sweep{Prober: p}, slices.Values([]netip.Addr{vip, netip.MustParseAddr("fd00::1")}), arpcheck.ErrBadTarget, "fd00::1"},
		{"no address", t.Context(), arpcheck.Sweep{Prober: p}, slices.Values([]netip.Addr{{}}), arpcheck.ErrBadTarget, "no address"},
		{"multicast", t.Context(), arpcheck.Sweep{Prober: p}, slices.Values([]netip.Addr{netip.MustParseAddr("224.0.0.1")}), arpcheck.ErrBadTarget, "224.0.0.1"},
		{"under itself", t.Context(), arpcheck.Sweep{Prober: held}, slices.Values(addrs(3)), arpcheck.ErrBadTarget, "announce"},
		{"too many", t.Context(), arpcheck.Sweep{Prober: p}, endless(netip.Addr.Next), arpcheck.ErrBadTarget, "in parts"},
		{"the same for ever", t.Context(), arpcheck.Sweep{Prober: p}, endless(func(a netip.Addr) netip.Addr { return a }), arpcheck.ErrBadTarget, "in parts"},
		{"cancelled", cancelled, arpcheck.Sweep{Prober: p}, slices.Values(addrs(3)), context.Canceled, "not begun"},
		{"no Prober", t.Context(), arpcheck.Sweep{}, slices.Values(addrs(3)), nil, "without a Prober"},
		{"negative rate", t.Context(), arpcheck.Sweep{Prober: p, Rate: -1}, slices.Values(addrs(3)), nil, "negative"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := 0
			for _, err := range row.sweep.Run(row.ctx, row.targets) {
				n++
				require.Error(t, err)
				assert.ErrorContains(t, err, row.text)
				if row.want != nil {
					assert.ErrorIs(t, err, row.want)
				}
			}
			assert.Equal(t, 1, n, "the error comes once")
		})
	}
	assert.Empty(t, w.sentFrames())
}

// What ctx ends is yielded all the same, and is not called conclusive.
func TestSweepCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var unasked, cut int
		for r, err := range (arpcheck.Sweep{Prober: w.prober(), Rate: 1000}).Run(ctx, slices.Values(addrs(200))) {
			require.NoError(t, err)
			require.Equal(t, arpcheck.Inconclusive, r.Verdict)
			require.Contains(t, r.Reasons, arpcheck.CutShort)
			cut++
			if r.Quality.Requests == 0 {
				unasked++
				require.True(t, r.Started.IsZero())
			}
		}
		assert.Equal(t, 200, cut)
		assert.InDelta(t, 150, unasked, 5)
	})
}

// Who leaves the loop ends the sweep; the Prober goes on.
func TestSweepLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		for _, err := range p.Sweep(t.Context(), slices.Values(addrs(500))) {
			require.NoError(t, err)
			break
		}
		before := len(w.sentFrames())
		assert.Equal(t, arpcheck.Single, probe(t, p).Verdict)
		assert.Equal(t, before+3, len(w.sentFrames()))
	})
}

// The rate is kept over the whole sweep, and results come while it runs.
func TestSweepRate(t *testing.T) {
	for _, s := range []arpcheck.Sweep{{Rate: 100}, {Bandwidth: 100 * arpcheck.RequestBits}, {Rate: 1000, Bandwidth: 100 * arpcheck.RequestBits}} {
		synctest.Test(t, func(t *testing.T) {
			w := answering(time.Millisecond, node(1), node(2))
			s.Prober = w.prober()
			begun := time.Now()
			var first time.Duration
			for _, err := range s.Run(t.Context(), slices.Values(addrs(1000))) {
				require.NoError(t, err)
				if first == 0 {
					first = time.Since(begun)
				}
			}
			assert.Less(t, first, 2*time.Second)
			sent := w.sentFrames()
			assert.InDelta(t, float64(len(sent))/100, sent[len(sent)-1].at.Sub(begun).Seconds(), 0.2)
			for i := range sent[100:] {
				require.GreaterOrEqual(t, sent[i+100].at.Sub(sent[i].at), 990*time.Millisecond)
			}
		})
	}
}

// One MAC that answers each request twice is told apart from one whose second
// answer is for another program of the host.
func TestSweepDoubleAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(1), node(2))
		for _, r := range sweepAll(t, arpcheck.Sweep{Prober: w.prober()}, addrs(100)) {
			require.True(t, r.Responders[0].DoubleAnswer)
			require.False(t, r.Responders[1].DoubleAnswer)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func(frame []byte) {
			p, err := arpwire.Parse(frame)
			require.NoError(t, err)
			w.deliver(otherAsks(p.Target, arpcheck.Broadcast))
			w.later(time.Millisecond, toHost(p.Reply(node(1))), toHost(p.Reply(node(1))))
		}
		for _, r := range sweepAll(t, arpcheck.Sweep{Prober: w.prober()}, addrs(100)) {
			require.False(t, r.Responders[0].DoubleAnswer)
			require.Equal(t, 3, r.Quality.OtherRequests)
			require.Equal(t, 6, r.Responders[0].Replies)
		}
	})
}

func TestSweepLinkGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(2))
		time.AfterFunc(20*time.Millisecond, w.goDown)
		got := sweepAll(t, arpcheck.Sweep{Prober: w.prober(), Rate: 1000}, addrs(100))
		require.Len(t, got, 100)
		for _, r := range got {
			require.Contains(t, r.Reasons, arpcheck.LinkDown)
		}
	})
}

// A host cannot hear itself, and a control address tells silence from a wire
// that carries nothing.
func TestSweepHeldHereAndControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(3)
		s := arpchecktest.New(t)
		from := s.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
		require.NoError(t, from.HoldVIP(targets[0]))
		gateway := s.AddClient("gateway", netip.MustParsePrefix("10.0.3.1/24"))
		p, err := from.Open()
		require.NoError(t, err)
		p.Control = gateway.Addr()
		got := sweepAll(t, arpcheck.Sweep{Prober: p}, targets)
		require.Len(t, got, 3, "the control address is no target")
		assert.Contains(t, got[targets[0]].Reasons, arpcheck.HeldHere)
		assert.Equal(t, arpcheck.None, got[targets[1]].Verdict)
		assert.Equal(t, &arpcheck.Control{Target: gateway.Addr(), Answered: true}, got[targets[1]].Control)
		require.NoError(t, gateway.SetLink("eth0", false))
		got = sweepAll(t, arpcheck.Sweep{Prober: p}, targets)
		assert.Equal(t, reasons(arpcheck.ControlSilent), got[targets[1]].Reasons)
		p.Control = from.Addr()
		for _, err := range p.Sweep(t.Context(), slices.Values(targets)) {
			assert.ErrorIs(t, err, arpcheck.ErrBadTarget)
		}
	})
}
