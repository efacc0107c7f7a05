package sysctl

import (
	"maps"
	"slices"
	"strconv"
)

// strictParams are the two that strictARP sets, with the value it sets in "all".
func strictParams() []struct {
	param Param
	value int
} {
	return []struct {
		param Param
		value int
	}{{ARPIgnore, 1}, {ARPAnnounce, 2}}
}

// Strict returns the changes that keep the kernel from answering for, and
// speaking as, addresses that it holds on other interfaces: arp_ignore 1 and
// arp_announce 2 in "all", as kube-proxy's strictARP sets them. They are computed
// from the values that were read, and there is none where those are strict
// already; arp_ignore 2 and 8 are, for what they also do see Param.Explain.
//
// Since the larger of "all" and the interface's own value counts, an own value
// that is larger and not strict, such as arp_ignore 3, 4 or 9, is changed too,
// and so is one of "default", for interfaces made later. The own values of lo and
// the holders, KubeIPVS0 if none is named, are not: no request arrives there.
//
// There is no such function for the opposite: nothing needs the kernel to answer
// for what it holds elsewhere in order to be reachable through an announcer.
func (a ARP) Strict(holders ...string) []Change {
	holders = orKubeIPVS0(holders)
	var changes []Change
	for _, s := range strictParams() {
		inAll, ok := a.All[s.param]
		if !ok {
			continue // not observed
		}
		if !s.param.IsStrict(inAll) {
			changes = append(changes, change(all, s.param, inAll, s.value))
			inAll = s.value
		}
		// "default" last: a write to it may reach interfaces.
		for _, name := range append(slices.Sorted(maps.Keys(a.Interfaces)), dflt) {
			own, ok := a.own(name)[s.param]
			if ok && name != "lo" && !slices.Contains(holders, name) && !s.param.IsStrict(max(inAll, own)) {
				changes = append(changes, change(name, s.param, own, s.value))
			}
		}
	}
	return changes
}

func change(iface string, p Param, from, to int) Change {
	return Change{confKey(iface, p), strconv.Itoa(from), strconv.Itoa(to)}
}
