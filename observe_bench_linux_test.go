package strictarp_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// BenchmarkObserve reads a large node: 1,000 interfaces and 20,000 VIPs.
func BenchmarkObserve(b *testing.B) {
	node := newNode(b)
	require.NoError(b, node.HoldVIP(addr("10.0.3.20")))
	require.NoError(b, node.Do(func() error { return enlarge(1000, 20_000) }))
	require.NoError(b, node.Do(func() error {
		for b.Loop() {
			n, _ := strictarp.Observe(b.Context(), strictarp.ObserveOptions{})
			if device, _ := n.Link(netnstest.VIPDevice); len(n.Links) < 1000 || len(device.Addrs) < 20_000 || n.Routes == nil {
				return fmt.Errorf("%d interfaces, %d addresses: %w", len(n.Links), len(device.Addrs), strictarp.ErrLimit)
			}
		}
		return nil
	}))
}

// BenchmarkWouldReply asks a node with 20,000 VIPs.
func BenchmarkWouldReply(b *testing.B) {
	n := observedNode()
	device := &n.Links[len(n.Links)-1]
	for i := range 20_000 {
		a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		device.Addrs = append(device.Addrs, strictarp.Address{Prefix: netip.PrefixFrom(a, 32), Scope: strictarp.ScopeGlobal})
	}
	q := ask("10.0.3.50", "10.0.3.20")
	for b.Loop() {
		if a, err := n.WouldReply(q); err != nil || !a.Replies {
			b.Fatal(a, err)
		}
	}
}

func enlarge(links, addrs int) error {
	for i := range links {
		name := fmt.Sprintf("br%d", i)
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
			return err
		}
	}
	device, err := netlink.LinkByName(netnstest.VIPDevice)
	if err != nil {
		return err
	}
	for i := range addrs {
		a := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		if err := netlink.AddrAdd(device, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, 32))}); err != nil {
			return err
		}
	}
	return nil
}
