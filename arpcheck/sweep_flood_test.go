package arpcheck_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// 100,000 made-up frames during a sweep cost a bounded amount of memory, and
// nothing is concluded from them.
func TestSweepFlood(t *testing.T) {
	targets := addrs(300)
	for _, row := range []struct {
		name string
		next func(n int) arpcheck.Frame
		want arpcheck.Verdict
	}{
		{"replies", func(n int) arpcheck.Frame { return toHost(reply(madeUp(n), targets[n%len(targets)])) }, arpcheck.Multiple},
		{"replies for one target", func(n int) arpcheck.Frame { return toHost(reply(madeUp(n), targets[7])) }, ""},
		{"claims", func(n int) arpcheck.Frame {
			p := arpwire.Request(madeUp(n), targets[n%len(targets)], targets[n%len(targets)])
			return arpcheck.Frame{Data: p.Append(nil, 0), Type: arpcheck.ToBroadcast}
		}, arpcheck.None},
		{"lengths", func(n int) arpcheck.Frame {
			return arpcheck.Frame{Data: reply(node(n%2), targets[n%len(targets)]).Append(nil, 42+n%100), Type: arpcheck.ToHost}
		}, ""},
		{"sources", func(n int) arpcheck.Frame {
			p := reply(node(1), targets[n%len(targets)])
			p.Src = madeUp(n)
			return toHost(p)
		}, arpcheck.Single},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heap, p := flood(row.next)
				before := heapSize(t, heap)
				var most int64
				for _, r := range sweepAll(t, arpcheck.Sweep{Prober: p, Progress: func(arpcheck.SweepProgress) {
					most = max(most, heapSize(t, heap)-before)
				}}, targets) {
					if row.want != "" {
						require.Equal(t, row.want, r.Verdict, "%v", r.Reasons)
					}
					require.LessOrEqual(t, len(r.Responders), arpcheck.DefaultMaxResponders)
				}
				assert.Less(t, most, int64(16<<20), "bytes")
			})
		})
	}
}

func heapSize(t *testing.T, c *heapConn) int64 {
	t.Helper()
	_, err := c.Drops()
	require.NoError(t, err)
	return int64(c.sizes[len(c.sizes)-1])
}

// FuzzSweep feeds arbitrary frames into a sweep of two targets, one of which a
// station answers for: nothing panics, and that station is not lost.
func FuzzSweep(f *testing.F) {
	for _, row := range kinds() {
		for kind := arpcheck.ToHost; kind <= arpcheck.Outgoing; kind++ {
			frame := arpcheck.Frame{Data: row.packet.Append(nil, 0), Type: kind}
			f.Add(encodeFrames(frame, frame))
		}
	}
	f.Add(encodeFrames(toHost(reply(node(1), vip)), toHost(reply(node(2), vip)), otherAsks(vip, node(1))))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames := decodeFrames(data)
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			w.onSend = func(frame []byte) {
				if p, err := arpwire.Parse(frame); err == nil && p.Target == vip {
					w.deliver(toHost(p.Reply(node(9))))
				}
				w.deliver(frames...)
			}
			targets := []netip.Addr{vip, client.Next()}
			p := w.prober()
			p.Rounds = 1
			got := sweepAll(t, arpcheck.Sweep{Prober: p}, targets)
			require.Len(t, got, len(targets))
			for _, r := range got {
				for _, responder := range r.Responders {
					checkResponder(t, responder)
				}
			}
			require.Contains(t, macs(got[vip]), node(9))
			require.NotEqual(t, arpcheck.None, got[vip].Verdict)
		})
	})
}
