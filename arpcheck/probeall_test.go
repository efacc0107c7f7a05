package arpcheck_test

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// addrs returns n addresses that begin with 10.1.
func addrs(n int) []netip.Addr {
	all := make([]netip.Addr, n)
	for i := range all {
		all[i] = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	return all
}

func TestProbeAllKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(30)
		slices.Reverse(targets)
		targets[7] = netip.AddrFrom16(targets[7].As16()) // as 4in6
		w := newWire()
		w.onSend = func(frame []byte) { // the n-th address is at the n-th node
			p := parse(t, frame)
			w.later(time.Millisecond, toHost(p.Reply(node(int(p.Target.As4()[3])))))
		}
		begun := time.Now()
		results, err := w.prober().ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		require.Len(t, results, len(targets))
		for i, r := range results {
			assert.Equal(t, targets[i].Unmap(), r.Target)
			assert.Equal(t, []arpcheck.MAC{node(29 - i)}, macs(r))
			assert.Equal(t, 3, r.Quality.Requests)
		}
		assert.Equal(t, 3*arpcheck.DefaultWait, time.Since(begun), "windows are shared")
	})
}

func TestProbeAllOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		begun := time.Now()
		for _, none := range [][]netip.Addr{nil, {}} {
			results, err := w.prober().ProbeAll(t.Context(), none)
			require.NoError(t, err)
			assert.NotNil(t, results)
			assert.Empty(t, results)
		}
		assert.Empty(t, w.sentFrames())
		assert.Zero(t, time.Since(begun), "there is nothing to wait for")
	})
}

func TestBadTargets(t *testing.T) {
	for _, row := range []struct {
		name    string
		targets []netip.Addr
		says    string
	}{
		{"zero Addr", []netip.Addr{{}}, "no address was given"},
		{"IPv6", []netip.Addr{netip.MustParseAddr("2001:db8::1")}, "2001:db8::1"},
		{"IPv6 with zone", []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}, "fe80::1%eth0"},
		{"IPv6 among others", append(addrs(3), netip.MustParseAddr("2001:db8::1")), "NDP"},
		{"unspecified", []netip.Addr{netip.IPv4Unspecified()}, "0.0.0.0"},
		{"broadcast", []netip.Addr{netip.MustParseAddr("255.255.255.255")}, "255.255.255.255"},
		{"multicast", []netip.Addr{netip.MustParseAddr("224.0.0.1")}, "224.0.0.1"},
		{"loopback", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, "127.0.0.1"},
		{"loopback as 4in6", []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, "127.0.0.1"},
		{"twice", []netip.Addr{vip, client, vip}, "10.0.3.20 on eth0"},
		{"twice, once as 4in6", []netip.Addr{vip, netip.AddrFrom16(vip.As16())}, "twice"},
		{"twice, as 4in6 first", []netip.Addr{netip.AddrFrom16(vip.As16()), vip}, "twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWire()
			results, err := w.prober().ProbeAll(t.Context(), row.targets)
			require.ErrorIs(t, err, arpcheck.ErrBadTarget)
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, "eth0")
			assert.Nil(t, results)
			assert.Empty(t, w.sentFrames(), "asked all the same")
		})
	}
	t.Run("control", func(t *testing.T) {
		w := newWire()
		p := w.prober()
		p.Control = netip.MustParseAddr("2001:db8::1")
		_, err := p.Probe(t.Context(), vip)
		require.ErrorIs(t, err, arpcheck.ErrBadTarget)
		require.ErrorContains(t, err, "2001:db8::1")
		assert.Empty(t, w.sentFrames())
	})
}

// cluster is a segment with three nodes that all hold the VIPs, and a client.
func cluster(t *testing.T, vips ...netip.Addr) (nodes []*arpchecktest.Host, from *arpchecktest.Host) {
	t.Helper()
	s := arpchecktest.New(t)
	for _, name := range []string{"w1", "w2", "w3"} {
		addr := netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + len(nodes))})
		n := s.AddNode(name, netip.PrefixFrom(addr, 24))
		for _, v := range vips {
			require.NoError(t, n.HoldVIP(v))
		}
		nodes = append(nodes, n)
	}
	return nodes, s.AddClient("client", netip.PrefixFrom(client, 24))
}

