package arprule_test

import (
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/internal/arprule"
)

// extraScenarios says what all rows of a scenario have in common.
var extraScenarios = map[string]func(*extraLab){
	"local_route_only": func(l *extraLab) {
		l.remove("10.0.3.20")
		l.Routes = append(l.Routes, arprule.Route{
			Dst: netip.MustParsePrefix("10.0.3.20/32"), Interface: "lo", Type: arprule.RouteLocal,
		})
	},
	"default_route_other_nic": func(l *extraLab) { l.Routes = append(l.Routes, unicast("0.0.0.0/0", "eth1")) },
	"default_route_same_nic":  func(l *extraLab) { l.Routes = append(l.Routes, unicast("0.0.0.0/0", "ens33")) },
	"proxy_delay_default":     func(l *extraLab) { l.delayed = true },
	"pneigh": func(l *extraLab) {
		l.ProxyNeighbours = []arprule.ProxyNeighbour{{Addr: ip("10.9.0.78"), Interface: "ens33"}}
		l.delayed = true // but for proxy_delay 0 in that rig
	},
	"bridge": func(l *extraLab) {
		l.add("br0")
		l.move("ens33", "br0")
		port := iface(&l.Host, "ens33")
		port.Master, port.MasterKind = "br0", "bridge"
	},
	"macvlan":              func(l *extraLab) { l.add("mv0") },
	"two_nics_one_segment": func(l *extraLab) { l.add("ens34") },
	"vrf": func(l *extraLab) {
		l.Interfaces = append(l.Interfaces, arprule.Interface{Name: "vrf1", NoARP: true})
		l.enslave("ens33", "vrf1")
	},
}

func nothing(*extraLab) {}

// extraSettings holds the settings that are words instead of assignments.
var extraSettings = map[string]func(*extraLab){
	"sip=tip":               nothing, // the sender column says it
	"127.0.0.1":             nothing, // the target column says it
	"eth dst=node MAC":      func(l *extraLab) { l.unicast = true },
	"ens33 NOARP":           func(l *extraLab) { iface(&l.Host, "ens33").NoARP = true },
	"ens33 ARP back on":     nothing,
	"neigh proxy 10.9.0.78": nothing,
	"ens33 without any address": func(l *extraLab) {
		l.Addresses = slices.DeleteFunc(l.Addresses, func(a arprule.Address) bool { return a.Interface == "ens33" })
	},
	"10.0.3.20 deleted from kube-ipvs0":             func(l *extraLab) { l.remove("10.0.3.20") },
	"no address but 'local 10.0.3.20 dev lo' route": nothing,
	"address present but its local route deleted": func(l *extraLab) {
		a := address("10.0.3.20/32", "kube-ipvs0", arprule.ScopeUniverse)
		a.NoLocalRoute = true
		l.Addresses = append(l.Addresses, a)
		l.Routes = slices.DeleteFunc(l.Routes, func(r arprule.Route) bool { return r.Type == arprule.RouteLocal })
	},
	"kube-ipvs0 addr /24 down": func(l *extraLab) {
		l.Addresses = append(l.Addresses, address("10.0.3.23/24", "kube-ipvs0", arprule.ScopeUniverse))
	},
	"port ens33 in br0":                 nothing,
	"macvlan mv0 (no address) on ens33": nothing,
	"same":                              nothing,
	"second NIC without address":        nothing,
	"ens33 in vrf1":                     nothing,
	"kube-ipvs0 in default vrf":         nothing,
	"own address":                       nothing,
	"zero sender":                       nothing,
	"both in vrf1":                      func(l *extraLab) { l.enslave("kube-ipvs0", "vrf1") },
}

// add puts an interface without an address on the node's segment.
func (l *extraLab) add(name string) {
	l.Interfaces = append(l.Interfaces, arprule.Interface{Name: name})
	l.segment = append(l.segment, name)
}

func (l *extraLab) enslave(name, vrf string) {
	in := iface(&l.Host, name)
	in.Master, in.MasterKind = vrf, "vrf"
}

func (l *extraLab) remove(addr string) {
	l.Addresses = slices.DeleteFunc(l.Addresses, func(a arprule.Address) bool { return a.Prefix.Addr() == ip(addr) })
}

func (l *extraLab) move(from, to string) {
	for i := range l.Addresses {
		if l.Addresses[i].Interface == from {
			l.Addresses[i].Interface = to
		}
	}
}
