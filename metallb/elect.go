package metallb

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
)

// Election is who is expected to announce a Service's addresses, and why.
type Election struct {
	Namespace string       `json:"namespace"`
	Service   string       `json:"service"`
	Addresses []netip.Addr `json:"addresses,omitempty"`

	// Mine says whether MetalLB takes the Service at all; if not, NotMine says why
	// and the rest is empty.
	Mine    bool   `json:"mine"`
	NotMine string `json:"notMine,omitempty"`

	Algorithm      Algorithm `json:"algorithm,omitempty"`
	Pool           string    `json:"pool,omitempty"`           // that holds the addresses
	Advertisements []string  `json:"advertisements,omitempty"` // names of those for this Service

	// Announcer is the node whose speaker MetalLB has announce; empty: none. With
	// a Reason of RoleCause it does not answer all the same.
	Announcer string `json:"announcer,omitempty"`
	// Interfaces are those it may announce on; empty: all that MetalLB does not skip.
	Interfaces []string `json:"interfaces,omitempty"`
	// Candidates are all nodes: those in the election by rank, then the others by
	// name.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Reasons say why nobody answers, and what else is worth knowing.
	Reasons []Reason `json:"reasons,omitempty"`
	// Unknown names parts of the State that were not observed and without which
	// the result is the best guess: "nodes", "speakers", "endpoints", "pools",
	// "l2Advertisements" or "version".
	Unknown []string `json:"unknown,omitempty"`
}

// Candidate is a node in an election.
type Candidate struct {
	Node   string `json:"node"`
	Rank   int    `json:"rank,omitempty"`   // 1 announces, 2 is next; 0 is out
	Weight int64  `json:"weight,omitempty"` // by preferredNodeSelectors
	Out    []Gate `json:"out,omitempty"`    // why it is out, the first as MetalLB decides first
	Why    string `json:"why"`              // one sentence for people
}

// Silent returns whether nobody is expected to answer. It is false where MetalLB
// does not take the Service.
func (e Election) Silent() bool {
	return slices.ContainsFunc(e.Reasons, func(r Reason) bool { return r.Role == RoleCause })
}

// Candidate returns what became of a node.
func (e Election) Candidate(node string) (Candidate, bool) {
	for _, c := range e.Candidates {
		if c.Node == node {
			return c, true
		}
	}
	return Candidate{}, false
}

// Elect elects for one Service. The error matches fs.ErrNotExist if the State has
// no such Service. For many, make one Elector.
func (s State) Elect(namespace, name string) (Election, error) {
	i := slices.IndexFunc(s.Services, func(svc Service) bool { return svc.Namespace == namespace && svc.Name == name })
	if i < 0 {
		return Election{}, fmt.Errorf("metallb: elect for the Service %s/%s: %w among those of type LoadBalancer or with external IPs", namespace, name, fs.ErrNotExist)
	}
	return s.Elector().Elect(&s.Services[i]), nil
}

// ElectAddress elects for every LoadBalancer Service that has the address: more
// than one if they share it, none if no Service has it.
func (s State) ElectAddress(vip netip.Addr) []Election {
	e := s.Elector()
	var elections []Election
	for _, i := range e.byAddress[vip.Unmap()] {
		elections = append(elections, e.Elect(&s.Services[i]))
	}
	return elections
}

// round is one election's input. Its slices are shared with the Elector.
type round struct {
	svc       *Service
	pool      *electorPool
	ads       []*electorAd
	anyNode   bool   // there are no advertisements to ask: they were not observed
	endpoints []bool // by node: has an endpoint; nil: none is needed
	none      bool   // noneUsable
}

// Announcer returns the node whose speaker MetalLB has announce the Service, or
// an empty name. It allocates a fixed number of times: this is the way to ask for
// thousands of Services. Elect says why.
func (e *Elector) Announcer(svc *Service) string {
	if e.notMine(svc) != "" || e.refused(svc) || e.rules.endpointGate && svc.Endpoints != nil && !e.anyServing(svc) {
		return ""
	}
	r := e.round(svc)
	if r.pool == nil && e.state.Pools != nil || e.sharedConflict(svc, r.ads) {
		return ""
	}
	best, bestWeight := -1, int64(0)
	var bestHash [sha256.Size]byte
	var space [300]byte
	suffix := e.suffix(space[:0], svc)
	for i := range e.nodes {
		if e.closed(i, &r) != 0 {
			continue
		}
		weight := weightOf(i, r.ads)
		if best >= 0 && weight < bestWeight {
			continue
		}
		hash := e.hash(i, suffix)
		if best < 0 || weight > bestWeight || bytes.Compare(hash[:], bestHash[:]) < 0 {
			best, bestWeight, bestHash = i, weight, hash
		}
	}
	if best < 0 {
		return ""
	}
	return e.nodes[best].name
}

