package kubeproxytest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is a cluster. The zero Cluster is empty; New makes one that is not. It
// is safe for concurrent use, but its fields are to be set before it is used.
type Cluster struct {
	// Before is called before a request is served; an error is the answer, and
	// nothing is done. It may change the cluster, as somebody else would.
	Before func(Call) error
	// After is called after a request was served; an error is the answer although
	// everything was done, as when a connection breaks.
	After func(Call) error
	// Auto makes the DaemonSet controller work, as Reconcile does, before a
	// DaemonSet is read.
	Auto bool
	// VIPs are what a kube-proxy in mode ipvs puts on kube-ipvs0.
	VIPs []netip.Addr
	// Denied are verbs and resources, such as "patch daemonsets", that the caller
	// has no permission for. Requests are refused, and access reviews say so.
	Denied []string

	mu      sync.Mutex // guards all below
	version int64
	objects map[objectKey]object
	nodes   map[string]*Node
	calls   []Call
	pods    int // made so far
}

type object interface {
	metav1.Object
	runtime.Object
}

type objectKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// Resources that a Cluster knows.
var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	pods       = schema.GroupResource{Resource: "pods"}
	nodes      = schema.GroupResource{Resource: "nodes"}
	daemonSets = schema.GroupResource{Group: "apps", Resource: "daemonsets"}
)

// Call is a request to the API server.
type Call struct {
	Verb      string // get, list, create, update, patch or delete
	Resource  string // such as configmaps
	Namespace string
	Name      string
	DryRun    bool
}

func (c Call) String() string {
	s := c.Verb + " " + c.Resource
	if c.Name != "" {
		s += "/" + c.Name
	}
	if c.DryRun {
		s += " (dry run)"
	}
	return s
}

// Writes returns whether the request changes something if it is served.
func (c Call) Writes() bool {
	return !c.DryRun && c.Resource != accessReviews.Resource && c.Verb != "get" && c.Verb != "list"
}

// Calls returns all requests so far, those that failed included.
func (c *Cluster) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Add puts objects into the cluster, as they are but for UID and resource version,
// over those of the same name, whose UID they take. ConfigMaps, DaemonSets, Pods and Nodes
// may be added. For a Node a kube-proxy's node is made that has the zero state.
func (c *Cluster) Add(objects ...runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range objects {
		resource, ok := resourceOf(o)
		if !ok {
			panic(fmt.Sprintf("kubeproxytest: add a %T: only ConfigMaps, DaemonSets, Pods and Nodes can be added", o))
		}
		o := o.DeepCopyObject().(object)
		o.SetUID("")
		if old, ok := c.objects[objectKey{resource, o.GetNamespace(), o.GetName()}]; ok {
			o.SetUID(old.GetUID())
		}
		if node, ok := o.(*corev1.Node); ok {
			c.node(node.Name)
		}
		c.store(resource, o)
	}
}

func resourceOf(o runtime.Object) (schema.GroupResource, bool) {
	switch o.(type) {
	case *corev1.ConfigMap:
		return configMaps, true
	case *corev1.Pod:
		return pods, true
	case *corev1.Node:
		return nodes, true
	case *appsv1.DaemonSet:
		return daemonSets, true
	}
	return schema.GroupResource{}, false
}

// store keeps o under the next resource version, and gives it what is missing
// of what the API server gives a new object. mu is held.
func (c *Cluster) store(resource schema.GroupResource, o object) {
	c.version++
	o.SetResourceVersion(strconv.FormatInt(c.version, 10))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", c.version)))
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
		if o.GetGeneration() == 0 {
			o.SetGeneration(1)
		}
	}
	if c.objects == nil {
		c.objects = map[objectKey]object{}
	}
	c.objects[objectKey{resource, o.GetNamespace(), o.GetName()}] = o
}

// all returns the stored objects of a resource in the order of their names, of
// all namespaces if namespace is empty. mu is held.
func (c *Cluster) all(resource schema.GroupResource, namespace string) []object {
	var found []object
	for key, o := range c.objects {
		if key.resource == resource && (namespace == "" || key.namespace == namespace) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found
}
