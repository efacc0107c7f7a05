package metallb_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp/metallb"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
	return u
}

func TestReadOwnObjects(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"IPAddressPool","metadata":{"name":"lan","namespace":"lb","labels":{"a":"b"}},
			"spec":{"addresses":["10.0.0.5/30","nonsense"],"autoAssign":false,"avoidBuggyIPs":true,"futureField":1,
			"serviceAllocation":{"priority":5,"namespaces":["x"],"namespaceSelectors":[{"matchLabels":{"n":"1"}}],"serviceSelectors":[{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"L2Advertisement","metadata":{"name":"ad","namespace":"lb"},
			"spec":{"ipAddressPools":["lan"],"ipAddressPoolSelectors":[{"matchLabels":{"a":"b"}}],"nodeSelectors":[{"matchExpressions":[{"key":"n","operator":"In","values":["1","2"]}]}],
			"interfaces":["eth0"],"serviceSelectors":[{"matchLabels":{"s":"1"}}],"preferredNodeSelectors":[{"weight":7,"preference":{"matchLabels":{"p":"1"}}}]}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"L2Advertisement","metadata":{"name":"bad","namespace":"lb"},"spec":{"nodeSelectors":[{"matchExpressions":[{"key":"n","operator":"Like"}]}]}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"L2Advertisement","metadata":{"name":"twice","namespace":"lb"},"spec":{"nodeSelectors":[{"matchLabels":{"n":"1"}},{"matchLabels":{"n":"1"}}]}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"BGPAdvertisement","metadata":{"name":"bgp","namespace":"lb"},"spec":{}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"ServiceL2Status","metadata":{"name":"l2-x","namespace":"lb","creationTimestamp":"2026-11-30T21:36:34Z",
			"labels":{"metallb.io/node":"w1","metallb.io/service-name":"web","metallb.io/service-namespace":"default"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"speaker-w1","uid":"u1"}]},
			"status":{"interfaces":[{"name":"ens33"}],"serviceName":"web","serviceNamespace":"default"}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"ConfigurationState","metadata":{"name":"speaker-w1","namespace":"lb","labels":{"metallb.io/component-type":"speaker","metallb.io/node-name":"w1"}},
			"status":{"result":"Invalid","errorSummary":"no","conditions":[{"type":"configReconcilerValid","status":"False","reason":"ConfigurationError","message":"m","lastTransitionTime":"2026-11-30T21:36:45Z"}]}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"IPAddressPool","metadata":{"name":"broken","namespace":"lb"},"spec":{"addresses":"10.0.0.0/24"}}`),
		object(t, `{"apiVersion":"example.com/v1","kind":"L2Advertisement","metadata":{"name":"not ours"}}`),
		object(t, `{"apiVersion":"metallb.io/v1beta2","kind":"AddressPool","metadata":{"name":"old","namespace":"lb"},"spec":{"protocol":"layer2","addresses":["10.9.0.1-10.9.0.2"]}}`),
	)
	assert.True(t, s.Installed)
	assert.Equal(t, "lb", s.Namespace)
	assert.Equal(t, []metallb.Pool{
		{
			Namespace: "lb", Name: "lan", AvoidBuggyIPs: true, BGP: true, Labels: metallb.Labels{"a": "b"},
			Ranges:  []metallb.Range{{From: netip.MustParseAddr("10.0.0.4"), To: netip.MustParseAddr("10.0.0.7"), Text: "10.0.0.5/30"}},
			Invalid: s.Pools[0].Invalid,
			Allocation: &metallb.Allocation{
				Priority: 5, Namespaces: []string{"x"}, NamespaceSelectors: []metallb.Selector{{Match: map[string]string{"n": "1"}}},
				ServiceSelectors: []metallb.Selector{{Expressions: []metallb.Requirement{{Key: "k", Operator: metallb.OperatorExists}}}},
			},
		},
		{
			Namespace: "lb", Name: "old", AutoAssign: true, Protocol: "layer2", BGP: true,
			Ranges: []metallb.Range{{From: netip.MustParseAddr("10.9.0.1"), To: netip.MustParseAddr("10.9.0.2"), Text: "10.9.0.1-10.9.0.2"}},
		},
	}, s.Pools)
	require.Len(t, s.Pools[0].Invalid, 1)
	assert.Contains(t, s.Pools[0].Invalid[0], `"nonsense"`)

	require.Len(t, s.L2Advertisements, 4)
	assert.Equal(t, metallb.L2Advertisement{
		Namespace: "lb", Name: "ad", Pools: []string{"lan"}, PoolSelectors: []metallb.Selector{{Match: map[string]string{"a": "b"}}},
		NodeSelectors: []metallb.Selector{{Expressions: []metallb.Requirement{{Key: "n", Operator: metallb.OperatorIn, Values: []string{"1", "2"}}}}},
		Interfaces:    []string{"eth0"}, ServiceSelectors: []metallb.Selector{{Match: map[string]string{"s": "1"}}},
		Preferred: []metallb.PreferredNode{{Weight: 7, Nodes: metallb.Selector{Match: map[string]string{"p": "1"}}}},
	}, s.L2Advertisements[0])
	assert.Contains(t, s.L2Advertisements[1].Invalid, "Like")
	assert.Equal(t, metallb.L2Advertisement{Namespace: "lb", Name: "old", Pools: []string{"old"}, Legacy: true}, s.L2Advertisements[2])
	assert.Contains(t, s.L2Advertisements[3].Invalid, "stands twice")
	assert.Equal(t, []string{"bgp"}, s.BGPAdvertisements)

	require.Len(t, s.Statuses, 1)
	assert.Equal(t, "default/web", s.Statuses[0].Service)
	assert.Equal(t, "w1", s.Statuses[0].Node, "from the label: the status has none")
	assert.Equal(t, []string{"ens33"}, s.Statuses[0].Interfaces)
	assert.Equal(t, "speaker-w1", s.Statuses[0].OwnerName)
	require.Len(t, s.ConfigStates, 1)
	assert.Equal(t, "Invalid", s.ConfigStates[0].Result)
	assert.Equal(t, "w1", s.ConfigStates[0].Node)
	assert.Equal(t, 2026, s.ConfigStates[0].Updated.Year())
	require.Len(t, s.Warnings, 1)
	assert.Contains(t, s.Warnings[0], "IPAddressPool lb/broken")
}

// TestNilAndEmpty: an empty list says that there is nothing, nothing says nothing.
func TestNilAndEmpty(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects()
	assert.Nil(t, s.Pools)
	assert.Nil(t, s.L2Advertisements)
	assert.Nil(t, s.Services)
	assert.Nil(t, s.Nodes)
	assert.Nil(t, s.Speakers)
	assert.Nil(t, s.Statuses)
	assert.Nil(t, s.Events)
	assert.Nil(t, s.ConfigStates)
	assert.False(t, s.Installed)

	s = metallb.FromObjects(
		&corev1.ServiceList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.EventList{}, &discoveryv1.EndpointSliceList{},
		&unstructured.UnstructuredList{Object: map[string]any{"kind": "IPAddressPoolList"}},
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"L2AdvertisementList","items":[]}`),
		object(t, `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"metallb.io/v1beta1","kind":"ServiceL2StatusList","items":[]}]}`),
		&corev1.List{Items: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"metallb.io/v1beta1","kind":"ConfigurationStateList","items":[]}`)}}},
		nil, (*corev1.Service)(nil),
	)
	assert.NotNil(t, s.Pools)
	assert.NotNil(t, s.L2Advertisements)
	assert.NotNil(t, s.Services)
	assert.NotNil(t, s.Nodes)
	assert.NotNil(t, s.Speakers)
	assert.NotNil(t, s.Statuses)
	assert.NotNil(t, s.Events)
	assert.NotNil(t, s.ConfigStates)
	assert.Empty(t, s.Warnings)
}

// TestTypedOrNot: what was dumped and read back makes the State that the typed
// objects make, in whatever order they come.
func TestTypedOrNot(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a01", "a03", "c02", "c08", "c10", "d02", "d03", "f09"} {
		objects := readObjects(t, name)
		want := metallb.FromObjects(objects...)
		var typed []runtime.Object
		for _, o := range slices.Backward(objects) {
			typed = append(typed, asTyped(t, o.(*unstructured.Unstructured)))
		}
		assert.Equal(t, want, metallb.FromObjects(typed...), name)
	}
}

func asTyped(t *testing.T, u *unstructured.Unstructured) runtime.Object {
	t.Helper()
	var to runtime.Object
	switch u.GetKind() {
	case "Service":
		to = &corev1.Service{}
	case "EndpointSlice":
		to = &discoveryv1.EndpointSlice{}
	case "Node":
		to = &corev1.Node{}
	case "Pod":
		to = &corev1.Pod{}
	case "DaemonSet":
		to = &appsv1.DaemonSet{}
	case "ConfigMap":
		to = &corev1.ConfigMap{}
	case "Event":
		to = &corev1.Event{}
	default:
		return u
	}
	text, err := json.Marshal(u.Object)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to))
	return to
}

func TestServices(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{
				"metallb.universe.tf/loadBalancerIPs":              "10.0.0.1, fd00::1,bad",
				"metallb.io/allow-shared-ip":                       "key",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
			}},
			Spec: corev1.ServiceSpec{
				Type: "LoadBalancer", LoadBalancerClass: new("metallb"), ExternalTrafficPolicy: "Local", ExternalIPs: []string{"10.0.0.7"},
				Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30080}},
			},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: "::ffff:10.0.0.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}, {IP: "10.0.0.2", IPMode: new(corev1.LoadBalancerIPModeProxy)}, {Hostname: "lb.example"},
			}}},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bare"}, Spec: corev1.ServiceSpec{Type: "ClusterIP", ExternalIPs: []string{"10.0.0.8"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inner"}, Spec: corev1.ServiceSpec{Type: "ClusterIP"}},
		object(t, `{"apiVersion":"v1","kind":"Endpoints","metadata":{"namespace":"default","name":"web"},
			"subsets":[{"addresses":[{"ip":"10.244.0.2","nodeName":"node-b"}],"notReadyAddresses":[{"ip":"10.244.0.1"}]}]}`),
	)
	require.Len(t, s.Services, 2)
	assert.Equal(t, "bare", s.Services[0].Name)
	assert.Equal(t, []metallb.Endpoint{}, s.Services[0].Endpoints)
	web := s.Services[1]
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	assert.Equal(t, []netip.Addr{a, b}, web.Addresses)
	assert.Equal(t, []netip.Addr{b}, web.ProxyMode)
	assert.Equal(t, []string{"lb.example"}, web.BadIngress)
	assert.Equal(t, []netip.Addr{a, netip.MustParseAddr("fd00::1")}, web.Requested)
	assert.Equal(t, "metallb", web.Class)
	assert.Equal(t, metallb.PolicyLocal, web.Policy)
	assert.Len(t, web.Annotations, 2)
	key, shared := web.SharingKey()
	assert.Equal(t, "key", key)
	assert.True(t, shared)
	assert.Equal(t, []metallb.Endpoint{{Addr: "10.244.0.1"}, {Node: "node-b", Addr: "10.244.0.2", Ready: true, Serving: true}}, web.Endpoints)
}

// TestEndpointSlices: unset conditions mean ready and, for serving, as ready; the
// Endpoints object is only a copy.
func TestEndpointSlices(t *testing.T) {
	t.Parallel()
	slice := func(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Endpoints:  endpoints,
		}
	}
	s := metallb.FromObjects(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Type: "LoadBalancer"}},
		object(t, `{"apiVersion":"v1","kind":"Endpoints","metadata":{"namespace":"default","name":"web"},"subsets":[{"addresses":[{"ip":"10.244.9.9"}]}]}`),
		slice("one",
			discoveryv1.Endpoint{NodeName: new("d"), Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}},
			discoveryv1.Endpoint{NodeName: new("b"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
		),
		slice("two",
			discoveryv1.Endpoint{NodeName: new("a"), Addresses: []string{"10.244.0.1"}},
			discoveryv1.Endpoint{DeprecatedTopology: map[string]string{corev1.LabelHostname: "c"}},
		),
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nobody's"}, Endpoints: []discoveryv1.Endpoint{{}}},
	)
	assert.Equal(t, []metallb.Endpoint{
		{Node: "a", Addr: "10.244.0.1", Ready: true, Serving: true},
		{Node: "b"},
		{Node: "c", Ready: true, Serving: true},
		{Node: "d", Serving: true, Terminating: true},
	}, s.Services[0].Endpoints)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(
		&corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "default", Name: "web"}, Reason: "nodeAssigned",
			Source: corev1.EventSource{Component: "metallb-speaker", Host: "w1"}, Count: 3,
			FirstTimestamp: metav1.Unix(100, 0), LastTimestamp: metav1.Unix(300, 0),
		},
		&eventsv1.Event{
			Regarding: corev1.ObjectReference{Kind: "Service", Namespace: "default", Name: "web"}, Reason: "announceFailed", Note: "no such interface",
			ReportingController: "metallb-speaker", EventTime: metav1.NewMicroTime(metav1.Unix(200, 0).Time),
			Series: &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(metav1.Unix(250, 0).Time)},
		},
		&corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "other"}},
	)
	require.Len(t, s.Events, 2)
	assert.Equal(t, "announceFailed", s.Events[0].Reason)
	assert.Equal(t, int64(200), s.Events[0].First.Unix())
	assert.Equal(t, int64(250), s.Events[0].Last.Unix())
	assert.Equal(t, "no such interface", s.Events[0].Message)
	assert.Equal(t, "w1", s.Events[1].Node)
	assert.Equal(t, int64(300), s.Events[1].Last.Unix())
	assert.Equal(t, int32(3), s.Events[1].Count)
}
