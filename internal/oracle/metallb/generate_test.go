package metallb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state is one random situation, in the form that the program reads.
type state struct {
	Nodes           []corev1.Node               `json:"nodes"`
	Pools           []map[string]any            `json:"pools"`
	Ads             []map[string]any            `json:"ads"`
	Services        []corev1.Service            `json:"services"`
	Slices          []discoveryv1.EndpointSlice `json:"slices"`
	Speakers        []string                    `json:"speakers"`
	Memberlist      bool                        `json:"memberlist"`
	IgnoreExcludeLB bool                        `json:"ignoreExcludeLB"`
}

const namespace = "metallb-system"

// generator makes states that are mostly near the border between an announcer and
// none.
type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) state() state {
	s := state{Memberlist: g.chance(85), IgnoreExcludeLB: g.chance(10)}
	for i := range 1 + g.IntN(7) {
		node := g.node(fmt.Sprintf("node-%d", i))
		s.Nodes = append(s.Nodes, node)
		if g.chance(85) {
			s.Speakers = append(s.Speakers, node.Name)
		}
	}
	if g.chance(5) {
		s.Speakers = append(s.Speakers, "ghost")
	}
	for i := range 1 + g.IntN(3) {
		s.Pools = append(s.Pools, g.pool(i))
	}
	for i := range 1 + g.IntN(5) - g.IntN(2) {
		s.Ads = append(s.Ads, g.advertisement(i, len(s.Pools)))
	}
	for i := range 1 + g.IntN(4) {
		svc := g.service(i, len(s.Pools))
		s.Services = append(s.Services, svc)
		for j := range pick(g, 0, 1, 1, 2) {
			s.Slices = append(s.Slices, g.slice(svc, j, len(s.Nodes)))
		}
	}
	return s
}

func (g generator) node(name string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: g.labels()}}
	if g.chance(12) {
		n.Labels[corev1.LabelNodeExcludeBalancers] = pick(g, "", "true", "false")
	}
	n.Spec.Unschedulable = g.chance(10)
	if g.chance(40) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeNetworkUnavailable, Status: pick(g, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionUnknown),
		})
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: pick(g, corev1.ConditionTrue, corev1.ConditionFalse)})
	return n
}

func (g generator) labels() map[string]string {
	labels := map[string]string{}
	for _, key := range []string{"zone", "tier"} {
		if g.chance(75) {
			labels[key] = pick(g, "a", "b", "c")
		}
	}
	return labels
}

// selectors are different from each other, or MetalLB would refuse them.
func (g generator) selectors(most int) []metav1.LabelSelector {
	var list []metav1.LabelSelector
	for range g.IntN(most + 1) {
		s := g.selector()
		if !slices.ContainsFunc(list, func(other metav1.LabelSelector) bool { return other.String() == s.String() }) {
			list = append(list, s)
		}
	}
	return list
}

func (g generator) selector() metav1.LabelSelector {
	key := pick(g, "zone", "tier")
	switch g.IntN(6) {
	case 0:
		return metav1.LabelSelector{}
	case 1:
		return metav1.LabelSelector{MatchLabels: map[string]string{key: pick(g, "a", "b", "c")}}
	case 2:
		return metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a", "tier": pick(g, "a", "b")}}
	}
	r := metav1.LabelSelectorRequirement{
		Key:      key,
		Operator: pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
	}
	if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
		r.Values = pick(g, []string{"a"}, []string{"a", "b"}, []string{"c"})
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}}
}

func object(kind, name string, labels map[string]string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "metallb.io/v1beta1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": labels}, "spec": spec,
	}
}

// pool number i holds 10.0.i.0 to 10.0.i.31 and an IPv6 range, written in one of
// several ways.
func (g generator) pool(i int) map[string]any {
	v4 := pick(g,
		[]string{fmt.Sprintf("10.0.%d.0/27", i)},
		[]string{fmt.Sprintf("10.0.%d.5/27", i)},
		[]string{fmt.Sprintf("10.0.%d.0-10.0.%d.31", i, i)},
		[]string{fmt.Sprintf("10.0.%d.0 - 10.0.%d.7", i, i), fmt.Sprintf("10.0.%d.8/29", i), fmt.Sprintf("10.0.%d.16-10.0.%d.31", i, i)},
		[]string{fmt.Sprintf("::ffff:10.0.%d.0/123", i)},
	)
	return object("IPAddressPool", fmt.Sprintf("pool-%d", i), g.labels(), map[string]any{
		"addresses": append(slices.Clone(v4), fmt.Sprintf("fd00:%d::-fd00:%d::1f", i, i)),
	})
}

func (g generator) advertisement(i, pools int) map[string]any {
	spec := map[string]any{}
	if g.chance(35) {
		spec["ipAddressPools"] = []string{fmt.Sprintf("pool-%d", g.IntN(pools+1))}
	}
	if g.chance(25) {
		spec["ipAddressPoolSelectors"] = g.selectors(2)
	}
	if g.chance(45) {
		spec["nodeSelectors"] = g.selectors(2)
	}
	if g.chance(30) {
		spec["interfaces"] = pick(g, []string{"eth0"}, []string{"eth0", "eth1"})
	}
	if g.chance(25) {
		spec["serviceSelectors"] = g.selectors(2)
	}
	if g.chance(30) {
		var preferred []map[string]any
		for range 1 + g.IntN(2) {
			preferred = append(preferred, map[string]any{"weight": pick(g, 1, 10, 50, 100), "preference": g.selector()})
		}
		spec["preferredNodeSelectors"] = preferred
	}
	return object("L2Advertisement", fmt.Sprintf("ad-%d", i), nil, spec)
}

func (g generator) service(i, pools int) corev1.Service {
	svc := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: pick(g, "default", "shop"), Name: fmt.Sprintf("svc-%d", i), Labels: g.labels()},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeLoadBalancer,
			ExternalTrafficPolicy: pick(g, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal, ""),
		},
	}
	if g.chance(20) {
		svc.Annotations = map[string]string{pick(g, "metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"): pick(g, "", "key")}
	}
	pool, host := g.IntN(pools), g.IntN(32)
	v4, v6 := fmt.Sprintf("10.0.%d.%d", pool, host), fmt.Sprintf("fd00:%d::%x", pool, host)
	ips := pick(g, []string{v4}, []string{v4}, []string{v4}, []string{v6}, []string{v4, v6}, []string{v6, v4}, []string{v4, v4},
		[]string{v4}, []string{v4}, []string{v4, "fd00:9::1"}, []string{"10.0.200.1"}, []string{""}, nil)
	for _, ip := range ips {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return svc
}

func (g generator) slice(svc corev1.Service, i, nodes int) discoveryv1.EndpointSlice {
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, Name: fmt.Sprintf("%s-%d", svc.Name, i),
			Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for j := range 1 + g.IntN(4) {
		ep := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", i, j)}}
		if g.chance(90) {
			ep.NodeName = new(fmt.Sprintf("node-%d", g.IntN(nodes+1)))
		}
		ep.Conditions = discoveryv1.EndpointConditions{
			Ready:   pick(g, nil, new(true), new(true), new(false), new(false)),
			Serving: pick(g, nil, new(true), new(false)),
		}
		slice.Endpoints = append(slice.Endpoints, ep)
	}
	return slice
}
