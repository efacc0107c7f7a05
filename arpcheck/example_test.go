package arpcheck_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// office returns a segment with two nodes that hold a LoadBalancer IP each on
// kube-ipvs0, of which the first is announced by the first node, and a Prober
// on a client. Arpcheck.Open does the same on a real segment.
func office() (*arpchecktest.Segment, *arpcheck.Prober) {
	segment := arpchecktest.NewSegment()
	w1 := segment.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	w2 := segment.AddNode("w2", netip.MustParsePrefix("10.0.3.12/24"))
	for _, step := range []error{
		w1.HoldVIP(netip.MustParseAddr("10.0.3.20")),
		w2.HoldVIP(netip.MustParseAddr("10.0.3.20")),
		w2.HoldVIP(netip.MustParseAddr("10.0.3.21")),
	} {
		if step != nil {
			panic(step)
		}
	}
	w1.SetLatency(0)
	w2.SetLatency(0)
	if _, err := w1.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{netip.MustParseAddr("10.0.3.20")}, Delay: -1}); err != nil {
		panic(err)
	}
	prober, err := segment.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
	if err != nil {
		panic(err)
	}
	prober.Wait = 20 * time.Millisecond // nobody is late here
	return segment, prober
}

// All who answer are told, and who answers twice: the kernel and the announcer
// of one node.
func ExampleProber_Probe() {
	segment, prober := office()
	defer segment.Close()

	result, err := prober.Probe(context.Background(), netip.MustParseAddr("10.0.3.20"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Target, "asked as", result.Sender.Addr, "-", result.Verdict)
	for _, r := range result.Responders {
		fmt.Println(r.MAC, "replies:", r.Replies, "double answer:", r.DoubleAnswer)
	}
	// Output:
	// 10.0.3.20 asked as 10.0.3.50 - multiple
	// 02:00:00:00:00:02 replies: 3 double answer: false
	// 02:00:00:00:00:01 replies: 6 double answer: true
}

// Many addresses share one pass.
func ExampleProber_ProbeAll() {
	segment, prober := office()
	defer segment.Close()

	results, err := prober.ProbeAll(context.Background(), []netip.Addr{
		netip.MustParseAddr("10.0.3.20"),
		netip.MustParseAddr("10.0.3.21"),
		netip.MustParseAddr("10.0.3.22"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Target, r.Verdict, len(r.Responders))
	}
	// Output:
	// 10.0.3.20 multiple 2
	// 10.0.3.21 single 1
	// 10.0.3.22 none 0
}

// For callers who want the one answer and not the wrong one.
func ExampleProber_Resolve() {
	segment, prober := office()
	defer segment.Close()

	mac, err := prober.Resolve(context.Background(), netip.MustParseAddr("10.0.3.21"))
	fmt.Println(mac, err)

	_, err = prober.Resolve(context.Background(), netip.MustParseAddr("10.0.3.20"))
	var verdict *arpcheck.VerdictError
	if errors.Is(err, arpcheck.ErrMultipleResponders) && errors.As(err, &verdict) {
		fmt.Println(verdict.Result.Target, "is answered for by", len(verdict.Result.Responders), "MACs")
	}
	// Output:
	// 02:00:00:00:00:02 <nil>
	// 10.0.3.20 is answered for by 2 MACs
}

// An announcement: the sender, 10.0.3.20, is also the target.
func ExampleClassify() {
	frame := []byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06,
		0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 10, 0, 3, 20,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 10, 0, 3, 20,
	}
	kind, err := arpcheck.Classify(frame)
	fmt.Println(kind, err)
	_, err = arpcheck.Classify(frame[:20])
	fmt.Println(err)
	// Output:
	// announcement <nil>
	// arpcheck: classify frame of 20 bytes: arpwire: frame shorter than its ARP packet
}
