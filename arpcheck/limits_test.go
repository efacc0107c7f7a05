package arpcheck_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// floodSize is the number of made-up MACs that must do no harm.
const floodSize = 100_000

// madeUp returns the n-th MAC of a flood.
func madeUp(n int) (mac arpcheck.MAC) {
	mac[0] = 0x06
	binary.BigEndian.PutUint32(mac[2:], uint32(n))
	return mac
}

// heapConn measures the heap when a pass begins and before it ends, with the
// pass's own memory still in use: Drops is called just then.
type heapConn struct {
	arpcheck.Conn
	sizes []uint64
}

func (c *heapConn) Drops() (uint64, error) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	c.sizes = append(c.sizes, m.HeapAlloc)
	return c.Conn.Drops()
}

// grew is by how many bytes the heap is larger at the end of the pass.
func (c *heapConn) grew() int64 { return int64(c.sizes[1]) - int64(c.sizes[0]) }

// floodConn delivers frames of a flood one Receive at a time, made when they
// are read so that they are no part of the heap, and then waits as a wire does.
type floodConn struct {
	*wire
	next func(n int) arpcheck.Frame
	left int
	n    int
}

func (c *floodConn) Receive(frames []arpcheck.Frame) (int, error) {
	if c.left == 0 || len(c.sentFrames()) == 0 {
		return c.wire.Receive(frames)
	}
	n := min(len(frames), c.left)
	for i := range frames[:n] {
		frames[i] = c.next(c.n)
		frames[i].At, frames[i].Length = time.Now(), len(frames[i].Data)
		c.n++
	}
	c.left -= n
	return n, nil
}

func flood(next func(n int) arpcheck.Frame) (*heapConn, *arpcheck.Prober) {
	w := newWire()
	heap := &heapConn{Conn: &floodConn{wire: w, next: next, left: floodSize}}
	p := w.prober()
	p.Conn = heap
	return heap, p
}

// 100,000 answers with as many MACs: the result is capped, counts the rest and
// says so.
func TestFloodOfReplies(t *testing.T) {
	for _, row := range []struct{ set, kept int }{{0, arpcheck.DefaultMaxResponders}, {10, 10}, {600, 600}} {
		synctest.Test(t, func(t *testing.T) {
			heap, p := flood(func(n int) arpcheck.Frame { return toHost(reply(madeUp(n), vip)) })
			p.MaxResponders = row.set
			r := probe(t, p)
			assert.Len(t, r.Responders, row.kept)
			assert.Equal(t, madeUp(0), r.Responders[0].MAC, "the first are kept")
			assert.Equal(t, floodSize-row.kept, r.Quality.ExcessReplies)
			assert.Equal(t, arpcheck.Multiple, r.Verdict)
			assert.Equal(t, reasons(arpcheck.TooManyReplies), r.Reasons)
			assert.Less(t, heap.grew(), int64(1<<20), "bytes")
		})
	}
}

// A MAC that is kept is counted on after the cap was reached.
func TestKnownMACsCountBeyondTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := answering(time.Millisecond, node(1), node(2), node(3)).prober()
		p.MaxResponders = 2
		r := probe(t, p)
		require.Equal(t, []arpcheck.MAC{node(1), node(2)}, macs(r))
		assert.Equal(t, 3, r.Responders[0].Replies)
		assert.Equal(t, 3, r.Responders[1].Replies)
		assert.Equal(t, 3, r.Quality.ExcessReplies)
	})
}

// Whoever claims the target from 100,000 MACs, in whatever kind of frame.
func TestFloodOfClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap, p := flood(func(n int) arpcheck.Frame {
			q := reply(madeUp(n), vip)
			q.Target = vip
			return arpcheck.Frame{Data: q.Append(nil, 0), Type: arpcheck.ToBroadcast}
		})
		r := probe(t, p)
		assert.Len(t, r.Claims, 64)
		assert.Equal(t, floodSize-64, r.Quality.ExcessClaims)
		assert.Equal(t, arpcheck.None, r.Verdict)
		assert.Less(t, heap.grew(), int64(1<<20), "bytes")
	})
}

