package metallb

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ParseRange reads an address of a pool as MetalLB does (ParseCIDR of its
// internal/config/config.go): a CIDR, whose host bits do not count, or two
// addresses of one family with a hyphen between them, the first not above the
// second.
func ParseRange(text string) (Range, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		return parseCIDR(text)
	}
	from, err := parseAddr(strings.TrimSpace(first))
	if err != nil {
		return Range{}, fmt.Errorf("metallb: read the range %q: its start: %w: write ADDRESS-ADDRESS", text, err)
	}
	to, err := parseAddr(strings.TrimSpace(last))
	if err != nil {
		return Range{}, fmt.Errorf("metallb: read the range %q: its end: %w: write ADDRESS-ADDRESS", text, err)
	}
	if from.Is4() != to.Is4() {
		return Range{}, fmt.Errorf("metallb: read the range %q: start and end are of different families", text)
	}
	if to.Less(from) {
		return Range{}, fmt.Errorf("metallb: read the range %q: the start is above the end: exchange them", text)
	}
	return Range{From: from, To: to, Text: text}, nil
}

// parseCIDR goes by Go's net package, as MetalLB does: netip refuses what MetalLB
// takes, such as a length with leading zeros.
func parseCIDR(text string) (Range, error) {
	_, network, err := net.ParseCIDR(text)
	if err != nil {
		return Range{}, fmt.Errorf("metallb: read the CIDR %q: %w: write ADDRESS/LENGTH, for one address /32 or /128", text, err)
	}
	from, _ := netip.AddrFromSlice(network.IP)
	bits, _ := network.Mask.Size()
	if from.Is4In6() && bits >= 96 {
		from, bits = from.Unmap(), bits-96
	}
	return Range{From: from, To: lastOf(from, bits), Text: text}, nil
}

// lastOf sets all bits of a network's address that are not in its prefix.
func lastOf(from netip.Addr, bits int) netip.Addr {
	b := from.AsSlice()
	for i := bits; i < from.BitLen(); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	to, _ := netip.AddrFromSlice(b)
	return to
}

// parseAddr reads an address without a zone; an IPv4 address in IPv6 form is an
// IPv4 address, as with Go's net.IP, which MetalLB uses.
func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	if addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q has a zone", text)
	}
	return addr.Unmap(), nil
}

// Contains returns whether the address is in the range.
func (r Range) Contains(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.Is4() == r.From.Is4() && !addr.Less(r.From) && !r.To.Less(addr)
}

// Overlaps returns whether the ranges have an address in common.
func (r Range) Overlaps(other Range) bool {
	return r.From.Is4() == other.From.Is4() && !other.To.Less(r.From) && !r.To.Less(other.From)
}

// Contains returns whether the address is in one of the pool's ranges.
func (p Pool) Contains(addr netip.Addr) bool {
	for _, r := range p.Ranges {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}
