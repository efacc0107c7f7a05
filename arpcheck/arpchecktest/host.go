package arpchecktest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arprule"
)

// Host is a Linux host on a Segment: it answers ARP as its interfaces,
// addresses, routes and sysctls have it, and keeps a neighbour cache.
type Host struct {
	seg  *Segment
	name string
	done chan struct{} // closed with the segment

	// The segment's mutex guards these.
	kernel     arprule.Host // Interfaces in the order of ifaces
	defaults   arprule.Conf // conf/default
	ifaces     []*iface
	routes     []Route
	announcers []*Announcer
	services   map[netip.AddrPort]bool
	fault      faults
	latency    time.Duration
	rand       *rand.Rand // of the kernel: proxy_delay
	closed     bool
}

func newHost(s *Segment, name string) *Host {
	id := uint64(len(s.hosts)+1) << 1
	h := &Host{
		seg: s, name: name, done: make(chan struct{}), services: map[netip.AddrPort]bool{},
		latency: DefaultLatency, rand: s.random(id),
		kernel: arprule.Host{All: arprule.Conf{SendRedirects: 1}}, defaults: arprule.Conf{SendRedirects: 1},
	}
	h.fault.rand = s.random(id + 1)
	h.addIface(arprule.Interface{Name: "lo", Loopback: true})
	h.addAddr("lo", netip.MustParsePrefix("127.0.0.1/8"), ScopeHost)
	return h
}

func (h *Host) close() {
	h.closed = true
	close(h.done)
	for _, a := range h.announcers {
		a.stopped = true
	}
	for _, i := range h.ifaces {
		i.flush()
		for len(i.conns) > 0 {
			i.conns[0].close()
		}
	}
}

// Name returns the name the host was added under.
func (h *Host) Name() string { return h.name }

// MAC returns the MAC of eth0.
func (h *Host) MAC() arpcheck.MAC {
	defer h.seg.enter()()
	return h.nic().mac
}

// SetMAC gives eth0 another MAC than the one it was assigned: 02:00:00:00:00:01
// for the first interface that joined the segment, and so on.
func (h *Host) SetMAC(mac arpcheck.MAC) {
	defer h.seg.enter()()
	h.nic().mac = mac
}

// Addr returns the first address of eth0, or the zero Addr.
func (h *Host) Addr() netip.Addr {
	defer h.seg.enter()()
	for _, a := range h.kernel.Addresses {
		if a.Interface == "eth0" {
			return a.Prefix.Addr()
		}
	}
	return netip.Addr{}
}

// SetFault sets what goes wrong with this host's replies. It replaces the
// previous Fault.
func (h *Host) SetFault(f Fault) {
	defer h.seg.enter()()
	h.fault.Fault, h.fault.replies, h.fault.malformed = f, 0, 0
}

// SetLatency sets the time from a request to the kernel's answer; it starts as
// DefaultLatency. With 0 the answer is there before Send returns.
func (h *Host) SetLatency(d time.Duration) {
	defer h.seg.enter()()
	h.latency = d
}

// Open returns a Prober on eth0 whose Vantage is the host's name.
func (h *Host) Open() (*arpcheck.Prober, error) { return h.OpenOn("eth0") }

// OpenOn returns a Prober on one of the host's interfaces on the segment. As
// arpcheck.Open, it returns errors that match fs.ErrNotExist if there is no such
// interface, arpcheck.ErrNotEthernet and arpcheck.ErrLinkDown.
func (h *Host) OpenOn(link string) (*arpcheck.Prober, error) {
	c, err := h.OpenConn(link)
	if err != nil {
		return nil, err
	}
	return &arpcheck.Prober{Conn: c, Host: prober{c.iface}, MAC: c.iface.mac, Link: link, Vantage: h.name}, nil
}

// OpenConn returns a Conn on one of the host's interfaces on the segment, with
// the errors of OpenOn.
func (h *Host) OpenConn(link string) (*Conn, error) {
	defer h.seg.enter()()
	i, err := h.iface(link)
	switch {
	case err != nil:
	case h.closed:
		err = net.ErrClosed
	case !i.joined:
		err = arpcheck.ErrNotEthernet
	case !i.up():
		err = arpcheck.ErrLinkDown
	}
	if err != nil {
		return nil, fmt.Errorf("arpchecktest: open %s of %s: %w", link, h.name, err)
	}
	c := &Conn{iface: i, limit: DefaultReceiveQueue, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	i.conns = append(i.conns, c)
	return c, nil
}

// Inject sends a frame from eth0 as it is, as a raw socket does. The error
// matches arpcheck.ErrLinkDown.
func (h *Host) Inject(frame []byte) error { return h.InjectOn("eth0", frame) }

// InjectOn is Inject on another of the host's interfaces on the segment. The
// error matches fs.ErrNotExist if there is no such interface.
func (h *Host) InjectOn(link string, frame []byte) error {
	defer h.seg.enter()()
	i, err := h.iface(link)
	switch {
	case err != nil:
	case !i.joined:
		err = arpcheck.ErrNotEthernet
	case !i.up():
		err = arpcheck.ErrLinkDown
	}
	if err != nil {
		return fmt.Errorf("arpchecktest: inject a frame on %s of %s: %w", link, h.name, err)
	}
	h.seg.transmit(i, nil, slices.Clone(frame))
	return nil
}

func (h *Host) nic() *iface { i, _ := h.iface("eth0"); return i } // every host has it

func (h *Host) iface(name string) (*iface, error) {
	for _, i := range h.ifaces {
		if i.name == name {
			return i, nil
		}
	}
	return nil, fmt.Errorf("host %s has no interface %s: %w", h.name, name, os.ErrNotExist)
}