// Another program of this host asks 100,000 MACs, one after another. Beyond what
// is kept, requests count as if to everybody: that can hide a double answer and
// not make one.
func TestFloodOfDirectedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap, p := flood(func(n int) arpcheck.Frame {
			if n == floodSize-1 {
				return toHost(reply(madeUp(n-1), vip)) // the last to be asked answers
			}
			return otherAsks(vip, madeUp(n))
		})
		p.Rounds = 1
		r := probe(t, p)
		assert.Equal(t, floodSize-1, r.Quality.OtherRequests)
		require.Len(t, r.Responders, 1)
		assert.False(t, r.Responders[0].DoubleAnswer)
		assert.Less(t, heap.grew(), int64(1<<20), "bytes")
	})
}

// The cap on directed requests loses none of them: 70 MACs are asked besides,
// and each answers both requests.
func TestManyDirectedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stations = 70
		w := newWire()
		w.onSend = func([]byte) {
			var frames []arpcheck.Frame
			for n := range stations {
				answer := toHost(reply(madeUp(n), vip))
				frames = append(frames, otherAsks(vip, madeUp(n)), answer, answer)
			}
			w.later(time.Millisecond, frames...)
		}
		r := probe(t, w.prober())
		require.Len(t, r.Responders, stations)
		for _, responder := range r.Responders {
			require.Zero(t, responder.DoubleAnswers, "%s", responder.MAC)
		}
	})
}

// Frames that belong to nobody are counted and not kept.
func TestFloodOfOthers(t *testing.T) {
	targets := addrs(256)
	for name, next := range map[string]func(n int) arpcheck.Frame{
		"other targets": func(n int) arpcheck.Frame { return toHost(reply(madeUp(n), targets[n%256])) },
		"malformed":     func(n int) arpcheck.Frame { return arpcheck.Frame{Data: make([]byte, n%64)} },
		"other VLANs": func(n int) arpcheck.Frame {
			f := toHost(reply(madeUp(n), vip))
			f.VLAN = uint16(n%4094 + 1)
			return f
		},
		"requests": func(n int) arpcheck.Frame {
			q := arpwire.Request(madeUp(n), targets[n%256], vip)
			return arpcheck.Frame{Data: q.Append(nil, 0), Type: arpcheck.ToBroadcast}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heap, p := flood(next)
				r := probe(t, p)
				assert.Empty(t, r.Responders)
				assert.Empty(t, r.Claims)
				assert.Equal(t, arpcheck.None, r.Verdict)
				assert.Less(t, heap.grew(), int64(1<<20), "bytes")
			})
		})
	}
}

// The cap on a whole pass: every target of many is flooded.
func TestFloodOfManyTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 512
		targets := addrs(200) // 102,400 MACs: more than 65,536
		w := newWire()
		w.onSend = func(frame []byte) {
			q := parse(t, frame)
			frames := make([]arpcheck.Frame, 0, each)
			for n := range each {
				frames = append(frames, toHost(q.Reply(madeUp(n))))
			}
			w.later(time.Millisecond, frames...)
		}
		p := w.prober()
		p.Rounds = 1
		results, err := p.ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		kept, excess := 0, 0
		for _, r := range results {
			kept += len(r.Responders)
			excess += r.Quality.ExcessReplies
			if r.Quality.ExcessReplies > 0 {
				require.Contains(t, r.Reasons, arpcheck.TooManyReplies)
				require.NotContains(t, r.Reasons, arpcheck.TooFewRounds, "somebody does answer")
			}
		}
		assert.Equal(t, 1<<16, kept)
		assert.Equal(t, len(targets)*each, kept+excess)
	})
}

// A flood from a host of a segment, through its receive queue.
func TestFloodOnASegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		conn, err := from.OpenConn("eth0")
		require.NoError(t, err)
		heap := &heapConn{Conn: conn}
		p := &arpcheck.Prober{Conn: heap, MAC: from.MAC(), Link: "eth0", Sender: client}
		time.AfterFunc(10*time.Millisecond, func() { _ = nodes[0].Flood(from, vip, floodSize) })
		r := probe(t, p)
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		assert.Len(t, r.Responders, arpcheck.DefaultMaxResponders)
		assert.Equal(t, floodSize-(arpcheck.DefaultMaxResponders-3), r.Quality.ExcessReplies)
		assert.Zero(t, r.Quality.Drops)
		for _, n := range nodes {
			assert.Contains(t, macs(r), n.MAC())
		}
		assert.Less(t, heap.grew(), int64(2<<20), "bytes")
	})
}

var _ arpcheck.Conn = (*arpchecktest.Conn)(nil)
