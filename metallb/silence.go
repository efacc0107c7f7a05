package metallb

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// silence goes through MetalLB's decisions in its order (SetBalancer of
// speaker/main.go, ShouldAnnounce of speaker/layer2_controller.go). The first that
// ends it is the cause; those after it that would end it too are named as well.
func (e *Elector) silence(r *round) []Reason {
	var found []Reason
	for _, step := range []func(*round) []Reason{e.noAddress, e.noPool, e.noEndpoint, e.noAdvertisement, e.sharedSelectors, e.noNode} {
		found = append(found, step(r)...)
	}
	for i := range found {
		found[i].Role = RoleAlso
		if i == 0 {
			found[i].Role = RoleCause
		}
	}
	return found
}

func (s *Service) object() Object {
	return Object{Kind: "Service", Namespace: s.Namespace, Name: s.Name}
}

func (p *Pool) object() Object {
	if p.Legacy {
		return Object{Kind: "ConfigMap", Namespace: p.Namespace, Name: "config"}
	}
	return Object{Kind: "IPAddressPool", Namespace: p.Namespace, Name: p.Name}
}

func (ad *L2Advertisement) object() Object {
	return Object{Kind: "L2Advertisement", Namespace: ad.Namespace, Name: ad.Name}
}

func (e *Elector) noAddress(r *round) []Reason {
	reason := Reason{Rule: RuleServiceWithoutAddress, Object: r.svc.object(), Field: "status.loadBalancer.ingress"}
	switch {
	case len(r.svc.BadIngress) > 0:
		reason.Message = fmt.Sprintf("the Service's status holds %q, which is no address: MetalLB withdraws it", r.svc.BadIngress[0])
	case len(r.svc.Addresses) == 0:
		reason.Message = "the Service has no address" + e.whyNoAddress(r.svc)
	case !e.rules.dualStack && len(r.svc.Addresses) != 1:
		reason.Message = fmt.Sprintf("the Service has %d addresses; MetalLB %s announces only Services with one", len(r.svc.Addresses), e.state.Version)
	default:
		return nil
	}
	return []Reason{reason}
}

func (e *Elector) whyNoAddress(svc *Service) string {
	if e.state.Pools == nil {
		return ""
	}
	if len(e.state.Pools) == 0 {
		return ": MetalLB has no pool"
	}
	for _, addr := range svc.Requested {
		if !slices.ContainsFunc(e.state.Pools, func(p Pool) bool { return p.Contains(addr) }) {
			return fmt.Sprintf(": it asks for %s, which is in no pool", addr)
		}
	}
	return ": the events on it say what MetalLB's controller tried"
}

func (e *Elector) noPool(r *round) []Reason {
	if r.pool != nil || e.state.Pools == nil || len(r.svc.Addresses) == 0 {
		return nil
	}
	object, field := Object{Kind: "IPAddressPool", Namespace: e.state.Namespace}, "spec.addresses"
	if !e.rules.objects {
		object, field = Object{Kind: "ConfigMap", Namespace: e.state.Namespace, Name: "config"}, "data.config"
	}
	message := fmt.Sprintf("no pool holds %s", joined(r.svc.Addresses))
	if len(r.svc.Addresses) > 1 {
		message = fmt.Sprintf("no pool holds all of %s", joined(r.svc.Addresses))
	}
	for _, p := range e.state.Pools {
		if len(p.Invalid) > 0 {
			message += fmt.Sprintf("; the pool %s has addresses that MetalLB refuses: %s", p.Name, p.Invalid[0])
			break
		}
	}
	return []Reason{{Rule: RuleNoPoolForAddress, Object: object, Field: field, Message: message}}
}

func joined[T fmt.Stringer](list []T) string {
	var parts []string
	for _, item := range list {
		parts = append(parts, item.String())
	}
	return strings.Join(parts, ", ")
}

// noEndpoint is a gate of its own since 0.11; before, every node needs one.
func (e *Elector) noEndpoint(r *round) []Reason {
	if r.svc.Endpoints == nil || e.anyServing(r.svc) {
		return nil
	}
	message := "the Service has no endpoint: its selector matches no pod"
	if n := len(r.svc.Endpoints); n > 0 {
		message = fmt.Sprintf("none of the Service's %d endpoints serves", n)
	}
	return []Reason{{Rule: RuleNoReadyEndpoint, Object: r.svc.object(), Field: "spec.selector", Message: message}}
}

func (e *Elector) noAdvertisement(r *round) []Reason {
	if r.pool == nil || e.state.L2Advertisements == nil || len(r.ads) > 0 {
		return nil
	}
	pool := r.pool.pool
	if pool.BGP && len(r.pool.ads) == 0 {
		return nil // its VIPs are announced by BGP, and ARP is not expected
	}
	reason := Reason{Rule: RuleNoL2Advertisement, Object: Object{Kind: "L2Advertisement", Namespace: pool.Namespace}, Field: "spec.ipAddressPools"}
	switch {
	case len(r.pool.ads) > 0:
		reason.Object, reason.Field = r.pool.ads[0].ad.object(), "spec.serviceSelectors"
		reason.Message = fmt.Sprintf("no L2Advertisement of the pool %s has a serviceSelector that matches the Service's labels", pool.Name)
	case len(e.state.L2Advertisements) == 0:
		reason.Message = fmt.Sprintf("there is no L2Advertisement, so the pool %s is not announced by ARP", pool.Name)
	default:
		reason.Message = fmt.Sprintf("none of the %d L2Advertisements names or selects the pool %s", len(e.state.L2Advertisements), pool.Name)
	}
	return []Reason{reason}
}

