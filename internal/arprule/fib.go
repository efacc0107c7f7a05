package arprule

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// fib looks routes up as the kernel does for packets of one interface.
type fib struct {
	h *Host
	// vrf is the VRF that the lookup starts in; empty for the default one.
	vrf string
	// rules says that a VRF exists. The rule it brings makes the kernel look
	// tables up one by one, the local table first; without rules the local and
	// main tables are one trie and the longest prefix of both wins
	// (include/net/ip_fib.h fib_lookup, net/ipv4/fib_trie.c fib_trie_table).
	rules bool
	// own restricts the lookup to the VRF's own table, or to the local one.
	own bool
}

// hop is the outcome of a lookup; its zero value means that nothing matches.
type hop struct {
	typ      RouteType
	iface    string
	nextHops []string
	table    int // position in the order of lookup
	bits     int
	metric   int
}

func newFIB(h *Host, in *Interface) fib {
	f := fib{h: h}
	for i := range h.Interfaces {
		f.rules = f.rules || h.Interfaces[i].MasterKind == kindVRF
	}
	f.vrf = f.vrfOf(in.Name)
	return f
}

// vrfOf names the VRF whose table holds an interface's routes
// (net/ipv4/fib_frontend.c fib_magic, net/l3mdev/l3mdev.c l3mdev_fib_table).
func (f *fib) vrfOf(iface string) string {
	if !f.rules {
		return ""
	}
	if in := f.h.find(iface); in != nil && in.MasterKind == kindVRF {
		return in.Master
	}
	for i := range f.h.Interfaces {
		if m := &f.h.Interfaces[i]; m.MasterKind == kindVRF && m.Master == iface {
			return iface
		}
	}
	return ""
}

// lookup is fib_lookup. Each of the many /32 addresses of a service node costs
// one comparison; interfaces are looked up only where an address matches.
func (f *fib) lookup(addr netip.Addr) hop {
	var best hop
	for i := range f.h.Addresses {
		a := &f.h.Addresses[i]
		if a.Prefix.Addr() == addr || a.subnet().Contains(addr) {
			best = f.implied(best, a, addr)
		}
	}
	for i := range f.h.Routes {
		if r := &f.h.Routes[i]; r.Dst.Contains(addr) {
			best = f.listed(best, r)
		}
	}
	if best.typ > RouteBroadcast { // unreachable and its like are errors
		return hop{}
	}
	return best
}

// addressType is inet_addr_type_dev_table of net/ipv4/fib_frontend.c. Other than
// a lookup for a packet it sees one table only: on an interface of a VRF an
// address outside it is not local.
func (f *fib) addressType(addr netip.Addr) RouteType {
	switch {
	case addr.IsUnspecified() || addr == limitedBroadcast():
		return RouteBroadcast
	case addr.IsMulticast():
		return RouteMulticast
	}
	own := *f
	own.own = true
	return own.lookup(addr).typ
}

// implied offers the routes that the kernel makes for an address: the local one
// always, the others while the interface is up (net/ipv4/fib_frontend.c
// fib_add_ifaddr). Taking an interface down removes those others and leaves the
// local one (fib_sync_down_dev), which is why kube-ipvs0 may be down.
func (f *fib) implied(best hop, a *Address, addr netip.Addr) hop {
	in := f.h.find(a.Interface)
	local := a.Prefix.Addr() == addr && a.served(in)
	if local {
		best = f.offer(best, hop{typ: RouteLocal, iface: a.Interface, bits: 32})
	}
	if in != nil && in.Down {
		return best
	}
	net, bits := a.subnet().Masked(), a.Prefix.Bits()
	if a.Secondary || net.Addr().IsUnspecified() || !net.Contains(addr) || (bits == 32 && !a.Peer.IsValid()) {
		return best
	}
	if !a.NoPrefixRoute {
		typ := RouteUnicast
		if in != nil && in.Loopback {
			typ = RouteLocal
		}
		best = f.offer(best, hop{typ: typ, iface: a.Interface, bits: bits, metric: a.Metric})
	}
	if bits < 31 && addr == last(net) && !local { // its own local route is older
		best = f.offer(best, hop{typ: RouteBroadcast, iface: a.Interface, bits: 32})
	}
	return best
}

// served reports whether an address has its local route. Putting an interface
// into a VRF flushes its routes (net/ipv4/fib_frontend.c fib_netdev_event, case
// NETDEV_CHANGEUPPER); the VRF driver brings them back by cycling the interface,
// which it does not do to one that is down (drivers/net/vrf.c cycle_netdev).
func (a *Address) served(in *Interface) bool {
	flushed := in != nil && in.Down && in.MasterKind == kindVRF
	return !flushed && !a.NoLocalRoute
}

func (f *fib) listed(best hop, r *Route) hop {
	typ := r.Type
	if typ == 0 {
		typ = RouteUnicast
	}
	if typ != RouteLocal {
		if in := f.h.find(r.Interface); in != nil && in.Down {
			return best
		}
	}
	return f.offer(best, hop{
		typ: typ, iface: r.Interface, nextHops: r.NextHops, bits: r.Dst.Bits(), metric: r.Metric,
	})
}

// offer returns the better of two routes to the same address.
func (f *fib) offer(best, o hop) hop {
	var visible bool
	if o.table, visible = f.table(o); visible && (best.typ == 0 || o.compare(best) < 0) {
		return o
	}
	return best
}

// table says when a route's table is looked at, if ever: after the rules of a
// host with VRFs first local, then the VRF's own, then main.
func (f *fib) table(o hop) (order int, visible bool) {
	if !f.rules {
		return 0, true
	}
	vrf := f.vrfOf(o.iface)
	local := vrf == "" && (o.typ == RouteLocal || o.typ == RouteBroadcast)
	switch {
	case f.own:
		return 0, vrf == f.vrf && (local || vrf != "")
	case local:
		return 0, true
	case vrf == f.vrf && vrf != "":
		return 1, true
	default:
		return 2, vrf == ""
	}
}

// compare orders by table, longest prefix, local table before main (the larger
// table number comes first in net/ipv4/fib_trie.c fib_find_alias) and metric.
// Among what is still equal the kernel takes what was added first. Nobody can
// tell from a listing what that was; the NIC's broadcast route is usually older
// than a VIP on the same address, and names make the rest independent of order.
func (o hop) compare(p hop) int {
	return cmp.Or(
		cmp.Compare(o.table, p.table),
		cmp.Compare(p.bits, o.bits),
		cmp.Compare(o.pool(), p.pool()),
		cmp.Compare(o.metric, p.metric),
		cmp.Compare(p.typ, o.typ), // broadcast before local
		cmp.Compare(o.iface, p.iface),
		slices.Compare(o.nextHops, p.nextHops),
	)
}

// pool is 0 for routes that are in a local table by their type.
func (o hop) pool() int {
	if o.typ == RouteLocal || o.typ == RouteBroadcast {
		return 0
	}
	return 1
}

// uses reports whether one of the next hops leaves by the interface
// (net/ipv4/fib_frontend.c fib_info_nh_uses_dev).
func (o hop) uses(iface string) bool {
	return o.typ != 0 && (o.iface == iface || slices.Contains(o.nextHops, iface))
}

// last returns the highest address of an IPv4 prefix that is masked already.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := binary.BigEndian.Uint32(b[:]) | ^uint32(0)>>p.Bits()
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}
