package arprule

import "net/netip"

// Host is what the rules look at: sysctls, interfaces, addresses and routes of
// one network namespace. The zero Host answers nothing.
//
// The order of Addresses, Routes and ProxyNeighbours plays no part in [Reply].
// [Solicit] picks the first suitable address, as the kernel does: keep
// Interfaces and Addresses there in the order in which the kernel lists them.
type Host struct {
	// All is /proc/sys/net/ipv4/conf/all. conf/default has no field: it is
	// copied to interfaces made later and never consulted again.
	All             Conf
	Interfaces      []Interface
	Addresses       []Address
	Routes          []Route
	ProxyNeighbours []ProxyNeighbour
}

// Conf holds the sysctls of one directory below /proc/sys/net/ipv4/conf that
// take part in ARP. Values are kept as they are read, reserved and negative
// ones too, because the kernel compares them as they are.
type Conf struct {
	ArpIgnore         int // arp_ignore
	ArpAnnounce       int // arp_announce
	ArpFilter         int // arp_filter
	ProxyArp          int // proxy_arp
	ProxyArpPvlan     int // proxy_arp_pvlan
	RpFilter          int // rp_filter
	Forwarding        int // forwarding
	RouteLocalnet     int // route_localnet
	AcceptLocal       int // accept_local
	DropGratuitousArp int // drop_gratuitous_arp
	SendRedirects     int // send_redirects, which kernels set to 1
}

// Interface is a network device.
type Interface struct {
	Name string
	Conf Conf
	// Down says that IFF_UP is not set. A cable that is out is not Down.
	Down bool
	// NoARP says that IFF_NOARP is set.
	NoARP bool
	// Master is the name of the device it is enslaved to, if any.
	Master string
	// MasterKind is the master's link kind: "bridge", "bond", "team", "vrf"...
	MasterKind string
	// Loopback says that IFF_LOOPBACK is set.
	Loopback bool
}

// Address is an IPv4 address of an interface.
type Address struct {
	// Prefix is the address itself with its prefix length: 10.0.3.11/24.
	Prefix    netip.Prefix
	Interface string
	Scope     Scope
	// Secondary is IFA_F_SECONDARY: another address of the interface had the
	// same subnet before.
	Secondary bool
	// Peer is the far end where one was given (`ip addr add A peer P/len`);
	// the subnet is then the peer's. Zero: none.
	Peer netip.Addr
	// Metric is the metric of the connected route (IFA_RT_PRIORITY).
	Metric int
	// NoPrefixRoute is IFA_F_NOPREFIXROUTE: no connected route is made.
	NoPrefixRoute bool
	// NoLocalRoute says that the local route which the kernel makes for every
	// address was deleted: the address shows up in a list and is not served.
	NoLocalRoute bool
}

// Scope is an address's scope, numbered as RT_SCOPE_* is in
// include/uapi/linux/rtnetlink.h: a higher number reaches less far.
type Scope uint8

// Scopes.
const (
	ScopeUniverse Scope = 0 // global
	ScopeSite     Scope = 200
	ScopeLink     Scope = 253
	ScopeHost     Scope = 254
	ScopeNowhere  Scope = 255
)

// RouteType says what a route does with a packet, numbered as RTN_* is in
// include/uapi/linux/rtnetlink.h. Zero means unicast.
type RouteType uint8

// Types of routes.
const (
	RouteUnicast     RouteType = 1
	RouteLocal       RouteType = 2
	RouteBroadcast   RouteType = 3
	RouteMulticast   RouteType = 5
	RouteBlackhole   RouteType = 6
	RouteUnreachable RouteType = 7
	RouteProhibit    RouteType = 8
	RouteThrow       RouteType = 9 // taken as unreachable: no further table is searched
)

// Route is an IPv4 route.
//
// The routes that follow from Addresses need not be listed: a local one for
// each address, and on interfaces that are up a connected one and a broadcast
// one. Listing them does no harm. A route belongs to the routing table of the
// VRF that its interface is enslaved to, otherwise to the local table (local
// and broadcast routes) or to main. Policy routing rules have no place here.
type Route struct {
	Dst netip.Prefix
	// Interface is the outgoing one; empty for routes that lead nowhere.
	Interface string
	// NextHops are the interfaces of further next hops of a multipath route.
	// The kernel spreads traffic over all; see [Reply] for what that means.
	NextHops []string
	Type     RouteType
	// Source is the preferred source address. No rule here uses it.
	Source netip.Addr
	// Metric decides between routes to the same destination: lowest first.
	Metric int
}

// ProxyNeighbour is an entry of `ip neigh show proxy`. An empty Interface
// stands for an entry without a device, which counts on every interface.
type ProxyNeighbour struct {
	Addr      netip.Addr
	Interface string
}

// Request is an ARP request as it arrives.
type Request struct {
	// Interface is the name of the device on which it arrives.
	Interface      string
	Sender, Target netip.Addr
	// Unicast says that the frame was sent to this host's own MAC instead of
	// broadcast. A frame for another MAC is no request to this host.
	Unicast bool
}

// find returns nil for an interface that is not listed.
func (h *Host) find(name string) *Interface {
	for i := range h.Interfaces {
		if h.Interfaces[i].Name == name {
			return &h.Interfaces[i]
		}
	}
	return nil
}

// owns reports whether addr is assigned to any interface, served or not
// (net/ipv4/devinet.c inet_lookup_ifaddr_rcu).
func (h *Host) owns(addr netip.Addr) bool {
	for i := range h.Addresses {
		if h.Addresses[i].Prefix.Addr() == addr {
			return true
		}
	}
	return false
}

// subnet is what inet_ifa_match in include/linux/inetdevice.h compares with.
func (a *Address) subnet() netip.Prefix {
	if a.Peer.IsValid() {
		return netip.PrefixFrom(a.Peer, a.Prefix.Bits())
	}
	return a.Prefix
}

// Param returns where c keeps the parameter of that name below
// net/ipv4/conf/INTERFACE, or nil if it takes no part in ARP.
func (c *Conf) Param(name string) *int {
	switch name {
	case "arp_ignore":
		return &c.ArpIgnore
	case "arp_announce":
		return &c.ArpAnnounce
	case "arp_filter":
		return &c.ArpFilter
	case "proxy_arp":
		return &c.ProxyArp
	case "proxy_arp_pvlan":
		return &c.ProxyArpPvlan
	case "rp_filter":
		return &c.RpFilter
	case "forwarding":
		return &c.Forwarding
	case "route_localnet":
		return &c.RouteLocalnet
	case "accept_local":
		return &c.AcceptLocal
	case "drop_gratuitous_arp":
		return &c.DropGratuitousArp
	case "send_redirects":
		return &c.SendRedirects
	}
	return nil
}
