package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
)

// target is an address to ask for.
type target struct {
	addr    netip.Addr
	ofRange bool // it comes from a prefix or range, where silence is normal
}

// parseTargets reads addresses, prefixes and ranges. An address that several of
// them name is asked for once.
func parseTargets(args []string, limit int) ([]target, error) {
	var targets []target
	index := make(map[netip.Addr]int)
	for _, arg := range args {
		first, last, err := parseRange(arg)
		if err != nil {
			return nil, err
		}
		for addr := first; ; addr = addr.Next() {
			if i, known := index[addr]; known {
				targets[i].ofRange = targets[i].ofRange && first != last
			} else {
				index[addr] = len(targets)
				targets = append(targets, target{addr: addr, ofRange: first != last})
			}
			if len(targets) > limit {
				return nil, fmt.Errorf("%q makes it more than %d addresses: ask for less at a time", arg, limit)
			}
			if addr == last {
				break
			}
		}
	}
	return targets, nil
}

func parseRange(arg string) (first, last netip.Addr, err error) {
	if strings.Contains(arg, "/") {
		prefix, err := netip.ParsePrefix(arg)
		if err != nil {
			return first, last, fmt.Errorf("%q is not a prefix such as 10.0.3.0/27: %w", arg, err)
		}
		return prefixRange(prefix)
	}
	from, to, isRange := strings.Cut(arg, "-")
	if first, err = parseAddr(from); err != nil || !isRange {
		return first, first, err
	}
	if !strings.Contains(to, ".") { // only the last byte: 10.0.3.20-29
		to = from[:strings.LastIndexByte(from, '.')+1] + to
	}
	if last, err = parseAddr(to); err != nil {
		return first, last, err
	}
	if last.Less(first) {
		return first, last, fmt.Errorf("%q ends before it begins", arg)
	}
	return first, last, nil
}

func parseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, fmt.Errorf("%q is not an address, prefix or range: %w", s, err)
	}
	if !addr.Unmap().Is4() {
		return addr, fmt.Errorf("%s is not an IPv4 address: ARP is for IPv4 only", addr)
	}
	return addr.Unmap(), nil
}

// prefixRange returns the hosts of a prefix: all of it but, as far as it has
// them, its network and broadcast addresses.
func prefixRange(prefix netip.Prefix) (first, last netip.Addr, err error) {
	if !prefix.Addr().Is4() {
		return first, last, fmt.Errorf("%s is not an IPv4 prefix: ARP is for IPv4 only", prefix)
	}
	first = prefix.Masked().Addr()
	b := first.As4()
	for bit := prefix.Bits(); bit < 32; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last = netip.AddrFrom4(b)
	if prefix.Bits() < 31 {
		return first.Next(), last.Prev(), nil
	}
	return first, last, nil
}

// linkTo returns the interface that the routes to all targets leave by. Of a
// prefix or range, addresses of this host itself do not count.
func linkTo(targets []target) (string, error) {
	var link string
	for _, t := range targets {
		hop, err := arpcheck.LinkTo(t.addr)
		switch {
		case err != nil:
			return "", fmt.Errorf("%w; choose the interface with -i", err)
		case hop.Local && t.ofRange:
			continue
		case hop.Local:
			return "", fmt.Errorf("%s is an address of this host, whose own answer cannot be seen from here: ask from another host", t.addr)
		case hop.Gateway.IsValid():
			return "", fmt.Errorf("%s is behind the router %s, so ARP for it is not asked on %s; "+
				"if it is on a segment of this host all the same, name the interface with -i", t.addr, hop.Gateway, hop.Link)
		case link != "" && hop.Link != link:
			return "", fmt.Errorf("%s is on %s and %s on %s: ask for them apart, or name the interface with -i",
				targets[0].addr, link, t.addr, hop.Link)
		}
		link = hop.Link
	}
	if link == "" {
		return "", errors.New("all these addresses are this host's own: ask from another host")
	}
	return link, nil
}
