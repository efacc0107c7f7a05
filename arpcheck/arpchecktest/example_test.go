package arpchecktest_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// Two nodes hold a VIP for kube-proxy and one announces it. With strictARP only
// the announcer answers.
func Example() {
	seg := arpchecktest.NewSegment()
	defer seg.Close()
	vip := netip.MustParseAddr("10.0.3.20")
	w1 := seg.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	w2 := seg.AddNode("w2", netip.MustParsePrefix("10.0.3.12/24"))
	client := seg.AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
	for _, node := range []*arpchecktest.Host{w1, w2} {
		if err := node.HoldVIP(vip); err != nil {
			fmt.Println(err)
		}
	}
	if _, err := w1.Announce(vip); err != nil {
		fmt.Println(err)
	}

	prober, err := client.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	prober.Wait = 20 * time.Millisecond
	for _, strict := range []bool{false, true} {
		for _, node := range []*arpchecktest.Host{w1, w2} {
			if err := node.SetStrictARP(strict); err != nil {
				fmt.Println(err)
			}
		}
		r, err := prober.Probe(context.Background(), vip)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("strictARP %t: %s\n", strict, r.Verdict)
		for _, responder := range r.Responders {
			fmt.Printf("  %s answered twice: %t\n", responder.MAC, responder.DoubleAnswer)
		}
	}
	// Output:
	// strictARP false: multiple
	//   02:00:00:00:00:02 answered twice: false
	//   02:00:00:00:00:01 answered twice: true
	// strictARP true: single
	//   02:00:00:00:00:01 answered twice: false
}

// A network that loses the first answer does not mislead a probe.
func ExampleFault() {
	seg := &arpchecktest.Segment{Seed: 1}
	defer seg.Close()
	router := seg.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
	client := seg.AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
	router.SetFault(arpchecktest.Fault{LoseFirst: 1})

	prober, err := client.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	prober.Wait = 20 * time.Millisecond
	r, err := prober.Probe(context.Background(), router.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, "after", r.Responders[0].Replies, "replies to", r.Quality.Requests, "requests")
	// Output: single after 2 replies to 3 requests
}

// A client that cached a wrong node is served again once it has forgotten it.
func ExampleHost_Visit() {
	seg := arpchecktest.NewSegment()
	defer seg.Close()
	service := netip.MustParseAddrPort("10.0.3.20:80")
	w1 := seg.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	w2 := seg.AddNode("w2", netip.MustParsePrefix("10.0.3.12/24"))
	client := seg.AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
	err := errors.Join(w1.HoldVIP(service.Addr()), w1.Serve(service), w2.HoldVIP(service.Addr()))
	if err != nil {
		fmt.Println(err)
	}

	visit := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		name, err := client.Visit(ctx, service)
		mac, _ := client.Neighbour(service.Addr())
		fmt.Printf("%s served by %q, timed out: %t\n", mac, name, errors.Is(err, context.DeadlineExceeded))
	}
	visit() // the node that joined last answers first
	_ = w2.SetStrictARP(true)
	visit()
	_ = client.Forget(service.Addr())
	visit()
	// Output:
	// 02:00:00:00:00:02 served by "", timed out: true
	// 02:00:00:00:00:02 served by "", timed out: true
	// 02:00:00:00:00:01 served by "w1", timed out: false
}

// A Conn of one's own is held to the contract of arpcheck.Conn by the same
// checks as the one in memory.
func ExampleConnChecks() {
	var _ arpcheck.Conn = (*arpchecktest.Conn)(nil)
	for _, check := range arpchecktest.ConnChecks()[:2] {
		fmt.Println(check.Name) // in a test: t.Run(check.Name, func(t *testing.T) { check.Run(t, newWire(t)) })
	}
	// Output:
	// frames arrive as they were sent
	// unicast is for one host
}
