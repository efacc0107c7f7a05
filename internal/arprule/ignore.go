package arprule

import "net/netip"

// arpIgnore is arp_ignore of net/ipv4/arp.c, for a target known to be local.
func (c *check) arpIgnore() Reason {
	switch c.conf.ArpIgnore {
	case 0:
		return ReasonLocal
	case 1:
		return confirmed(c.h.confirm(c.in.Name, netip.Addr{}, c.target, ScopeHost), ReasonArpIgnore1)
	case 2:
		sender := c.sender
		if sender.IsUnspecified() {
			sender = netip.Addr{} // 0.0.0.0 is a wildcard, not an address of no subnet
		}
		return confirmed(c.h.confirm(c.in.Name, sender, c.target, ScopeHost), ReasonArpIgnore2)
	case 3:
		return confirmed(c.h.confirmAnywhere(c.target, ScopeLink), ReasonArpIgnore3)
	case 8:
		return ReasonArpIgnore8
	default:
		return ReasonArpIgnoreReserved
	}
}

func confirmed(ok bool, otherwise Reason) Reason {
	if ok {
		return ReasonLocal
	}
	return otherwise
}

// confirm is confirm_addr_indev of net/ipv4/devinet.c: the interface has the
// local address within the scope, and one of its subnets, not necessarily that
// of this address, holds the local address and the far one. An invalid far
// address fits everywhere.
func (h *Host) confirm(iface string, far, local netip.Addr, limit Scope) bool {
	localnet := ScopeHost
	if h.effective(h.find(iface)).RouteLocalnet != 0 {
		localnet = ScopeLink
	}
	assigned, together := false, false
	for i := range h.Addresses {
		a := &h.Addresses[i]
		if a.Interface != iface {
			continue
		}
		net := a.subnet()
		assigned = assigned || a.Prefix.Addr() == local && min(a.Scope, localnet) <= limit
		together = together || net.Contains(local) && (!far.IsValid() || net.Contains(far))
	}
	return assigned && together
}

// confirmAnywhere is inet_confirm_addr without a device: any interface will do,
// of whatever VRF.
func (h *Host) confirmAnywhere(local netip.Addr, limit Scope) bool {
	for i := range h.Addresses {
		a := &h.Addresses[i]
		if a.Prefix.Addr() == local && h.confirm(a.Interface, netip.Addr{}, local, limit) {
			return true
		}
	}
	return false
}
