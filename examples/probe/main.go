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
	result, err := prober.Probe(context.Background(), netip.MustParseAddr("10.0.3.20"))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range result.Responders {
		fmt.Println(result.Verdict, r.MAC, r.Replies, r.DoubleAnswer)
	}
}
