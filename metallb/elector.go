package metallb

import (
	"cmp"
	"net/netip"
	"slices"
)

// Elector holds a State prepared for many elections. It is safe for concurrent
// use; the State must not be changed while it is used.
type Elector struct {
	state      State
	rules      behaviour
	memberlist Memberlist
	class      string // of Services that MetalLB takes
	ignoreLB   bool   // --ignore-exclude-lb

	nodes     []candidate // by name
	index     map[string]int
	pools     []electorPool
	ranges    []poolRange // by start, IPv4 first
	byAddress map[netip.Addr][]int
}

// candidate is a node, with those of its gates that do not depend on a Service.
type candidate struct {
	name    string
	node    *Node    // nil: there is no Node object, or none was observed
	speaker *Speaker // the ready one, or else another that is on the node
	gates   gateSet
}

// electorPool is a pool with the advertisements that cover it.
type electorPool struct {
	pool             *Pool
	ads              []*electorAd
	serviceSelectors bool // one of them has service selectors
}

// electorAd is an advertisement with the nodes that it selects.
type electorAd struct {
	ad      *L2Advertisement
	nodes   []bool  // by index of Elector.nodes
	weights []int64 // nil: it prefers none
}

// poolRange is a range with the highest end of it and all before it, so that
// ranges that overlap, which MetalLB refuses, are found all the same.
type poolRange struct {
	from, to, highest netip.Addr
	pool              int
}

// Elector prepares the state for elections.
func (s State) Elector() *Elector {
	e := &Elector{state: s, rules: behaviourOf(s.Version), index: map[string]int{}, byAddress: map[netip.Addr][]int{}}
	e.readOptions()
	e.addNodes()
	e.addPools()
	for i := range s.Services {
		svc := &s.Services[i]
		if svc.Type != typeLoadBalancer {
			continue
		}
		for _, addr := range svc.Addresses {
			e.byAddress[addr] = append(e.byAddress[addr], i)
		}
	}
	return e
}

const typeLoadBalancer = "LoadBalancer"

// readOptions takes the DaemonSet's options, or where it was not observed those
// of the first speaker that shows some.
func (e *Elector) readOptions() {
	all := []Options{}
	if e.state.SpeakerSet != nil {
		all = append(all, e.state.SpeakerSet.Options)
	}
	for _, sp := range e.state.Speakers {
		all = append(all, sp.Options)
	}
	for _, o := range all {
		if o.Memberlist != "" || o.Class != "" || o.IgnoreExcludeLB {
			e.memberlist, e.class = o.Memberlist, o.Class
			e.ignoreLB = o.IgnoreExcludeLB && e.rules.ignoreExcludeLB
			return
		}
	}
}

// addNodes collects the nodes, and those that only speakers or endpoints name.
func (e *Elector) addNodes() {
	known := map[string]*Node{}
	for i := range e.state.Nodes {
		known[e.state.Nodes[i].Name] = &e.state.Nodes[i]
	}
	speakers := map[string]*Speaker{}
	for i := range e.state.Speakers {
		sp := &e.state.Speakers[i]
		if sp.Node == "" {
			continue
		}
		if _, ok := known[sp.Node]; !ok {
			known[sp.Node] = nil
		}
		if old := speakers[sp.Node]; old == nil || !old.Ready && sp.Ready {
			speakers[sp.Node] = sp
		}
	}
	// Before 0.13 nodes were not asked for: an endpoint was enough.
	if e.state.Nodes == nil || !e.rules.objects {
		e.addEndpointNodes(known)
	}
	for name, node := range known {
		e.nodes = append(e.nodes, candidate{name: name, node: node, speaker: speakers[name]})
	}
	slices.SortFunc(e.nodes, func(a, b candidate) int { return cmp.Compare(a.name, b.name) })
	for i := range e.nodes {
		e.index[e.nodes[i].name] = i
		e.nodes[i].gates = e.nodeGates(e.nodes[i])
	}
}

func (e *Elector) addEndpointNodes(known map[string]*Node) {
	for _, svc := range e.state.Services {
		for _, ep := range svc.Endpoints {
			if _, ok := known[ep.Node]; !ok && ep.Node != "" {
				known[ep.Node] = nil
			}
		}
	}
}

// nodeGates follows speakersForAds of MetalLB's speaker/layer2_controller.go.
func (e *Elector) nodeGates(c candidate) gateSet {
	var closed gateSet
	if !e.usable(c) {
		closed = closed.with(GateSpeaker)
	}
	if c.node == nil {
		return closed
	}
	if e.rules.unschedulable && c.node.Unschedulable {
		closed = closed.with(GateUnschedulable)
	}
	if e.rules.networkUnavailable && c.node.NetworkUnavailable == ConditionTrue {
		closed = closed.with(GateNetwork)
	}
	if _, excluded := c.node.Labels[excludeLabel]; excluded && e.rules.excludeLabel && !e.ignoreLB {
		closed = closed.with(GateExcluded)
	}
	return closed
}

