package arpcheck_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// BenchmarkProbe is what a pass costs besides waiting: one round of a window too
// short to count, on a segment where three nodes answer at once.
func BenchmarkProbe(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) {
			targets := addrs(n)
			s := arpchecktest.New(b)
			for i := range 3 {
				h := s.AddNode(fmt.Sprintf("w%d", i), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
				h.SetLatency(0)
				for _, target := range targets {
					require.NoError(b, h.HoldVIP(target))
				}
			}
			p, err := s.AddClient("client", netip.PrefixFrom(client, 24)).Open()
			require.NoError(b, err)
			p.Rounds, p.Wait, p.Sender = 1, time.Nanosecond, client
			b.ReportAllocs()
			for b.Loop() {
				results, err := p.ProbeAll(b.Context(), targets)
				require.NoError(b, err)
				require.Len(b, results[n-1].Responders, 3)
			}
		})
	}
}

// BenchmarkReplies is what 4,096 replies to one pass cost, on a Conn that costs
// next to nothing.
func BenchmarkReplies(b *testing.B) {
	const replies = 4096
	w := newWire()
	answer := toHost(reply(node(1), vip))
	conn := &floodConn{wire: w, next: func(int) arpcheck.Frame { return answer }}
	p := w.prober()
	p.Conn, p.Rounds, p.Wait = conn, 1, time.Nanosecond
	b.ReportAllocs()
	for b.Loop() {
		conn.left, w.sent = replies, w.sent[:0]
		r, err := p.Probe(b.Context(), vip)
		require.NoError(b, err)
		require.Equal(b, replies, r.Responders[0].Replies)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*replies), "ns/reply")
}
