package arprule

import "net/netip"

// Solicit returns the sender address of the ARP request that the host's kernel
// sends out of an interface to find target, for a packet from packetSource.
// Neighbours take such requests into their caches, so a VIP as sender
// redirects its traffic to this host whatever arp_ignore says.
//
//	arp_announce 0  packetSource if it is local
//	arp_announce 1  packetSource if it is local and a subnet of the interface
//	                holds both it and target - by number: a VIP that sits on
//	                kube-ipvs0 qualifies as soon as it lies in the NIC's subnet,
//	                which is why 1 is no cure for VIPs of the nodes' subnet
//	arp_announce 2  an address of the interface
//	other values    as 0
//
// Where packetSource does not qualify, an address of the interface is taken as
// with 2. An invalid packetSource stands for a request without a packet, as
// when the kernel revalidates a neighbour. The result is 0.0.0.0 if the host
// has no suitable address, and invalid if it sends no request at all.
//
// Source: net/ipv4/arp.c arp_solicit.
func Solicit(h Host, iface string, target, packetSource netip.Addr) netip.Addr {
	in := h.find(iface)
	target, packetSource = target.Unmap(), packetSource.Unmap()
	if in == nil || in.Down || in.NoARP || in.Loopback || !target.Is4() {
		return netip.Addr{}
	}
	f := newFIB(&h, in)
	switch f.addressType(target) {
	case RouteMulticast, RouteBroadcast: // need no asking (arp_constructor)
		return netip.Addr{}
	}
	if packetSource.Is4() && f.addressType(packetSource) == RouteLocal {
		switch h.effective(in).ArpAnnounce {
		case 1:
			if h.onlink(iface, target, packetSource) {
				return packetSource
			}
		case 2:
		default:
			return packetSource
		}
	}
	if own := h.selectAddress(in, target); own.IsValid() {
		return own
	}
	return h.borrow(&f)
}

// onlink is inet_addr_onlink of net/ipv4/devinet.c.
func (h *Host) onlink(iface string, a, b netip.Addr) bool {
	for i := range h.Addresses {
		ifa := &h.Addresses[i]
		if net := ifa.subnet(); ifa.Interface == iface && net.Contains(a) && net.Contains(b) {
			return true
		}
	}
	return false
}

// selectAddress is the first half of inet_select_addr of net/ipv4/devinet.c
// with link scope: the interface's first primary address in the target's
// subnet, else its first primary address at all.
func (h *Host) selectAddress(in *Interface, target netip.Addr) netip.Addr {
	localnet := ScopeHost
	if h.effective(in).RouteLocalnet != 0 {
		localnet = ScopeLink
	}
	var first netip.Addr
	for i := range h.Addresses {
		a := &h.Addresses[i]
		if a.Interface != in.Name || a.Secondary || !a.Prefix.Addr().Is4() || min(a.Scope, localnet) > ScopeLink {
			continue
		}
		if a.subnet().Contains(target) {
			return a.Prefix.Addr()
		}
		if !first.IsValid() {
			first = a.Prefix.Addr()
		}
	}
	return first
}

// borrow is the second half: for an interface without a suitable address, one
// of the VRF's device or of any other interface of the same VRF, else 0.0.0.0.
func (h *Host) borrow(f *fib) netip.Addr {
	if f.vrf != "" {
		if a := h.lend(f.vrf); a.IsValid() {
			return a
		}
	}
	for i := range h.Interfaces {
		name := h.Interfaces[i].Name
		if f.vrfOf(name) != f.vrf {
			continue
		}
		if a := h.lend(name); a.IsValid() {
			return a
		}
	}
	return netip.IPv4Unspecified()
}

// lend is in_dev_select_addr: an address of link scope means nothing on another
// link and is not lent.
func (h *Host) lend(iface string) netip.Addr {
	for i := range h.Addresses {
		a := &h.Addresses[i]
		if a.Interface == iface && !a.Secondary && a.Prefix.Addr().Is4() && a.Scope < ScopeLink {
			return a.Prefix.Addr()
		}
	}
	return netip.Addr{}
}
