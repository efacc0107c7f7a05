package arpchecktest_test

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// The main job in small: a client works because of the gratuitous frames, loses
// its entry, takes the first answer, and works again after cure and flush.
func TestTheIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		require.NoError(t, c.w1.Serve(at))
		_, err := c.client.Resolve(t.Context(), vip)
		require.NoError(t, err)
		_, err = c.w1.Announce(vip)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		cached, ok := c.client.Neighbour(vip)
		require.True(t, ok)
		require.Equal(t, c.w1.MAC(), cached, "the gratuitous request set it right")
		require.NoError(t, c.client.Connect(t.Context(), at))

		require.NoError(t, c.client.Forget(vip))
		short, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, c.client.Connect(short, at), context.DeadlineExceeded)
		cached, _ = c.client.Neighbour(vip)
		require.Equal(t, c.w3.MAC(), cached, "the first answer counts")

		c.setStrict(t)
		start := time.Now()
		require.ErrorIs(t, c.client.Connect(t.Context(), at), syscall.ETIMEDOUT, "still the wrong entry")
		assert.Equal(t, 127*time.Second, time.Since(start))
		require.NoError(t, c.client.Forget(vip))
		require.NoError(t, c.client.Connect(t.Context(), at))
		cached, _ = c.client.Neighbour(vip)
		assert.Equal(t, c.w1.MAC(), cached)
	})
}

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		require.ErrorIs(t, c.client.Connect(t.Context(), at), syscall.EHOSTUNREACH, "nobody answers")
		own := netip.AddrPortFrom(c.w1.Addr(), 22)
		require.ErrorIs(t, c.client.Connect(t.Context(), own), syscall.ECONNREFUSED)
		require.NoError(t, c.w1.Serve(own))
		require.NoError(t, c.client.Connect(t.Context(), own))
		require.NoError(t, c.w1.Connect(t.Context(), own), "from itself, too")
		require.ErrorIs(t, c.client.Connect(t.Context(), netip.MustParseAddrPort("8.8.8.8:53")), syscall.EHOSTUNREACH)

		// A SYN that is repeated after the cure arrives.
		require.NoError(t, c.w1.Serve(at))
		wrong, err := c.w2.Run(arpchecktest.Speaker{VIP: vip})
		require.NoError(t, err)
		time.AfterFunc(2*time.Second, func() {
			wrong.Stop()
			_, err := c.w1.Announce(vip)
			assert.NoError(t, err)
		})
		start := time.Now()
		require.NoError(t, c.client.Connect(t.Context(), at))
		assert.Equal(t, 3*time.Second, time.Since(start).Truncate(time.Second))
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		time.AfterFunc(500*time.Millisecond, func() { assert.NoError(t, c.Close()) })
		ended := make(chan error, 2)
		go func() {
			_, err := c.client.Resolve(t.Context(), addr(99).Addr())
			ended <- err
		}()
		go func() { ended <- c.client.Connect(t.Context(), at) }()
		for range 2 {
			require.ErrorIs(t, <-ended, net.ErrClosed)
		}
		_, err := c.conn.Receive(make([]arpcheck.Frame, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestResolveAsksThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		start := time.Now()
		_, err := c.client.Resolve(t.Context(), addr(99).Addr())
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)
		assert.Equal(t, 3*time.Second, time.Since(start))
		got := frames(t, c.conn, 0)
		require.Len(t, got, 3)
		for k, f := range got {
			p, err := arpwire.Parse(f.Data)
			require.NoError(t, err)
			assert.Equal(t, arpwire.Request(c.client.MAC(), c.client.Addr(), addr(99).Addr()), p)
			assert.Equal(t, arpcheck.Outgoing, f.Type)
			assert.Equal(t, time.Duration(k)*time.Second, f.At.Sub(start))
		}

		c.w1.SetFault(arpchecktest.Fault{Delay: 1500 * time.Millisecond})
		found, err := c.client.Resolve(t.Context(), c.w1.Addr())
		require.NoError(t, err)
		assert.Equal(t, c.w1.MAC(), found)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = c.client.Resolve(ctx, addr(99).Addr())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Which packets change an entry that exists, as arp_process has it.
func TestNeighbourUpdates(t *testing.T) {
	stranger := arpcheck.MAC{0x02, 9, 9, 9, 9, 9}
	unsolicited := func(c cluster) arpwire.Packet {
		return arpwire.Request(c.client.MAC(), c.client.Addr(), vip).Reply(stranger)
	}
	announcement := func(op uint16, targetMAC arpcheck.MAC) func(cluster) arpwire.Packet {
		return func(cluster) arpwire.Packet {
			return arpwire.Packet{
				Dst: arpwire.Broadcast, Src: stranger, Op: op,
				SenderMAC: stranger, Sender: vip, TargetMAC: targetMAC, Target: vip,
			}
		}
	}
	for _, row := range []struct {
		name    string
		age     time.Duration
		packet  func(cluster) arpwire.Packet
		changes bool
	}{
		{"a second answer", 500 * time.Millisecond, unsolicited, false},
		{"an answer after locktime", 1500 * time.Millisecond, unsolicited, true},
		{"a gratuitous request", 0, announcement(arpwire.OpRequest, arpwire.Broadcast), true},
		{"a gratuitous reply", 0, announcement(arpwire.OpReply, stranger), true},
		{"MetalLB's reply alone", 0, announcement(arpwire.OpReply, arpwire.Broadcast), false},
		{"a question to the client itself", 0, func(c cluster) arpwire.Packet {
			return arpwire.Request(stranger, vip, c.client.Addr())
		}, true},
		{"a question to another", 0, func(cluster) arpwire.Packet {
			return arpwire.Request(stranger, vip, addr(99).Addr())
		}, false},
		{"a question to another, after locktime", 1500 * time.Millisecond, func(cluster) arpwire.Packet {
			return arpwire.Request(stranger, vip, addr(99).Addr())
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				before, err := c.client.Resolve(t.Context(), vip)
				require.NoError(t, err)
				time.Sleep(row.age)
				require.NoError(t, c.w2.Inject(row.packet(c).Append(nil, 0)))
				after, ok := c.client.Neighbour(vip)
				require.True(t, ok)
				if row.changes {
					assert.Equal(t, stranger, after)
				} else {
					assert.Equal(t, before, after)
				}
			})
		})
	}
}

