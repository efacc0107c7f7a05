package arpcheck_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

// A request of a window ago may be answered yet; an older one may not, and
// excuses nothing.
func TestOldRequestsBeforeThePass(t *testing.T) {
	for _, row := range []struct {
		age    time.Duration
		counts int
	}{
		{0, 1}, {time.Second, 1}, {arpcheck.DefaultWait, 1}, {arpcheck.DefaultWait + 1, 0},
		{2*arpcheck.DefaultWait + 1, 0}, {time.Hour, 0},
	} {
		t.Run(row.age.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1), node(1))
				w.deliver(otherAsks(vip, arpcheck.Broadcast)) // which nobody answered
				time.Sleep(row.age)
				p := w.prober()
				p.Rounds = 1
				r := probe(t, p)
				assert.Equal(t, row.counts, r.Quality.OtherRequests)
				assert.Equal(t, row.counts == 0, r.Responders[0].DoubleAnswer)
			})
		})
	}
}

// A MAC that is heard late may owe answers to others' requests of the round
// before, whatever it had answered before the pass.
func TestOthersRequestsOfAMACHeardLate(t *testing.T) {
	for _, before := range []int{0, 3} {
		t.Run(fmt.Sprintf("%d answered before", before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				answer := toHost(reply(node(1), vip))
				for range before {
					w.deliver(otherAsks(vip, arpcheck.Broadcast), answer)
				}
				time.Sleep(time.Second)
				w.onSend = func([]byte) {
					if len(w.sentFrames()) == 2 {
						w.later(time.Millisecond, answer, answer, answer)
					}
				}
				time.AfterFunc(arpcheck.DefaultWait-1, func() {
					w.deliver(otherAsks(vip, arpcheck.Broadcast), otherAsks(vip, node(1)))
				})
				r := probe(t, w.prober())
				require.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
				assert.Zero(t, r.Responders[0].DoubleAnswers)
			})
		})
	}
}

// Requests before the pass that were answered before it excuse nothing in it.
func TestAnsweredRequestsBeforeThePass(t *testing.T) {
	for _, row := range []struct{ requests, rounds int }{{1, 1}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {5, 1}, {5, 3}} {
		t.Run(fmt.Sprintf("%d in %d rounds", row.requests, row.rounds), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1), node(1))
				for range row.requests {
					w.deliver(otherAsks(vip, arpcheck.Broadcast))
					w.later(time.Millisecond, toHost(reply(node(1), vip)), toHost(reply(node(1), vip)))
				}
				time.Sleep(time.Second)
				p := w.prober()
				p.Rounds = row.rounds
				r := probe(t, p)
				assert.True(t, r.Responders[0].DoubleAnswer, "%+v", r.Responders[0])
			})
		})
	}
}

// A reply before the pass answers the oldest request that it can: what was asked
// just before the pass is answered in it.
func TestRepliesBeforeThePassAnswerTheOldest(t *testing.T) {
	for _, row := range []struct {
		name           string
		request, reply time.Duration // before the pass
	}{
		{"long ago", 10 * time.Second, 9 * time.Second},
		{"asked more than a window ago, answered since", 2 * time.Second, time.Second},
		{"both within the window", time.Second, time.Second / 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				w.deliver(otherAsks(vip, arpcheck.Broadcast))
				time.Sleep(row.request - row.reply)
				w.deliver(toHost(reply(node(1), vip)))
				time.Sleep(row.reply - time.Millisecond)
				w.deliver(otherAsks(vip, arpcheck.Broadcast))
				w.later(2*time.Millisecond, toHost(reply(node(1), vip)))
				time.Sleep(time.Millisecond)
				p := w.prober()
				p.Rounds = 1
				r := probe(t, p)
				require.Equal(t, 2, r.Responders[0].Replies)
				assert.Zero(t, r.Responders[0].DoubleAnswers)
			})
		})
	}
}

