package arpcheck_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
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

// seen is what the tests compare of an event.
type seen struct {
	kind arpcheck.ClaimEventKind
	mac  arpcheck.MAC
}

func watching(addrs ...netip.Addr) arpcheck.WatchOptions { return arpcheck.WatchOptions{Addrs: addrs} }

// watch collects events until the ctx ends or enough says so.
func watch(t *testing.T, p *arpcheck.Prober, ctx context.Context, o arpcheck.WatchOptions, enough func(arpcheck.ClaimEvent) bool) []arpcheck.ClaimEvent {
	t.Helper()
	var all []arpcheck.ClaimEvent
	for e, err := range p.Watch(ctx, o) {
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			break
		}
		all = append(all, e)
		if enough != nil && enough(e) {
			break
		}
	}
	return all
}

func seenOf(all []arpcheck.ClaimEvent) (list []seen) {
	for _, e := range all {
		list = append(list, seen{e.Kind, e.MAC})
	}
	return list
}

// What a client's host sees: an announcement, another host's, and a node whose
// request carries the VIP because its arp_announce is 0.
func TestWatch(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		p := openOn(t, s.from)
		w1, w2, w3 := s.nodes[0], s.nodes[1], s.nodes[2]
		time.AfterFunc(100*time.Millisecond, func() { announce(t, w1, false) })
		var all []arpcheck.ClaimEvent
		for e, err := range p.Watch(t.Context(), watching(vip, vip.Next())) {
			require.NoError(t, err)
			all = append(all, e)
			switch len(all) {
			case 2:
				announce(t, w2, false)
			case 4:
				require.NoError(t, w3.SendFrom(vip, client))
			}
			if e.Kind == arpcheck.ClaimInRequest {
				break
			}
		}
		require.Greater(t, len(all), 4)
		assert.Equal(t, []seen{
			{arpcheck.ClaimGratuitous, w1.MAC()}, {arpcheck.ClaimNew, w1.MAC()},
			{arpcheck.ClaimGratuitous, w2.MAC()}, {arpcheck.ClaimChanged, w2.MAC()},
		}, seenOf(all)[:4])
		assert.Equal(t, w1.MAC(), all[3].Before)
		last := all[len(all)-1]
		assert.Equal(t, w3.MAC(), last.MAC)
		assert.Equal(t, client, last.Target)
		assert.Equal(t, arpcheck.Request, last.Frame)
		assert.Equal(t, "eth0", last.Interface)
		assert.Equal(t, "client", last.Vantage)

		r := probe(t, p) // and the Prober is as before
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
	})
}

// The answers to one question of this host are a conflict; and when everybody is
// strict, the address is lost.
func TestWatchAnswers(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		p := openOn(t, s.from)
		time.AfterFunc(100*time.Millisecond, func() { _ = s.from.SendFrom(netip.Addr{}, vip) })
		macs := map[arpcheck.MAC]arpcheck.ClaimEventKind{}
		for e, err := range p.Watch(t.Context(), watching(vip)) {
			require.NoError(t, err)
			if e.Kind == arpcheck.ClaimLost {
				assert.Contains(t, macs, e.Before)
				assert.Zero(t, e.MAC)
				break
			}
			macs[e.MAC] = e.Kind
			if len(macs) == 3 {
				s.strict(t)
				require.NoError(t, s.from.Forget(vip))
				require.NoError(t, s.from.SendFrom(netip.Addr{}, vip)) // asks three times
			}
		}
		kinds := map[arpcheck.ClaimEventKind]int{}
		for _, kind := range macs {
			kinds[kind]++
		}
		assert.Equal(t, map[arpcheck.ClaimEventKind]int{arpcheck.ClaimNew: 1, arpcheck.ClaimConflict: 2}, kinds)
	})
}