// refused returns whether MetalLB withdraws the Service for what its status
// holds.
func (e *Elector) refused(svc *Service) bool {
	return len(svc.Addresses) == 0 || len(svc.BadIngress) > 0 || !e.rules.dualStack && len(svc.Addresses) != 1
}

// notMine says why MetalLB does not take a Service; empty if it does.
func (e *Elector) notMine(svc *Service) string {
	switch {
	case !e.state.Installed:
		return "MetalLB was not found"
	case svc.Type != typeLoadBalancer:
		return "its type is " + svc.Type + ", MetalLB takes LoadBalancer"
	case svc.Class != e.class && svc.Class == "":
		return "it has no loadBalancerClass, MetalLB takes " + e.class
	case svc.Class != e.class:
		return "its loadBalancerClass is " + svc.Class + ", MetalLB takes " + cmp.Or(e.class, "those without one")
	}
	return ""
}

// serves follows EndpointCanServe of MetalLB's internal/k8s/epslices, and
// IsConditionReady before 0.14.
func (e *Elector) serves(ep Endpoint) bool {
	return ep.Ready || ep.Serving && e.rules.servingEndpoints
}

func (e *Elector) anyServing(svc *Service) bool {
	return slices.ContainsFunc(svc.Endpoints, e.serves)
}

func (e *Elector) round(svc *Service) round {
	r := round{svc: svc, pool: e.poolOf(svc.Addresses), none: e.noneUsable(svc), anyNode: e.state.L2Advertisements == nil || e.state.Pools == nil}
	if r.pool != nil {
		r.ads = r.pool.ads
		if r.pool.serviceSelectors && e.rules.serviceSelectors {
			r.ads = make([]*electorAd, 0, len(r.pool.ads))
			for _, ad := range r.pool.ads {
				if len(ad.ad.ServiceSelectors) == 0 || anyMatches(ad.ad.ServiceSelectors, svc.Labels) {
					r.ads = append(r.ads, ad)
				}
			}
		}
	}
	if svc.Endpoints == nil || e.rules.endpointGate && svc.Policy != PolicyLocal {
		return r
	}
	r.endpoints = make([]bool, len(e.nodes))
	for _, ep := range svc.Endpoints {
		if i, ok := e.index[ep.Node]; ok && e.serves(ep) {
			r.endpoints[i] = true
		}
	}
	return r
}

// sharedConflict follows sharedIPWithServiceSelector of 0.16.2.
func (e *Elector) sharedConflict(svc *Service, ads []*electorAd) bool {
	if _, shared := svc.SharingKey(); !shared || !e.rules.preferred {
		return false
	}
	return slices.ContainsFunc(ads, func(ad *electorAd) bool { return len(ad.ad.ServiceSelectors) > 0 })
}

// SharingKey returns the value of the annotation allow-shared-ip, under its old
// or its new name, and whether it is there.
func (s Service) SharingKey() (key string, shared bool) {
	for _, name := range []string{"metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"} {
		if key, shared = s.Annotations[name]; shared {
			return key, true
		}
	}
	return "", false
}

// closed returns the gates that node i does not pass.
func (e *Elector) closed(i int, r *round) gateSet {
	closed := e.nodes[i].gates
	if !r.anyNode && !selected(i, r.ads) {
		closed = closed.with(GateAdvertisement)
	}
	if r.none {
		closed = closed.with(GateMemberlist)
	}
	if r.endpoints != nil && !r.endpoints[i] {
		closed = closed.with(GateEndpoint)
	}
	return closed
}

func selected(i int, ads []*electorAd) bool {
	for _, ad := range ads {
		if ad.nodes[i] {
			return true
		}
	}
	return false
}

func weightOf(i int, ads []*electorAd) int64 {
	sum := int64(0)
	for _, ad := range ads {
		if ad.weights != nil {
			sum += ad.weights[i]
		}
	}
	return sum
}

// suffix is what is hashed after a node's name: the Service's first address, or
// before 0.11 its name.
func (e *Elector) suffix(to []byte, svc *Service) []byte {
	to = append(to, '#')
	if e.rules.algorithm == AlgorithmNameHash {
		to = append(append(to, svc.Namespace...), '/')
		return append(to, svc.Name...)
	}
	return svc.Addresses[0].AppendTo(to)
}

// hash is what the lowest of wins.
func (e *Elector) hash(i int, suffix []byte) [sha256.Size]byte {
	var space [512]byte // longer than a node's name and a suffix
	return sha256.Sum256(append(append(space[:0], e.nodes[i].name...), suffix...))
}
