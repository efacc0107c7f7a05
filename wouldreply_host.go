package strictarp

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"

	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/sysctl"
)

const kindVRF = "vrf"

// host is the node as the rules look at it for a question. What is not known is
// left zero; see unknowns.
func (n NodeFacts) host(q Question) (arprule.Host, error) {
	h := arprule.Host{All: conf(n.Sysctls.All), Interfaces: make([]arprule.Interface, 0, len(n.Links))}
	kinds, addresses := map[string]string{}, 0
	for _, l := range n.Links {
		kinds[l.Name] = l.Kind
		addresses += len(l.Addrs)
	}
	h.Addresses = make([]arprule.Address, 0, addresses)
	for _, l := range n.Links {
		h.Interfaces = append(h.Interfaces, arprule.Interface{
			Name: l.Name, Conf: conf(n.Sysctls.Interfaces[l.Name]), Down: !l.Up, NoARP: l.NoARP,
			Loopback: l.Loopback, Master: l.Master, MasterKind: kinds[l.Master],
		})
		for _, a := range l.Addrs {
			address, err := n.address(l, a)
			if err != nil {
				return h, err
			}
			h.Addresses = append(h.Addresses, address)
		}
	}
	var err error
	if h.Routes, err = n.hostRoutes(q, kinds); err != nil {
		return h, err
	}
	for _, p := range n.ProxyNeighbours {
		h.ProxyNeighbours = append(h.ProxyNeighbours, arprule.ProxyNeighbour{Addr: p.Addr.Unmap(), Interface: p.Link})
	}
	if slices.ContainsFunc(n.Rules, func(r PolicyRule) bool { return !r.standard() }) {
		h = withRules(h)
	}
	return h, nil
}

func (n NodeFacts) address(l Link, a Address) (arprule.Address, error) {
	scope, err := a.Scope.rule()
	if err != nil {
		return arprule.Address{}, fmt.Errorf("address %s of %q: %w", a.Prefix, l.Name, err)
	}
	return arprule.Address{
		Prefix: a.Prefix, Interface: l.Name, Scope: scope, Secondary: a.Secondary, Peer: a.Peer,
		// Where routes were observed, those to subnets are among them, or were
		// deleted. Those of lo are in the local table and follow from its addresses.
		NoPrefixRoute: a.NoPrefixRoute || n.Routes != nil && !l.Loopback,
		NoLocalRoute:  a.NoLocalRoute,
	}, nil
}

// hostRoutes leaves out routes that concern neither sender nor target, but for
// local ones: that there is any changes how the kernel checks senders. Of equal
// routes the kernel uses the one that it lists first (net/ipv4/fib_trie.c
// fib_find_alias).
func (n NodeFacts) hostRoutes(q Question, kinds map[string]string) ([]arprule.Route, error) {
	type equal struct {
		dst           netip.Prefix
		table, metric int
	}
	var routes []arprule.Route
	seen := map[equal]bool{}
	for _, r := range n.Routes {
		concerned := r.Dst.Contains(q.Sender) || r.Dst.Contains(q.Target) || r.Type == RouteLocal
		key := equal{r.Dst, cmp.Or(r.Table, TableMain), r.Metric}
		if r.Table == 0 && (r.Type == RouteLocal || r.Type == RouteBroadcast) {
			key.table = TableLocal
		}
		if !concerned || seen[key] || !n.counts(r, kinds) {
			continue
		}
		seen[key] = true
		route, err := r.rule()
		if err != nil {
			return nil, err
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// counts reports whether the kernel looks at a route for ARP: those of tables
// that only a rule leads to are not followed.
func (n NodeFacts) counts(r Route, kinds map[string]string) bool {
	switch r.Table {
	case 0, TableMain, TableLocal:
		return true
	}
	return r.Link != "" && n.vrf(r.Link, kinds)
}

// vrf reports whether an interface is a VRF or belongs to one.
func (n NodeFacts) vrf(name string, kinds map[string]string) bool {
	l, _ := n.Link(name)
	return l.Kind == kindVRF || l.Master != "" && kinds[l.Master] == kindVRF
}

func (r Route) rule() (arprule.Route, error) {
	t, ok := r.Type.rule()
	if !ok {
		return arprule.Route{}, fmt.Errorf("route to %s: no type of routes is called %q: %w", r.Dst, string(r.Type), fs.ErrInvalid)
	}
	return arprule.Route{
		Dst: r.Dst, Interface: r.Link, NextHops: r.NextHops, Type: t, Source: r.Source, Metric: r.Metric,
	}, nil
}

func (t RouteType) rule() (arprule.RouteType, bool) {
	switch t {
	case "", RouteUnicast:
		return arprule.RouteUnicast, true
	case RouteLocal:
		return arprule.RouteLocal, true
	case RouteBroadcast:
		return arprule.RouteBroadcast, true
	case RouteMulticast:
		return arprule.RouteMulticast, true
	case RouteBlackhole:
		return arprule.RouteBlackhole, true
	case RouteUnreachable:
		return arprule.RouteUnreachable, true
	case RouteProhibit:
		return arprule.RouteProhibit, true
	case RouteThrow:
		return arprule.RouteThrow, true
	}
	return 0, false
}

func (s Scope) rule() (arprule.Scope, error) {
	switch s {
	case "", ScopeGlobal:
		return arprule.ScopeUniverse, nil
	case ScopeSite:
		return arprule.ScopeSite, nil
	case ScopeLink:
		return arprule.ScopeLink, nil
	case ScopeHost:
		return arprule.ScopeHost, nil
	case ScopeNowhere:
		return arprule.ScopeNowhere, nil
	}
	number, err := strconv.ParseUint(string(s), 10, 8)
	if err != nil {
		return 0, fmt.Errorf("no scope is called %q: %w", string(s), fs.ErrInvalid)
	}
	return arprule.Scope(number), nil
}

// standard reports whether every namespace has the rule, or gets it with its
// first VRF.
func (r PolicyRule) standard() bool {
	if r.Other || r.Mask != 0 {
		return false
	}
	switch r.Table {
	case TableLocal:
		return r.Priority == 0
	case TableMain:
		return r.Priority == 32766
	case TableDefault:
		return r.Priority == 32767
	}
	return false
}

// withRules makes the kernel of a host look routes up table by table, and
// senders always by route, as it does as soon as there is any rule of policy
// routing, even one that matches nothing (include/net/ip_fib.h fib_lookup). To
// arprule that is what a VRF brings: this one has no addresses and no routes.
func withRules(h arprule.Host) arprule.Host {
	h.Interfaces = append(slices.Clone(h.Interfaces), arprule.Interface{
		Name: "\x00port", Master: "\x00vrf", MasterKind: kindVRF, // no interface has such names
	})
	return h
}

// conf copies the parameters that take part in answers.
func conf(v sysctl.Values) arprule.Conf {
	var c arprule.Conf
	for p, value := range v {
		if field := c.Param(string(p)); field != nil {
			*field = value
		}
	}
	return c
}
