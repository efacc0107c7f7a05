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

// Round-trip times, to the nanosecond: 1, 3 and 8 ms have mean 4 and a
// population variance of (9+1+16)/3 ms².
func TestRTT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := []time.Duration{3 * time.Millisecond, 8 * time.Millisecond, time.Millisecond}
		w := newWire()
		round := 0
		w.onSend = func([]byte) {
			w.later(times[round], toHost(reply(node(1), vip)))
			// A second answer is no round-trip time of this request.
			w.later(900*time.Millisecond, toHost(reply(node(1), vip)))
			round++
		}
		r := probe(t, w.prober())
		require.Len(t, r.Responders, 1)
		got := r.Responders[0]
		assert.Equal(t, time.Millisecond, got.RTT.Min)
		assert.Equal(t, 4*time.Millisecond, got.RTT.Mean)
		assert.Equal(t, 8*time.Millisecond, got.RTT.Max)
		assert.InDelta(t, 2943920, got.RTT.StdDev.Nanoseconds(), 1) // sqrt(26/3) ms
		assert.Equal(t, r.Started.Add(3*time.Millisecond), got.First)
		assert.Equal(t, r.Started.Add(2*arpcheck.DefaultWait+900*time.Millisecond), got.Last)
		assert.Equal(t, 6, got.Replies)
	})
}

// One round-trip time has no deviation, and equal ones have none either.
func TestRTTOfOneRound(t *testing.T) {
	for rounds := 1; rounds <= 4; rounds++ {
		synctest.Test(t, func(t *testing.T) {
			p := answering(333333*time.Nanosecond, node(1)).prober()
			p.Rounds = rounds
			want := 333333 * time.Nanosecond
			assert.Equal(t, arpcheck.RTT{Min: want, Mean: want, Max: want}, probe(t, p).Responders[0].RTT)
		})
	}
}

// The time that counts is the kernel's, not when the frame was read.
func TestTimesAreTheKernels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func([]byte) {
			f := toHost(reply(node(1), vip))
			f.At = time.Now().Add(2 * time.Millisecond)
			w.later(40*time.Millisecond, f)
		}
		got := probe(t, w.prober())
		assert.Equal(t, 2*time.Millisecond, got.Responders[0].RTT.Max)
		assert.Equal(t, got.Started.Add(2*time.Millisecond), got.Responders[0].First)
	})
}

// Who was first is counted for each round; responders are in the order in which
// they were first seen.
func TestWonRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := [][]int{{2, 1}, {1, 3, 2}, {3, 3, 2}, {3}}
		w := newWire()
		round := 0
		w.onSend = func([]byte) {
			for i, n := range order[round] {
				w.later(time.Duration(i+1)*time.Millisecond, toHost(reply(node(n), vip)))
			}
			round++
		}
		p := w.prober()
		p.Rounds = 4
		r := probe(t, p)
		assert.Equal(t, []arpcheck.MAC{node(2), node(1), node(3)}, macs(r))
		assert.Equal(t, []int{1, 1, 2}, wins(r))
	})
}

// Ethernet sources that differ from the ARP sender are kept once each; so is
// the length of a frame on the link.
func TestFrameSourcesAndLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func([]byte) {
			relayed := reply(node(1), vip)
			relayed.Src = node(9)
			padded := toHost(reply(node(1), vip))
			padded.Data, padded.Length = padded.Data[:arpwire.FrameSize], arpwire.MinFrame
			w.later(time.Millisecond, toHost(reply(node(1), vip)), padded, toHost(relayed))
		}
		r := probe(t, w.prober())
		require.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
		assert.Equal(t, []arpcheck.MAC{node(9)}, r.Responders[0].FrameSources)
		assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 6}, {Length: 60, Frames: 3}}, r.Responders[0].Lengths)
	})
}

// A kernel's reply has 42 bytes and an announcer's 60, from the one node.
func TestLengthsOfKernelAndAnnouncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		require.NoError(t, nodes[1].SetStrictARP(true))
		require.NoError(t, nodes[2].SetStrictARP(true))
		_, err := nodes[0].Announce(vip)
		require.NoError(t, err)
		p, err := from.Open()
		require.NoError(t, err)
		r := probe(t, p)
		require.Equal(t, []arpcheck.MAC{nodes[0].MAC()}, macs(r))
		assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 3}, {Length: 60, Frames: 3}}, r.Responders[0].Lengths)
		assert.True(t, r.Responders[0].DoubleAnswer)
		assert.Equal(t, 3, r.Responders[0].DoubleAnswers)
		assert.Equal(t, 300*time.Microsecond, r.Responders[0].RTT.Max, "the kernel's answer is first")
	})
}

// At most 8 sources and 8 lengths of one responder are kept.
func TestFrameSourcesAndLengthsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func([]byte) {
			var frames []arpcheck.Frame
			for i := range 100 {
				p := reply(node(1), vip)
				p.Src = node(100 + i)
				f := toHost(p)
				f.Length += i
				frames = append(frames, f)
			}
			w.later(time.Millisecond, frames...)
		}
		r := probe(t, w.prober())
		assert.Len(t, r.Responders[0].FrameSources, 8)
		assert.Len(t, r.Responders[0].Lengths, 8)
		assert.Equal(t, 3, r.Responders[0].Lengths[7].Frames)
		assert.Equal(t, 300, r.Responders[0].Replies)
	})
}

// A reply that others' request drew just before this pass asks is no round-trip
// time, whichever batch its target is in.
func TestRTTOfOthersReplies(t *testing.T) {
	for _, row := range []struct {
		name   string
		before bool // in the round before, else before the pass
	}{{"before the first round", false}, {"late in the round before", true}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				targets := addrs(20)
				last := targets[19]
				w := answering(time.Millisecond, node(1))
				w.take = func(n int) (int, error) { // a batch each millisecond
					return min(n, 4), nil
				}
				ask := func() {
					w.deliver(otherAsks(last, arpcheck.Broadcast))
					w.later(2*time.Millisecond, toHost(reply(node(1), last)))
				}
				if row.before {
					time.AfterFunc(arpcheck.DefaultWait+3*time.Millisecond, ask)
				} else {
					ask()
				}
				results, err := w.prober().ProbeAll(t.Context(), targets)
				require.NoError(t, err)
				require.Equal(t, 4, results[19].Responders[0].Replies)
				for _, r := range results {
					rtt := r.Responders[0].RTT
					require.LessOrEqual(t, rtt.Max, 3*time.Millisecond, "%s: %+v", r.Target, rtt)
					require.Zero(t, r.Responders[0].DoubleAnswers, "%s", r.Target)
				}
			})
		})
	}
}
