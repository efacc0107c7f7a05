package arpwire_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
	"github.com/strictarp/strictarp/internal/netns"
)

// BenchmarkFilterCost measures what a packet socket costs the other traffic of
// a link: UDP over a veth pair with the socket on it, and with the same socket
// on lo instead, in turns because machines drift. An operation is both bursts.
// Read the metrics, which are medians: ns/packet without the socket on the
// link, what the socket adds, and the ratio.
//
// The sending end costs more than the receiving one: there the kernel clones
// each packet for an ETH_P_ALL socket before it asks the filter
// (dev_queue_xmit_nit in net/core/dev.c).
func BenchmarkFilterCost(b *testing.B) {
	wire := newWire(b)
	filter, err := arpwire.RawFilterARP()
	require.NoError(b, err)
	for _, end := range []struct {
		name string
		ns   *netns.NS
	}{{"receiving", wire.receiver}, {"sending", wire.sender}} {
		for _, c := range []struct {
			name     string
			protocol int
			filter   []bpf.RawInstruction
		}{
			{"ETH_P_ARP", unix.ETH_P_ARP, nil},
			{"ETH_P_ALL+filter", unix.ETH_P_ALL, filter},
			{"ETH_P_ALL", unix.ETH_P_ALL, nil},
		} {
			b.Run(end.name+"/"+c.name, func(b *testing.B) {
				var without, added, ratio []float64
				for b.Loop() {
					plain := wire.burst(b, end.ns, "lo", c.protocol, c.filter)
					watched := wire.burst(b, end.ns, linkName, c.protocol, c.filter)
					without, added = append(without, plain), append(added, watched-plain)
					ratio = append(ratio, watched/plain)
				}
				b.ReportMetric(median(without), "ns/packet-without")
				b.ReportMetric(median(added), "ns/packet-added")
				b.ReportMetric(median(ratio), "ratio")
			})
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func listen(ns *netns.NS, name string, protocol int, filter []bpf.RawInstruction) (conn *packet.Conn, err error) {
	err = ns.Do(func() error {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		conn, err = packet.Listen(link, packet.Raw, protocol, &packet.Config{Filter: filter})
		return err
	})
	return conn, err
}

const linkName = "cost0"

// wire is a veth pair between two namespaces, and traffic on it. Its addresses
// are those that RFC 2544 sets aside for benchmarks.
type wire struct {
	sender, receiver *netns.NS
	out              *ipv4.PacketConn
	batch            []ipv4.Message
}

func newWire(b *testing.B) *wire {
	b.Helper()
	w := &wire{sender: newNS(b), receiver: newNS(b)}
	from := &net.UDPAddr{IP: net.IPv4(198, 18, 0, 1), Port: 9}
	to := &net.UDPAddr{IP: net.IPv4(198, 18, 0, 2), Port: 9}
	require.NoError(b, w.sender.Do(func() error {
		return w.receiver.FD(func(fd int) error {
			return netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: linkName}, PeerName: linkName, PeerNamespace: netlink.NsFd(fd),
			})
		})
	}), "make a veth pair")
	require.NoError(b, w.sender.Do(func() error { return setUp(from.IP) }))
	// The socket is never read: once it is full the kernel drops what comes in,
	// which takes the same time whatever else listens.
	require.NoError(b, w.receiver.Do(func() error {
		if err := setUp(to.IP); err != nil {
			return err
		}
		sink, err := net.ListenUDP("udp4", to)
		if err == nil {
			b.Cleanup(func() { sink.Close() })
		}
		return err
	}))
	require.NoError(b, w.sender.Do(func() error {
		conn, err := net.ListenUDP("udp4", from)
		if err == nil {
			b.Cleanup(func() { conn.Close() })
			w.out = ipv4.NewPacketConn(conn)
		}
		return err
	}))
	payload := make([]byte, 512)
	for range 64 {
		w.batch = append(w.batch, ipv4.Message{Buffers: [][]byte{payload}, Addr: to})
	}
	w.send(b, 1<<13) // resolves the neighbour and fills the sink
	return w
}

func newNS(b *testing.B) *netns.NS {
	b.Helper()
	ns, err := netns.New()
	if errors.Is(err, fs.ErrPermission) && os.Getenv("STRICTARP_REQUIRE_NETNS") != "1" {
		b.Skipf("%v: run it as root, or below unshare --user --map-root-user --net", err)
	}
	require.NoError(b, err)
	b.Cleanup(func() { ns.Close() })
	return ns
}

func setUp(addr net.IP) error {
	link, err := netlink.LinkByName(linkName)
	if err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	err = netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: addr, Mask: net.CIDRMask(24, 32)}})
	return errors.Join(err, netlink.LinkSetUp(lo), netlink.LinkSetUp(link))
}

// burst sends packets while a packet socket is open on an interface, and
// returns how many nanoseconds one took. Over veth the sender's thread does the
// receiver's work too. The first packets do not count: what follows the opening
// of a socket finds cold caches.
func (w *wire) burst(b *testing.B, ns *netns.NS, link string, protocol int, filter []bpf.RawInstruction) float64 {
	b.Helper()
	conn, err := listen(ns, link, protocol, filter)
	require.NoError(b, err)
	const warmUp, packets = 1 << 11, 1 << 13
	w.send(b, warmUp)
	start := time.Now()
	w.send(b, packets)
	took := time.Since(start)
	require.NoError(b, conn.Close())
	return float64(took.Nanoseconds()) / packets
}

func (w *wire) send(b *testing.B, packets int) {
	b.Helper()
	for sent := 0; sent < packets; {
		n, err := w.out.WriteBatch(w.batch, 0)
		require.NoError(b, err)
		sent += n
	}
}
