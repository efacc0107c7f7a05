package main

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// manyTargets is from how many targets on nodes hold them by one local route: to
// add so many addresses takes minutes, and the kernel answers for either at the
// same cost.
const manyTargets = 5000

// hold lets a node hold targets, which are consecutive.
func hold(n *netnstest.Host, targets []netip.Addr) error {
	if len(targets) > manyTargets {
		return holdBlock(n, netip.MustParsePrefix("10.1.0.0/16"))
	}
	for _, target := range targets {
		if err := n.HoldVIP(target); err != nil {
			return err
		}
	}
	return nil
}

func holdBlock(n *netnstest.Host, block netip.Prefix) error {
	err := n.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{
			LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
			Dst: &net.IPNet{IP: block.Addr().AsSlice(), Mask: net.CIDRMask(block.Bits(), 32)},
		})
	})
	if err != nil {
		return fmt.Errorf("let %s hold %s: %w", n.Name(), block, err)
	}
	return nil
}

// slowPort is the bottleneck: open-loop tools lose what its queue cannot hold.
func slowPort(client *netnstest.Host) error { return client.SetPortRate(5_000_000, 1000) }
