package arpcheck_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// Each node is asked alone: a loose one answers, a strict one does not, an
// announcer does though it is strict, and a loose announcer answers twice.
func TestAsk(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		p := openOn(t, s.from)
		announce(t, s.nodes[0], true)
		check := func(n peer, want arpcheck.AnswersState, double bool) {
			t.Helper()
			a, err := p.Ask(t.Context(), vip, n.MAC())
			require.NoError(t, err)
			assert.Equal(t, want, a.Answers, "%v", a.Result.Reasons)
			assert.Equal(t, double, a.Double)
			assert.Equal(t, n.MAC(), a.Node)
			assert.Empty(t, a.Others)
			assert.Equal(t, 3, a.Result.Quality.Requests)
			assert.Equal(t, arpcheck.Sender{Addr: client, From: arpcheck.SenderRoute}, a.Result.Sender)
			all := askAll(t, p, []netip.Addr{vip}, n.MAC())
			require.Len(t, all, 1)
			assert.Equal(t, want, all[vip].Answers, "%v", all[vip].Result.Reasons)
			assert.Equal(t, double, all[vip].Double)
			assert.Equal(t, n.MAC(), all[vip].Node)
			assert.Empty(t, all[vip].Others)
			assert.Equal(t, 3, all[vip].Result.Quality.Requests)
		}
		check(s.nodes[0], arpcheck.Answers, true)
		check(s.nodes[1], arpcheck.Answers, false)
		s.strict(t)
		check(s.nodes[0], arpcheck.Answers, false)
		check(s.nodes[1], arpcheck.Silent, false)
	})
}

// A router that answers by proxy does so at once, and within the short window.
func TestAskProxyARP(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := arpchecktest.New(t)
			router := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
			require.NoError(t, router.AddLink("uplink0"))
			require.NoError(t, router.AddRoute(arpchecktest.Route{To: netip.PrefixFrom(vip, 32), Link: "uplink0"}))
			require.NoError(t, router.SetProxyARP(true))
			p := openOn(t, s.AddClient("client", netip.PrefixFrom(client, 24)))
			askProxy(t, p, router.MAC())
		})
	})
	t.Run("kernel", func(t *testing.T) {
		t.Parallel()
		s := netnstest.New(t)
		router, err := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
		require.NoError(t, err)
		require.NoError(t, router.SetProxyARP(true, netip.PrefixFrom(vip, 32)))
		from, err := s.AddClient("client", netip.PrefixFrom(client, 24))
		require.NoError(t, err)
		askProxy(t, openOn(t, from), router.MAC())
	})
}

func askProxy(t *testing.T, p *arpcheck.Prober, router arpcheck.MAC) {
	t.Helper()
	a, err := p.Ask(t.Context(), vip, router)
	require.NoError(t, err)
	require.Equal(t, arpcheck.Answers, a.Answers)
	assert.Equal(t, 3, a.Result.Responders[0].Replies)
	assert.Less(t, a.Result.Responders[0].RTT.Max, 100*time.Millisecond)

	p.Sender = netip.IPv4Unspecified()
	free, err := p.CheckFree(t.Context(), vip, arpcheck.FreeOptions{Time: 700 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Free, free.State, "proxy ARP does not answer probes, as is documented")
}

func askAll(t *testing.T, p *arpcheck.Prober, targets []netip.Addr, node arpcheck.MAC) map[netip.Addr]arpcheck.Answer {
	t.Helper()
	all := map[netip.Addr]arpcheck.Answer{}
	for a, err := range p.AskAll(t.Context(), slices.Values(targets), node) {
		require.NoError(t, err)
		require.NotContains(t, all, a.Result.Target)
		all[a.Result.Target] = a
	}
	return all
}

// The requests go to the node's MAC alone, under the Prober's settings.
func TestAskFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(2))
		p := w.prober()
		p.Rounds, p.To, p.Control = 2, node(9), client.Next()
		begun := time.Now()
		a, err := p.Ask(t.Context(), vip, node(1))
		require.NoError(t, err)
		assert.Equal(t, 2*arpcheck.DefaultAskWait, time.Since(begun))
		assert.Equal(t, arpcheck.Answers, a.Answers)
		assert.Equal(t, []arpcheck.MAC{node(2)}, a.Others)
		require.Len(t, w.sentFrames(), 2, "no control address is asked")
		for _, s := range w.sentFrames() {
			q := parse(t, s.data)
			assert.EqualValues(t, node(1), q.Dst)
			assert.Equal(t, vip, q.Target)
		}
		assert.Equal(t, node(9), p.To, "the Prober is as before")

		a, err = p.Ask(t.Context(), vip, node(3))
		require.NoError(t, err)
		assert.Equal(t, arpcheck.AnswersUnknown, a.Answers, "two others and not the one who was asked")
	})
}

