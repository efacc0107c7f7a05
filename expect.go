package strictarp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

// expectation is who should answer for a VIP.
type expectation struct {
	known bool     // false if facts are missing, or nothing is known that announces it
	nodes []string // usually one; several if Services that share the VIP disagree; none if nobody should
	why   string   // in words
	// elections are MetalLB's, of the VIP's Services that it takes.
	elections []metallb.Election
}

// expect returns who should answer for a VIP.
func (v *view) expect(p *vip) expectation {
	if p.expected == nil {
		e := v.expectMetalLB(p)
		if len(e.elections) == 0 {
			e = v.expectOther(p)
		}
		p.expected = &e
	}
	return *p.expected
}

// elect elects once for each Service.
func (v *view) elect(s *metallb.Service) metallb.Election {
	e, ok := v.elections[s]
	if !ok {
		e = v.elector.Outcome(s)
		v.elections[s] = e
	}
	return e
}

func (v *view) expectMetalLB(p *vip) expectation {
	e := expectation{known: true}
	var why []string
	for _, s := range p.services {
		if !slices.Contains(s.Addresses, p.addr) {
			continue // external IPs are nobody's to announce
		}
		election := v.elect(s)
		if !election.Mine {
			continue
		}
		e.elections = append(e.elections, election)
		for _, part := range election.Unknown {
			e.known = e.known && part == "version"
		}
		if a := election.Announcer; a != "" && !slices.Contains(e.nodes, a) {
			e.nodes = append(e.nodes, a)
			why = append(why, fmt.Sprintf("by MetalLB's election for %s", serviceSubject(s)))
		}
	}
	e.known = e.known && len(e.elections) > 0
	e.why = strings.Join(why, "; ")
	return e
}

// expectOther asks the other controllers that take the VIP which node they chose.
func (v *view) expectOther(p *vip) expectation {
	var e expectation
	for _, a := range v.announcers(p) {
		if a.Controller.Kind != metallb.KindMetalLB && a.Taking == metallb.Takes && a.Expected != "" && !slices.Contains(e.nodes, a.Expected) {
			e.known = true
			e.nodes = append(e.nodes, a.Expected)
			e.why = fmt.Sprintf("chosen by %s (%s)", a.Controller.Kind, a.Because)
		}
	}
	return e
}

// announcers are the controllers that take a VIP, for any of its Services.
func (v *view) announcers(p *vip) []metallb.Announcer {
	if len(p.services) == 0 {
		return v.elector.Announcers(nil, p.addr, nil)
	}
	var list []metallb.Announcer
	for _, s := range p.services {
		list = append(list, v.elector.Announcers(s, p.addr, nil)...)
	}
	return list
}

// takers are the controllers other than MetalLB that take a VIP.
func (v *view) takers(p *vip) []metallb.Controller {
	var list []metallb.Controller
	for _, a := range v.announcers(p) {
		if a.Controller.Kind != metallb.KindMetalLB && a.Taking == metallb.Takes {
			list = append(list, a.Controller)
		}
	}
	return list
}

// right reports whether a node is one that should answer.
func (e expectation) right(node string) bool { return slices.Contains(e.nodes, node) }

// sentence says for people who should answer.
func (v *view) sentence(e expectation) string {
	var reasons []string
	for _, election := range e.elections {
		for _, r := range election.Reasons {
			if r.Role == metallb.RoleCause && v.wants(r) == "" {
				reasons = append(reasons, r.Message)
			}
		}
	}
	switch {
	case len(reasons) > 0:
		return "The reason: " + strings.Join(reasons, "; ") + "."
	case !e.known:
		return "Who should is not known."
	case len(e.nodes) == 0:
		return "Nobody is expected to."
	}
	return fmt.Sprintf("Expected is %s, %s.", strings.Join(e.nodes, " and "), e.why)
}

// poolOf returns MetalLB's pool that has an address.
func (v *view) poolOf(addr netip.Addr) *metallb.Pool {
	for i := range v.metallb.Pools {
		if v.metallb.Pools[i].Contains(addr) {
			return &v.metallb.Pools[i]
		}
	}
	return nil
}

// stranger reports whether a MAC is known to be of no node. That of a virtual
// router is right where VRRP announces the VIP.
func (v *view) stranger(p *vip, mac arpcheck.MAC) bool {
	if len(v.owners.byMAC[mac]) > 0 {
		return false
	}
	return !virtualRouter(mac) || !slices.ContainsFunc(v.takers(p), func(c metallb.Controller) bool { return c.Kind == metallb.KindKeepalived })
}

// servingNodes returns the nodes that have a serving endpoint of a Service.
func servingNodes(s *metallb.Service) (nodes []string, known bool) {
	for _, e := range s.Endpoints {
		if e.Serving || e.Ready {
			nodes = append(nodes, e.Node)
		}
	}
	return nodes, s.Endpoints != nil
}
