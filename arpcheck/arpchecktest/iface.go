package arpchecktest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arprule"
)

// kubeIPVS0 is the device on which kube-proxy in ipvs mode holds the addresses
// of Services: down, without ARP, and answered for all the same.
const kubeIPVS0 = "kube-ipvs0"

// Scope is how far an address is valid, with the numbers of RT_SCOPE_* in
// linux/rtnetlink.h. arp_ignore 3 looks at it.
type Scope uint8

// Scopes.
const (
	ScopeGlobal Scope = 0
	ScopeLink   Scope = 253
	ScopeHost   Scope = 254
)

// iface is a network interface of a host. Its addresses, sysctls and flags are
// in the host's kernel, at the same index.
type iface struct {
	host   *Host
	name   string
	index  int
	joined bool // it is on the segment
	mac    arpcheck.MAC

	// The segment's mutex guards these.
	conns      []*Conn
	neighbours map[netip.Addr]*neighbour
	proxied    int // requests that wait for their proxy ARP answer
}

func (h *Host) addIface(i arprule.Interface) *iface {
	i.Conf = h.defaults
	h.kernel.Interfaces = append(h.kernel.Interfaces, i)
	added := &iface{
		host: h, name: i.Name, index: len(h.ifaces),
		neighbours: map[netip.Addr]*neighbour{},
	}
	h.ifaces = append(h.ifaces, added)
	return added
}

// join adds an interface that is on the segment.
func (h *Host) join(name string) *iface {
	i := h.addIface(arprule.Interface{Name: name})
	i.joined = true
	i.mac = h.seg.nextMAC()
	h.seg.ports = append(h.seg.ports, i)
	return i
}

func (i *iface) up() bool { return !i.host.kernel.Interfaces[i.index].Down }

func (i *iface) forget(c *Conn) {
	i.conns = slices.DeleteFunc(i.conns, func(other *Conn) bool { return other == c })
}

// AddNIC adds a further interface on the segment and returns its MAC. By
// default the kernel answers there for all addresses of the host: two MACs, one
// node. The error matches fs.ErrExist if the name is taken.
func (h *Host) AddNIC(name string, prefixes ...netip.Prefix) (arpcheck.MAC, error) {
	defer h.seg.enter()()
	if err := h.checkNew(name, prefixes); err != nil {
		return arpcheck.MAC{}, err
	}
	i := h.join(name)
	for _, p := range prefixes {
		h.addAddr(name, p, ScopeGlobal)
	}
	return i.mac, nil
}

// AddLink adds an interface that is somewhere else than on the segment: what
// routes by it, rp_filter and arp_filter hold against the segment's. The error
// matches fs.ErrExist if the name is taken.
func (h *Host) AddLink(name string, prefixes ...netip.Prefix) error {
	defer h.seg.enter()()
	if err := h.checkNew(name, prefixes); err != nil {
		return err
	}
	h.addIface(arprule.Interface{Name: name})
	for _, p := range prefixes {
		h.addAddr(name, p, ScopeGlobal)
	}
	return nil
}

func (h *Host) checkNew(name string, prefixes []netip.Prefix) error {
	if _, err := h.iface(name); err == nil || name == "all" || name == "default" {
		return fmt.Errorf("arpchecktest: add interface %s to %s: the name is taken: %w", name, h.name, os.ErrExist)
	}
	for _, p := range prefixes {
		if err := checkPrefix(p); err != nil {
			return fmt.Errorf("arpchecktest: add interface %s to %s: %w", name, h.name, err)
		}
	}
	return nil
}

