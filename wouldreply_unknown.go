package strictarp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/sysctl"
)

// unknown is a fact that was not observed, with everything that it could be.
// Trying them all by the one rule tells whether it matters, without a second
// statement of what the rule looks at.
type unknown struct {
	missing Missing
	could   []func(arprule.Host) arprule.Host // none changes what its argument points to
}

// maxTries bounds the combinations that are tried. It suffices for all parameters
// of an interface; of a request that is heard one of those nearly always matters.
const maxTries = 1 << 16

// decide returns a host that answers as all do that the node could be, or what
// is missing to tell.
func decide(h arprule.Host, r arprule.Request, unknowns []unknown) (arprule.Host, []Missing) {
	first, tries := h, 1
	for _, u := range unknowns {
		first = u.could[0](first)
		tries *= len(u.could)
	}
	replies, _ := arprule.Reply(first, r)
	if tries <= maxTries && agree(h, r, unknowns, replies) {
		return first, nil
	}
	var matter, all []Missing
	for i, u := range unknowns {
		all = append(all, u.missing)
		if !agreeOne(h, r, unknowns, i, replies) {
			matter = append(matter, u.missing)
		}
	}
	all, matter = slices.Compact(all), slices.Compact(matter) // routes come twice
	if matter == nil {                                        // they matter only together
		return first, all
	}
	return first, matter
}

// agree reports whether all that the unknowns could be leads to one answer.
func agree(h arprule.Host, r arprule.Request, unknowns []unknown, replies bool) bool {
	if len(unknowns) == 0 {
		got, _ := arprule.Reply(h, r)
		return got == replies
	}
	for _, set := range unknowns[0].could {
		if !agree(set(h), r, unknowns[1:], replies) {
			return false
		}
	}
	return true
}

// agreeOne is agree where all unknowns but one are the first that they could be.
func agreeOne(h arprule.Host, r arprule.Request, unknowns []unknown, vary int, replies bool) bool {
	for i, u := range unknowns {
		if i != vary {
			h = u.could[0](h)
		}
	}
	return agree(h, r, unknowns[vary:vary+1], replies)
}

// unknowns are the facts that were not observed and that a rule may look at.
func (n NodeFacts) unknowns(q Question) []unknown {
	var list []unknown
	for _, p := range sysctl.Params() {
		if new(arprule.Conf).Param(string(p)) == nil || p == sysctl.ARPAnnounce { // that is about the node's own requests
			continue
		}
		if u, ok := n.unknownParam(p, q.Link); ok {
			list = append(list, u)
		}
	}
	list = append(list, n.unknownScopes()...)
	list = append(list, n.unknownMasters()...)
	if why, ok := n.unknownRoutes(q.Link); ok {
		list = append(list, unknown{why, routesTo(q, q.Target)})
		if q.Sender != q.Target {
			list = append(list, unknown{why, routesTo(q, q.Sender)})
		}
	}
	return list
}

// unknownParam is a parameter that "all" or the receiving interface has no value
// of; for route_localnet any interface, because it widens the scope of addresses
// there.
func (n NodeFacts) unknownParam(p sysctl.Param, link string) (unknown, bool) {
	_, all := n.Sysctls.All[p]
	lacking := map[string]bool{}
	for _, l := range n.Links {
		_, has := n.Sysctls.Interfaces[l.Name][p]
		if !has && (l.Name == link || p == sysctl.RouteLocalnet) {
			lacking[l.Name] = true
		}
	}
	all = all || p == sysctl.Forwarding // "all" is not looked at
	if all && len(lacking) == 0 {
		return unknown{}, false
	}
	u := unknown{missing: Missing{
		What:    fmt.Sprintf("%s of %q and \"all\"", p, link),
		Collect: fmt.Sprintf("sysctl -a, or Observe on the node; a kernel too old for %s has 0", p),
	}}
	for _, value := range candidates(p) {
		u.could = append(u.could, func(h arprule.Host) arprule.Host {
			if !all {
				*h.All.Param(string(p)) = value
			}
			h.Interfaces = slices.Clone(h.Interfaces)
			for i := range h.Interfaces {
				if in := &h.Interfaces[i]; lacking[in.Name] {
					*in.Conf.Param(string(p)) = value
				}
			}
			return h
		})
	}
	return u, true
}

// candidates has a value for each way in which a parameter can act. 9 stands for
// the reserved values of arp_ignore above 8, which undo all others.
func candidates(p sysctl.Param) []int {
	switch p {
	case sysctl.ARPIgnore:
		return []int{0, 1, 2, 3, 8, 9}
	case sysctl.RPFilter:
		return []int{0, 1, 2}
	}
	return []int{0, 1}
}

