package netnstest_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// A program that shows the fault: two nodes hold a VIP, one of them is right,
// and a client that asks gets to the other one. It runs as an ordinary user.
func Example() {
	if err := netnstest.Enter(); err != nil { // first thing in main
		log.Fatal(err)
	}
	segment, err := netnstest.NewSegment()
	if err != nil {
		log.Fatal(err)
	}
	defer segment.Close()
	w1, err := segment.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := segment.AddNode("w2", netip.MustParsePrefix("10.0.3.12/24")); err != nil {
		log.Fatal(err)
	}
	client, err := segment.AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
	if err != nil {
		log.Fatal(err)
	}
	vip := netip.MustParseAddrPort("10.0.3.20:80")
	if err := segment.Expose(netnstest.Service{VIP: vip, Node: w1}); err != nil {
		log.Fatal(err)
	}
	if _, err := w1.Announce(vip.Addr()); err != nil {
		log.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		for _, h := range segment.Hosts() {
			if err := h.SetStrictARP(strict); err != nil {
				log.Fatal(err)
			}
		}
		if err := client.Forget(vip.Addr()); err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		name, err := client.Visit(ctx, vip)
		cancel()
		fmt.Printf("strict: %t, served by %q, error: %v\n", strict, name, err)
	}
}
