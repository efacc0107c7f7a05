package arpcheck_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// A double answer is more replies than requests in at least half of the rounds.
// Each row says how many replies one MAC sends to the request of each round.
func TestDoubleAnswerBoundary(t *testing.T) {
	for _, row := range []struct {
		name    string
		replies []int
		rounds  int // DoubleAnswers; -1 if the first answer heard may be one's late answer to the round before
		double  bool
	}{
		{"once each", []int{1, 1, 1}, 0, false},
		{"one duplicate in three rounds", []int{1, 2, 1}, 1, false},
		{"one duplicate in the last of three rounds", []int{1, 1, 2}, 1, false},
		{"two of three", []int{2, 1, 2}, 2, true},
		{"all", []int{2, 2, 2}, 3, true},
		{"three answers", []int{3, 3, 3}, 3, true},
		{"half of two", []int{2, 1}, 1, true},
		{"half of four", []int{1, 2, 2, 1}, 2, true},
		{"less than half of five", []int{1, 2, 2, 1, 1}, 2, false},
		{"more than half of five", []int{2, 2, 2, 1, 1}, 3, true},
		{"one round", []int{2}, 1, true},
		{"many copies in one of three", []int{50, 1, 1}, 1, false},
		{"silent in between", []int{2, 0, 2}, 2, true},
		{"lost in the first of four", []int{0, 2, 2, 2}, -1, true},
		{"lost in the first of three", []int{0, 2, 2}, -1, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				round := 0
				w.onSend = func([]byte) {
					for i := range row.replies[round] {
						w.later(time.Duration(i+1)*time.Millisecond, toHost(reply(node(1), vip)))
					}
					w.later(100*time.Millisecond, toHost(reply(node(2), vip))) // once, always
					round++
				}
				p := w.prober()
				p.Rounds = len(row.replies)
				r := probe(t, p)
				require.Len(t, r.Responders, 2)
				for _, got := range r.Responders {
					if got.MAC == node(2) {
						assert.Zero(t, got.DoubleAnswers)
						assert.False(t, got.DoubleAnswer)
						continue
					}
					assert.Equal(t, row.double, got.DoubleAnswer, "%+v", got)
					if row.rounds >= 0 {
						assert.Equal(t, row.rounds, got.DoubleAnswers)
					}
				}
			})
		})
	}
}

// Lost frames may have been requests of other programs: no double answer then.
func TestNoDoubleAnswerAfterDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(1))
		p := w.prober()
		dropInRound(2)(t, w, p)
		r := probe(t, p)
		// Not in the first round: among the frames that were dropped before the
		// pass may have been requests that are answered in it.
		assert.Equal(t, 2, r.Responders[0].DoubleAnswers)
		assert.False(t, r.Responders[0].DoubleAnswer)
	})
}

// Drops before a pass excuse one round of it, and only if they are new.
func TestDropsBeforeThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(1))
		w.drops = 7
		p := w.prober()
		p.Rounds = 1
		for _, want := range []bool{false, true} {
			r := probe(t, p)
			assert.Equal(t, want, r.Responders[0].DoubleAnswer)
			assert.Zero(t, r.Quality.Drops)
		}
	})
}

// What the prober's host asks besides, at one time in a window or before the
// pass. Each request that reaches the station is answered once, 40 ms later; the
// window is 100 ms.
func TestOthersRequestsAreNoDoubleAnswer(t *testing.T) {
	const window, rtt = 100 * time.Millisecond, 40 * time.Millisecond
	to := arpcheck.Broadcast
	for _, row := range []struct {
		name     string
		at       []time.Duration // from the beginning of the pass
		to       arpcheck.MAC
		requests int // seen of others
	}{
		{"with ours", []time.Duration{1, window + 1, 2*window + 1}, to, 3},
		{"many in one window", []time.Duration{1, 2, 3, 4, 5, 6, 7}, to, 7},
		{"just before each round ends", []time.Duration{window - 1, 2*window - 1, 3*window - 1}, to, 3},
		{"twice just before each round ends", []time.Duration{window - 2, window - 1, 2*window - 2, 2*window - 1}, to, 4},
		{"before the pass, answered in it", []time.Duration{-1, -rtt + 1}, to, 2},
		{"unicast to the one", []time.Duration{1, window + 1, 2*window + 1}, node(1), 3},
		{"unicast, answered in the next round", []time.Duration{window - 1, 2*window - 1}, node(1), 2},
		{"unicast before the pass", []time.Duration{-1}, node(1), 1},
		{"unicast to somebody else", []time.Duration{1, window + 1, 2*window + 1}, node(2), 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(rtt, node(1))
				for _, at := range row.at {
					time.AfterFunc(window+at, func() {
						w.deliver(otherAsks(vip, row.to))
						if row.to != node(2) {
							w.later(rtt, toHost(reply(node(1), vip)))
						}
					})
				}
				time.Sleep(window) // so that there is a time before the pass
				p := w.prober()
				p.Wait = window
				r := probe(t, p)
				require.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
				assert.Zero(t, r.Responders[0].DoubleAnswers)
				assert.Equal(t, row.requests, r.Quality.OtherRequests)
			})
		})
	}
}

// A request to one MAC allows no other MAC a second answer.
func TestUnicastAllowsOneMACOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1), node(2), node(2))
		ask := w.onSend
		w.onSend = func(frame []byte) {
			ask(frame)
			w.deliver(otherAsks(vip, node(1)))
			w.later(2*time.Millisecond, toHost(reply(node(1), vip)))
		}
		r := probe(t, w.prober())
		require.Equal(t, []arpcheck.MAC{node(1), node(2)}, macs(r))
		assert.False(t, r.Responders[0].DoubleAnswer)
		assert.True(t, r.Responders[1].DoubleAnswer)
	})
}

// Requests that draw no replies to us excuse nothing.
func TestRequestsThatDoNotExcuse(t *testing.T) {
	change := func(f func(*arpwire.Packet)) arpcheck.Frame {
		p := arpwire.Request(own, client, vip)
		f(&p)
		return arpcheck.Frame{Data: p.Append(nil, 0), Type: arpcheck.Outgoing}
	}
	tagged := otherAsks(vip, arpcheck.Broadcast)
	tagged.VLAN = 7
	received := otherAsks(vip, arpcheck.Broadcast)
	received.Type = arpcheck.ToBroadcast
	for _, row := range []struct {
		name  string
		frame arpcheck.Frame
	}{
		{"for another target", change(func(p *arpwire.Packet) { p.Target = client })},
		{"under another sender", change(func(p *arpwire.Packet) { p.Sender = vip.Next() })},
		{"under another MAC, as of a guest behind a bridge", change(func(p *arpwire.Packet) { p.Src, p.SenderMAC = node(8), node(8) })},
		{"into another VLAN", change(func(p *arpwire.Packet) { p.VLAN = 7 })},
		{"into another VLAN, tag taken off", tagged},
		{"a reply", change(func(p *arpwire.Packet) { p.Op = arpwire.OpReply })},
		{"of another host", received},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(2*time.Millisecond, node(1), node(1))
				ask := w.onSend
				w.onSend = func(frame []byte) {
					ask(frame)
					w.deliver(row.frame)
				}
				r := probe(t, w.prober())
				assert.Zero(t, r.Quality.OtherRequests)
				assert.True(t, r.Responders[0].DoubleAnswer)
			})
		})
	}
}
