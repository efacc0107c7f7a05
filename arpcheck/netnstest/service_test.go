package netnstest_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io/fs"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

var web = netip.AddrPortFrom(vip, 80)

const etherTypeIPv4 = 0x0800

// visitWithin is long enough for a connection that works and for one
// retransmission, which Linux does after 1 s, on a busy machine too.
const visitWithin = 2500 * time.Millisecond

// wrongVisits is how often a client may ask until a wrong node is the first to
// answer; an announcer wins less than one race in 100.
const wrongVisits = 10

func visit(t testing.TB, client *netnstest.Host) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), visitWithin)
	defer cancel()
	return client.Visit(ctx, web)
}

// visitInVain has the client ask until a wrong node's answer is first, and returns
// the node through which its connection timed out. Which answer is first is not
// quite settled: an announcer runs on another processor than the kernels' answers
// are passed on by, and overtakes them when that one is busy.
func (l *lab) visitInVain(t testing.TB, right *netnstest.Host) *netnstest.Host {
	t.Helper()
	for range wrongVisits {
		require.NoError(t, l.client.Forget(vip))
		name, err := visit(t, l.client)
		n, lookUp := l.client.Neighbour(vip)
		require.NoError(t, lookUp)
		if n.MAC == right.MAC() {
			require.NoError(t, err, "through the right node")
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded, "not refused, and not served by %q; the neighbour is %+v", name, n)
		for _, wrong := range l.nodes {
			if wrong.MAC() == n.MAC {
				return wrong
			}
		}
		require.Fail(t, "a stranger answered", "%+v", n)
	}
	require.Fail(t, "no wrong node was ever first", "%d times", wrongVisits)
	return nil
}

// segments returns a filter for TCP segments with the given flags.
func segments(from, to netip.Addr, flags byte) func([]byte) bool {
	return func(f []byte) bool {
		const eth, ip = 14, 20
		return len(f) >= eth+ip+20 && binary.BigEndian.Uint16(f[12:]) == etherTypeIPv4 && f[eth+9] == 6 &&
			netip.AddrFrom4([4]byte(f[eth+12:])) == from && netip.AddrFrom4([4]byte(f[eth+16:])) == to && f[eth+ip+13] == flags
	}
}

const (
	syn = 0x02
	rst = 0x04
	ack = 0x10
)

func TestServiceThroughRightAndWrongNode(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	pod := netip.MustParseAddr("10.244.1.2")
	require.NoError(t, l.Expose(netnstest.Service{VIP: web, Node: w1}))
	l.each(t, func(n *netnstest.Host) error { return n.SetStrictARP(true) })
	_, err := w1.AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
	require.NoError(t, err)
	name, err := visit(t, l.client)
	require.NoError(t, err)
	assert.Equal(t, "w1", name)

	l.each(t, func(n *netnstest.Host) error { return n.SetStrictARP(false) })
	name, err = visit(t, l.client)
	require.NoError(t, err, "the entry is still right")
	assert.Equal(t, "w1", name)

	atNode := listen(t, w1, netnstest.NIC, etherTypeIPv4)
	atClient := listen(t, l.client, netnstest.NIC, etherTypeIPv4)
	wrong := l.visitInVain(t, w1)
	require.Equal(t, netnstest.Forward, wrong.Forwarding())
	syns := atNode.frames(2, segments(l.client.Addr(), pod, syn))
	require.GreaterOrEqual(t, len(syns), 2, "the first and its retransmission reach the endpoint")
	for _, s := range syns {
		assert.Equal(t, wrong.MAC(), arpcheck.MAC(s[6:12]), "through %s", wrong.Name())
	}
	assert.NotEmpty(t, atClient.frames(1, segments(pod, l.client.Addr(), syn|ack)), "the pod answers under its own address")
	assert.Len(t, ask(t, l.client, l.client.Addr(), vip, 4), 4, "ARP is not affected")
}

func TestClientResetsWhatThePodAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, l.Expose(netnstest.Service{VIP: web, Node: w1, Endpoint: netip.MustParseAddrPort("10.9.9.9:1234")}))
	atNode := listen(t, w1, netnstest.NIC, etherTypeIPv4)
	l.visitInVain(t, w1)
	assert.NotEmpty(t, atNode.frames(1, segments(l.client.Addr(), netip.MustParseAddr("10.9.9.9"), rst)))
}

func TestDropVIPTrafficStandsIn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w2 := l.nodes[1]
	require.NoError(t, w2.HoldVIP(vip))
	require.Empty(t, w2.Forwarding())
	s, err := w2.Serve(web)
	require.NoError(t, err)
	name, err := visit(t, l.client)
	require.NoError(t, err)
	require.Equal(t, "w2", name)

	for range 2 {
		require.NoError(t, w2.DropVIPTraffic(web), "also when done already")
	}
	assert.Equal(t, netnstest.StandIn, w2.Forwarding())
	_, err = visit(t, l.client)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, []arpcheck.MAC{w2.MAC()}, macs(ask(t, l.client, l.client.Addr(), vip, 1)), "ARP is not affected")
	require.NoError(t, s.Close())
}

func TestServerEchoesAndEndsConnections(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	s, err := w1.Serve(netip.AddrPortFrom(w1.Addr(), 8080))
	require.NoError(t, err)
	conn, err := l.client.DialFrom(t.Context(), l.client.Addr(), netip.AddrPortFrom(w1.Addr(), 8080))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("hello\n"))
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	for _, want := range []string{"w1\n", "hello\n"} {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, want, line)
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice is no error")
	_, err = r.ReadByte()
	assert.Error(t, err, "the connection ended with the server")
	_, err = l.client.Dial(t.Context(), netip.AddrPortFrom(w1.Addr(), 8080))
	assert.ErrorContains(t, err, `host "client": connect`)
	assert.ErrorContains(t, err, "refused")
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	_, err := l.client.Neighbour(w1.Addr())
	require.ErrorIs(t, err, fs.ErrNotExist)
	mac, err := l.client.Resolve(t.Context(), w1.Addr())
	require.NoError(t, err)
	assert.Equal(t, w1.MAC(), mac)
	n, err := l.client.Neighbour(w1.Addr())
	require.NoError(t, err)
	assert.Equal(t, netnstest.Neighbour{MAC: w1.MAC(), State: netnstest.NeighbourReachable}, n)
	require.NoError(t, l.client.Forget(w1.Addr()))
	require.NoError(t, l.client.Forget(w1.Addr()), "forgetting twice is no error")
	_, err = l.client.Neighbour(w1.Addr())
	assert.ErrorIs(t, err, fs.ErrNotExist)

	_, err = l.client.Resolve(t.Context(), l.client.Addr())
	assert.ErrorContains(t, err, "own address")
	_, err = l.client.Resolve(t.Context(), netip.MustParseAddr("10.0.3.99"))
	assert.ErrorIs(t, err, fs.ErrNotExist, "nobody has it")
	assert.ErrorContains(t, err, "nobody answered")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = l.client.Resolve(ctx, netip.MustParseAddr("10.0.3.99"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// The node's own request names the VIP as sender, and whoever is asked learns it.
func TestRequestSenderPoisons(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w2 := l.nodes[1]
	require.NoError(t, w2.HoldVIP(vip))
	c := listen(t, l.client, netnstest.NIC, arpwire.TypeARP)
	claims := func(f []byte) bool {
		p, err := arpwire.Parse(f)
		return err == nil && p.Op == arpwire.OpRequest && p.Sender == vip && p.SenderMAC == w2.MAC()
	}
	require.NoError(t, w2.SendFrom(vip, l.client.Addr()))
	require.NotEmpty(t, c.frames(1, claims))
	n, err := l.client.Neighbour(vip)
	require.NoError(t, err)
	assert.Equal(t, w2.MAC(), n.MAC)

	require.NoError(t, w2.SetStrictARP(true))
	require.NoError(t, w2.Forget(l.client.Addr()))
	require.NoError(t, w2.SendFrom(vip, l.client.Addr()))
	assert.Empty(t, c.frames(0, claims))
}
