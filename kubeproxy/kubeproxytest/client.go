package kubeproxytest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Client has those methods of a typed client of client-go that package
// kubeproxy uses, and the others for objects. T is a type of objects such as
// corev1.ConfigMap, L that of its lists.
type Client[T, L any] struct {
	cluster   *Cluster
	resource  schema.GroupResource
	namespace string
}

// ConfigMaps returns a client; an empty namespace means all, for lists only.
func (c *Cluster) ConfigMaps(namespace string) Client[corev1.ConfigMap, corev1.ConfigMapList] {
	return Client[corev1.ConfigMap, corev1.ConfigMapList]{c, configMaps, namespace}
}

// DaemonSets returns a client; an empty namespace means all, for lists only.
func (c *Cluster) DaemonSets(namespace string) Client[appsv1.DaemonSet, appsv1.DaemonSetList] {
	return Client[appsv1.DaemonSet, appsv1.DaemonSetList]{c, daemonSets, namespace}
}

// Pods returns a client; an empty namespace means all, for lists only.
func (c *Cluster) Pods(namespace string) Client[corev1.Pod, corev1.PodList] {
	return Client[corev1.Pod, corev1.PodList]{c, pods, namespace}
}

// Nodes returns a client.
func (c *Cluster) Nodes() Client[corev1.Node, corev1.NodeList] {
	return Client[corev1.Node, corev1.NodeList]{c, nodes, ""}
}

// Get returns the object name.
func (c Client[T, L]) Get(ctx context.Context, name string, _ metav1.GetOptions) (*T, error) {
	return serve(ctx, c.cluster, c.call("get", name, nil), func() (*T, error) {
		o, err := c.find(name)
		if err != nil {
			return nil, err
		}
		return any(o.DeepCopyObject()).(*T), nil
	})
}

// List returns the objects that a label selector selects, at most Limit at once.
func (c Client[T, L]) List(ctx context.Context, opts metav1.ListOptions) (*L, error) {
	return serve(ctx, c.cluster, c.call("list", "", nil), func() (*L, error) {
		selector, err := labels.Parse(opts.LabelSelector)
		if err != nil || opts.FieldSelector != "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("label selector %q, field selector %q: %v", opts.LabelSelector, opts.FieldSelector, err))
		}
		all := slices.DeleteFunc(c.cluster.all(c.resource, c.namespace), func(o object) bool {
			return !selector.Matches(labels.Set(o.GetLabels()))
		})
		return page[L](all, opts, c.cluster.version)
	})
}

// page returns a list of those of all that Limit and Continue ask for. Unlike
// an API server's, a later page shows what changed since the first.
func page[L any](all []object, opts metav1.ListOptions, version int64) (*L, error) {
	start := 0
	if opts.Continue != "" {
		var err error
		if start, err = strconv.Atoi(opts.Continue); err != nil || start < 0 {
			return nil, apierrors.NewResourceExpired("the continue token is not one of this server")
		}
		start = min(start, len(all))
	}
	end := len(all)
	list := new(L)
	into := any(list).(metav1.ListInterface)
	if opts.Limit > 0 && int(opts.Limit) < end-start {
		end = start + int(opts.Limit)
		into.SetContinue(strconv.Itoa(end))
	}
	into.SetResourceVersion(strconv.FormatInt(version, 10))
	copies := make([]runtime.Object, 0, end-start)
	for _, o := range all[start:end] {
		copies = append(copies, o.DeepCopyObject())
	}
	return list, meta.SetList(any(list).(runtime.Object), copies)
}

// Create adds an object.
func (c Client[T, L]) Create(ctx context.Context, in *T, opts metav1.CreateOptions) (*T, error) {
	o := any(in).(runtime.Object).DeepCopyObject().(object)
	return serve(ctx, c.cluster, c.call("create", o.GetName(), opts.DryRun), func() (*T, error) {
		o.SetNamespace(c.namespace)
		if _, err := c.find(o.GetName()); err == nil {
			return nil, apierrors.NewAlreadyExists(c.resource, o.GetName())
		}
		o.SetUID("")
		return c.put(o, opts.DryRun)
	})
}

