package netnstest_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

var (
	vip    = netip.MustParseAddr("10.0.3.20")
	subnet = 24
)

func prefix(addr string) netip.Prefix {
	return netip.PrefixFrom(netip.MustParseAddr(addr), subnet)
}

// lab is a segment with three nodes and a client.
type lab struct {
	*netnstest.Segment
	nodes  []*netnstest.Host
	client *netnstest.Host
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{Segment: netnstest.New(t)}
	for i, name := range []string{"w1", "w2", "w3"} {
		n, err := l.AddNode(name, prefix(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}).String()))
		require.NoError(t, err)
		l.nodes = append(l.nodes, n)
	}
	var err error
	l.client, err = l.AddClient("client", prefix("10.0.3.50"))
	require.NoError(t, err)
	return l
}

func (l *lab) each(t testing.TB, f func(*netnstest.Host) error) {
	t.Helper()
	for _, n := range l.nodes {
		require.NoError(t, f(n))
	}
}

func (l *lab) holdVIP(t testing.TB) {
	t.Helper()
	l.each(t, func(n *netnstest.Host) error { return n.HoldVIP(vip) })
}

// capture is a raw socket on a host.
type capture struct {
	t    testing.TB
	conn *packet.Conn
}

func listen(t testing.TB, h *netnstest.Host, link string, etherType int) *capture {
	t.Helper()
	c := &capture{t: t}
	require.NoError(t, h.Do(func() error {
		ifi, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		c.conn, err = packet.Listen(ifi, packet.Raw, etherType, nil)
		return err
	}))
	t.Cleanup(func() { c.conn.Close() })
	return c
}

// frames returns the frames that keep accepts: it waits for as many as are
// wanted, and then a while for what should not come.
func (c *capture) frames(want int, keep func([]byte) bool) [][]byte {
	c.t.Helper()
	var got [][]byte
	buf := make([]byte, 2048)
	for {
		wait := quiet
		if len(got) < want {
			wait = patience
		}
		require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(wait)))
		n, _, err := c.conn.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got
		}
		require.NoError(c.t, err)
		if keep(buf[:n]) {
			got = append(got, bytes.Clone(buf[:n]))
		}
	}
}

const (
	quiet    = 100 * time.Millisecond
	patience = 5 * time.Second
)

// answer is an ARP reply and the length of its frame.
type answer struct {
	MAC    arpcheck.MAC
	Length int
}

// ask sends one broadcast request and returns the answers in order.
func ask(t testing.TB, h *netnstest.Host, sender, target netip.Addr, want int) []answer {
	t.Helper()
	return askBy(t, h, arpwire.Request(h.MAC(), sender, target), want)
}

func askBy(t testing.TB, h *netnstest.Host, request arpwire.Packet, want int) []answer {
	t.Helper()
	c := listen(t, h, netnstest.NIC, arpwire.TypeARP)
	require.NoError(t, h.Inject(request.Append(nil, 60)))
	var answers []answer
	c.frames(want, func(f []byte) bool {
		p, err := arpwire.Parse(f)
		ok := err == nil && p.Op == arpwire.OpReply && p.Sender == request.Target && p.Dst == h.MAC()
		if ok {
			answers = append(answers, answer{p.SenderMAC, len(f)})
		}
		return ok
	})
	return answers
}

func macs(answers []answer) []arpcheck.MAC {
	var m []arpcheck.MAC
	for _, a := range answers {
		m = append(m, a.MAC)
	}
	return m
}
