package metallb

import (
	"fmt"
	"net/netip"
	"slices"
)

// awkward reports addresses that some clients and routers do not take for a
// host's: those that end in .0 or .255, which MetalLB leaves out if avoidBuggyIPs
// says so (internal/allocator/allocator.go), and the first and the last one of a
// segment: IPv4's network and broadcast address, and IPv6's first one, which
// means any router (RFC 4291, 2.6.1).
func (p Pool) awkward(segments []netip.Prefix, holders map[netip.Addr]string) []Reason {
	var named []string
	seen := map[netip.Addr]bool{}
	count := 0
	name := func(a netip.Addr, what string) {
		if seen[a] {
			return
		}
		seen[a] = true
		count++
		if len(named) < maxNamed {
			named = append(named, fmt.Sprintf("%v, %s%s", a, what, given(holders, a)))
		}
	}
	for _, edge := range edges(segments) {
		if p.Contains(edge.Addr) && !p.avoids(edge.Addr) {
			name(edge.Addr, edge.By)
		}
	}
	if !p.AvoidBuggyIPs {
		for _, r := range p.Ranges {
			if a, ok := firstBuggy(r); ok {
				name(a, "which ends in .0 or .255")
			}
		}
	}
	if count == 0 {
		return nil
	}
	return []Reason{{
		Rule: RulePoolAwkwardAddress, Role: RoleNote, Object: p.object(), Field: p.field(),
		Message: fmt.Sprintf("the pool %s hands out addresses that not every client reaches: %s%s", p.Name, list(named, count), p.cure()),
	}}
}

func (p Pool) cure() string {
	switch {
	case p.AvoidBuggyIPs:
		return ""
	case p.Legacy:
		return "; avoid-buggy-ips: true leaves out .0 and .255"
	}
	return "; spec.avoidBuggyIPs: true leaves out .0 and .255"
}

// avoids returns whether avoidBuggyIPs keeps the pool from giving the address.
func (p Pool) avoids(a netip.Addr) bool {
	return p.AvoidBuggyIPs && a.Is4() && (a.As4()[3] == 0 || a.As4()[3] == 255)
}

// edges returns the first and the last addresses of the segments, sorted. Links
// of two addresses and single addresses have none (RFC 3021).
func edges(segments []netip.Prefix) []UsedAddr {
	var found []UsedAddr
	for _, p := range segments {
		p = p.Masked()
		switch a := p.Addr(); {
		case !p.IsValid() || a.BitLen()-p.Bits() < 2:
		case a.Is4():
			found = append(found, UsedAddr{a, "the network address of " + p.String()},
				UsedAddr{lastOf(a, p.Bits()), "the broadcast address of " + p.String()})
		default:
			found = append(found, UsedAddr{a, "the subnet-router anycast address of " + p.String()})
		}
	}
	slices.SortFunc(found, func(a, b UsedAddr) int { return a.Addr.Compare(b.Addr) })
	return found
}

// firstBuggy returns the first address of the range that ends in .0 or .255.
func firstBuggy(r Range) (netip.Addr, bool) {
	if !r.From.Is4() {
		return netip.Addr{}, false
	}
	b := r.From.As4()
	if b[3] != 0 {
		b[3] = 255
	}
	a := netip.AddrFrom4(b)
	return a, !r.To.Less(a)
}
