package main

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// maxTargets is how many addresses are in the block that nodes hold.
const maxTargets = 65534

// manyTargets is from how many targets on nodes hold them by one local route: to
// add so many addresses takes minutes, and the kernel answers for either at the
// same cost.
const manyTargets = 5000

// lab is a segment of nodes that answer, and a client that asks.
type lab struct {
	config
	segment  *netnstest.Segment
	client   *netnstest.Host
	targets  []netip.Addr
	requests [][]byte     // the frames that ask for the targets
	asked    arpcheck.MAC // of the node that is asked alone
	pairs    int          // (target, MAC) to be found
}

func (l *lab) fill() (err error) {
	to := arpcheck.Broadcast
	for i := range l.nodes {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(8 + i/250), byte(1 + i%250)})
		n, err := l.segment.AddNode(fmt.Sprintf("w%d", i), netip.PrefixFrom(addr, 8))
		if err != nil {
			return err
		}
		if l.ask {
			l.asked, to, l.pairs = n.MAC(), n.MAC(), len(l.targets)
			err = n.SetProxyARP(true, block)
		} else {
			err = hold(n, spread(l.targets, l.held()))
		}
		if err != nil {
			return err
		}
	}
	if l.client, err = l.segment.AddClient("client", netip.MustParsePrefix("10.0.3.50/8")); err != nil {
		return err
	}
	for _, target := range l.targets {
		request := arpwire.Request(l.client.MAC(), l.client.Addr(), target)
		request.Dst = to
		l.requests = append(l.requests, request.Append(nil, 0))
	}
	if l.slow {
		return l.client.SetPortRate(portRate, portQueue)
	}
	return nil
}

func (l *lab) newFloor() (f *floor, err error) {
	err = l.client.Do(func() error {
		f, err = newFloor(netnstest.NIC)
		return err
	})
	return f, err
}

// block is where all targets are.
var block = netip.MustParsePrefix("10.1.0.0/16")

// hold lets a node hold targets, which are consecutive.
func hold(n *netnstest.Host, targets []netip.Addr) error {
	if len(targets) > manyTargets {
		return holdBlock(n)
	}
	for _, target := range targets {
		if err := n.HoldVIP(target); err != nil {
			return err
		}
	}
	return nil
}

func holdBlock(n *netnstest.Host) error {
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

// The bottleneck: open-loop tools lose what its queue cannot hold.
const (
	portRate  = 5_000_000 // bits/s
	portQueue = 1000      // replies
)