// A strict client does not learn from a question it does not answer, and nobody
// learns who was never asked for.
func TestWhatIsNotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ask(t, c.client, c.conn, addr(99).Addr())
		_, known := c.w1.Neighbour(c.client.Addr())
		require.False(t, known, "it was not the one that was asked")
		require.NoError(t, c.w1.SetStrictARP(true))
		ask(t, c.client, c.conn, vip)
		_, known = c.w1.Neighbour(c.client.Addr())
		require.False(t, known)
		_, known = c.w2.Neighbour(c.client.Addr())
		require.True(t, known, "who answers remembers whom")
		require.NoError(t, c.w2.SetLink("eth0", false))
		_, known = c.w2.Neighbour(c.client.Addr())
		assert.False(t, known)
	})
}

// The sender of a node's own request, by arp_announce.
func TestSendFromVIP(t *testing.T) {
	for announce, poisons := range []bool{0: true, 1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.setStrict(t)
			require.NoError(t, c.w2.SetSysctl("all", "arp_announce", announce))
			require.NoError(t, c.w2.SendFrom(vip, c.client.Addr()))
			_, poisoned := c.client.Neighbour(vip)
			assert.Equal(t, poisons, poisoned, "arp_announce %d", announce)
			got := frames(t, c.conn, time.Second)
			require.Len(t, got, 2, "the question, and the client's own answer")
			p, err := arpwire.Parse(got[0].Data)
			require.NoError(t, err)
			assert.Equal(t, poisons, p.Sender == vip)
			assert.Equal(t, arpcheck.Outgoing, got[1].Type)
		})
	}
}