// The interface goes down, is renamed and comes up again: the Watch goes on.
func TestWatchLinkDownAndUp(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		p := openOn(t, s.from)
		time.AfterFunc(100*time.Millisecond, func() { _ = s.from.SetLink("eth0", false) })
		announced := false
		for e, err := range p.Watch(t.Context(), watching(vip)) {
			require.NoError(t, err)
			if e.Kind == arpcheck.WatchLinkDown {
				require.NoError(t, s.from.SetLink("eth0", true))
			}
			if e.Kind == arpcheck.WatchLinkUp {
				announced = true
				announce(t, s.nodes[1], false)
			}
			if e.Kind == arpcheck.ClaimNew {
				assert.Equal(t, s.nodes[1].MAC(), e.MAC)
				break
			}
		}
		assert.True(t, announced)
	})
}

// one is a claim: when, and by whom in what.
type one struct {
	at     time.Duration
	packet arpwire.Packet
}

func claimReply(n int) arpwire.Packet { return reply(node(n), vip) }

func claimRequest(n int) arpwire.Packet { return arpwire.Request(node(n), vip, client) }

func claimAnnouncement(n int) arpwire.Packet { return arpwire.Request(node(n), vip, vip) }

// What sequences of claims mean.
func TestWatchKinds(t *testing.T) {
	bogon, zero, garp, relayed, elsewhere := claimReply(1), claimReply(1), claimReply(1), claimReply(1), claimReply(1)
	bogon.SenderMAC, zero.SenderMAC = arpwire.Broadcast, [6]byte{}
	garp.Target = vip
	relayed.Src = node(7)
	elsewhere.Sender = vip.Next()
	const (
		isNew, changed, flip  = arpcheck.ClaimNew, arpcheck.ClaimChanged, arpcheck.ClaimFlipFlop
		conflict, grat, inReq = arpcheck.ClaimConflict, arpcheck.ClaimGratuitous, arpcheck.ClaimInRequest
	)
	for _, row := range []struct {
		name   string
		claims []one
		want   []seen
	}{
		{"one host", []one{{0, claimReply(1)}, {time.Minute, claimReply(1)}}, []seen{{isNew, node(1)}}},
		{"a fail-over", []one{{0, claimReply(1)}, {time.Millisecond, claimAnnouncement(2)}, {time.Second, claimReply(2)}},
			[]seen{{isNew, node(1)}, {grat, node(2)}, {changed, node(2)}}},
		{"a quiet fail-over", []one{{0, claimReply(1)}, {5 * time.Second, claimReply(2)}}, []seen{{isNew, node(1)}, {changed, node(2)}}},
		{"two answers", []one{{0, claimReply(1)}, {time.Millisecond, claimReply(2)}}, []seen{{isNew, node(1)}, {conflict, node(2)}}},
		{"to and fro", []one{{0, claimReply(1)}, {5 * time.Second, claimReply(2)}, {10 * time.Second, claimReply(1)}},
			[]seen{{isNew, node(1)}, {changed, node(2)}, {flip, node(1)}}},
		{"back after long", []one{{0, claimReply(1)}, {5 * time.Second, claimReply(2)}, {65 * time.Second, claimReply(1)}},
			[]seen{{isNew, node(1)}, {changed, node(2)}, {changed, node(1)}}},
		{"a VIP as sender", []one{{0, claimRequest(1)}}, []seen{{inReq, node(1)}, {isNew, node(1)}}},
		{"a gratuitous reply", []one{{0, garp}}, []seen{{grat, node(1)}, {isNew, node(1)}}},
		{"no station's MAC", []one{{0, bogon}, {2 * time.Second, zero}}, []seen{{arpcheck.ClaimBogon, arpwire.Broadcast}, {arpcheck.ClaimBogon, arpcheck.MAC{}}}},
		{"a relay", []one{{0, relayed}}, []seen{{isNew, node(1)}}},
		{"an address that is not watched", []one{{0, elsewhere}}, nil},
		{"a probe", []one{{0, arpwire.Request(node(1), netip.IPv4Unspecified(), vip)}}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				for _, c := range row.claims {
					w.later(time.Second+c.at, toHost(c.packet), arpcheck.Frame{Data: []byte{1}})
				}
				o := watching(vip)
				o.Every = time.Hour
				got := watch(t, w.prober(), within(t, 3*time.Minute), o, nil)
				assert.Equal(t, row.want, seenOf(got))
				for _, e := range got {
					assert.Equal(t, e.MAC == node(1) && row.name == "a relay", e.Source == node(7))
					assert.Equal(t, 1, e.Count)
				}
			})
		})
	}
}

