package arpcheck_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// noise is what else the prober's host does around a pass, which begins at
// noiseBegins.
type noise struct {
	seed    uint64
	latency time.Duration // of all answers
	jitter  time.Duration
	second  time.Duration // when a second prober begins on the same interface
	rounds  int           // of the second prober
	wait    time.Duration // of the second prober
	resolve []time.Duration
	connect []time.Duration
	unicast []time.Duration // when the kernel revalidates a neighbour
}

// noiseBegins leaves room for what happens before the pass.
const noiseBegins = 3 * time.Second

func drawNoise(rt *rapid.T) noise {
	at := rapid.Map(rapid.Int64Range(0, int64(noiseBegins+3*arpcheck.DefaultWait)), func(n int64) time.Duration {
		return time.Duration(n)
	})
	// The moments about which it is easy to be wrong: where rounds begin and end.
	edge := rapid.Custom(func(t *rapid.T) time.Duration {
		round := rapid.IntRange(0, 3).Draw(t, "round")
		off := rapid.Int64Range(-int64(2*time.Millisecond), int64(2*time.Millisecond)).Draw(t, "off")
		return noiseBegins + time.Duration(round)*arpcheck.DefaultWait + time.Duration(off)
	})
	when := rapid.OneOf(at, edge)
	ms := func(low, high int64, name string) time.Duration {
		return time.Duration(rapid.Int64Range(low, high).Draw(rt, name)) * time.Millisecond
	}
	return noise{
		seed:    rapid.Uint64().Draw(rt, "seed"),
		latency: time.Duration(rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(rt, "latency")),
		jitter:  ms(0, 400, "jitter ms"),
		second:  when.Draw(rt, "second prober"),
		rounds:  rapid.IntRange(1, 20).Draw(rt, "rounds of the second"),
		wait:    ms(50, 2000, "wait of the second"),
		resolve: rapid.SliceOfN(when, 0, 3).Draw(rt, "resolve"),
		connect: rapid.SliceOfN(when, 0, 2).Draw(rt, "connect"),
		unicast: rapid.SliceOfN(when, 0, 4).Draw(rt, "unicast"),
	}
}

// make lets the noise happen on a host, in goroutines of the bubble.
func (n noise) make(t *testing.T, from *arpchecktest.Host, known arpcheck.MAC) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	second, err := from.Open()
	require.NoError(t, err)
	second.Rounds, second.Wait = n.rounds, n.wait
	time.AfterFunc(n.second, func() { _, _ = second.Probe(ctx, vip) })
	for _, at := range n.resolve {
		time.AfterFunc(at, func() {
			_ = from.Forget(vip)
			_, _ = from.Resolve(ctx, vip)
		})
	}
	for _, at := range n.connect {
		time.AfterFunc(at, func() {
			_ = from.Forget(vip)
			_, _ = from.Visit(ctx, netip.AddrPortFrom(vip, 80))
		})
	}
	for _, at := range n.unicast {
		request := arpwire.Request(from.MAC(), from.Addr(), vip)
		request.Dst = known
		time.AfterFunc(at, func() { _ = from.Inject(request.Append(nil, 0)) })
	}
}

// probeAmid probes the VIP amid the noise. The Prober was opened before.
func (n noise) probeAmid(t *testing.T, nodes []*arpchecktest.Host, from *arpchecktest.Host) arpcheck.Result {
	for _, h := range nodes {
		h.SetLatency(n.latency)
		h.SetFault(arpchecktest.Fault{Jitter: n.jitter})
	}
	p, err := from.Open()
	require.NoError(t, err)
	n.make(t, from, nodes[0].MAC())
	time.Sleep(noiseBegins)
	return probe(t, p)
}

// Two probers, the kernel's own resolution, TCP connects and unicast
// revalidation on one interface, at any time, make no false double answer.
func TestNoFalseDoubleAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := drawNoise(rt)
		var r arpcheck.Result
		synctest.Test(t, func(t *testing.T) {
			nodes, from := cluster(t, vip)
			require.NoError(t, nodes[0].Serve(netip.AddrPortFrom(vip, 80)))
			r = n.probeAmid(t, nodes, from)
		})
		require.Equal(rt, arpcheck.Multiple, r.Verdict)
		require.Len(rt, r.Responders, 3)
		for _, responder := range r.Responders {
			require.Zero(rt, responder.DoubleAnswers, "%+v", responder)
			require.False(rt, responder.DoubleAnswer)
		}
	})
}

// A true double answer is found beside a second prober, whenever that begins and
// however often it asks.
func TestTrueDoubleAnswerBesideASecondProber(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := noise{
			latency: time.Duration(rapid.Int64Range(0, int64(400*time.Millisecond)).Draw(rt, "latency")),
			second:  time.Duration(rapid.Int64Range(0, int64(noiseBegins+3*arpcheck.DefaultWait)).Draw(rt, "second prober")),
			rounds:  rapid.IntRange(1, 20).Draw(rt, "rounds of the second"),
			wait:    time.Duration(rapid.Int64Range(50, 2000).Draw(rt, "wait of the second ms")) * time.Millisecond,
		}
		var r arpcheck.Result
		var announcer arpcheck.MAC
		synctest.Test(t, func(t *testing.T) {
			nodes, from := cluster(t, vip)
			announcer = nodes[0].MAC()
			_, err := nodes[0].AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
			require.NoError(t, err)
			r = n.probeAmid(t, nodes, from)
		})
		require.Len(rt, r.Responders, 3)
		for _, responder := range r.Responders {
			require.Equal(rt, responder.MAC == announcer, responder.DoubleAnswer, "%+v", responder)
		}
	})
}