// A receive queue of default size holds 256 frames. 1,000 targets with three
// responders each draw 3,000 a round; none may be lost.
func TestThousandTargets(t *testing.T) {
	for _, latency := range []time.Duration{0, arpchecktest.DefaultLatency} {
		t.Run(latency.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				targets := addrs(1000)
				nodes, from := cluster(t, targets...)
				var all []arpcheck.MAC
				for _, n := range nodes {
					n.SetLatency(latency)
					all = append(all, n.MAC())
				}
				conn, err := from.OpenConn("eth0")
				require.NoError(t, err)
				if latency > 0 { // as a real interface has: otherwise all answers come at one instant
					conn.SetSendQueue(64, 10*time.Microsecond)
				}
				p := &arpcheck.Prober{Conn: conn, MAC: from.MAC(), Link: "eth0", Sender: client}
				results, err := p.ProbeAll(t.Context(), targets)
				require.NoError(t, err)
				for _, r := range results {
					require.Zero(t, r.Quality.Drops)
					require.Equal(t, arpcheck.Multiple, r.Verdict)
					require.Empty(t, r.Reasons)
					require.ElementsMatch(t, all, macs(r))
					for _, responder := range r.Responders {
						require.Equal(t, 3, responder.Replies)
						require.Zero(t, responder.DoubleAnswers)
					}
				}
			})
		})
	}
}

// A queue that takes a few frames at a time slows the pass down and no more.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(100)
		w := answering(time.Millisecond, node(1))
		turn := 0
		w.take = func(n int) (int, error) {
			turn++
			return min(n, turn%4), nil // 0 to 3
		}
		results, err := w.prober().ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, arpcheck.Single, r.Verdict)
			require.Equal(t, 3, r.Quality.Requests)
			require.Equal(t, 3, r.Responders[0].Replies)
			require.Equal(t, time.Millisecond, r.Responders[0].RTT.Max)
		}
		asked := w.sentFrames()
		require.Len(t, asked, 300)
		for i, s := range asked {
			require.Equal(t, targets[i%100], parse(t, s.data).Target, "out of turn")
		}
	})
}

// A queue that stays full for a whole window is given up: the targets that were
// not asked for are said to be so, and nothing else is.
func TestQueueStaysFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := 12
		w := answering(time.Millisecond, node(1))
		w.take = func(n int) (int, error) {
			n = min(n, room)
			room -= n
			return n, nil
		}
		begun := time.Now()
		results, err := w.prober().ProbeAll(t.Context(), addrs(20))
		require.NoError(t, err)
		assert.Less(t, time.Since(begun), 10*arpcheck.DefaultWait)
		for i, r := range results {
			require.Equal(t, arpcheck.Inconclusive, r.Verdict)
			require.Contains(t, r.Reasons, arpcheck.NotSent)
			if i < 12 {
				require.Equal(t, 1, r.Quality.Requests)
				require.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
			} else {
				require.Zero(t, r.Quality.Requests)
				require.Empty(t, r.Responders)
			}
		}
	})
}

// A queue that was full for one round has cost that round only.
func TestQueueFullForOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		begun := time.Now()
		w.take = func(n int) (int, error) {
			if time.Since(begun) < 2*arpcheck.DefaultWait {
				n = 0
			}
			return n, nil
		}
		copies := 2 // a driver's duplicate, once
		w.onSend = func([]byte) {
			for range copies {
				w.later(time.Millisecond, toHost(reply(node(1), vip)))
			}
			copies = 1
		}
		p := w.prober()
		p.Rounds = 4
		r := probe(t, p)
		require.Equal(t, 3, r.Quality.Requests)
		assert.Equal(t, 3, r.Rounds, "rounds that were asked and waited for")
		assert.Contains(t, r.Reasons, arpcheck.NotSent)
		assert.False(t, r.Responders[0].DoubleAnswer, "one duplicate in three rounds")
	})
}

// Asking an address more than 8 frames away from the front of the batch is as
// exact as asking the first.
func TestFramesOfABatchAreAskedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := addrs(20)
		w := newWire()
		_, err := w.prober().ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		var asked []netip.Addr
		for _, s := range w.sentFrames() {
			asked = append(asked, parse(t, s.data).Target)
		}
		assert.Equal(t, slices.Concat(targets, targets, targets), asked)
	})
}
