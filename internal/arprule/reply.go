package arprule

import "net/netip"

const (
	kindVRF    = "vrf"
	kindBridge = "bridge"
	kindOVS    = "openvswitch"
	kindBond   = "bond"
	kindTeam   = "team"
)

// Reply reports whether the host's kernel answers an ARP request, and why.
//
// Where the kernel's choice cannot be known from a Host, the result is the one
// that can happen: a multipath route back satisfies arp_filter if any of its
// next hops does. The host answers once per interface that hears a request:
// with a macvlan or a second NIC on the segment ask for each.
//
// Sources: net/ipv4/arp.c arp_rcv and arp_process, net/ipv4/route.c
// ip_route_input_slow and __mkroute_input.
func Reply(h Host, r Request) (bool, Reason) {
	why := decide(&h, r)
	return why.Answers(), why
}

// Delayed reports whether the answer to a request waits for a random time below
// net/ipv4/neigh/<interface>/proxy_delay, 0.8 s by default (at 0 nothing waits).
// That happens to proxy answers alone, and not to requests that were sent to
// the host's own MAC (arp_process, pneigh_enqueue in net/core/neighbour.c).
func Delayed(r Request, why Reason) bool {
	return why.Proxy() && !r.Unicast
}

// check is one request on its way through the kernel.
type check struct {
	h              *Host
	in             *Interface
	conf           Conf
	fib            fib
	sender, target netip.Addr
}

func decide(h *Host, r Request) Reason {
	c := check{h: h, sender: r.Sender.Unmap(), target: r.Target.Unmap()}
	if !c.sender.Is4() || !c.target.Is4() {
		return ReasonNotIPv4
	}
	if c.in = h.find(r.Interface); c.in == nil {
		return ReasonUnknownInterface
	}
	if why := deaf(c.in); why != "" {
		return why
	}
	c.conf = h.effective(c.in)
	c.fib = newFIB(h, c.in)
	if why := c.unread(); why != "" {
		return why
	}
	if c.sender.IsUnspecified() {
		return c.probe()
	}
	if why := c.martian(); why != "" {
		return why
	}
	switch route := c.fib.lookup(c.target); route.typ {
	case RouteLocal:
		return c.local()
	case RouteBroadcast:
		return ReasonBroadcastTarget
	default:
		return c.proxy(route)
	}
}

// deaf says why no request reaches the ARP code on an interface. A master takes
// frames away from its port before (rx_handler in net/core/dev.c); a VRF leaves
// ARP where it arrives.
func deaf(in *Interface) Reason {
	switch {
	case in.Loopback:
		return ReasonLoopback
	case in.Down:
		return ReasonInterfaceDown
	case in.Master != "" && in.MasterKind != kindVRF:
		return deafPort(in.MasterKind)
	case in.NoARP:
		return ReasonNoARP
	default:
		return ""
	}
}

func deafPort(kind string) Reason {
	switch kind {
	case kindBridge, kindOVS:
		return ReasonBridgePort
	case kindBond, kindTeam:
		return ReasonBondSlave
	default:
		return ReasonEnslaved
	}
}

// unread holds what arp_process drops before it looks at the sender.
func (c *check) unread() Reason {
	switch {
	case c.target.IsMulticast():
		return ReasonMulticastTarget
	case c.target.IsLoopback() && c.conf.RouteLocalnet == 0:
		return ReasonLoopbackTarget
	case c.sender == c.target && c.conf.DropGratuitousArp != 0:
		return ReasonDropGratuitous
	default:
		return ""
	}
}

// probe answers a sender of 0.0.0.0 (duplicate address detection, RFC 5227):
// arp_process looks at nothing but the target's type and arp_ignore then.
func (c *check) probe() Reason {
	if c.fib.addressType(c.target) != RouteLocal {
		return ReasonProbeNotLocal
	}
	return c.arpIgnore()
}

// martian holds what ip_route_input_slow refuses before it looks up a route.
// Since Linux 5.3 the rest of 0.0.0.0/8 passes.
func (c *check) martian() Reason {
	switch {
	case c.sender.IsMulticast(), c.sender == limitedBroadcast():
		return ReasonMartianSender
	case c.target.IsUnspecified(), c.target == limitedBroadcast():
		return ReasonBroadcastTarget
	case c.sender.IsLoopback() && c.conf.RouteLocalnet == 0:
		return ReasonMartianSender
	default:
		return ""
	}
}

func limitedBroadcast() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }

// local is the branch of arp_process for addresses of the host.
func (c *check) local() Reason {
	if why := c.source(false); why != "" {
		if why == ReasonSenderLocal && c.sender == c.target {
			return ReasonGratuitous
		}
		return why
	}
	why := c.arpIgnore()
	if why.Answers() && c.conf.ArpFilter != 0 && !c.leavesHere() {
		return ReasonArpFilter
	}
	return why
}

// leavesHere is arp_filter: the host would send to the sender by the receiving
// interface. What goes to itself goes by loopback.
func (c *check) leavesHere() bool {
	route := c.fib.lookup(c.sender)
	return route.typ != RouteLocal && route.uses(c.in.Name)
}

// proxy is the branch of arp_process for addresses of other hosts.
func (c *check) proxy(route hop) Reason {
	neighbour := c.proxyNeighbour()
	if c.conf.ProxyArp == 0 && c.conf.ProxyArpPvlan == 0 && !neighbour {
		return ReasonNotLocal
	}
	if c.conf.Forwarding == 0 {
		return ReasonForwardingOff
	}
	if route.typ != RouteUnicast {
		return ReasonNoRoute
	}
	back := route.iface == c.in.Name
	if why := c.source(back); why != "" {
		return why
	}
	switch {
	case !back && c.conf.ProxyArp != 0:
		return ReasonProxyARP
	case !back && neighbour:
		return ReasonProxyNeighbour
	case !back:
		return ReasonNotLocal
	case c.conf.ProxyArpPvlan == 0:
		return ReasonProxySameInterface
	case c.sender == c.target:
		return ReasonGratuitous
	default:
		return ReasonProxyPVLAN
	}
}

// proxyNeighbour is pneigh_lookup of net/core/neighbour.c.
func (c *check) proxyNeighbour() bool {
	for _, p := range c.h.ProxyNeighbours {
		if p.Addr == c.target && (p.Interface == "" || p.Interface == c.in.Name) {
			return true
		}
	}
	return false
}
