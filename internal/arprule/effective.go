package arprule

// Effective returns the values that count on an interface, made of conf/all and
// conf/<interface> as the macros of include/linux/inetdevice.h make them:
//
//	maximum  arp_ignore, arp_announce, rp_filter       IN_DEV_MAXCONF
//	either   arp_filter, proxy_arp, proxy_arp_pvlan,
//	         route_localnet, accept_local,
//	         send_redirects,
//	         drop_gratuitous_arp (in arp_process)      IN_DEV_ORCONF
//	own      forwarding                                IN_DEV_CONF_GET
//
// Those of the second group come out as 0 or 1. conf/all/proxy_arp_pvlan counts
// since Linux 5.11 only. An interface that is not listed has zeros of its own.
//
// A maximum is not a strictest: the reserved 4 to 7 of arp_ignore hide 1 to 3
// and answer everything, and so does a 9 that hides an 8.
func (h Host) Effective(iface string) Conf {
	return h.effective(h.find(iface))
}

func (h *Host) effective(in *Interface) Conf {
	var own Conf
	if in != nil {
		own = in.Conf
	}
	return Conf{
		ArpIgnore:         max(h.All.ArpIgnore, own.ArpIgnore),
		ArpAnnounce:       max(h.All.ArpAnnounce, own.ArpAnnounce),
		ArpFilter:         either(h.All.ArpFilter, own.ArpFilter),
		ProxyArp:          either(h.All.ProxyArp, own.ProxyArp),
		ProxyArpPvlan:     either(h.All.ProxyArpPvlan, own.ProxyArpPvlan),
		RpFilter:          max(h.All.RpFilter, own.RpFilter),
		Forwarding:        own.Forwarding,
		RouteLocalnet:     either(h.All.RouteLocalnet, own.RouteLocalnet),
		AcceptLocal:       either(h.All.AcceptLocal, own.AcceptLocal),
		DropGratuitousArp: either(h.All.DropGratuitousArp, own.DropGratuitousArp),
		SendRedirects:     either(h.All.SendRedirects, own.SendRedirects),
	}
}

func either(a, b int) int {
	if a != 0 || b != 0 {
		return 1
	}
	return 0
}
