package arpchecktest

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// Defaults of net.ipv4.neigh.*.
const (
	solicitations = 3               // mcast_solicit
	retransTime   = time.Second     // retrans_time
	lockTime      = 1 * time.Second // locktime: how long an entry resists other answers
)

// neighbour is an entry of an interface's neighbour cache.
type neighbour struct {
	mac     arpcheck.MAC
	known   bool // mac is; otherwise it is being asked for
	updated time.Time
	asked   int           // requests sent
	done    chan struct{} // closed when mac is known, or asking was given up
}

func (n *neighbour) set(mac arpcheck.MAC, now time.Time) {
	if n.known && n.mac == mac {
		return // neigh_update does not prolong the lock time then
	}
	if !n.known {
		close(n.done)
	}
	n.mac, n.known, n.updated = mac, true, now
}

// flush forgets all neighbours, as neigh_ifdown does.
func (i *iface) flush() {
	for addr, n := range i.neighbours {
		if !n.known {
			close(n.done)
		}
		delete(i.neighbours, addr)
	}
}

// learn is neigh_event_ns: who is answered is remembered, whatever was known.
func (i *iface) learn(addr netip.Addr, mac arpcheck.MAC) {
	n := i.neighbours[addr]
	if n == nil {
		n = &neighbour{done: make(chan struct{})}
		i.neighbours[addr] = n
	}
	n.set(mac, i.host.seg.schedule.now)
}

// update is the end of arp_process: a packet's sender updates an entry that
// exists. Of several answers the first counts; later ones only when the entry
// is older than locktime, or by a gratuitous packet (arp_is_garp).
func (i *iface) update(p arpwire.Packet, kind arpcheck.PacketType) {
	n := i.neighbours[p.Sender]
	if n == nil {
		return
	}
	gratuitous := p.Sender == p.Target && (p.Op == arpwire.OpRequest || p.TargetMAC == p.SenderMAC)
	now := i.host.seg.schedule.now
	if !n.known || gratuitous || now.After(n.updated.Add(lockTime)) {
		n.set(p.SenderMAC, now)
	}
}

// resolve returns the neighbour entry for addr, and asks if there is none. A
// packet from packetSource is what it is needed for.
func (i *iface) resolve(addr, packetSource netip.Addr) *neighbour {
	n := i.neighbours[addr]
	if n == nil {
		n = &neighbour{done: make(chan struct{})}
		i.neighbours[addr] = n
		i.solicit(n, addr, packetSource)
	}
	return n
}

// solicit asks for a neighbour up to three times and then gives up, as
// neigh_timer_handler does.
func (i *iface) solicit(n *neighbour, addr, packetSource netip.Addr) {
	if i.neighbours[addr] != n || n.known {
		return
	}
	s := i.host.seg
	if n.asked == solicitations {
		delete(i.neighbours, addr)
		close(n.done)
		return
	}
	n.asked++
	sender := arprule.Solicit(i.host.kernel, i.name, addr, packetSource)
	if sender.IsValid() {
		s.transmit(i, nil, arpwire.Request(i.mac, sender, addr).Append(nil, 0))
	}
	s.schedule.after(retransTime, func() { i.solicit(n, addr, packetSource) })
}

// Neighbour returns what the host's neighbour cache holds for addr; false if
// nothing. Unlike the kernel's, entries do not age and are not revalidated.
func (h *Host) Neighbour(addr netip.Addr) (arpcheck.MAC, bool) {
	defer h.seg.enter()()
	for _, i := range h.ifaces {
		if n := i.neighbours[addr]; n != nil && n.known {
			return n.mac, true
		}
	}
	return arpcheck.MAC{}, false
}

// Forget deletes addr from the host's neighbour cache, if it is there, as ageing
// or an administrator does. The error matches net.ErrClosed.
func (h *Host) Forget(addr netip.Addr) error {
	defer h.seg.enter()()
	if h.closed {
		return fmt.Errorf("arpchecktest: forget %s on %s: %w", addr, h.name, net.ErrClosed)
	}
	for _, i := range h.ifaces {
		if n := i.neighbours[addr]; n != nil && n.known {
			delete(i.neighbours, addr)
		}
	}
	return nil
}

// Resolve returns the MAC the host sends packets for addr to: from its
// neighbour cache, else by asking as the kernel does, up to three times a second
// apart, and taking the first answer. The error matches
// syscall.EHOSTUNREACH if nobody answers or there is no route, in the first case
// also fs.ErrNotExist, ctx's error, and net.ErrClosed.
func (h *Host) Resolve(ctx context.Context, addr netip.Addr) (arpcheck.MAC, error) {
	mac, err := h.neighbourFor(ctx, netip.Addr{}, addr)
	if err != nil {
		return arpcheck.MAC{}, fmt.Errorf("arpchecktest: resolve %s on %s: %w", addr, h.name, err)
	}
	return mac, nil
}

// SendFrom sends a packet from one of the host's addresses to another host and
// does not wait; the zero source stands for the one that the kernel chooses. If
// the neighbour is not known, perhaps because Forget was called, the kernel asks
// for it first; under which address depends on arp_announce. So a VIP as source
// can get into the neighbour caches of others. The error matches fs.ErrInvalid if
// the source is not the host's, and syscall.EHOSTUNREACH if there is no route.
func (h *Host) SendFrom(source, to netip.Addr) error {
	defer h.seg.enter()()
	if source.IsValid() && !h.owns(source) {
		return fmt.Errorf("arpchecktest: send from %s on %s: it is not an address of the host: %w", source, h.name, os.ErrInvalid)
	}
	if _, err := h.begin(source, to); err != nil {
		return fmt.Errorf("arpchecktest: send from %s to %s on %s: %w", source, to, h.name, err)
	}
	return nil
}

// neighbourFor waits for the MAC that packets from source to addr are sent to;
// the zero source stands for the route's.
func (h *Host) neighbourFor(ctx context.Context, source, addr netip.Addr) (arpcheck.MAC, error) {
	leave := h.seg.enter()
	n, err := h.begin(source, addr)
	leave()
	if err != nil {
		return arpcheck.MAC{}, err
	}
	select {
	case <-n.done:
	case <-ctx.Done():
		return arpcheck.MAC{}, ctx.Err()
	}
	defer h.seg.enter()()
	switch {
	case n.known:
		return n.mac, nil
	case h.closed:
		return arpcheck.MAC{}, net.ErrClosed
	}
	return arpcheck.MAC{}, fmt.Errorf("nobody answers ARP for it: %w: %w", fs.ErrNotExist, syscall.EHOSTUNREACH)
}

// begin returns the entry of the neighbour that packets from source to addr go
// to.
func (h *Host) begin(source, addr netip.Addr) (*neighbour, error) {
	if h.closed {
		return nil, net.ErrClosed
	}
	r, ok := h.lookup(addr)
	if !ok {
		return nil, fmt.Errorf("no route: %w", syscall.EHOSTUNREACH)
	}
	i, err := h.iface(r.Link)
	switch {
	case err != nil:
		return nil, err
	case !i.joined:
		return nil, fmt.Errorf("the route leaves by %s, which is not on the segment: %w", r.Link, syscall.EHOSTUNREACH)
	}
	if !source.IsValid() {
		source = h.source(r, addr)
	}
	return i.resolve(r.next(addr), source), nil
}