// excludeLabel takes a node out of external load balancing by its presence,
// whatever its value is.
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

// usable returns whether MetalLB counts the node as one with a speaker. Without
// memberlist it does not know: what it assumes is decided by noneUsable.
func (e *Elector) usable(c candidate) bool {
	if e.memberlist == MemberlistOff {
		return c.node != nil || e.state.Nodes == nil || !e.rules.everyNode
	}
	return e.hasSpeaker(c)
}

// hasSpeaker returns whether a ready speaker is on the node, as far as is known.
func (e *Elector) hasSpeaker(c candidate) bool {
	if c.speaker != nil {
		return c.speaker.Ready
	}
	return !e.speakersKnown()
}

// speakersKnown is false where fewer pods were observed than the DaemonSet counts.
func (e *Elector) speakersKnown() bool {
	if e.state.Speakers == nil {
		return false
	}
	ready := int32(0)
	for _, sp := range e.state.Speakers {
		if sp.Ready {
			ready++
		}
	}
	return e.state.SpeakerSet == nil || ready >= e.state.SpeakerSet.Ready
}

// noneUsable returns whether a version without memberlist elects nobody for the
// Service: UsableSpeakers returned nil then, which 0.11 and 0.12 took for nobody
// under the Cluster policy, and 0.13 and 0.14 always.
func (e *Elector) noneUsable(svc *Service) bool {
	if e.memberlist != MemberlistOff || e.rules.everyNode || !e.rules.endpointGate {
		return false
	}
	return e.rules.objects || svc.Policy != PolicyLocal
}

func (e *Elector) addPools() {
	ads := make([]*electorAd, 0, len(e.state.L2Advertisements))
	for i := range e.state.L2Advertisements {
		ads = append(ads, e.prepareAd(&e.state.L2Advertisements[i]))
	}
	for i := range e.state.Pools {
		pool := electorPool{pool: &e.state.Pools[i]}
		for _, ad := range ads {
			if ad.ad.covers(*pool.pool) {
				pool.ads = append(pool.ads, ad)
				pool.serviceSelectors = pool.serviceSelectors || len(ad.ad.ServiceSelectors) > 0
			}
		}
		for _, r := range pool.pool.Ranges {
			e.ranges = append(e.ranges, poolRange{from: r.From, to: r.To, pool: i})
		}
		e.pools = append(e.pools, pool)
	}
	slices.SortFunc(e.ranges, func(a, b poolRange) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for i := range e.ranges {
		e.ranges[i].highest = e.ranges[i].to
		if i > 0 && e.ranges[i].to.Less(e.ranges[i-1].highest) {
			e.ranges[i].highest = e.ranges[i-1].highest
		}
	}
}

// covers returns whether an advertisement is for a pool: it names or selects it,
// or does neither.
func (ad L2Advertisement) covers(pool Pool) bool {
	if len(ad.Pools) == 0 && len(ad.PoolSelectors) == 0 {
		return true
	}
	return slices.Contains(ad.Pools, pool.Name) || anyMatches(ad.PoolSelectors, pool.Labels)
}

func (e *Elector) prepareAd(ad *L2Advertisement) *electorAd {
	prepared := &electorAd{ad: ad, nodes: make([]bool, len(e.nodes))}
	for i, c := range e.nodes {
		prepared.nodes[i] = e.selects(ad, c)
		if !prepared.nodes[i] || !e.rules.preferred || c.node == nil {
			continue
		}
		for _, p := range ad.Preferred {
			if p.Nodes.Matches(c.node.Labels) {
				if prepared.weights == nil {
					prepared.weights = make([]int64, len(e.nodes))
				}
				prepared.weights[i] += p.Weight
			}
		}
	}
	return prepared
}

// selects returns whether an advertisement lets a node announce. A node without
// an object is in no advertisement, except where there are no objects: before
// 0.13, or because they were not observed.
func (e *Elector) selects(ad *L2Advertisement, c candidate) bool {
	if c.node == nil {
		return !e.rules.objects || e.state.Nodes == nil && len(ad.NodeSelectors) == 0
	}
	return len(ad.NodeSelectors) == 0 || anyMatches(ad.NodeSelectors, c.node.Labels)
}

// poolOf returns the pool that holds all of the addresses, or nil.
func (e *Elector) poolOf(addresses []netip.Addr) *electorPool {
	if len(addresses) == 0 {
		return nil
	}
	after, _ := slices.BinarySearchFunc(e.ranges, addresses[0], func(r poolRange, addr netip.Addr) int {
		if r.from.Compare(addr) <= 0 {
			return -1
		}
		return 1
	})
	for i := after - 1; i >= 0 && !e.ranges[i].highest.Less(addresses[0]); i-- {
		if e.ranges[i].to.Less(addresses[0]) {
			continue
		}
		pool := &e.pools[e.ranges[i].pool]
		if !slices.ContainsFunc(addresses[1:], func(addr netip.Addr) bool { return !pool.pool.Contains(addr) }) {
			return pool
		}
	}
	return nil
}
