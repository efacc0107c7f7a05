package metallb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Rules about who else announces.
const (
	RuleSecondAnnouncer Rule = "second-announcer"
	RuleOtherAnnouncer  Rule = "other-announcer"
)

// Announcer is a Controller that takes a VIP.
type Announcer struct {
	Controller Controller `json:"controller"`
	Taking     Taking     `json:"taking"`
	Why        string     `json:"why"` // a clause
	// Expected is the node that is to answer; empty if that is not known.
	Expected string `json:"expected,omitempty"`
	Because  string `json:"because,omitempty"` // what says so
}

// Expect returns the node that a Controller other than MetalLB has answer for a
// VIP, and what says so; an empty node if it does not know. It is how callers add
// what they know of a program; Chosen is what this package knows.
type Expect func(c Controller, svc Service, vip netip.Addr) (node, because string)

// Announcers returns the controllers that take the VIP, MetalLB first. The Service
// may be nil, for an address that no Service has; a zero vip stands for any of the
// Service's addresses. MetalLB's expected node is that of the election; the others'
// are asked of expect, or if that is nil of Controller.Chosen at the State's time.
func (e *Elector) Announcers(svc *Service, vip netip.Addr, expect Expect) []Announcer {
	if svc == nil {
		svc = &Service{}
	}
	if expect == nil {
		expect = func(c Controller, svc Service, vip netip.Addr) (string, string) {
			return c.Chosen(svc, vip, e.state.At)
		}
	}
	var found []Announcer
	for _, c := range e.state.Controllers {
		taking, why := c.Takes(*svc, vip)
		if taking == TakesNot || c.Kind == KindMetalLB && !e.pooled(c, svc, vip) {
			continue
		}
		a := Announcer{Controller: c, Taking: taking, Why: why}
		switch {
		case c.Kind != KindMetalLB:
			a.Expected, a.Because = expect(c, *svc, vip)
		case c.Namespace == e.state.Namespace:
			if a.Expected = e.Announcer(svc); a.Expected != "" {
				a.Because = "MetalLB's election"
			}
		}
		found = append(found, a)
	}
	slices.SortStableFunc(found, func(a, b Announcer) int { return a.rank() - b.rank() })
	return found
}

func (a Announcer) rank() int {
	switch {
	case a.Taking != Takes:
		return 2
	case a.Controller.Kind != KindMetalLB:
		return 1
	}
	return 0
}

// pooled returns whether a pool of that MetalLB holds the address: it announces
// no others, whoever gave them to the Service. Of a second MetalLB the State has
// no pools, and both would see to the Service's address.
func (e *Elector) pooled(c Controller, svc *Service, vip netip.Addr) bool {
	if e.state.Pools == nil || c.Namespace != e.state.Namespace {
		return true
	}
	addrs := svc.Addresses
	if vip.IsValid() {
		addrs = []netip.Addr{vip}
	}
	return slices.ContainsFunc(e.state.Pools, func(p Pool) bool {
		return slices.ContainsFunc(addrs, p.Contains)
	})
}

// AnnouncerReasons returns RuleSecondAnnouncer if more than one controller takes
// the VIP, or RuleOtherAnnouncer if one does or may that is not MetalLB; nothing
// otherwise. The arguments are those of Announcers.
func (e *Elector) AnnouncerReasons(svc *Service, vip netip.Addr, expect Expect) []Reason {
	all := e.Announcers(svc, vip, expect)
	if len(all) == 0 {
		return nil
	}
	who := vip.String()
	if !vip.IsValid() && svc != nil {
		who = svc.Namespace + "/" + svc.Name
	}
	first := all[0]
	for _, a := range all[1:] {
		if a.Taking == Takes && !a.Controller.sameAs(first.Controller) {
			return []Reason{{
				Rule: RuleSecondAnnouncer, Role: RoleNote, Object: a.Controller.object(),
				Message: fmt.Sprintf("%s can be announced by %s as well as by %s: give the Service a loadBalancerClass that only one of them takes, or keep one from Services", who, a, first),
			}}
		}
	}
	if first.Controller.Kind == KindMetalLB {
		return nil
	}
	verb := "is"
	if first.Taking == MayTake {
		verb = "may be"
	}
	return []Reason{{
		Rule: RuleOtherAnnouncer, Role: RoleNote, Object: first.Controller.object(), Node: first.Expected,
		Message: fmt.Sprintf("%s %s announced by %s", who, verb, first),
	}}
}

// sameAs returns whether the two are parts of one installation.
func (c Controller) sameAs(other Controller) bool {
	return c.Kind == other.Kind && c.Namespace == other.Namespace
}

func (c Controller) object() Object {
	kind, name, _ := strings.Cut(c.Name, "/")
	kinds := map[string]string{"daemonset": "DaemonSet", "deployment": "Deployment", "pod": "Pod", "ciliuml2announcementpolicy": "CiliumL2AnnouncementPolicy"}
	return Object{Kind: cmp.Or(kinds[kind], kind), Namespace: c.Namespace, Name: name}
}

// String names the announcer, why it takes the address and on which node.
func (a Announcer) String() string {
	text := fmt.Sprintf("%s (%s, %s", a.Controller.Kind, a.Controller.object(), a.Why)
	if a.Expected != "" {
		text += fmt.Sprintf("; on %s by %s", a.Expected, a.Because)
	}
	return text + ")"
}
