package metallb

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FindControllers returns what can announce VIPs, MetalLB included, as far as
// the objects show it: DaemonSets, Deployments and Pods, the ConfigMaps
// cilium-config and antrea-config, Leases, Nodes, and the custom resources of
// these programs, typed or unstructured, also in lists. Objects of other kinds
// and objects that cannot be read are passed over. The result is sorted and not
// nil.
func FindControllers(objs ...runtime.Object) []Controller {
	in := inventory{configs: map[string]*corev1.ConfigMap{}, kubeVIPLeases: map[string]string{}}
	for _, o := range objs {
		in.add(o)
	}
	found := []Controller{}
	for _, w := range in.workloads {
		if c, ok := in.identify(w); ok && (w.kind != "pod" || !in.inSet(w)) {
			c.Namespace, c.Name = w.namespace, w.kind+"/"+w.name
			c.Nodes = in.nodesOf(w, c.Hashes)
			found = append(found, c)
		}
	}
	found = append(found, in.ciliumPolicies()...)
	return sortControllers(found)
}

// ControllerResources are the resources, beyond those that Read lists anyway, by
// which FindControllers knows programs: they are for Clients.Also. A cluster has
// few of them; those that it does not know become entries of State.Missing that
// are Absent.
func ControllerResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		{Group: "cilium.io", Version: "v2alpha1", Resource: "ciliuml2announcementpolicies"},
		{Group: "crd.antrea.io", Version: "v1beta1", Resource: "egresses"},
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "bgpconfigurations"},
		{Group: "network.kubesphere.io", Version: "v1alpha2", Resource: "eips"},
		{Group: "redhatcop.redhat.io", Version: "v1alpha1", Resource: "keepalivedgroups"},
	}
}

// sortControllers sorts, and joins the static pods of one program that differ in
// nothing but their node.
func sortControllers(found []Controller) []Controller {
	slices.SortStableFunc(found, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	joined := found[:0]
	for _, c := range found {
		if n := len(joined); n > 0 && samePod(joined[n-1], c) {
			joined[n-1].Nodes = sortedSet(append(joined[n-1].Nodes, c.Nodes...))
			continue
		}
		joined = append(joined, c)
	}
	return joined
}

func samePod(a, b Controller) bool {
	if !strings.HasPrefix(a.Name, "pod/") || !strings.HasPrefix(b.Name, "pod/") {
		return false
	}
	a.Name, a.Nodes = b.Name, b.Nodes
	return reflect.DeepEqual(a, b)
}

// inventory is what FindControllers looks at, sorted by kind.
type inventory struct {
	depth     int // of lists in lists
	workloads []workload
	pods      []*corev1.Pod
	nodes     []*corev1.Node
	leases    []*coordinationv1.Lease
	configs   map[string]*corev1.ConfigMap // by name; only those that are asked for
	custom    []*unstructured.Unstructured

	kubeVIPLeases map[string]string // by Service: the lease that it is annotated with
}

// workload is what runs a program: a DaemonSet, a Deployment, or a pod that
// belongs to neither.
type workload struct {
	kind, namespace, name string
	labels                map[string]string
	selector              labels.Selector // of its pods; nil for a pod
	spec                  corev1.PodSpec
}

func (in *inventory) add(obj runtime.Object) {
	if raw, ok := obj.(*runtime.Unknown); ok {
		obj = fromJSON(raw.Raw, &unstructured.Unstructured{})
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && !u.IsList() {
		obj = typed(u)
	}
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && v.IsNil() {
		return
	}
	switch o := obj.(type) {
	case nil:
	case *appsv1.DaemonSet:
		in.addSet("daemonset", o.ObjectMeta, o.Spec.Selector, o.Spec.Template)
	case *appsv1.Deployment:
		in.addSet("deployment", o.ObjectMeta, o.Spec.Selector, o.Spec.Template)
	case *corev1.Pod:
		in.pods = append(in.pods, o)
		if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind == "Node" {
			in.workloads = append(in.workloads, workload{kind: "pod", namespace: o.Namespace, name: o.Name, labels: o.Labels, spec: o.Spec})
		}
	case *corev1.Node:
		in.nodes = append(in.nodes, o)
	case *corev1.Service:
		if name := o.Annotations[kubeVIPLease]; name != "" {
			in.kubeVIPLeases[o.Namespace+"/"+o.Name] = name
		}
	case *coordinationv1.Lease:
		in.leases = append(in.leases, o)
	case *corev1.ConfigMap:
		if o.Name == "cilium-config" || strings.HasPrefix(o.Name, "antrea-config") {
			in.configs[o.Name] = o
		}
	case *unstructured.Unstructured:
		if o.IsList() {
			in.addList(o)
			return
		}
		in.custom = append(in.custom, o)
	default:
		in.addList(obj)
	}
}

// addList adds the items of a list; lists in lists down to maxDepth, since each of
// them is decoded anew.
func (in *inventory) addList(obj runtime.Object) {
	if !meta.IsListType(obj) || in.depth >= maxDepth {
		return
	}
	in.depth++
	defer func() { in.depth-- }()
	if u, ok := obj.(runtime.Unstructured); ok {
		_ = u.EachListItem(func(item runtime.Object) error { in.add(item); return nil }) // the error is add's, which has none
		return
	}
	items, err := meta.ExtractList(obj)
	if err != nil {
		return
	}
	for _, item := range items {
		in.add(item)
	}
}

func (in *inventory) addSet(kind string, m metav1.ObjectMeta, selector *metav1.LabelSelector, pod corev1.PodTemplateSpec) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		s = labels.Nothing()
	}
	set := map[string]string{}
	for k, v := range pod.Labels {
		set[k] = v
	}
	for k, v := range m.Labels {
		set[k] = v
	}
	in.workloads = append(in.workloads, workload{kind: kind, namespace: m.Namespace, name: m.Name, labels: set, selector: s, spec: pod.Spec})
}

