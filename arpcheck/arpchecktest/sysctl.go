package arpchecktest

import (
	"fmt"
	"os"

	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/sysctl"
)

// Sysctl returns net.ipv4.conf.LINK.PARAM, where link is an interface, "all" or
// "default" and the parameter one that takes part in ARP: arp_ignore, arp_announce,
// arp_filter, proxy_arp, proxy_arp_pvlan, rp_filter, forwarding,
// route_localnet, accept_local, drop_gratuitous_arp, send_redirects. The error matches
// fs.ErrNotExist for others.
func (h *Host) Sysctl(link string, p sysctl.Param) (int, error) {
	defer h.seg.enter()()
	value, err := h.sysctl(link, p)
	if err != nil {
		return 0, fmt.Errorf("arpchecktest: read sysctl: %w", err)
	}
	return *value, nil
}

// SetSysctl sets what Sysctl returns, with its errors. As in the kernel,
// all/forwarding sets it on every interface, and default counts for interfaces
// made later.
func (h *Host) SetSysctl(link string, p sysctl.Param, value int) error {
	defer h.seg.enter()()
	at, err := h.sysctl(link, p)
	if err != nil {
		return fmt.Errorf("arpchecktest: set sysctl to %d: %w", value, err)
	}
	*at = value
	if link == "all" && p == sysctl.Forwarding { // inet_forward_change
		h.defaults.Forwarding = value
		for i := range h.kernel.Interfaces {
			h.kernel.Interfaces[i].Conf.Forwarding = value
		}
	}
	return nil
}

func (h *Host) sysctl(link string, p sysctl.Param) (*int, error) {
	var conf *arprule.Conf
	switch link {
	case "all":
		conf = &h.kernel.All
	case "default":
		conf = &h.defaults
	default:
		i, err := h.iface(link)
		if err != nil {
			return nil, err
		}
		conf = &h.kernel.Interfaces[i.index].Conf
	}
	if value := conf.Param(string(p)); value != nil {
		return value, nil
	}
	return nil, fmt.Errorf("net.ipv4.conf.%s.%s of %s takes no part in ARP and is not simulated: %w",
		link, p, h.name, os.ErrNotExist)
}

// SetStrictARP sets conf/all/arp_ignore and arp_announce to 1 and 2, as
// kube-proxy with strictARP does, or both to 0.
func (h *Host) SetStrictARP(strict bool) error {
	ignore, announce := 0, 0
	if strict {
		ignore, announce = 1, 2
	}
	if err := h.SetSysctl("all", sysctl.ARPIgnore, ignore); err != nil {
		return err
	}
	return h.SetSysctl("all", sysctl.ARPAnnounce, announce)
}

// SetProxyARP sets proxy_arp on eth0, and with it forwarding, without which
// proxy_arp does nothing. The kernel answers for addresses that its routes send
// out of another interface, after a random time of up to 0.8 s.
func (h *Host) SetProxyARP(on bool) error {
	if !on {
		return h.SetSysctl("eth0", sysctl.ProxyARP, 0)
	}
	if err := h.SetSysctl("eth0", sysctl.Forwarding, 1); err != nil {
		return err
	}
	return h.SetSysctl("eth0", sysctl.ProxyARP, 1)
}
