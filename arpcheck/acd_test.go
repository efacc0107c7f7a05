package arpcheck_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// quickly is a tenth of the RFC's times: enough in the lab.
var quickly = arpcheck.FreeOptions{Time: arpcheck.DefaultFreeTime / 10}

// Loose nodes that hold the address use it; strict ones are not heard, but the
// announcer is; and the prober's own host knows by itself.
func TestCheckFree(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		p := openOn(t, s.from)
		check := func(p *arpcheck.Prober, want arpcheck.FreeState, users ...arpcheck.MAC) arpcheck.FreeResult {
			t.Helper()
			begun := time.Now()
			r, err := p.CheckFree(t.Context(), vip, quickly)
			require.NoError(t, err)
			assert.Equal(t, want, r.State)
			var got []arpcheck.MAC
			for _, u := range r.Users {
				got = append(got, u.MAC)
			}
			assert.ElementsMatch(t, users, got)
			assert.Less(t, time.Since(begun), 10*time.Second)
			return r
		}
		r := check(p, arpcheck.Used, s.nodes[0].MAC(), s.nodes[1].MAC(), s.nodes[2].MAC())
		assert.Equal(t, 1, r.Probes, "after a conflict no more is sent")
		s.strict(t)
		r = check(p, arpcheck.Free)
		assert.Equal(t, 3, r.Probes)
		assert.GreaterOrEqual(t, r.Ended.Sub(r.Started), 400*time.Millisecond, "two times PROBE_MIN and ANNOUNCE_WAIT, scaled")
		announce(t, s.nodes[0], true)
		check(p, arpcheck.Used, s.nodes[0].MAC())

		r = check(openOn(t, s.nodes[1]), arpcheck.Used, s.nodes[1].MAC(), s.nodes[0].MAC())
		assert.Equal(t, reasons(arpcheck.HeldHere), r.Reasons)
	})
}

// Of two that probe at the same time one at least notices and does not send: so
// the other may find the address free, and both never do.
func TestCheckFreeSimultaneous(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		s.strict(t)
		a, b := openOn(t, s.from), openOn(t, s.nodes[2])
		free := vip.Next()
		other := make(chan arpcheck.FreeResult, 1)
		go func() {
			r, _ := b.CheckFree(t.Context(), free, quickly)
			other <- r
		}()
		r, err := a.CheckFree(t.Context(), free, quickly)
		require.NoError(t, err)
		contested := 0
		for who, r := range map[arpcheck.MAC]arpcheck.FreeResult{s.nodes[2].MAC(): r, s.from.MAC(): <-other} {
			assert.Empty(t, r.Users)
			if r.State != arpcheck.Contested {
				assert.Equal(t, arpcheck.Free, r.State)
				continue
			}
			contested++
			require.Len(t, r.Contenders, 1)
			assert.Equal(t, who, r.Contenders[0].MAC)
			assert.Equal(t, arpcheck.ProbeRequest, r.Contenders[0].Kind)
		}
		assert.Positive(t, contested)
	})
}

// The probes are those of RFC 5227, at its times.
func TestCheckFreeTimes(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			begun := time.Now()
			r, err := w.prober().CheckFree(t.Context(), netip.AddrFrom16(vip.As16()), arpcheck.FreeOptions{})
			require.NoError(t, err)
			assert.Equal(t, arpcheck.Free, r.State)
			sent := w.sentFrames()
			require.Len(t, sent, 3)
			last := begun
			for i, s := range sent {
				wait := s.at.Sub(last)
				last = s.at
				if i == 0 {
					assert.LessOrEqual(t, wait, time.Second)
				} else {
					assert.GreaterOrEqual(t, wait, time.Second)
					assert.LessOrEqual(t, wait, 2*time.Second)
				}
				assert.Equal(t, arpwire.Request(own, netip.IPv4Unspecified(), vip), parse(t, s.data))
			}
			assert.Equal(t, 2*time.Second, time.Since(last))
			assert.LessOrEqual(t, time.Since(begun), arpcheck.DefaultFreeTime)
			assert.Equal(t, begun, r.Started)
			assert.Equal(t, time.Now(), r.Ended)
		})
	}
}

