package metallb

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// sharedConflicts reports Services that have an address in common and need not
// have an announcer in common. MetalLB lets Services share an address if they
// have the same key and, under Local, the same selector (Assign and BackendKey of
// internal/allocator), which it asks for when it assigns the address, and which
// does not see that the same selector means other pods in another namespace.
func (s State) sharedConflicts() []Reason {
	byAddr := map[netip.Addr][]Service{}
	for _, svc := range s.Services {
		for _, a := range svc.Addresses {
			byAddr[a] = append(byAddr[a], svc)
		}
	}
	var found []Reason
	e := s.Elector()
	for addr, services := range byAddr {
		first := services[0]
		for _, svc := range services[1:] {
			if svc.Namespace == first.Namespace && svc.Name == first.Name {
				continue
			}
			if why, field := disagree(first, svc); why != "" && e.metallbTakes(&first, addr) && e.metallbTakes(&svc, addr) {
				found = append(found, sharedReason(first, svc, addr, why, field))
			}
			found = append(found, s.leasesApart(first, svc, addr)...)
		}
	}
	return found
}

func sharedReason(a, b Service, addr netip.Addr, why, field string) Reason {
	return Reason{
		Rule: RuleSharedIPConflict, Role: RoleNote, Object: b.object(), Field: field,
		Message: fmt.Sprintf("%s/%s and %s/%s share %v and %s: two nodes can announce it", a.Namespace, a.Name, b.Namespace, b.Name, addr, why),
	}
}

// disagree returns in what the Services differ that decides which nodes are
// candidates, as a clause with its field, or nothing.
func disagree(a, b Service) (why, field string) {
	aLocal, bLocal := a.Policy == PolicyLocal, b.Policy == PolicyLocal
	switch {
	case aLocal != bLocal:
		return "differ in externalTrafficPolicy", "spec.externalTrafficPolicy"
	case aLocal && !maps.Equal(a.Selector, b.Selector):
		return "are Local with different selectors, so that each wants a node with an endpoint of its own", "spec.selector"
	case aLocal && a.Namespace != b.Namespace:
		return "are Local in different namespaces, so that each wants a node with an endpoint of its own", "spec.externalTrafficPolicy"
	}
	return "", ""
}

// metallbTakes returns whether this MetalLB, or another one, takes the Service.
func (e *Elector) metallbTakes(svc *Service, addr netip.Addr) bool {
	return e.notMine(svc) == "" || slices.ContainsFunc(e.state.Controllers, func(c Controller) bool {
		t, _ := c.Takes(*svc, addr)
		return c.Kind == KindMetalLB && t != TakesNot
	})
}

// leasesApart reports controllers that elect a node for each Service.
func (s State) leasesApart(a, b Service, addr netip.Addr) []Reason {
	var found []Reason
	for _, c := range s.Controllers {
		takesA, _ := c.Takes(a, addr)
		takesB, _ := c.Takes(b, addr)
		if c.PerService && takesA == Takes && takesB == Takes {
			found = append(found, sharedReason(a, b, addr, fmt.Sprintf("%s (%s) elects a node for each of them by itself", c.Kind, c.Name), "metadata.annotations"))
		}
	}
	return found
}
