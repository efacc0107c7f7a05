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
// retransmission, which Linux does after 1 s.
const visitWithin = 1500 * time.Millisecond

func visit(t testing.TB, client *netnstest.Host) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), visitWithin)
	defer cancel()
	return client.Visit(ctx, web)
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
	w1, w3 := l.nodes[0], l.nodes[2]
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
	require.NoError(t, l.client.Forget(vip))

	atNode := listen(t, w1, netnstest.NIC, etherTypeIPv4)
	atClient := listen(t, l.client, netnstest.NIC, etherTypeIPv4)
	_, err = visit(t, l.client)
	require.ErrorIs(t, err, context.DeadlineExceeded, "not refused")
	n, err := l.client.Neighbour(vip)
	require.NoError(t, err)
	assert.Equal(t, w3.MAC(), n.MAC, "w3 joined last and answers first")

	require.Equal(t, netnstest.Forward, w3.Forwarding())
	syns := atNode.frames(2, segments(l.client.Addr(), pod, syn))
	require.Len(t, syns, 2, "the first and its retransmission reach the endpoint")
	assert.Equal(t, w3.MAC(), arpcheck.MAC(syns[0][6:12]), "through w3")
	assert.NotEmpty(t, atClient.frames(1, segments(pod, l.client.Addr(), syn|ack)), "the pod answers under its own address")
	assert.Len(t, ask(t, l.client, l.client.Addr(), vip, 4), 4, "ARP is not affected")
}

func TestClientResetsWhatThePodAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, l.Expose(netnstest.Service{VIP: web, Node: w1, Endpoint: netip.MustParseAddrPort("10.9.9.9:1234")}))
	atNode := listen(t, w1, netnstest.NIC, etherTypeIPv4)
	_, err := visit(t, l.client)
	require.ErrorIs(t, err, context.DeadlineExceeded)
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
	assert.Equal(t, netnstest.Neighbour{MAC: w1.MAC(), State: netnstest.Reachable}, n)
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
