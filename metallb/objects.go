package metallb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// FromObjects makes a State of objects that the caller holds: Services,
// EndpointSlices (or Endpoints), Nodes, Pods, DaemonSets, ConfigMaps, Events and
// MetalLB's own objects, typed or unstructured, single or in lists, in any order.
// Others are ignored. It does not change them; the State shares their maps.
//
// An empty list says that there are no objects of its kind; without a list or an
// object of a kind that part of the State is nil. Objects that cannot be read are
// named in Warnings. At and Source are left to the caller.
func FromObjects(objects ...runtime.Object) State {
	c := collector{seen: map[string]bool{}}
	for _, o := range objects {
		c.add(o)
	}
	s := c.state()
	s.Controllers = FindControllers(objects...)
	return s
}

// maxDepth bounds lists of lists.
const maxDepth = 8

// collector sorts objects by kind.
type collector struct {
	depth int
	seen  map[string]bool // kinds of which there was an object or a list

	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice
	endpoints  []*coreEndpoints
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	daemonSets []*appsv1.DaemonSet
	configMaps []*corev1.ConfigMap
	events     []Event
	crs        []customObject
	bgp        []L2Advertisement // which pools BGPAdvertisements cover

	warnings []string
}

// coreEndpoints is what Kubernetes kept before EndpointSlices, and keeps still.
//
//nolint:staticcheck // Deprecated, but clusters with an old MetalLB may have nothing else.
type coreEndpoints = corev1.Endpoints

// customObject is an object of MetalLB's own kinds.
type customObject struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     json.RawMessage   `json:"spec"`
	Status   json.RawMessage   `json:"status"`
}

func (c *collector) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

func (c *collector) add(o runtime.Object) {
	if o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil() {
		return
	}
	switch o := o.(type) {
	case *unstructured.Unstructured:
		c.addUnstructured(o)
	case *unstructured.UnstructuredList:
		c.seen[strings.TrimSuffix(o.GetKind(), "List")] = true
		for i := range o.Items {
			c.addUnstructured(&o.Items[i])
		}
	default:
		if meta.IsListType(o) {
			c.addList(o)
			return
		}
		c.addTyped(o)
	}
}

func (c *collector) addList(o runtime.Object) {
	if c.depth >= maxDepth {
		c.warn("a list within %d lists was left out", maxDepth)
		return
	}
	c.depth++
	defer func() { c.depth-- }()

	if kind, ok := strings.CutSuffix(goName(o), "List"); ok && kind != "" {
		c.seen[kind] = true
	}
	if mixed, ok := o.(*corev1.List); ok {
		for _, item := range mixed.Items {
			c.add(item.Object)
			c.addJSON(item.Raw)
		}
		return
	}
	err := meta.EachListItem(o, func(item runtime.Object) error {
		c.add(item)
		return nil
	})
	if err != nil {
		c.warn("read a %s: %v", goName(o), err)
	}
}

func goName(o runtime.Object) string {
	return reflect.Indirect(reflect.ValueOf(o)).Type().Name()
}

func (c *collector) addJSON(raw []byte) {
	if len(raw) == 0 {
		return
	}
	var u unstructured.Unstructured
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		c.warn("read an item of a list: %v", err)
		return
	}
	c.addUnstructured(&u)
}

func (c *collector) addTyped(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		c.services = append(c.services, o)
	case *discoveryv1.EndpointSlice:
		c.slices = append(c.slices, o)
	case *coreEndpoints:
		c.endpoints = append(c.endpoints, o)
	case *corev1.Node:
		c.nodes = append(c.nodes, o)
	case *corev1.Pod:
		c.pods = append(c.pods, o)
	case *appsv1.DaemonSet:
		c.daemonSets = append(c.daemonSets, o)
	case *corev1.ConfigMap:
		c.configMaps = append(c.configMaps, o)
	case *corev1.Event:
		c.events = append(c.events, coreEvent(o))
	case *eventsv1.Event:
		c.events = append(c.events, newEvent(o))
	default:
		c.addOwnType(o)
		return
	}
	c.seen[goName(o)] = true
}

// addOwnType takes MetalLB's objects in the types of MetalLB's own API package,
// which this one does not import.
func (c *collector) addOwnType(o runtime.Object) {
	kind := cmp.Or(o.GetObjectKind().GroupVersionKind().Kind, goName(o))
	if !slices.Contains(customKinds(), kind) {
		return
	}
	raw, err := json.Marshal(o)
	if err != nil {
		c.warn("read a %s: %v", kind, err)
		return
	}
	c.addCustom(kind, raw)
}

// customKinds are those of the group metallb.io that are read.
func customKinds() []string {
	return []string{"IPAddressPool", "AddressPool", "L2Advertisement", "BGPAdvertisement", "ServiceL2Status", "ConfigurationState"}
}

func (c *collector) addCustom(kind string, raw []byte) {
	c.seen[kind] = true
	var o customObject
	if err := json.Unmarshal(raw, &o); err != nil {
		c.warn("read a %s: %v", kind, err)
		return
	}
	o.Kind = kind
	c.crs = append(c.crs, o)
}

// addUnstructured goes by JSON and not by the unstructured converter, which
// panics on numbers of types that only a careless decoder makes.
func (c *collector) addUnstructured(u *unstructured.Unstructured) {
	if u == nil || u.Object == nil {
		return
	}
	kind, _ := u.Object["kind"].(string)
	version, _ := u.Object["apiVersion"].(string)
	if items, ok := u.Object["items"].([]any); ok {
		c.addItems(kind, items)
		return
	}
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	custom := group == "metallb.io" && slices.Contains(customKinds(), kind)
	typed := typedObject(group, kind)
	if !custom && typed == nil {
		return
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		c.warn("read a %s: %v", kind, err)
		return
	}
	if custom {
		c.addCustom(kind, raw)
		return
	}
	if err := json.Unmarshal(raw, typed); err != nil {
		c.warn("read the %s %s/%s: %v", kind, u.GetNamespace(), u.GetName(), err)
		return
	}
	c.addTyped(typed)
}

func (c *collector) addItems(kind string, items []any) {
	if c.depth >= maxDepth {
		c.warn("a list within %d lists was left out", maxDepth)
		return
	}
	c.depth++
	defer func() { c.depth-- }()
	if kind, ok := strings.CutSuffix(kind, "List"); ok && kind != "" {
		c.seen[kind] = true
	}
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			c.addUnstructured(&unstructured.Unstructured{Object: object})
		}
	}
}

// typedObject returns an empty object of the kind, or nil.
func typedObject(group, kind string) runtime.Object {
	switch group + "/" + kind {
	case "/Service":
		return &corev1.Service{}
	case "/Endpoints":
		return &coreEndpoints{}
	case "discovery.k8s.io/EndpointSlice":
		return &discoveryv1.EndpointSlice{}
	case "/Node":
		return &corev1.Node{}
	case "/Pod":
		return &corev1.Pod{}
	case "apps/DaemonSet":
		return &appsv1.DaemonSet{}
	case "/ConfigMap":
		return &corev1.ConfigMap{}
	case "/Event":
		return &corev1.Event{}
	case "events.k8s.io/Event":
		return &eventsv1.Event{}
	}
	return nil
}
