package netnstest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hostboard is what a Host needs to change itself.
type hostboard struct {
	rt    rtnetlink
	ports []string // names in the switch's namespace, in the order of Host.links
	raw   *rawSender
}

// carrierTimeout is how long a link may take to get carrier. It takes less than
// a millisecond; the kernel may put off telling by a second (linkwatch).
const carrierTimeout = 10 * time.Second

// raise sets an interface up and waits until frames pass between it and the
// bridge: its port forwards once it is operational, as the bridge has no
// spanning tree.
func (h *Host) raise(name, port string) error {
	if err := h.plumbing.rt.up(name); err != nil {
		return err
	}
	return errors.Join(h.plumbing.rt.operational(name), h.segment.plumbing.rt.operational(port))
}

func (r *rtnetlink) operational(name string) error {
	deadline := time.Now().Add(carrierTimeout)
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		var up bool
		err := r.onLink(name, func(_ *netlink.Handle, link netlink.Link) error {
			up = link.Attrs().OperState == netlink.OperUp
			return nil
		})
		if err != nil || up {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has no carrier after %s", name, carrierTimeout)
		}
		time.Sleep(wait)
	}
}

func (h *Host) setLink(name string, up bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.links, func(l Link) bool { return l.Name == name })
	switch {
	case up && i >= 0:
		return h.raise(name, h.plumbing.ports[i])
	case up:
		return h.plumbing.rt.up(name)
	}
	return h.plumbing.rt.onLink(name, (*netlink.Handle).LinkSetDown)
}

func (h *Host) addAddr(name string, prefix netip.Prefix) error {
	return h.onAddr(name, prefix, (*netlink.Handle).AddrAdd)
}

func (h *Host) delAddr(name string, prefix netip.Prefix) error {
	return h.onAddr(name, prefix, (*netlink.Handle).AddrDel)
}

func (h *Host) onAddr(name string, prefix netip.Prefix, f func(*netlink.Handle, netlink.Link, *netlink.Addr) error) error {
	if !prefix.Addr().Is4() {
		return fmt.Errorf("%s is not an IPv4 address with the length of its subnet", prefix)
	}
	return h.plumbing.rt.onLink(name, func(nl *netlink.Handle, link netlink.Link) error {
		return f(nl, link, &netlink.Addr{IPNet: ipNet(prefix)})
	})
}

func (h *Host) addRoute(dst netip.Prefix, via netip.Addr, name string) error {
	return h.plumbing.rt.onLink(name, func(nl *netlink.Handle, link netlink.Link) error {
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(dst.Masked()), Scope: netlink.SCOPE_LINK}
		if via.IsValid() {
			r.Gw, r.Scope, r.Flags = via.AsSlice(), netlink.SCOPE_UNIVERSE, int(netlink.FLAG_ONLINK)
		}
		return nl.RouteReplace(r)
	})
}

// uplink routes prefixes to an interface that leads nowhere. It is a bridge
// without ports because no kernel that has a lab lacks it.
func (h *Host) uplink(prefixes []netip.Prefix) error {
	err := h.plumbing.rt.do(func(nl *netlink.Handle) error {
		return nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs(UplinkLink)})
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add %s: %w", UplinkLink, err)
	}
	if err := h.plumbing.rt.up(UplinkLink); err != nil {
		return err
	}
	for _, p := range prefixes {
		if err := h.addRoute(p, netip.Addr{}, UplinkLink); err != nil {
			return fmt.Errorf("route %s to %s: %w", p, UplinkLink, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (h *Host) unplug() { h.plumbing.rt.close() }
