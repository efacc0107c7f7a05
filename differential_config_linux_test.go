package strictarp_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

// elsewhere is an interface that leads nowhere: no frame gets in or out, and
// what the kernel decides by it still counts.
const elsewhere = "elsewhere"

// configuration is one random state of a node.
type configuration struct {
	Sysctls   map[string]map[sysctl.Param]int
	Addresses []assigned
	Routes    []routed
	Broadcast bool // the requests are
}

type assigned struct {
	Link   string
	Prefix netip.Prefix
	Scope  int
}

type routed struct {
	Dst  netip.Prefix
	Link string // empty: unreachable
}

// configurations draws what matters to answers more often than not.
func configurations() *rapid.Generator[configuration] {
	links := []string{netnstest.NIC, elsewhere, "lo", netnstest.VIPDevice}
	address := rapid.Custom(func(t *rapid.T) assigned {
		host := rapid.SampledFrom([]string{"10.0.3.20", "10.0.3.21", "10.0.3.30", "203.0.113.20", "172.31.1.1", "10.0.4.1"}).Draw(t, "host")
		bits := rapid.SampledFrom([]int{32, 32, 32, 24, 30, 31}).Draw(t, "bits")
		return assigned{
			rapid.SampledFrom(links).Draw(t, "link"), netip.PrefixFrom(addr(host), bits),
			rapid.SampledFrom([]int{unix.RT_SCOPE_UNIVERSE, unix.RT_SCOPE_UNIVERSE, unix.RT_SCOPE_LINK, unix.RT_SCOPE_HOST}).Draw(t, "scope"),
		}
	})
	route := rapid.Custom(func(t *rapid.T) routed {
		dst := rapid.SampledFrom([]string{"172.31.1.0/24", "172.31.2.0/24", "198.51.100.0/24", "0.0.0.0/0", "10.0.3.64/26"}).Draw(t, "dst")
		return routed{prefix(dst), rapid.SampledFrom([]string{netnstest.NIC, elsewhere, elsewhere, ""}).Draw(t, "link")}
	})
	values := func(p sysctl.Param) []int {
		switch p {
		case sysctl.ARPIgnore:
			return []int{0, 0, 0, 1, 2, 3, 4, 8, 9}
		case sysctl.RPFilter:
			return []int{0, 0, 0, 1, 2}
		case sysctl.ARPAnnounce:
			return []int{0, 1, 2}
		}
		return []int{0, 0, 0, 1}
	}
	return rapid.Custom(func(t *rapid.T) configuration {
		c := configuration{Sysctls: map[string]map[sysctl.Param]int{}}
		for _, link := range []string{"all", netnstest.NIC, elsewhere, netnstest.VIPDevice} {
			c.Sysctls[link] = map[sysctl.Param]int{}
			for _, p := range sysctl.Params() {
				c.Sysctls[link][p] = rapid.SampledFrom(values(p)).Draw(t, link+string(p))
			}
		}
		all := rapid.SliceOfNDistinct(address, 1, 6, func(a assigned) string { return a.Link + a.Prefix.Addr().String() }).Draw(t, "addresses")
		for _, a := range all {
			// The kernel refuses two scopes in one subnet of an interface.
			other := slices.ContainsFunc(append([]assigned{{Link: netnstest.NIC, Prefix: prefix("10.0.3.11/24")}}, c.Addresses...), func(b assigned) bool {
				return a.Link == b.Link && a.Prefix.Masked() == b.Prefix.Masked() && a.Scope != b.Scope
			})
			if !other {
				c.Addresses = append(c.Addresses, a)
			}
		}
		c.Routes = rapid.SliceOfNDistinct(route, 0, 4, func(r routed) string { return r.Dst.String() }).Draw(t, "routes")
		c.Broadcast = rapid.Bool().Draw(t, "broadcast")
		return c
	})
}

func (c configuration) eachAddr(f func(netlink.Link, *netlink.Addr) error) error {
	for _, a := range c.Addresses {
		link, err := netlink.LinkByName(a.Link)
		if err != nil {
			return err
		}
		if err := f(link, &netlink.Addr{IPNet: ipNet(a.Prefix), Scope: a.Scope}); err != nil {
			return fmt.Errorf("%+v: %w", a, err)
		}
	}
	return nil
}

// eachRoute gives routes a metric, because an address may have brought one to
// the same subnet.
func (c configuration) eachRoute(f func(*netlink.Route) error) error {
	for _, r := range c.Routes {
		route := &netlink.Route{Dst: ipNet(r.Dst), Type: unix.RTN_UNREACHABLE, Priority: 100}
		if r.Link != "" {
			link, err := netlink.LinkByName(r.Link)
			if err != nil {
				return err
			}
			route = &netlink.Route{Dst: ipNet(r.Dst), LinkIndex: link.Attrs().Index, Scope: unix.RT_SCOPE_LINK, Priority: 100}
		}
		if err := f(route); err != nil {
			return fmt.Errorf("%+v: %w", r, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
