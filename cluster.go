package strictarp

import (
	"encoding/json"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

// SetCluster sets Cluster to c, and KubeProxy and MetalLB to what its objects say,
// all of c.At and c.Source. The objects may be from any client or cache, singly or
// in lists, in Go types or unstructured. An empty list says that there are no
// objects of its kind; a kind that is not there at all was not observed.
//
// The facts share memory with the objects, which are not changed: lists are taken
// apart, typed objects get the kind that clients leave out, and the contents of
// Secrets are not kept. What has no kind and is of no type that Objects names is
// looked at and not kept either.
//
// That the API server does not know a kind at all can be noted in MetalLB.Missing
// afterwards. What files of nodes say of kube-proxy is added by Merge.
func (f *Facts) SetCluster(c ClusterFacts) {
	c.Objects = slices.DeleteFunc(slices.Clone(c.Objects), isNothing)
	told := kubeproxy.FromObjects(c.Objects...)
	for i := range told.Configs {
		told.Configs[i].At = c.At
	}
	state := metallb.FromObjects(c.Objects...)
	state.At, state.Source = c.At, c.Source
	c.Objects = tidyObjects(c.Objects)
	f.Cluster, f.KubeProxy, f.MetalLB = &c, &told, &state
}

// tidyObjects returns objects as Objects says that they are.
func tidyObjects(objects Objects) Objects {
	if objects == nil {
		return nil
	}
	t := objectTidier{objectDecoder{objects: make([]runtime.Object, 0, len(objects))}}
	for _, o := range objects {
		t.add(o, 0)
	}
	return t.objects
}

// isNothing reports whether there is no object, also behind a type.
func isNothing(o runtime.Object) bool {
	v := reflect.ValueOf(o)
	return v.Kind() != reflect.Pointer || v.IsNil()
}

// objectTidier takes lists apart. What cannot be decoded it leaves out, or has it
// unstructured.
type objectTidier struct{ objectDecoder }

func (t *objectTidier) add(o runtime.Object, depth int) {
	if isNothing(o) || depth > maxListDepth {
		return
	}
	if list, ok := o.(*corev1.List); ok {
		for _, item := range list.Items {
			t.add(item.Object, depth+1)
			_ = t.decode(item.Raw, "", depth+1)
		}
		return
	}
	gvk, typed := t.kind(o)
	switch {
	case t.isTidy(o):
		t.objects = append(t.objects, o)
	case !typed:
		if text, err := json.Marshal(o); err == nil {
			_ = t.decode(text, "", depth)
		}
	case !meta.IsListType(o):
		t.objects = append(t.objects, ofKind(o, gvk))
	case meta.LenList(o) == 0:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		t.objects = append(t.objects, list)
	default:
		_ = meta.EachListItem(o, func(item runtime.Object) error {
			t.add(item, depth+1)
			return nil
		})
	}
}

// kind returns the kind of an object of a type that the scheme knows.
func (t *objectTidier) kind(o runtime.Object) (gvk schema.GroupVersionKind, ok bool) {
	if t.scheme == nil {
		var err error
		if t.scheme, err = scheme(); err != nil {
			return gvk, false
		}
	}
	if _, untyped := o.(runtime.Unstructured); untyped {
		return gvk, false
	}
	kinds, _, err := t.scheme.ObjectKinds(o)
	if err != nil {
		return gvk, false
	}
	return kinds[0], true
}

// isTidy reports whether an object has no type and nothing that is to be left out:
// it need not be decoded again.
func (t *objectTidier) isTidy(o runtime.Object) bool {
	u, ok := o.(*unstructured.Unstructured)
	return ok && u.GetKind() != "" && !u.IsList() && !t.scheme.Recognizes(u.GroupVersionKind()) && len(u.GetManagedFields()) == 0
}

// ofKind returns a copy of an object that says its kind and has no secrets. The
// object may be of a cache that others read.
func ofKind(o runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	shallow := reflect.New(reflect.TypeOf(o).Elem())
	shallow.Elem().Set(reflect.ValueOf(o).Elem())
	result, ok := shallow.Interface().(runtime.Object)
	if !ok {
		return o
	}
	result.GetObjectKind().SetGroupVersionKind(gvk)
	if s, ok := result.(*corev1.Secret); ok {
		s.Data, s.StringData, s.Annotations = nil, nil, nil
	}
	return result
}
