package arpcheck_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
)

// Of a range of LoadBalancer IPs, those that more than one MAC answers for.
func ExampleProber_Sweep() {
	segment, prober := office()
	defer segment.Close()

	pool := []netip.Addr{
		netip.MustParseAddr("10.0.3.20"), netip.MustParseAddr("10.0.3.21"), netip.MustParseAddr("10.0.3.22"),
	}
	for result, err := range prober.Sweep(context.Background(), slices.Values(pool)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if result.Verdict == arpcheck.Multiple {
			fmt.Println(result.Target, "is answered by", len(result.Responders), "MACs")
		}
	}
	// Output: 10.0.3.20 is answered by 2 MACs
}

// A sweep that is easy on the network and tells how far it is.
func ExampleSweep() {
	segment, prober := office()
	defer segment.Close()

	sweep := arpcheck.Sweep{
		Prober:  prober,
		Exclude: []netip.Prefix{netip.MustParsePrefix("10.0.3.11/32"), netip.MustParsePrefix("10.0.3.12/32")},
		Rate:    1000, // requests a second
		Progress: func(p arpcheck.SweepProgress) {
			if p.Settled == p.Targets {
				fmt.Println(p.Settled, "of", p.Targets, "targets,", p.Pairs, "pairs")
			}
		},
	}
	block := netip.MustParsePrefix("10.0.3.0/27")
	targets := func(yield func(netip.Addr) bool) {
		for a := block.Addr().Next(); block.Contains(a) && yield(a); a = a.Next() {
		}
	}
	for _, err := range sweep.Run(context.Background(), targets) {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output: 29 of 29 targets, 3 pairs
}
