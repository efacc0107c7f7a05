package arpcheck_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// The first answer ends nothing: whoever answers within the window is seen, up
// to its last nanosecond.
func TestAllRespondersOfTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func([]byte) {
			w.later(time.Microsecond, toHost(reply(node(1), vip)))
			w.later(800*time.Millisecond, toHost(reply(node(2), vip)))
			w.later(arpcheck.DefaultWait-time.Nanosecond, toHost(reply(node(3), vip)))
		}
		r := probe(t, w.prober())
		assert.Equal(t, []arpcheck.MAC{node(1), node(2), node(3)}, macs(r))
		assert.Equal(t, []int{3, 0, 0}, wins(r))
		for _, responder := range r.Responders {
			assert.Equal(t, 3, responder.Replies)
		}
	})
}

func wins(r arpcheck.Result) []int {
	var all []int
	for _, responder := range r.Responders {
		all = append(all, responder.WonRounds)
	}
	return all
}

// Proxy ARP answers after a random time of up to 0.8 s; with the defaults it is
// never missed, whatever the time.
func TestProxyARPIsNeverMissed(t *testing.T) {
	prefix := netip.MustParsePrefix("10.0.3.11/24")
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		latency := time.Duration(rapid.Int64Range(0, int64(150*time.Millisecond)).Draw(rt, "latency"))
		var r arpcheck.Result
		var proxy arpcheck.MAC
		synctest.Test(t, func(t *testing.T) {
			s := arpchecktest.New(t)
			s.Seed = seed
			router := s.AddNode("router", prefix)
			proxy = router.MAC()
			require.NoError(t, router.AddLink("eth1", netip.MustParsePrefix("10.9.0.1/24")))
			require.NoError(t, router.AddRoute(arpchecktest.Route{To: netip.PrefixFrom(vip, 32), Link: "eth1"}))
			require.NoError(t, router.SetProxyARP(true))
			router.SetLatency(latency)
			p, err := s.AddClient("client", netip.PrefixFrom(client, 24)).Open()
			require.NoError(t, err)
			p.Rounds = 1
			r = probe(t, p)
		})
		require.Equal(rt, arpcheck.Single, r.Verdict)
		require.Equal(rt, []arpcheck.MAC{proxy}, macs(r))
		require.Equal(rt, 1, r.Responders[0].Replies)
	})
}

// Requests for one target are Wait apart at least, whatever Interval is, and
// however long it takes to send a round's requests.
func TestRoundsNeverOverlap(t *testing.T) {
	for _, row := range []struct {
		name           string
		wait, interval time.Duration
		apart          time.Duration
	}{
		{"defaults", 0, 0, arpcheck.DefaultWait},
		{"shorter interval", 200 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond},
		{"longer interval", 200 * time.Millisecond, time.Second, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				p := w.prober()
				p.Wait, p.Interval = row.wait, row.interval
				begun := time.Now()
				r := probe(t, p)
				sent := w.sentFrames()
				require.Len(t, sent, 3)
				for i, s := range sent {
					assert.Equal(t, time.Duration(i)*row.apart, s.at.Sub(begun), "request %d", i)
				}
				assert.Equal(t, 3*row.apart, r.Ended.Sub(begun), "the last window is as long")
			})
		})
	}
}

func TestRoundsNeverOverlapOnASlowQueue(t *testing.T) {
	const window = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.take = func(n int) (int, error) { return min(n, 1), nil } // 1 each 1 ms: 100 ms a round
		p := w.prober()
		p.Wait = window
		results, err := p.ProbeAll(t.Context(), addrs(100))
		require.NoError(t, err)
		last := map[netip.Addr]time.Time{}
		for _, s := range w.sentFrames() {
			target := parse(t, s.data).Target
			if before, ok := last[target]; ok {
				assert.GreaterOrEqual(t, s.at.Sub(before), window, "requests for %s", target)
			}
			last[target] = s.at
		}
		for _, r := range results {
			assert.Equal(t, 3, r.Quality.Requests)
			assert.GreaterOrEqual(t, r.Ended.Sub(last[r.Target]), window, "the last window of %s", r.Target)
		}
	})
}

// FastRounds overlap. Then a reply may answer any of the requests, and neither
// who was first nor who answered twice is known.
func TestFastRounds(t *testing.T) {
	for _, row := range []struct {
		name            string
		interval, apart time.Duration
	}{
		{"default", 0, arpcheck.DefaultInterval},
		{"given", 10 * time.Millisecond, 10 * time.Millisecond},
		{"longer than Wait", 2 * time.Second, 2 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Two answers of one MAC to each request.
				w := answering(300*time.Millisecond, node(1), node(1), node(2))
				p := w.prober()
				p.FastRounds, p.Interval = true, row.interval
				begun := time.Now()
				r := probe(t, p)
				sent := w.sentFrames()
				require.Len(t, sent, 3)
				for i, s := range sent {
					assert.Equal(t, time.Duration(i)*row.apart, s.at.Sub(begun), "request %d", i)
				}
				assert.Equal(t, 2*row.apart+max(row.apart, arpcheck.DefaultWait), r.Ended.Sub(begun))
				assert.Equal(t, []arpcheck.MAC{node(1), node(2)}, macs(r))
				assert.Equal(t, 6, r.Responders[0].Replies)
				assert.Equal(t, []int{0, 0}, wins(r))
				assert.Zero(t, r.Responders[0].DoubleAnswers)
				assert.False(t, r.Responders[0].DoubleAnswer)
				assert.Equal(t, 3, r.Rounds)
			})
		})
	}
}

// Silence of fast rounds is as conclusive as of slow ones: the last window is
// whole.
func TestFastRoundsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWire().prober()
		p.FastRounds = true
		assert.Equal(t, arpcheck.None, probe(t, p).Verdict)
	})
}

// Requests are broadcast, or sent to the one MAC that was given.
func TestRequestFrame(t *testing.T) {
	for _, to := range []arpcheck.MAC{{}, node(7)} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			p := w.prober()
			p.To = to
			probe(t, p)
			want := to
			if to.IsZero() {
				want = arpcheck.Broadcast
			}
			for _, s := range w.sentFrames() {
				q := parse(t, s.data)
				assert.EqualValues(t, want, q.Dst)
				assert.EqualValues(t, own, q.Src)
				assert.EqualValues(t, own, q.SenderMAC)
				assert.Equal(t, client, q.Sender)
				assert.Equal(t, vip, q.Target)
				assert.Zero(t, q.TargetMAC)
				kind, err := arpcheck.Classify(s.data)
				require.NoError(t, err)
				assert.Equal(t, arpcheck.Request, kind)
			}
		})
	}
}
