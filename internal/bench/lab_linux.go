package main

import (
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// hold lets a node hold targets.
func hold(n *netnstest.Host, targets []netip.Addr) error {
	for _, target := range targets {
		if err := n.HoldVIP(target); err != nil {
			return err
		}
	}
	return nil
}

// slowPort is the bottleneck: open-loop tools lose what its queue cannot hold.
func slowPort(client *netnstest.Host) error { return client.SetPortRate(5_000_000, 1000) }