// Nobody has claimed it for a time, which counts anew while the link is down.
func TestWatchLostAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.later(time.Second, toHost(claimReply(1)))
		time.AfterFunc(5*time.Second, w.goDown)
		w.later(8*time.Second, toHost(claimReply(9).Reply(node(9)))) // it is up again
		w.later(30*time.Second, toHost(claimReply(2)))
		o := watching(vip)
		o.LostAfter = 10 * time.Second
		begun := time.Now()
		got := watch(t, w.prober(), within(t, 35*time.Second), o, nil)
		require.Equal(t, []seen{
			{arpcheck.ClaimNew, node(1)}, {arpcheck.WatchLinkDown, arpcheck.MAC{}}, {arpcheck.WatchLinkUp, arpcheck.MAC{}},
			{arpcheck.ClaimLost, arpcheck.MAC{}}, {arpcheck.ClaimNew, node(2)},
		}, seenOf(got))
		assert.InDelta(t, 18, got[3].At.Sub(begun).Seconds(), 1.1)
		assert.Equal(t, node(1), got[3].Before)
		assert.Equal(t, node(1), got[4].Before)
	})
}

// What repeats is told at once and then once in Every, with how often it was.
func TestWatchDeduplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		for i := range 100 {
			w.later(time.Second+time.Duration(i)*100*time.Millisecond, toHost(claimAnnouncement(1)))
		}
		o := watching(vip)
		o.Every = 4 * time.Second
		total, told := 0, 0
		for _, e := range watch(t, w.prober(), within(t, time.Minute), o, nil) {
			if e.Kind == arpcheck.ClaimGratuitous {
				told++
				total += e.Count
			}
		}
		assert.Equal(t, 100, total)
		assert.LessOrEqual(t, told, 4)
		assert.Greater(t, told, 1)
	})
}

// Made-up MACs and a flood of addresses neither grow what is kept nor what is told.
func TestWatchFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		all := addrs(1000)
		for i := range 50_000 {
			q := reply(arpcheck.MAC{2, 5, 0, byte(i >> 16), byte(i >> 8), byte(i)}, all[i%len(all)])
			w.later(time.Second+time.Duration(i)*time.Millisecond, toHost(q))
		}
		o := watching(all...)
		o.MaxEvents = 10
		kinds := map[arpcheck.ClaimEventKind]int{}
		suppressed := 0
		for _, e := range watch(t, w.prober(), within(t, 2*time.Minute), o, nil) {
			kinds[e.Kind]++
			suppressed += e.Suppressed
		}
		assert.Equal(t, 10, kinds[arpcheck.ClaimNew])
		assert.LessOrEqual(t, kinds[arpcheck.ClaimConflict]+kinds[arpcheck.ClaimChanged], 2*10*6)
		assert.Positive(t, suppressed)
	})
}

// The kernel dropped frames, so something may have been missed.
func TestWatchDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		time.AfterFunc(time.Second, func() { w.mu.Lock(); w.drops = 7; w.mu.Unlock() })
		got := watch(t, w.prober(), within(t, 5*time.Second), watching(vip), nil)
		require.Equal(t, []seen{{arpcheck.WatchDropped, arpcheck.MAC{}}}, seenOf(got))
		assert.Equal(t, 7, got[0].Count)
	})
}

