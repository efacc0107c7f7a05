package arprule

import "net/netip"

// source says why a sender is refused, or nothing. It is fib_validate_source
// of net/ipv4/fib_frontend.c: the same check that IP packets get, which ARP
// undergoes because arp_process asks for an input route.
//
// back is set where the route to the target leaves by the receiving interface.
// A kernel that sends redirects wants to know the route back then, and takes no
// short cut.
func (c *check) source(back bool) Reason {
	if c.conf.RpFilter != 0 || back && c.conf.SendRedirects != 0 {
		return c.sourceByRoute()
	}
	if c.conf.AcceptLocal != 0 {
		return ""
	}
	var quick Reason
	if c.h.owns(c.sender) {
		quick = ReasonSenderLocal
	}
	// The two checks rarely differ, so find out which one applies only then.
	slow := c.sourceByRoute()
	if slow == quick || !c.customRouting() {
		return quick
	}
	return slow
}

// sourceByRoute is __fib_validate_source: it looks up the route back.
func (c *check) sourceByRoute() Reason {
	route := c.fib.lookup(c.sender)
	switch {
	case route.typ == 0:
		return c.rpFilter(ReasonRpFilterLoose)
	case route.typ == RouteBroadcast:
		return ReasonSenderBroadcast
	case route.typ == RouteLocal && c.conf.AcceptLocal == 0:
		return ReasonSenderLocal
	case route.uses(c.in.Name):
		return ""
	case !c.hasAddress():
		// Without an address of its own the interface gets no benefit of the
		// doubt: 2 is then as strict as 1.
		return c.rpFilter(ReasonRpFilterNoAddress)
	case c.conf.RpFilter == 1:
		return ReasonRpFilterStrict
	default:
		return ""
	}
}

// rpFilter is the case without a usable route back: every value of rp_filter
// but 0 refuses, reserved and negative ones too.
func (c *check) rpFilter(otherwise Reason) Reason {
	switch c.conf.RpFilter {
	case 0:
		return ""
	case 1:
		return ReasonRpFilterStrict
	default:
		return otherwise
	}
}

func (c *check) hasAddress() bool {
	for i := range c.h.Addresses {
		if a := &c.h.Addresses[i]; a.Interface == c.in.Name && a.Prefix.Addr().Is4() {
			return true
		}
	}
	return false
}

// customRouting reports whether the kernel checks senders by route even at
// rp_filter 0: as soon as there is a rule, which every VRF brings, or a local
// route that somebody added (fib_has_custom_local_routes in inet_rtm_newroute).
// The kernel does not forget such a route after its removal; a Host cannot know.
func (c *check) customRouting() bool {
	if c.fib.rules {
		return true
	}
	for i := range c.h.Routes {
		if r := &c.h.Routes[i]; r.Type == RouteLocal && !c.h.implies(r.Dst) {
			return true
		}
	}
	return false
}

// implies reports whether a local route is one that the kernel made itself.
func (h *Host) implies(dst netip.Prefix) bool {
	for i := range h.Addresses {
		a := &h.Addresses[i]
		if a.Prefix.Addr() == dst.Addr() && dst.Bits() == 32 {
			return true
		}
		if a.Prefix.Masked() == dst {
			if in := h.find(a.Interface); in != nil && in.Loopback {
				return true
			}
		}
	}
	return false
}