// A node that answers under another sender MAC than the frame's source did answer.
func TestAskFrameSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func(frame []byte) {
			q := parse(t, frame).Reply(node(1))
			q.Src = node(2)
			w.later(time.Millisecond, toHost(q))
		}
		a, err := w.prober().Ask(t.Context(), vip, node(2))
		require.NoError(t, err)
		assert.Equal(t, arpcheck.Answers, a.Answers)
		assert.Empty(t, a.Others)
	})
}

func TestAskUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		time.AfterFunc(time.Second, w.goDown)
		a, err := w.prober().Ask(t.Context(), vip, node(1))
		require.NoError(t, err)
		assert.Equal(t, arpcheck.AnswersUnknown, a.Answers)
		assert.Contains(t, a.Result.Reasons, arpcheck.LinkDown)
	})
}

func TestAskErrors(t *testing.T) {
	t.Parallel()
	p := newWire().prober()
	for _, mac := range []arpcheck.MAC{{}, arpcheck.Broadcast, {1, 0, 0x5e}, own} {
		_, err := p.Ask(t.Context(), vip, mac)
		require.ErrorIs(t, err, arpcheck.ErrBadTarget)
	}
	_, err := p.Ask(t.Context(), netip.MustParseAddr("fd00::1"), node(1))
	require.ErrorIs(t, err, arpcheck.ErrBadTarget)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Ask(ctx, vip, node(1))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAskAllErrors(t *testing.T) {
	t.Parallel()
	p := newWire().prober()
	last := func(ctx context.Context, target netip.Addr, mac arpcheck.MAC) (err error) {
		calls := 0
		for _, err = range p.AskAll(ctx, slices.Values([]netip.Addr{target}), mac) {
			calls++
		}
		assert.Equal(t, 1, calls)
		return err
	}
	for _, mac := range []arpcheck.MAC{{}, arpcheck.Broadcast, {1, 0, 0x5e}, own} {
		require.ErrorIs(t, last(t.Context(), vip, mac), arpcheck.ErrBadTarget)
	}
	require.ErrorIs(t, last(t.Context(), netip.MustParseAddr("fd00::1"), node(1)), arpcheck.ErrBadTarget)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, last(ctx, vip, node(1)), context.Canceled)
}

// Who leaves the loop has the Prober back, and it is as before.
func TestAskAllLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		p.To, p.Control = node(9), client.Next()
		for a, err := range p.AskAll(t.Context(), slices.Values(addrs(5)), node(1)) {
			require.NoError(t, err)
			assert.Equal(t, arpcheck.Answers, a.Answers)
			break
		}
		for _, s := range w.sentFrames() {
			q := parse(t, s.data)
			assert.EqualValues(t, node(1), q.Dst)
			assert.Contains(t, addrs(5), q.Target, "no control address is asked")
		}
		assert.Equal(t, node(9), p.To)
		assert.Equal(t, client.Next(), p.Control)
		_, err := p.Probe(t.Context(), vip)
		require.NoError(t, err)
	})
}

// What Ask leaves behind counts for the next pass: a late answer is not double.
func TestAskThenProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		p := w.prober()
		p.Rounds, p.Wait = 1, 10*time.Millisecond
		w.onSend = func(frame []byte) {
			if q := parse(t, frame); q.Dst != arpwire.Broadcast {
				w.later(12*time.Millisecond, toHost(q.Reply(node(1))))
				return
			}
			w.later(5*time.Millisecond, toHost(reply(node(1), vip)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Millisecond)
		defer cancel()
		_, err := p.Ask(ctx, vip, node(1))
		require.NoError(t, err)
		r := probe(t, p)
		assert.Equal(t, 2, r.Responders[0].Replies)
		assert.False(t, r.Responders[0].DoubleAnswer)
	})
}

// Each node can be asked alone whether it answers.
func ExampleProber_Ask() {
	segment, prober := office()
	defer segment.Close()

	for _, node := range []arpcheck.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}} {
		answer, err := prober.Ask(context.Background(), netip.MustParseAddr("10.0.3.21"), node)
		fmt.Println(answer.Node, answer.Answers, err)
	}
	// Output:
	// 02:00:00:00:00:01 silent <nil>
	// 02:00:00:00:00:02 answers <nil>
}

// One node is asked for many addresses at once.
func ExampleProber_AskAll() {
	segment, prober := office()
	defer segment.Close()

	vips := slices.Values([]netip.Addr{netip.MustParseAddr("10.0.3.21"), netip.MustParseAddr("10.0.3.99")})
	for answer, err := range prober.AskAll(context.Background(), vips, arpcheck.MAC{2, 0, 0, 0, 0, 2}) {
		fmt.Println(answer.Result.Target, answer.Answers, err)
	}
	// Unordered output:
	// 10.0.3.21 answers <nil>
	// 10.0.3.99 silent <nil>
}
