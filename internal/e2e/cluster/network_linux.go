package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/internal/netns"
)

const (
	bridge = "br-lan"
	// NIC is the name of the interface of nodes and clients on the segment.
	NIC = "ens33"
)

// Addresses on the segment and behind it.
var (
	Router   = netip.MustParseAddr("10.0.3.1")
	VIP      = netip.MustParseAddr("10.0.3.20")
	endpoint = netip.MustParseAddr("10.244.1.2")
)

// Host is a network namespace on the segment.
type Host struct {
	Name string
	Addr netip.Prefix
	NS   *netns.NS
}

// newBridge makes the segment, and the machine its router.
func newBridge() error {
	if err := writeSysctls("net/ipv4/ip_forward=1", "net/ipv4/conf/all/rp_filter=0", "net/ipv4/conf/default/rp_filter=0"); err != nil {
		return err
	}
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
	if err := netlink.LinkAdd(br); err != nil {
		return fmt.Errorf("make bridge %s: %w", bridge, err)
	}
	if err := setUp(br, "10.0.3.1/24", "172.31.9.1/24"); err != nil {
		return err
	}
	return route{"10.244.1.0/24", "10.0.3.11"}.add(br)
}

// newHost makes a namespace with an interface on the segment.
func newHost(name, prefix string, routes ...route) (*Host, error) {
	h := &Host{Name: name, Addr: netip.MustParsePrefix(prefix)}
	var err error
	if h.NS, err = netns.New(); err != nil {
		return nil, err
	}
	br, err := netlink.LinkByName(bridge)
	if err == nil {
		err = h.connect(name, NIC, br)
	}
	if err == nil {
		err = h.NS.Do(func() error { return h.configure(prefix, routes) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make host %s: %w", name, err), h.NS.Close())
	}
	return h, nil
}

// connect makes a pair of interfaces: inner goes into the host's namespace, outer
// stays, as a port of master unless that is nil.
func (h *Host) connect(outer, inner string, master netlink.Link) error {
	attrs := netlink.LinkAttrs{Name: outer}
	if master != nil {
		attrs.MasterIndex = master.Attrs().Index
	}
	return h.NS.FD(func(fd int) error {
		pair := &netlink.Veth{LinkAttrs: attrs, PeerName: inner, PeerNamespace: netlink.NsFd(fd)}
		if err := netlink.LinkAdd(pair); err != nil {
			return fmt.Errorf("make interfaces %s and %s: %w", outer, inner, err)
		}
		return netlink.LinkSetUp(pair)
	})
}

func (h *Host) configure(prefix string, routes []route) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	nic, err := netlink.LinkByName(NIC)
	if err != nil {
		return err
	}
	if err := setUp(nic, prefix); err != nil {
		return err
	}
	for _, r := range routes {
		if err := r.add(nic); err != nil {
			return err
		}
	}
	return nil
}

// route leads to a prefix by a gateway, or is on the link without one.
type route struct{ dst, gateway string }

func (r route) add(link netlink.Link) error {
	_, dst, err := net.ParseCIDR(r.dst)
	if err != nil {
		return err
	}
	add := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst}
	if r.gateway == "" {
		add.Scope = netlink.SCOPE_LINK
	} else {
		add.Gw = net.ParseIP(r.gateway)
	}
	if err := netlink.RouteAdd(add); err != nil {
		return fmt.Errorf("add a route to %s: %w", r.dst, err)
	}
	return nil
}

func setUp(link netlink.Link, prefixes ...string) error {
	for _, p := range prefixes {
		addr, err := netlink.ParseAddr(p)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, p, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", link.Attrs().Name, err)
	}
	return nil
}

// writeSysctls sets key=value in the calling thread's namespace.
func writeSysctls(settings ...string) error {
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Sysctl sets key=value, with slashes, on the host.
func (h *Host) Sysctl(settings ...string) error {
	return h.NS.Do(func() error { return writeSysctls(settings...) })
}

// newPod makes the namespace of the one pod, behind w1.
func newPod(node *Node) (*Host, error) {
	pod := &Host{Name: "pod", Addr: netip.PrefixFrom(endpoint, 24)}
	var err error
	if pod.NS, err = netns.New(); err != nil {
		return nil, err
	}
	const outer = "cali0"
	err = node.NS.Do(func() error {
		if err := pod.connect(outer, NIC, nil); err != nil {
			return err
		}
		link, err := netlink.LinkByName(outer)
		if err != nil {
			return err
		}
		return setUp(link, "10.244.1.1/24")
	})
	if err == nil {
		err = pod.NS.Do(func() error { return pod.configure(pod.Addr.String(), []route{{"0.0.0.0/0", "10.244.1.1"}}) })
	}
	return pod, err
}
