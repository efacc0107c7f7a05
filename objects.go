package strictarp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects are Kubernetes objects: typed those of the core, apps, discovery,
// coordination and events groups, *unstructured.Unstructured others, and
// *unstructured.UnstructuredList for lists that are empty. Their JSON form is an
// array of the objects.
type Objects []runtime.Object

// UnmarshalJSON implements json.Unmarshaler. An object that is not as its type
// says is kept unstructured; one without a kind is an error.
func (o *Objects) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("strictarp: read objects: %w", err)
	}
	objects := make(Objects, 0, len(raw))
	for i, text := range raw {
		d := objectDecoder{}
		if err := d.decode(text, "", 0); err != nil && len(d.objects) == 0 {
			return fmt.Errorf("strictarp: read object %d: %w", i+1, err)
		}
		objects = append(objects, d.objects...)
	}
	*o = objects
	return nil
}

// scheme knows the types of objects that are of interest.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(appsv1.AddToScheme(s), coordinationv1.AddToScheme(s), corev1.AddToScheme(s), discoveryv1.AddToScheme(s), eventsv1.AddToScheme(s))
	return s, err
}

// maxListDepth bounds lists of lists.
const maxListDepth = 8

// errNoKind: it cannot be told what this is.
var errNoKind = errors.New("it has no kind")

// objectDecoder takes objects apart from lists.
type objectDecoder struct {
	scheme  *runtime.Scheme
	times   func(time.Time) // told of every time in an object; may be nil
	objects []runtime.Object
}

// decode takes an object, or a list's items, of the given kind if they do not say
// it themselves. The error is about objects that were left out or could not be
// given their type; others are there.
func (d *objectDecoder) decode(text []byte, listKind string, depth int) error {
	var head struct {
		APIVersion string             `json:"apiVersion"`
		Kind       string             `json:"kind"`
		Items      *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("it is no object: %w", err)
	}
	switch {
	case head.Kind == "" && listKind != "":
		apiVersion, kind, _ := strings.Cut(listKind, " ")
		return d.object(text, apiVersion, kind)
	case head.Kind == "":
		return errNoKind
	case head.Items == nil || !strings.HasSuffix(head.Kind, "List"):
		return d.object(text, head.APIVersion, head.Kind)
	case depth == maxListDepth:
		return fmt.Errorf("lists of lists are more than %d deep", maxListDepth)
	}
	itemKind := ""
	if head.Kind != "List" {
		itemKind = head.APIVersion + " " + strings.TrimSuffix(head.Kind, "List")
	}
	if len(*head.Items) == 0 && itemKind != "" {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": head.APIVersion, "kind": head.Kind}}
		d.objects = append(d.objects, list)
		return nil
	}
	var errs []error
	for i, item := range *head.Items {
		if err := d.decode(item, itemKind, depth+1); err != nil {
			errs = append(errs, fmt.Errorf("item %d: %w", i+1, err))
		}
	}
	return limitErrors(errs)
}

// object decodes one object, whose text may lack what the caller knows.
func (d *objectDecoder) object(text []byte, apiVersion, kind string) error {
	if d.scheme == nil {
		var err error
		if d.scheme, err = scheme(); err != nil {
			return err
		}
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return fmt.Errorf("it is no object: %w", err)
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	forget(u)
	if d.times != nil {
		timesIn(u.Object, d.times)
	}
	if typed, err := d.scheme.New(schema.FromAPIVersionAndKind(apiVersion, kind)); err == nil {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
		if err == nil {
			d.objects = append(d.objects, typed)
			return nil
		}
		d.objects = append(d.objects, u)
		return fmt.Errorf("%s %q is not as its type says: %w", kind, u.GetNamespace()+"/"+u.GetName(), err)
	}
	d.objects = append(d.objects, u)
	return nil
}

// hidden stands where a secret was.
const hidden = "(hidden)"

// forget takes out what facts must not hold, or have no use for.
func forget(u *unstructured.Unstructured) {
	if kind := u.GetKind(); kind != "ConfigMap" && kind != "DaemonSet" { // theirs tell when they were changed
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	if u.GetKind() != "Secret" {
		return
	}
	unstructured.RemoveNestedField(u.Object, "data")
	unstructured.RemoveNestedField(u.Object, "stringData")
	// kubectl apply keeps a copy of the whole object there.
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
}

// limitErrors keeps an error's text short.
func limitErrors(errs []error) error {
	const most = 10
	if len(errs) > most {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", len(errs)-most))
	}
	return errors.Join(errs...)
}
