package arprule_test

import (
	"fmt"
	"net/netip"

	"github.com/strictarp/strictarp/internal/arprule"
)

// A node holds a VIP on kube-ipvs0, which is down, and is asked for it on eth0.
func ExampleReply() {
	node := arprule.Host{
		Interfaces: []arprule.Interface{
			{Name: "eth0"},
			{Name: "kube-ipvs0", Down: true, NoARP: true},
		},
		Addresses: []arprule.Address{
			{Prefix: netip.MustParsePrefix("10.0.3.11/24"), Interface: "eth0"},
			{Prefix: netip.MustParsePrefix("10.0.3.20/32"), Interface: "kube-ipvs0"},
		},
	}
	request := arprule.Request{
		Interface: "eth0",
		Sender:    netip.MustParseAddr("10.0.3.50"),
		Target:    netip.MustParseAddr("10.0.3.20"),
	}
	for _, level := range []int{0, 1, 4} {
		node.All.ArpIgnore = level
		answers, why := arprule.Reply(node, request)
		fmt.Println(level, answers, why)
	}
	// Output:
	// 0 true local-address
	// 1 false arp-ignore-1
	// 4 true arp-ignore-reserved
}
