package arpchecktest_test

import (
	"context"
	"io/fs"
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

// server returns the name of the host that serves a client.
func server(t *testing.T, client *arpchecktest.Host, to netip.AddrPort) string {
	t.Helper()
	name, err := client.Visit(t.Context(), to)
	require.NoError(t, err)
	return name
}

// visit returns why a client is not served.
func visit(ctx context.Context, client *arpchecktest.Host, to netip.AddrPort) error {
	_, err := client.Visit(ctx, to)
	return err
}

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
		require.Equal(t, "w1", server(t, c.client, at))

		require.NoError(t, c.client.Forget(vip))
		short, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, visit(short, c.client, at), context.DeadlineExceeded)
		cached, _ = c.client.Neighbour(vip)
		require.Equal(t, c.w3.MAC(), cached, "the first answer counts")

		c.setStrict(t)
		start := time.Now()
		require.ErrorIs(t, visit(t.Context(), c.client, at), syscall.ETIMEDOUT, "still the wrong entry")
		assert.Equal(t, 127*time.Second, time.Since(start))
		require.NoError(t, c.client.Forget(vip))
		require.Equal(t, "w1", server(t, c.client, at))
		cached, _ = c.client.Neighbour(vip)
		assert.Equal(t, c.w1.MAC(), cached)
	})
}

func TestVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		require.ErrorIs(t, visit(t.Context(), c.client, at), syscall.EHOSTUNREACH, "nobody answers")
		own := netip.AddrPortFrom(c.w1.Addr(), 22)
		require.ErrorIs(t, visit(t.Context(), c.client, own), syscall.ECONNREFUSED)
		require.NoError(t, c.w1.Serve(own))
		require.Equal(t, "w1", server(t, c.client, own))
		require.Equal(t, "w1", server(t, c.w1, own), "from itself, too")
		far := netip.MustParseAddrPort("8.8.8.8:53")
		require.ErrorIs(t, visit(t.Context(), c.client, far), syscall.EHOSTUNREACH, "no route")
		require.ErrorIs(t, c.client.SendFrom(c.client.Addr(), far.Addr()), syscall.EHOSTUNREACH)
		require.NoError(t, c.client.AddLink("eth1", netip.MustParsePrefix("8.8.8.1/24")))
		require.ErrorIs(t, visit(t.Context(), c.client, far), syscall.EHOSTUNREACH, "not on the segment")
		require.NoError(t, c.client.AddRoute(arpchecktest.Route{To: netip.MustParsePrefix("8.8.8.8/32"), Via: c.w1.Addr(), Link: "eth0"}))
		require.ErrorIs(t, visit(t.Context(), c.client, far), syscall.ETIMEDOUT, "gateways forward nothing")

		require.NoError(t, c.w1.SetLink("eth0", false))
		require.ErrorIs(t, visit(t.Context(), c.client, own), syscall.ETIMEDOUT, "cached, but down")
		require.NoError(t, c.w1.SetLink("eth0", true))

		// A SYN that is repeated after the cure arrives.
		require.NoError(t, c.w1.Serve(at))
		wrong, err := c.w2.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}})
		require.NoError(t, err)
		time.AfterFunc(2*time.Second, func() {
			assert.NoError(t, wrong.Stop())
			_, err := c.w1.Announce(vip)
			assert.NoError(t, err)
		})
		start := time.Now()
		require.Equal(t, "w1", server(t, c.client, at))
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
		go func() { ended <- visit(t.Context(), c.client, at) }()
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
		require.ErrorIs(t, err, fs.ErrNotExist)
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

// arp_process is done with a question that arp_ignore leaves unanswered.
func TestUnansweredQuestionUpdatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		before, err := c.w1.Resolve(t.Context(), c.client.Addr())
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		question := arpwire.Request(mac(99), c.client.Addr(), vip)
		require.NoError(t, c.w2.Inject(question.Append(nil, 0)))
		after, _ := c.w1.Neighbour(c.client.Addr())
		require.Equal(t, before, after)
		question.Target = addr(99).Addr()
		require.NoError(t, c.w2.Inject(question.Append(nil, 0)))
		after, _ = c.w1.Neighbour(c.client.Addr())
		assert.Equal(t, mac(99), after, "a question to another host passes")
	})
}

// A strict node does not learn from a question it does not answer, and nobody
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
		_, err := c.conn.Send([][]byte{arpwire.Request(c.client.MAC(), netip.IPv4Unspecified(), vip).Append(nil, 0)})
		require.NoError(t, err)
		_, known = c.w2.Neighbour(netip.IPv4Unspecified())
		require.False(t, known, "0.0.0.0 is nobody")
		require.NoError(t, c.w2.SetLink("eth0", false))
		_, known = c.w2.Neighbour(c.client.Addr())
		assert.False(t, known)
	})
}

// The zero source is the route's, as a kernel chooses it.
func TestSendFromNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		require.NoError(t, c.w2.SendFrom(netip.Addr{}, c.client.Addr()))
		learned, ok := c.client.Neighbour(c.w2.Addr())
		require.True(t, ok)
		assert.Equal(t, c.w2.MAC(), learned)
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