// Update replaces an object; it fails if the given one has a resource version
// and that is not the newest.
func (c Client[T, L]) Update(ctx context.Context, in *T, opts metav1.UpdateOptions) (*T, error) {
	o := any(in).(runtime.Object).DeepCopyObject().(object)
	return serve(ctx, c.cluster, c.call("update", o.GetName(), opts.DryRun), func() (*T, error) {
		return c.replace(o, opts.DryRun)
	})
}

// Patch changes an object by a merge patch, or by a strategic merge patch that
// has no lists, which is the same.
func (c Client[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*T, error) {
	return serve(ctx, c.cluster, c.call("patch", name, opts.DryRun), func() (*T, error) {
		if kind != types.MergePatchType && kind != types.StrategicMergePatchType || len(subresources) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("patch type %s of %v: this server has merge patches of objects only", kind, subresources))
		}
		old, err := c.find(name)
		if err != nil {
			return nil, err
		}
		o := old.DeepCopyObject().(object)
		if err := mergeInto(o, data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		// An update's UID is a precondition, and a conflict if it is another; a patch's
		// is taken for a change of the object (as kube-apiserver 1.37 has it).
		if uid := o.GetUID(); uid != old.GetUID() {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: c.resource.Group, Kind: reflect.TypeFor[T]().Name()}, name,
				field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
		}
		return c.replace(o, opts.DryRun)
	})
}

// Delete removes an object.
func (c Client[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := serve(ctx, c.cluster, c.call("delete", name, opts.DryRun), func() (*T, error) {
		o, err := c.find(name)
		if err != nil {
			return nil, err
		}
		if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != o.GetUID() {
			return nil, apierrors.NewConflict(c.resource, name, fmt.Errorf("the UID in the precondition is %s, in the object %s", *p.UID, o.GetUID()))
		}
		if len(opts.DryRun) == 0 {
			delete(c.cluster.objects, c.key(name))
		}
		return nil, nil
	})
	return err
}

// replace stores o over what is there. mu is held.
func (c Client[T, L]) replace(o object, dryRun []string) (*T, error) {
	o.SetNamespace(c.namespace)
	old, err := c.find(o.GetName())
	if err != nil {
		return nil, err
	}
	if v := o.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource, o.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := o.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(c.resource, o.GetName(), fmt.Errorf("the UID in the precondition is %s, in the object %s", uid, old.GetUID()))
	}
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetGeneration(old.GetGeneration())
	if now, ok := o.(*appsv1.DaemonSet); ok {
		was := old.(*appsv1.DaemonSet)
		now.Status = was.Status // a subresource of its own
		if !reflect.DeepEqual(now.Spec, was.Spec) {
			now.Generation++
		}
	}
	return c.put(o, dryRun)
}

func (c Client[T, L]) put(o object, dryRun []string) (*T, error) {
	if len(dryRun) == 0 {
		c.cluster.store(c.resource, o)
	}
	return any(o.DeepCopyObject()).(*T), nil
}

func (c Client[T, L]) key(name string) objectKey {
	return objectKey{c.resource, c.namespace, name}
}

func (c Client[T, L]) find(name string) (object, error) {
	if o, ok := c.cluster.objects[c.key(name)]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(c.resource, name)
}

func (c Client[T, L]) call(verb, name string, dryRun []string) Call {
	return Call{Verb: verb, Resource: c.resource.Resource, Namespace: c.namespace, Name: name, DryRun: len(dryRun) > 0}
}

// mergeInto applies a merge patch (RFC 7396) to an object.
func mergeInto(o object, patch []byte) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var target, change map[string]any
	if err := json.Unmarshal(text, &target); err != nil {
		return err
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return err
	}
	if text, err = json.Marshal(merge(target, change)); err != nil {
		return err
	}
	return json.Unmarshal(text, o)
}

func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			have, _ := target[key].(map[string]any)
			target[key] = merge(have, v)
		default:
			target[key] = value
		}
	}
	return target
}
