package kubeproxy

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// cluster is the objects that bear on kube-proxy, by kind and ordered.
type cluster struct {
	configMaps      map[string]*corev1.ConfigMap // by namespace/name
	daemonSets      []*appsv1.DaemonSet
	daemonSetsKnown bool
	pods            []*corev1.Pod
	nodes           []*corev1.Node
	felix           []*unstructured.Unstructured // Calico's FelixConfigurations
	unreadable      []MissingSource
}

func collect(objects []runtime.Object) *cluster {
	c := &cluster{configMaps: map[string]*corev1.ConfigMap{}}
	for _, o := range objects {
		c.add(o)
	}
	slices.SortStableFunc(c.daemonSets, func(a, b *appsv1.DaemonSet) int { return byName(a, b) })
	slices.SortStableFunc(c.pods, func(a, b *corev1.Pod) int { return byName(a, b) })
	slices.SortStableFunc(c.nodes, func(a, b *corev1.Node) int { return byName(a, b) })
	return c
}

func byName(a, b metav1.Object) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

func (c *cluster) add(o runtime.Object) {
	if v := reflect.ValueOf(o); v.Kind() == reflect.Pointer && v.IsNil() {
		return // a pointer to no object
	}
	switch o := o.(type) {
	case nil:
	case *corev1.ConfigMap:
		c.configMaps[o.Namespace+"/"+o.Name] = o
	case *appsv1.DaemonSet:
		c.daemonSets, c.daemonSetsKnown = append(c.daemonSets, o), true
	case *corev1.Pod:
		c.pods = append(c.pods, o)
	case *corev1.Node:
		c.nodes = append(c.nodes, o)
	case *unstructured.Unstructured:
		c.addUnstructured(o)
	case *runtime.Unknown:
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(o.Raw); err != nil {
			c.unreadable = append(c.unreadable, MissingSource{Message: "an item of a list cannot be read: " + clip(err.Error())})
			return
		}
		c.addUnstructured(&u)
	default:
		if meta.IsListType(o) {
			c.addList(o)
		}
	}
}

func (c *cluster) addList(list runtime.Object) {
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if _, typed := list.(*appsv1.DaemonSetList); typed || kind == "DaemonSetList" {
		c.daemonSetsKnown = true
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		c.unreadable = append(c.unreadable, MissingSource{Message: "a list cannot be read: " + clip(err.Error())})
		return
	}
	for _, item := range items {
		c.add(item)
	}
}

func (c *cluster) addUnstructured(u *unstructured.Unstructured) {
	if u.IsList() {
		list, err := u.ToList()
		if err == nil {
			c.addList(list)
		}
		return
	}
	gvk := u.GroupVersionKind()
	var typed runtime.Object
	switch gvk.Group + "/" + gvk.Kind {
	case "/ConfigMap":
		typed = &corev1.ConfigMap{}
	case "/Pod":
		typed = &corev1.Pod{}
	case "/Node":
		typed = &corev1.Node{}
	case "apps/DaemonSet", "extensions/DaemonSet":
		typed = &appsv1.DaemonSet{}
	case "apps/DaemonSetList":
		c.daemonSetsKnown = true
		return
	case "crd.projectcalico.org/FelixConfiguration", "projectcalico.org/FelixConfiguration":
		c.felix = append(c.felix, u)
		return
	default:
		return
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		source := Source{Namespace: u.GetNamespace(), Name: u.GetName()}
		c.unreadable = append(c.unreadable, MissingSource{source, gvk.Kind + " cannot be read: " + clip(err.Error())})
		return
	}
	c.add(typed)
}

// ownedByKnown reports whether a DaemonSet that is read anyway made the pod. A
// dump may lack the owner reference; then labels tell.
func (c *cluster) ownedByKnown(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return slices.ContainsFunc(c.daemonSets, func(ds *appsv1.DaemonSet) bool {
		if ds.Namespace != pod.Namespace {
			return false
		}
		if owner != nil {
			return owner.Kind == "DaemonSet" && owner.Name == ds.Name
		}
		selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) && pod.Annotations[corev1.MirrorPodAnnotationKey] == ""
	})
}

// changed is when somebody last wrote a part of an object, by its managed fields,
// or else when it was created.
func changed(o metav1.Object, part string) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, m := range o.GetManagedFields() {
		if m.Time != nil && m.Subresource == "" && m.FieldsV1 != nil && m.Time.After(at) && strings.Contains(string(m.FieldsV1.Raw), `"`+part+`"`) {
			at = m.Time.Time
		}
	}
	return at
}