func (n NodeFacts) unknownScopes() []unknown {
	at := map[string]bool{}
	for _, l := range n.Links {
		for _, a := range l.Addrs {
			if a.Scope == "" {
				at[l.Name+"/"+a.Prefix.String()] = true
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	u := unknown{missing: Missing{What: "the scopes of addresses", Collect: collectLinks}}
	for _, scope := range []arprule.Scope{arprule.ScopeUniverse, arprule.ScopeLink, arprule.ScopeHost} {
		u.could = append(u.could, func(h arprule.Host) arprule.Host {
			h.Addresses = slices.Clone(h.Addresses)
			for i := range h.Addresses {
				if a := &h.Addresses[i]; at[a.Interface+"/"+a.Prefix.String()] {
					a.Scope = scope
				}
			}
			return h
		})
	}
	return []unknown{u}
}

// unknownMasters: a port of a bridge or bond hears nothing, one of a VRF does. A
// master is never hardware, so it has a kind, if that was observed.
func (n NodeFacts) unknownMasters() []unknown {
	var list []unknown
	seen := map[string]bool{}
	for _, l := range n.Links {
		if master, _ := n.Link(l.Master); l.Master == "" || master.Kind != "" || seen[l.Master] {
			continue
		}
		seen[l.Master] = true
		u := unknown{missing: Missing{
			What: fmt.Sprintf("the kind of %q, the master of %q", l.Master, l.Name), Collect: collectLinks,
		}}
		for _, kind := range []string{"", kindVRF} {
			u.could = append(u.could, func(h arprule.Host) arprule.Host {
				h.Interfaces = slices.Clone(h.Interfaces)
				for i := range h.Interfaces {
					if in := &h.Interfaces[i]; in.Master == l.Master {
						in.MasterKind = kind
					}
				}
				return h
			})
		}
		list = append(list, u)
	}
	return list
}

// unknownRoutes says why it is not known where the node routes addresses to.
func (n NodeFacts) unknownRoutes(link string) (Missing, bool) {
	const rules = "ip rule: policy routing is not followed, ask the node itself: ip route get ADDRESS from SENDER iif LINK"
	switch {
	case n.Routes == nil:
		return Missing{What: "the routes", Collect: "ip route, or Observe on the node"}, true
	case n.Rules != nil && !followed(n.Rules):
		return Missing{What: "the routes that policy routing rules lead to", Collect: rules}, true
	}
	l, _ := n.Link(link)
	master, _ := n.Link(l.Master)
	for _, r := range n.Routes {
		// Nothing tells which VRF a route that leads nowhere belongs to.
		nowhere := r.Link == "" && r.Table != 0 && r.Table != TableMain && r.Table != TableLocal
		if r.Table == TableDefault || nowhere && master.Kind == kindVRF {
			return Missing{What: fmt.Sprintf("the use of routing table %d", r.Table), Collect: rules}, true
		}
	}
	return Missing{}, false
}

// followed reports whether rules lead to the tables that arprule looks at, in its
// order: local, VRFs', main. Requests have no mark, so that rules which want one
// do not match.
func followed(rules []PolicyRule) bool {
	local, main := false, false
	for _, r := range slices.SortedFunc(slices.Values(rules), func(a, b PolicyRule) int { return a.Priority - b.Priority }) {
		switch {
		case r.Other:
			return false
		case r.Mask != 0 && r.Mark&r.Mask != 0:
		case r.VRF:
			if main {
				return false
			}
		case r.Table == TableLocal && !main:
			local = true
		case r.Table == TableMain && local:
			main = true
		case r.Table == TableDefault && main:
		default:
			return false
		}
	}
	return local && main
}

// routesTo are the ways in which a host could route an address, as far as the
// main table goes: what is local follows from addresses.
func routesTo(q Question, addr netip.Addr) []func(arprule.Host) arprule.Host {
	const elsewhere = "\x00elsewhere" // no interface has such a name
	dst := netip.PrefixFrom(addr, addr.BitLen())
	with := func(r arprule.Route) func(arprule.Host) arprule.Host {
		return func(h arprule.Host) arprule.Host {
			h.Routes = append(slices.Clone(h.Routes), r)
			return h
		}
	}
	return []func(arprule.Host) arprule.Host{
		with(arprule.Route{Dst: dst, Interface: q.Link, Type: arprule.RouteUnicast}),
		with(arprule.Route{Dst: dst, Interface: elsewhere, Type: arprule.RouteUnicast}),
		with(arprule.Route{Dst: dst, Type: arprule.RouteUnreachable}),
	}
}