// The Prober's own requests of a pass that was cut short are answered in the
// next one.
func TestOwnRequestsOfThePassBefore(t *testing.T) {
	for rounds := 1; rounds <= 3; rounds++ {
		t.Run(strconv.Itoa(rounds), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := answering(10*time.Millisecond, node(1)).prober()
				p.Rounds = rounds
				_, err := p.Probe(within(t, time.Millisecond), vip)
				require.NoError(t, err)
				r := probe(t, p)
				assert.Zero(t, r.Responders[0].DoubleAnswers)
				assert.False(t, r.Responders[0].DoubleAnswer)
			})
		})
	}
}

// So are those of several.
func TestOwnRequestsOfTwoPassesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := answering(10*time.Millisecond, node(1)).prober()
		p.Rounds = 1
		for range 2 {
			_, err := p.Probe(within(t, time.Millisecond), vip)
			require.NoError(t, err)
		}
		r := probe(t, p)
		assert.Zero(t, r.Responders[0].DoubleAnswers, "%+v", r.Responders[0])
	})
}

// What a pass that was cut short had asked long ago, for another target or under
// another sender excuses nothing.
func TestOwnRequestsThatDoNotExcuse(t *testing.T) {
	for _, row := range []struct {
		name   string
		target netip.Addr
		sender netip.Addr
		pause  time.Duration
	}{
		{"long ago", vip, client, arpcheck.DefaultWait + 1},
		{"for another target", vip.Next(), client, 0},
		{"under another sender", vip, client.Next(), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				p := w.prober()
				p.Rounds, p.Sender = 1, row.sender
				_, err := p.Probe(within(t, time.Millisecond), row.target)
				require.NoError(t, err)
				time.Sleep(row.pause)
				p.Sender = client
				w.onSend = func([]byte) {
					w.later(time.Millisecond, toHost(reply(node(1), vip)), toHost(reply(node(1), vip)))
				}
				assert.True(t, probe(t, p).Responders[0].DoubleAnswer)
			})
		})
	}
}

// A station that takes longer than the window answers each request once all
// the same.
func TestAnswersLaterThanTheWindow(t *testing.T) {
	for _, row := range []struct {
		name  string
		times []time.Duration // from each round's request to its answer
	}{
		{"always too late", []time.Duration{150, 150, 150, 50}},
		{"too late in the first of two rounds", []time.Duration{150, 90}},
		{"too late in every other round", []time.Duration{150, 90, 150, 90}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				round := 0
				w.onSend = func([]byte) {
					w.later(row.times[round]*time.Millisecond, toHost(reply(node(1), vip)))
					round++
				}
				p := w.prober()
				p.Wait, p.Rounds = 100*time.Millisecond, len(row.times)
				r := probe(t, p)
				assert.LessOrEqual(t, r.Responders[0].Replies, r.Quality.Requests)
				assert.False(t, r.Responders[0].DoubleAnswer, "%+v", r.Responders[0])
			})
		})
	}
}

// Requests of others that one pass sees are answered in the next, or between
// both.
func TestOthersRequestsAcrossPasses(t *testing.T) {
	for _, pause := range []time.Duration{0, 2 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				p := w.prober()
				p.Rounds = 1
				ask := func(answered time.Duration) func() {
					return func() {
						w.deliver(otherAsks(vip, arpcheck.Broadcast))
						w.later(answered, toHost(reply(node(1), vip)))
					}
				}
				end := arpcheck.DefaultWait
				time.AfterFunc(end-2*time.Millisecond, ask(3*time.Millisecond))
				time.AfterFunc(end-time.Millisecond, ask(5*time.Millisecond))
				if pause > 0 {
					time.AfterFunc(end+time.Millisecond, ask(5*time.Millisecond))
				}
				first := probe(t, p)
				time.Sleep(pause)
				second := probe(t, p)
				assert.Zero(t, first.Responders[0].DoubleAnswers)
				assert.Zero(t, second.Responders[0].DoubleAnswers, "%+v", second.Responders[0])
				assert.Greater(t, second.Responders[0].Replies, 1)
			})
		})
	}
}
