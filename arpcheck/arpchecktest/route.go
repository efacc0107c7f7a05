package arpchecktest

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arprule"
)

// Route is a route of a Host. Those that follow from addresses need not be
// added.
type Route struct {
	To          netip.Prefix
	Via         netip.Addr // next hop; the zero Addr if To is on the link
	Link        string     // outgoing interface; empty if Unreachable
	Unreachable bool
	Source      netip.Addr // preferred source address, if any
}

// AddRoute adds a route, in place of one to the same prefix. The error matches
// fs.ErrNotExist if the host has no such interface.
func (h *Host) AddRoute(r Route) error {
	defer h.seg.enter()()
	var err error
	switch {
	case !r.To.Addr().Is4():
		err = fmt.Errorf("it is not an IPv4 prefix: %w", os.ErrInvalid)
	case !r.Unreachable:
		_, err = h.iface(r.Link)
	}
	if err != nil {
		return fmt.Errorf("arpchecktest: add a route to %s on %s: %w", r.To, h.name, err)
	}
	r.To = r.To.Masked()
	h.routes = slices.DeleteFunc(h.routes, func(other Route) bool { return other.To == r.To })
	h.routes = append(h.routes, r)
	h.listRoutes()
	return nil
}

// DelRoute deletes a route that was added. The error matches fs.ErrNotExist if
// there is none to that prefix.
func (h *Host) DelRoute(to netip.Prefix) error {
	defer h.seg.enter()()
	n := len(h.routes)
	h.routes = slices.DeleteFunc(h.routes, func(r Route) bool { return r.To == to.Masked() })
	if len(h.routes) == n {
		return fmt.Errorf("arpchecktest: delete the route to %s on %s: there is none: %w", to, h.name, os.ErrNotExist)
	}
	h.listRoutes()
	return nil
}

func (h *Host) listRoutes() {
	h.kernel.Routes = h.kernel.Routes[:0]
	for _, r := range h.routes {
		k := arprule.Route{Dst: r.To, Interface: r.Link, Source: r.Source}
		if r.Unreachable {
			k.Type, k.Interface = arprule.RouteUnreachable, ""
		}
		h.kernel.Routes = append(h.kernel.Routes, k)
	}
}

// AddProxyNeighbour makes the kernel answer for an address on an interface,
// whatever arp_ignore is, as `ip neigh add proxy` does. Forwarding must be on
// and the route to the address leave by another interface.
func (h *Host) AddProxyNeighbour(addr netip.Addr, link string) error {
	defer h.seg.enter()()
	if _, err := h.iface(link); err != nil {
		return fmt.Errorf("arpchecktest: add the proxy neighbour %s: %w", addr, err)
	}
	h.kernel.ProxyNeighbours = append(h.kernel.ProxyNeighbours, arprule.ProxyNeighbour{Addr: addr, Interface: link})
	return nil
}

// owns reports whether addr is one of the host's own addresses.
func (h *Host) owns(addr netip.Addr) bool {
	return slices.ContainsFunc(h.kernel.Addresses, func(a arprule.Address) bool { return a.Prefix.Addr() == addr })
}

// lookup returns the route to an address that is not the host's own. Of equally
// long prefixes the one that follows from an address counts.
func (h *Host) lookup(addr netip.Addr) (Route, bool) {
	best, found := Route{}, false
	offer := func(r Route) {
		i, err := h.iface(r.Link)
		usable := r.Unreachable || err == nil && i.up()
		if usable && r.To.Contains(addr) && (!found || r.To.Bits() > best.To.Bits()) {
			best, found = r, true
		}
	}
	for _, a := range h.kernel.Addresses {
		if a.Prefix.Bits() < 32 {
			offer(Route{To: a.Prefix.Masked(), Link: a.Interface})
		}
	}
	for _, r := range h.routes {
		offer(r)
	}
	return best, found && !best.Unreachable
}

// source returns the address that packets along a route are sent from.
func (h *Host) source(r Route, target netip.Addr) netip.Addr {
	if r.Source.IsValid() {
		return r.Source
	}
	return arprule.Solicit(h.kernel, r.Link, r.next(target), netip.Addr{})
}

// next returns the neighbour that packets to a target go to.
func (r Route) next(target netip.Addr) netip.Addr {
	if r.Via.IsValid() {
		return r.Via
	}
	return target
}

// prober is the arpcheck.Host of a Prober on an interface.
type prober struct{ iface *iface }

var _ arpcheck.Host = prober{}

// Link implements arpcheck.Host.
func (p prober) Link() (arpcheck.LinkState, error) {
	h := p.iface.host
	defer h.seg.enter()()
	state := arpcheck.LinkState{Up: p.iface.up(), MAC: p.iface.mac}
	var secondary []netip.Addr
	for _, a := range h.kernel.Addresses {
		switch {
		case a.Interface != p.iface.name:
		case a.Secondary:
			secondary = append(secondary, a.Prefix.Addr())
		default:
			state.Addrs = append(state.Addrs, a.Prefix.Addr())
		}
	}
	state.Addrs = append(state.Addrs, secondary...)
	return state, nil
}

// Route implements arpcheck.Host.
func (p prober) Route(target netip.Addr) (arpcheck.Route, error) {
	h := p.iface.host
	defer h.seg.enter()()
	if h.owns(target) {
		return arpcheck.Route{Local: true}, nil
	}
	r, ok := h.lookup(target)
	if !ok || r.Link != p.iface.name {
		return arpcheck.Route{}, nil
	}
	return arpcheck.Route{Source: h.source(r, target)}, nil
}
