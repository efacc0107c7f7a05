package arprule_test

import (
	"net/netip"

	"github.com/strictarp/strictarp/internal/arprule"
)

// ip reads an address; the empty string is the invalid address.
func ip(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func address(prefix, iface string, scope arprule.Scope) arprule.Address {
	return arprule.Address{Prefix: netip.MustParsePrefix(prefix), Interface: iface, Scope: scope}
}

func unicast(dst, iface string) arprule.Route {
	return arprule.Route{Dst: netip.MustParsePrefix(dst), Interface: iface, Type: arprule.RouteUnicast}
}

// truthNode is the node on which the truth table was measured: ens33 receives,
// kube-ipvs0 holds the VIPs, eth1 leads elsewhere and eth1p is its far end.
// All sysctls are zero.
func truthNode() arprule.Host {
	const (
		global = arprule.ScopeUniverse
		link   = arprule.ScopeLink
		host   = arprule.ScopeHost
	)
	return arprule.Host{
		All: arprule.Conf{SendRedirects: 1},
		Interfaces: []arprule.Interface{
			{Name: "lo", Loopback: true},
			{Name: "ens33"},
			{Name: "eth1p"},
			{Name: "eth1"},
			{Name: "kube-ipvs0", Down: true, NoARP: true},
		},
		Addresses: []arprule.Address{
			address("127.0.0.1/8", "lo", host),
			address("10.0.3.41/32", "lo", host),
			address("10.0.3.40/32", "lo", global),
			address("10.0.3.31/32", "ens33", host),
			address("10.0.3.11/24", "ens33", global),
			address("10.0.3.30/32", "ens33", global),
			address("203.0.113.30/32", "ens33", global),
			address("10.9.0.1/24", "eth1", global),
			address("10.0.3.21/32", "kube-ipvs0", host),
			address("10.0.3.22/32", "kube-ipvs0", link),
			address("10.0.3.20/32", "kube-ipvs0", global),
			address("203.0.113.20/32", "kube-ipvs0", global),
		},
		Routes: []arprule.Route{
			unicast("172.31.1.0/24", "ens33"),
			unicast("172.31.2.0/24", "eth1"),
			{Dst: netip.MustParsePrefix("172.31.3.0/24"), Type: arprule.RouteUnreachable},
		},
	}
}

// iface returns an interface of the host to edit.
func iface(h *arprule.Host, name string) *arprule.Interface {
	for i := range h.Interfaces {
		if h.Interfaces[i].Name == name {
			return &h.Interfaces[i]
		}
	}
	panic("no interface " + name)
}

// forward sets forwarding on every interface, as net.ipv4.ip_forward does.
func forward(h *arprule.Host, value int) {
	h.All.Forwarding = value
	for i := range h.Interfaces {
		h.Interfaces[i].Conf.Forwarding = value
	}
}
