package metallb_test

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strictarp/strictarp/metallb"
)

func exampleState() metallb.State {
	ready := true
	own := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "metallb.io/v1beta1", "kind": kind, "spec": spec,
			"metadata": map[string]any{"name": name, "namespace": "metallb-system"},
		}}
	}
	endpointOn := "node-a"
	return metallb.FromObjects(
		own("IPAddressPool", "lan", map[string]any{"addresses": []any{"192.0.2.240-192.0.2.250"}}),
		own("L2Advertisement", "lan", map[string]any{}),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-c", Labels: map[string]string{corev1.LabelNodeExcludeBalancers: "false"}}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
				Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.240"}},
			}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Endpoints:  []discoveryv1.Endpoint{{NodeName: &endpointOn, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		},
	)
}

// Who should answer for an address?
func ExampleState_ElectAddress() {
	for _, election := range exampleState().ElectAddress(netip.MustParseAddr("192.0.2.240")) {
		fmt.Printf("%s/%s: %s\n", election.Namespace, election.Service, election.Announcer)
		fmt.Println("not observed:", election.Unknown)
	}
	// Output:
	// default/web: node-b
	// not observed: [speakers version]
}

// Why does a node not announce the Service?
func ExampleElection_Candidate() {
	election, err := exampleState().Elect("default", "web")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range []string{"node-a", "node-b", "node-c"} {
		candidate, _ := election.Candidate(node)
		fmt.Printf("%s: %s\n", node, candidate.Why)
	}
	// Output:
	// node-a: it is candidate 2 of 2 by its hash with the address
	// node-b: its hash with the address is the lowest of 2 candidates
	// node-c: it has the label node.kubernetes.io/exclude-from-external-load-balancers, whose value does not matter
}

// Who would announce if a node left, and who if the last endpoint were gone?
func ExampleState_After() {
	state := exampleState()
	left, _ := state.After(metallb.Change{Leave: []string{"node-b"}}).Elect("default", "web")
	fmt.Printf("without node-b: %q\n", left.Announcer)
	drained, _ := state.After(metallb.Change{Drain: []string{"node-a"}}).Elect("default", "web")
	for _, reason := range drained.Reasons {
		fmt.Printf("node-a drained: %s: %s\n", reason.Rule, reason.Message)
	}
	// Output:
	// without node-b: "node-a"
	// node-a drained: no-ready-endpoint: the Service has no endpoint: its selector matches no pod
}

// Why does nobody answer although a node is elected?
func ExampleState_CheckInterfaces() {
	state := exampleState()
	election, _ := state.Elect("default", "web")
	host := metallb.Host{Interfaces: []metallb.Interface{
		{Name: "eth0", Up: true, Broadcast: true, Master: "br0"},
		{Name: "br0", Broadcast: true, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24")}},
	}}
	for _, reason := range state.CheckInterfaces(election, host) {
		fmt.Printf("%s: %s\n", reason.Rule, reason.Message)
	}
	// Output:
	// announcing-interface-skipped: the elected node node-b does not answer: br0 is down; no other node takes over
}