func (e *Elector) sharedSelectors(r *round) []Reason {
	if !e.sharedConflict(r.svc, r.ads) {
		return nil
	}
	return []Reason{{
		Rule: RuleSharedIPConflict, Object: r.svc.object(), Field: "metadata.annotations[metallb.io/allow-shared-ip]",
		Message: "the Service may share its address and an L2Advertisement for it has serviceSelectors: since 0.16.2 MetalLB announces neither",
	}}
}

// noNode narrows the nodes down gate by gate. Where a Service needs endpoints on
// its nodes that comes right after the advertisements: a node without one is not
// to blame for its speaker or its labels.
func (e *Elector) noNode(r *round) []Reason {
	if len(e.nodes) == 0 {
		return nil
	}
	var found []Reason
	left := make([]int, len(e.nodes))
	for i := range left {
		left[i] = i
	}
	for _, g := range []Gate{GateAdvertisement, GateEndpoint, GateMemberlist, GateSpeaker, GateUnschedulable, GateNetwork, GateExcluded} {
		if g == GateAdvertisement && len(r.ads) == 0 || g == GateEndpoint && !e.anyServing(r.svc) {
			continue // said before the nodes were asked
		}
		pass := slices.DeleteFunc(slices.Clone(left), func(i int) bool { return e.closed(i, r).has(g) })
		if len(pass) == 0 {
			found = append(found, e.nodeReason(g, left, r))
			continue
		}
		left = pass
	}
	return found
}

// nodeReason is about the nodes that a gate takes out, of which there are none
// left.
func (e *Elector) nodeReason(g Gate, nodes []int, r *round) Reason {
	names, has := e.names(nodes), "have"
	reason := Reason{Object: Object{Kind: "Node", Name: e.nodes[nodes[0]].name}}
	if len(nodes) == 1 {
		reason.Node, has = e.nodes[nodes[0]].name, "has"
	}
	switch g {
	case GateAdvertisement:
		reason.Rule, reason.Object, reason.Field, reason.Node = RuleAdvertisementSelectsNone, r.ads[0].ad.object(), "spec.nodeSelectors", ""
		reason.Message = "the nodeSelectors of " + joined(adObjects(r.ads)) + " match no node"
	case GateEndpoint:
		reason.Rule, reason.Object, reason.Field = RuleNoLocalEndpoint, r.svc.object(), "spec.externalTrafficPolicy"
		reason.Message = fmt.Sprintf("%s %s no serving endpoint of the Service, which are on %s", names, has, e.endpointNodes(r.svc))
		if e.rules.endpointGate {
			reason.Message += "; externalTrafficPolicy Local wants one on the announcing node"
		}
	case GateMemberlist:
		reason.Rule, reason.Object, reason.Field = RuleMemberlistDisabled, e.speakerObject(), "spec.template.spec.containers[].env"
		reason.Message = fmt.Sprintf("memberlist is off, and without it MetalLB %s elects nobody here: set METALLB_ML_BIND_ADDR and METALLB_ML_LABELS", e.state.Version)
	case GateSpeaker:
		reason.Rule, reason.Object = RuleNoSpeakerOnNode, e.speakerObject()
		reason.Message = fmt.Sprintf("%s %s no ready speaker; %s: %s", names, has, e.nodes[nodes[0]].name, e.speakerText(e.nodes[nodes[0]]))
	case GateUnschedulable:
		reason.Rule, reason.Field = RuleNodeExcluded, "spec.unschedulable"
		reason.Message = fmt.Sprintf("%s %s been cordoned, which MetalLB 0.14.9 takes for not available: uncordon or use another version", names, has)
	case GateNetwork:
		reason.Rule, reason.Field = RuleNodeNetworkUnavailable, "status.conditions[NetworkUnavailable]"
		reason.Message = fmt.Sprintf("%s %s the condition NetworkUnavailable", names, has)
	case GateExcluded:
		reason.Rule, reason.Field = RuleNodeExcluded, "metadata.labels["+excludeLabel+"]"
		reason.Message = fmt.Sprintf("%s %s the label %s: its value does not matter, remove it", names, has, excludeLabel)
	}
	return reason
}

func adObjects(ads []*electorAd) []Object {
	var objects []Object
	for _, ad := range ads {
		objects = append(objects, ad.ad.object())
	}
	return objects
}

func (e *Elector) names(nodes []int) string {
	const most = 5 // a sentence for people
	var parts []string
	for _, i := range nodes[:min(len(nodes), most)] {
		parts = append(parts, e.nodes[i].name)
	}
	if len(nodes) > most {
		parts = append(parts, fmt.Sprintf("%d more", len(nodes)-most))
	}
	return strings.Join(parts, ", ")
}

func (e *Elector) endpointNodes(svc *Service) string {
	on := map[string]bool{}
	for _, ep := range svc.Endpoints {
		if e.serves(ep) {
			on[ep.Node] = true
		}
	}
	var parts []string
	for name := range sorted(on) {
		if name == "" {
			name = "no node"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

func (e *Elector) speakerObject() Object {
	if e.state.SpeakerSet != nil {
		return Object{Kind: "DaemonSet", Namespace: e.state.SpeakerSet.Namespace, Name: e.state.SpeakerSet.Name}
	}
	return Object{Kind: "DaemonSet", Namespace: e.state.Namespace}
}

func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