func TestWatchErrors(t *testing.T) {
	one := func(p *arpcheck.Prober, ctx context.Context, o arpcheck.WatchOptions) (last error) {
		for _, err := range p.Watch(ctx, o) {
			last = err
		}
		return last
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		p := w.prober()
		for _, o := range []arpcheck.WatchOptions{
			{}, watching(netip.MustParseAddr("fd00::1")), watching(make([]netip.Addr, 1<<16+1)...),
		} {
			require.ErrorIs(t, one(p, t.Context(), o), arpcheck.ErrBadTarget)
		}
		require.ErrorContains(t, one(p, t.Context(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}, Every: -1}), "negative Every")
		require.ErrorContains(t, one(&arpcheck.Prober{}, t.Context(), watching(vip)), "without a Conn")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.ErrorIs(t, one(p, ctx, watching(vip)), context.Canceled)
		require.ErrorIs(t, one(p, ctx, watching(vip)), context.Canceled)

		q := w.prober()
		q.Host = &station{err: fmt.Errorf("%w: it is gone", arpcheck.ErrLinkDown)}
		require.ErrorIs(t, one(q, t.Context(), watching(vip)), arpcheck.ErrLinkDown)
		broken := errors.New("it is broken")
		q.Host = &station{err: broken}
		require.ErrorIs(t, one(q, t.Context(), watching(vip)), broken)

		time.AfterFunc(time.Minute, func() { _ = w.Close() })
		require.ErrorIs(t, one(p, t.Context(), watching(vip)), net.ErrClosed)
	})
}

// An hour of a busy segment: nothing is left behind, and what is kept stays.
func TestWatchHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		done := make(chan struct{})
		defer close(done)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(200 * time.Millisecond):
				}
				random := arpwire.Request([6]byte{2, 9, byte(n >> 16), byte(n >> 8), byte(n)}, vip, vip)
				_ = nodes[n%3].Inject(random.Append(nil, 60))
			}
		}()
		var at []uint64
		begun := time.Now()
		for _, err := range p.Watch(within(t, time.Hour), watching(vip)) {
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				break
			}
			if d := time.Since(begun); d >= time.Duration(len(at)+1)*10*time.Minute {
				at = append(at, heap())
			}
		}
		assert.Equal(t, time.Hour, time.Since(begun))
		require.GreaterOrEqual(t, len(at), 5, "the last may be told in the last moment")
		assert.Less(t, at[4], at[0]+1<<20, "the heap is flat: %v", at)
	})
}

// heap is what is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzWatch lets a segment say anything.
func FuzzWatch(f *testing.F) {
	f.Add(claimReply(1).Append(nil, 60), uint8(0), uint16(0))
	f.Add(claimAnnouncement(2).Append(nil, 0), uint8(1), uint16(7))
	f.Add(arpwire.Request(own, client, vip).Append(nil, 0), uint8(4), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8, vlan uint16) {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			for range 3 {
				w.later(time.Second, arpcheck.Frame{Data: data, Type: arpcheck.PacketType(kind), VLAN: vlan})
			}
			for _, e := range watch(t, w.prober(), within(t, 5*time.Second), watching(vip), nil) {
				require.Contains(t, []netip.Addr{vip}, e.Addr)
				require.Positive(t, e.Count)
			}
		})
	})
}

// A fail-over, seen from a host that asks nothing.
func ExampleProber_Watch() {
	segment := arpchecktest.NewSegment()
	defer segment.Close()
	w1 := segment.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	w2 := segment.AddNode("w2", netip.MustParsePrefix("10.0.3.12/24"))
	prober, err := segment.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	vip := netip.MustParseAddr("10.0.3.20")
	time.AfterFunc(50*time.Millisecond, func() { _, _ = w1.Announce(vip) })

	for event, err := range prober.Watch(context.Background(), arpcheck.WatchOptions{Addrs: []netip.Addr{vip}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Kind, event.Addr, "by", event.MAC)
		if event.Kind == arpcheck.ClaimNew {
			_, _ = w2.Announce(vip)
		}
		if event.Kind == arpcheck.ClaimChanged {
			break
		}
	}
	// Output:
	// gratuitous 10.0.3.20 by 02:00:00:00:00:01
	// new 10.0.3.20 by 02:00:00:00:00:01
	// gratuitous 10.0.3.20 by 02:00:00:00:00:02
	// changed 10.0.3.20 by 02:00:00:00:00:02
}
