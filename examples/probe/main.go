// Probe is the program of the README: it prints who answers for an address.
package main

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
)

func main() {
	prober, err := arpcheck.Open("eth0") // needs CAP_NET_RAW
	if err != nil {
		log.Fatal(err)
	}
	defer prober.Close()
	result, err := prober.Probe(context.Background(), netip.MustParseAddr("10.0.3.20")) // takes 4.5 s
	fmt.Println(result.Verdict, result.Reasons, err)
	for _, r := range result.Responders {
		fmt.Println(r.MAC, "sent", r.Replies, "replies; from kernel and announcer:", r.DoubleAnswer)
	}
}
