package arpcheck_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// The frames that a verdict rests on are kept in a file, which shows them to others
// and can be judged again, on any system.
func ExampleProber_Record() {
	s := arpchecktest.NewSegment()
	defer s.Close()
	vip := netip.MustParseAddr("10.0.3.20")
	for _, addr := range []string{"10.0.3.11/24", "10.0.3.12/24"} {
		if err := s.AddNode(addr, netip.MustParsePrefix(addr)).HoldVIP(vip); err != nil {
			fmt.Println(err)
		}
	}
	p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Wait /= 10
	var file bytes.Buffer // or an *os.File
	record, err := p.Record(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := p.Probe(context.Background(), vip)
	fmt.Println(result.Verdict, err)
	fmt.Println(record.Conclude(result), p.Close())

	capture, err := arpcheck.ReplayPCAP(&file, arpcheck.ReplayOptions{Wait: p.Wait})
	fmt.Println(capture.Results[0].Verdict, capture.Quality.Frames, "frames", err)
	// Output:
	// multiple <nil>
	// <nil> <nil>
	// multiple 9 frames <nil>
}
