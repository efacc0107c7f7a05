package arpcheck_test

import (
	"fmt"
	"os"

	"github.com/strictarp/strictarp/arpcheck"
)

// A capture by tcpdump is judged as a live probe is. Here one node answers, but
// another one asks for its gateway under the same address, which teaches all who
// hear it the wrong MAC.
func ExampleReplayPCAP() {
	f, err := os.Open("../testdata/cases/a16/vantage/client/arp.pcap")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	capture, err := arpcheck.ReplayPCAP(f, arpcheck.ReplayOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range capture.Results {
		fmt.Println(r.Target, r.Verdict, r.Responders[0].MAC)
	}
	for _, c := range capture.Claims {
		fmt.Println(c.Addr, "is claimed by", c.MAC, "in a", c.Kind, "for", c.Target)
	}
	// Output:
	// 192.0.2.244 single 00:00:5e:00:53:0a
	// 192.0.2.244 is claimed by 00:00:5e:00:53:0b in a request for 192.0.2.1
}
