package arpcheck_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// readyConn answers each request at once, on a Conn that costs next to nothing.
type readyConn struct {
	*wire
	replies int
	waiting [][]byte
	from    int
}

func (c *readyConn) Send(frames [][]byte) (int, error) {
	for _, f := range frames {
		p, err := arpwire.Parse(f)
		if err != nil {
			return 0, err
		}
		for n := range c.replies {
			if len(c.waiting) == cap(c.waiting) {
				c.waiting = append(c.waiting, nil)
			} else {
				c.waiting = c.waiting[:len(c.waiting)+1]
			}
			last := &c.waiting[len(c.waiting)-1]
			*last = p.Reply(node(n)).Append((*last)[:0], 0)
		}
	}
	return len(frames), nil
}

func (c *readyConn) Receive(frames []arpcheck.Frame) (int, error) {
	now := time.Now()
	n := min(len(frames), len(c.waiting)-c.from)
	if n == 0 {
		return c.wire.Receive(frames)
	}
	for i := range frames[:n] {
		data := c.waiting[c.from+i]
		frames[i] = arpcheck.Frame{Data: data, Length: len(data), At: now}
	}
	if c.from += n; c.from == len(c.waiting) {
		c.from, c.waiting = 0, c.waiting[:0]
	}
	return n, nil
}

// BenchmarkSweep is what a sweep costs besides system calls and waiting: each target
// is asked once, since it is 100 ms from one request for a target to the next.
func BenchmarkSweep(b *testing.B) {
	for _, row := range []struct{ targets, nodes int }{{306, 3}, {306, 200}, {4096, 3}, {65534, 3}} {
		b.Run(fmt.Sprintf("%dx%d", row.targets, row.nodes), func(b *testing.B) {
			w := newWire()
			p := w.prober()
			p.Conn, p.Wait, p.Rounds = &readyConn{wire: w, replies: row.nodes}, time.Nanosecond, 1
			targets := addrs(row.targets)
			replies := 0
			b.ReportAllocs()
			for b.Loop() {
				replies = 0
				for r, err := range p.Sweep(b.Context(), slices.Values(targets)) {
					if err != nil {
						b.Fatal(err)
					}
					replies += len(r.Responders)
				}
				if replies != row.targets*row.nodes {
					b.Fatalf("%d of %d pairs", replies, row.targets*row.nodes)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*replies), "ns/pair")
		})
	}
}