// SetLink takes an interface up or down, as ip-link does. Down, it neither
// sends nor receives and forgets its neighbours; its Conns say
// arpcheck.ErrLinkDown. The error matches fs.ErrNotExist if there is no such
// interface.
func (h *Host) SetLink(name string, up bool) error {
	defer h.seg.enter()()
	i, err := h.iface(name)
	if err != nil {
		return fmt.Errorf("arpchecktest: set an interface up or down: %w", err)
	}
	wasUp := i.up()
	h.kernel.Interfaces[i.index].Down = !up
	if up || !wasUp {
		return nil
	}
	i.flush()
	for _, c := range i.conns {
		c.wentDown = true
		c.poke()
	}
	return nil
}

// AddAddr adds an address with its prefix length to an interface; kube-ipvs0 is
// made, down and without ARP, if it is not there. The error matches
// fs.ErrNotExist if another interface is not there, and fs.ErrExist if the
// interface has the address.
func (h *Host) AddAddr(link string, prefix netip.Prefix, scope Scope) error {
	defer h.seg.enter()()
	err := checkPrefix(prefix)
	if _, missing := h.iface(link); err == nil && missing != nil {
		if link == kubeIPVS0 {
			h.addIface(arprule.Interface{Name: link, Down: true, NoARP: true})
		} else {
			err = missing
		}
	}
	if err == nil && h.address(link, prefix) >= 0 {
		err = fmt.Errorf("the interface has it: %w", os.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("arpchecktest: add %s to %s of %s: %w", prefix, link, h.name, err)
	}
	h.addAddr(link, prefix, scope)
	return nil
}

// DelAddr takes an address off an interface. The error matches fs.ErrNotExist
// if it is not there.
func (h *Host) DelAddr(link string, prefix netip.Prefix) error {
	defer h.seg.enter()()
	at := h.address(link, prefix)
	if at < 0 {
		return fmt.Errorf("arpchecktest: take %s off %s of %s: it is not there: %w", prefix, link, h.name, os.ErrNotExist)
	}
	h.kernel.Addresses = slices.Delete(h.kernel.Addresses, at, at+1)
	h.rankAddrs(link)
	return nil
}

func (h *Host) address(link string, prefix netip.Prefix) int {
	return slices.IndexFunc(h.kernel.Addresses, func(a arprule.Address) bool {
		return a.Interface == link && a.Prefix == prefix
	})
}

func (h *Host) addAddr(link string, prefix netip.Prefix, scope Scope) {
	h.kernel.Addresses = append(h.kernel.Addresses, arprule.Address{
		Prefix: prefix, Interface: link, Scope: arprule.Scope(scope),
	})
	h.rankAddrs(link)
}

// rankAddrs makes an interface's first address of each subnet the primary one,
// as inet_insert_ifa does (with promote_secondaries when one is deleted).
func (h *Host) rankAddrs(link string) {
	seen := map[netip.Prefix]bool{}
	for k := range h.kernel.Addresses {
		if a := &h.kernel.Addresses[k]; a.Interface == link {
			a.Secondary = seen[a.Prefix.Masked()]
			seen[a.Prefix.Masked()] = true
		}
	}
}

func checkPrefix(p netip.Prefix) error {
	if !p.Addr().Is4() || p.Addr().IsUnspecified() {
		return fmt.Errorf("%s is not an IPv4 address with prefix length: %w", p, os.ErrInvalid)
	}
	return nil
}

func host32(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// HoldVIP binds an address to kube-ipvs0, as kube-proxy in ipvs mode does on
// every node. It may be there already.
func (h *Host) HoldVIP(vip netip.Addr) error {
	err := h.AddAddr(kubeIPVS0, host32(vip), ScopeGlobal)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// DropVIP takes an address off kube-ipvs0. The error matches fs.ErrNotExist if
// it is not there.
func (h *Host) DropVIP(vip netip.Addr) error { return h.DelAddr(kubeIPVS0, host32(vip)) }

// BindOnNIC binds an address to eth0, where a strict kernel answers for it too:
// the tempting cure that makes one more host answer.
func (h *Host) BindOnNIC(vip netip.Addr) error { return h.AddAddr("eth0", host32(vip), ScopeGlobal) }