// typed returns the object as the type that inventory.add knows, or as it is if
// it is a custom resource, or nil if it cannot be read.
func typed(u *unstructured.Unstructured) runtime.Object {
	var to runtime.Object
	switch u.GetKind() + "." + u.GroupVersionKind().Group {
	case "DaemonSet.apps":
		to = &appsv1.DaemonSet{}
	case "Deployment.apps":
		to = &appsv1.Deployment{}
	case "Pod.":
		to = &corev1.Pod{}
	case "Node.":
		to = &corev1.Node{}
	case "Service.":
		to = &corev1.Service{}
	case "ConfigMap.":
		to = &corev1.ConfigMap{}
	case "Lease.coordination.k8s.io":
		to = &coordinationv1.Lease{}
	default:
		return u
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil
	}
	return fromJSON(raw, to)
}

// fromJSON decodes into the object and returns it, or nil. It is used instead of
// the unstructured converter, which panics on some numbers.
func fromJSON(raw []byte, to runtime.Object) runtime.Object {
	if err := json.Unmarshal(raw, to); err != nil {
		return nil
	}
	return to
}

// inSet returns whether the pod is one of a DaemonSet or a Deployment, although it
// does not name an owner: dumps often leave owners out.
func (in *inventory) inSet(pod workload) bool {
	return slices.ContainsFunc(in.workloads, func(w workload) bool {
		return w.selector != nil && w.namespace == pod.namespace && !w.selector.Empty() && w.selector.Matches(labels.Set(pod.labels))
	})
}

// nodesOf returns the nodes where pods of the workload are, on request only those
// that are ready, sorted.
func (in *inventory) nodesOf(w workload, ready bool) []string {
	var nodes []string
	if w.selector == nil {
		if w.spec.NodeName != "" {
			nodes = append(nodes, w.spec.NodeName)
		}
		return nodes
	}
	for _, p := range in.pods {
		if p.Namespace == w.namespace && p.Spec.NodeName != "" && w.selector.Matches(labels.Set(p.Labels)) && (!ready || podReady(p)) {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	return sortedSet(nodes)
}

func sortedSet(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