// What is a conflict and what is not.
func TestCheckFreeFrames(t *testing.T) {
	probeBy := func(mac arpcheck.MAC, target netip.Addr) arpwire.Packet {
		return arpwire.Request(mac, netip.IPv4Unspecified(), target)
	}
	tagged := reply(node(1), vip)
	tagged.VLAN = 7
	for _, row := range []struct {
		name   string
		packet arpwire.Packet
		kind   arpcheck.PacketType
		want   arpcheck.FreeState
	}{
		{"a reply to us", arpwire.Request(own, netip.IPv4Unspecified(), vip).Reply(node(1)), arpcheck.ToHost, arpcheck.Used},
		{"a reply to somebody else", arpwire.Request(node(2), client, vip).Reply(node(1)), arpcheck.ToOther, arpcheck.Used},
		{"a request", arpwire.Request(node(1), vip, client), arpcheck.ToBroadcast, arpcheck.Used},
		{"an announcement", arpwire.Request(node(1), vip, vip), arpcheck.ToBroadcast, arpcheck.Used},
		{"another program's request on this host", arpwire.Request(node(1), vip, client), arpcheck.Outgoing, arpcheck.Used},
		{"a probe", probeBy(node(1), vip), arpcheck.ToBroadcast, arpcheck.Contested},
		{"our own, reflected", probeBy(own, vip), arpcheck.ToBroadcast, arpcheck.Free},
		{"an own announcement, reflected", arpwire.Request(own, vip, vip), arpcheck.ToBroadcast, arpcheck.Free},
		{"a probe for another address", probeBy(node(1), vip.Next()), arpcheck.ToBroadcast, arpcheck.Free},
		{"a question for it", arpwire.Request(node(1), client, vip), arpcheck.ToBroadcast, arpcheck.Free},
		{"a reply of another VLAN", tagged, arpcheck.ToHost, arpcheck.Free},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				w.deliver(toHost(reply(node(9), vip))) // waits from before: it may be long gone
				w.later(4*time.Second, arpcheck.Frame{Data: row.packet.Append(nil, 0), Type: row.kind},
					arpcheck.Frame{Data: []byte{1, 2, 3}})
				r, err := w.prober().CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
				require.NoError(t, err)
				assert.Equal(t, row.want, r.State)
				claims := append(r.Users, r.Contenders...)
				if row.want == arpcheck.Free {
					assert.Empty(t, claims)
					return
				}
				require.Len(t, claims, 1)
				assert.Equal(t, node(1), claims[0].MAC)
				assert.Equal(t, 4*time.Second, claims[0].First.Sub(r.Started))
			})
		})
	}
}

// A flood of users is bounded.
func TestCheckFreeFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		for n := range 1000 {
			w.later(time.Millisecond, toHost(reply(node(n), vip)))
		}
		r, err := w.prober().CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
		require.NoError(t, err)
		assert.Equal(t, arpcheck.Used, r.State)
		assert.Len(t, r.Users, 64)
		assert.Equal(t, 1000-64, r.Excess)
	})
}

func TestCheckFreeUnknown(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*wire, *arpcheck.Prober)
		want   arpcheck.Reason
	}{
		{"down before", func(_ *wire, p *arpcheck.Prober) { p.Host = &station{} }, arpcheck.LinkDown},
		{"goes down", func(w *wire, _ *arpcheck.Prober) { time.AfterFunc(time.Second, w.goDown) }, arpcheck.LinkDown},
		{"down when sending", func(w *wire, _ *arpcheck.Prober) {
			w.take = func(int) (int, error) { return 0, arpcheck.ErrLinkDown }
		}, arpcheck.LinkDown},
		{"the queue is full", func(w *wire, _ *arpcheck.Prober) {
			w.take = func(int) (int, error) { return 0, nil }
		}, arpcheck.NotSent},
		{"frames are dropped", func(w *wire, _ *arpcheck.Prober) {
			time.AfterFunc(time.Second, func() { w.mu.Lock(); w.drops = 5; w.mu.Unlock() })
		}, arpcheck.KernelDrops},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				p := w.prober()
				row.change(w, p)
				r, err := p.CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
				require.NoError(t, err)
				assert.Equal(t, arpcheck.FreeUnknown, r.State)
				assert.Equal(t, reasons(row.want), r.Reasons)
			})
		})
	}
	t.Run("cut short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			r, err := newWire().prober().CheckFree(within(t, 1500*time.Millisecond), vip, arpcheck.FreeOptions{})
			require.NoError(t, err)
			assert.Equal(t, arpcheck.FreeUnknown, r.State)
			assert.Equal(t, reasons(arpcheck.CutShort), r.Reasons)
			assert.Equal(t, 1500*time.Millisecond, time.Since(begun))
		})
	})
}

func TestCheckFreeErrors(t *testing.T) {
	t.Parallel()
	w := newWire()
	p := w.prober()
	_, err := p.CheckFree(t.Context(), netip.MustParseAddr("fd00::1"), arpcheck.FreeOptions{})
	require.ErrorIs(t, err, arpcheck.ErrBadTarget)
	_, err = p.CheckFree(t.Context(), vip, arpcheck.FreeOptions{Time: -1})
	require.ErrorContains(t, err, "negative Time")
	_, err = (&arpcheck.Prober{}).CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
	require.ErrorContains(t, err, "without a Conn")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.CheckFree(ctx, vip, arpcheck.FreeOptions{})
	require.ErrorIs(t, err, context.Canceled)
	q := w.prober()
	q.Conn = &brokenConn{Conn: w, receive: func() (int, error) { return 0, nil }}
	_, err = q.CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.NoError(t, p.Close())
	_, err = p.CheckFree(t.Context(), vip, arpcheck.FreeOptions{})
	require.ErrorIs(t, err, net.ErrClosed)
}

// Before an address goes into a pool: does anybody use it?
func ExampleProber_CheckFree() {
	segment, prober := office()
	defer segment.Close()

	for _, addr := range []string{"10.0.3.21", "10.0.3.99"} {
		r, err := prober.CheckFree(context.Background(), netip.MustParseAddr(addr), arpcheck.FreeOptions{Time: 100 * time.Millisecond})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Target, r.State)
		for _, user := range r.Users {
			fmt.Println("used by", user.MAC)
		}
	}
	// Output:
	// 10.0.3.21 used
	// used by 02:00:00:00:00:02
	// 10.0.3.99 free
}
