package arpcheck

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries is how often the routes are read if they change meanwhile.
const dumpTries = 3

// Divisions implements divider: the destinations of all routes in all tables and
// of all rules. Between two of their edges nothing that the kernel looks at
// differs, since rules with other criteria hold for all targets or for none.
func (k *kernelHost) Divisions() ([]netip.Prefix, error) {
	var routes []netlink.Route
	var err error
	for range dumpTries {
		routes, err = k.netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the routes of all tables: %w", err)
	}
	rules, err := k.netlink.RuleList(netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the routing rules: %w", err)
	}
	var prefixes []netip.Prefix
	add := func(dst *net.IPNet) {
		if dst == nil {
			return
		}
		addr, ok := netip.AddrFromSlice(dst.IP)
		if bits, of := dst.Mask.Size(); ok && of == 32 {
			prefixes = append(prefixes, netip.PrefixFrom(addr.Unmap(), bits))
		}
	}
	for _, r := range routes {
		add(r.Dst)
	}
	for _, r := range rules {
		add(r.Dst)
	}
	return prefixes, nil
}
