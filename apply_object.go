package strictarp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ObjectClient is the part of client-go's dynamic.ResourceInterface that is
// used.
type ObjectClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error)
}

// ObjectExecutor carries out steps that change Kubernetes objects: those of the
// actions SetLabel and PatchObject.
type ObjectExecutor struct {
	// Client returns a client for the objects of a kind in a namespace, or nil if
	// it has none. Kinds are as in Step.Object, such as "l2advertisement", and
	// "node", whose namespace is empty. With client-go's dynamic client:
	//
	//	func(kind, namespace string) strictarp.ObjectClient {
	//		switch kind {
	//		case "node":
	//			return client.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	//		case "l2advertisement":
	//			return client.Resource(l2Advertisements).Namespace(namespace)
	//		}
	//		return nil
	//	}
	Client func(kind, namespace string) ObjectClient
}

// Handles implements Executor.
func (x ObjectExecutor) Handles(s Step) bool {
	_, _, err := x.object(s)
	return err == nil
}

// Read implements Executor. What a patch's step finds is a patch too: what the
// object has in place of what To sets.
func (x ObjectExecutor) Read(ctx context.Context, s Step) (string, error) {
	c, err := x.get(ctx, s)
	if err != nil {
		return "", err
	}
	return c.found()
}

// Do implements Executor. The API server refuses the patch if anybody changed the
// object since it was read. The errors are those of the client otherwise; they
// match fs.ErrNotExist if there is no such object.
func (x ObjectExecutor) Do(ctx context.Context, s Step) error {
	c, err := x.get(ctx, s)
	if err != nil {
		return err
	}
	found, err := c.found()
	if err != nil {
		return err
	}
	switch {
	case s.holds(found):
		return nil
	case !s.expects(found):
		return &ConflictError{Step: s, Found: found}
	}
	patch := mergeInto(c.to, "metadata", map[string]any{"resourceVersion": c.object.GetResourceVersion()})
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.client.Patch(ctx, c.object.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: "strictarp"})
	if apierrors.IsConflict(err) {
		return &ConflictError{Step: s, Found: found, Err: err}
	}
	return objectError("patch", c.object.GetName(), err)
}

// object returns what a step is about.
func (x ObjectExecutor) object(s Step) (client ObjectClient, name string, err error) {
	kind := "node"
	name = s.Node
	if s.Action == PatchObject {
		kind, name, _ = strings.Cut(s.Object, "/")
	}
	if s.Action != PatchObject && s.Action != SetLabel || name == "" || x.Client == nil {
		return nil, "", fmt.Errorf("strictarp: %q: %w: it is no change of a named object", s, errors.ErrUnsupported)
	}
	if client = x.Client(kind, s.Namespace); client == nil {
		return nil, "", fmt.Errorf("strictarp: %q: %w: there is no client for objects of kind %q", s, errors.ErrUnsupported, kind)
	}
	return client, name, nil
}

// objectChange is a step and the object that it is about, as it is now.
type objectChange struct {
	step     Step
	client   ObjectClient
	object   *unstructured.Unstructured
	to, from map[string]any // merge patches; from is nil if it is not known
}

func (x ObjectExecutor) get(ctx context.Context, s Step) (*objectChange, error) {
	client, name, err := x.object(s)
	if err != nil {
		return nil, err
	}
	c := &objectChange{step: s, client: client}
	if c.to, err = patchOf(s, s.To); err != nil {
		return nil, err
	}
	if s.From != "" {
		if c.from, err = patchOf(s, s.From); err != nil {
			return nil, err
		}
	}
	c.object, err = client.Get(ctx, name, metav1.GetOptions{})
	return c, objectError("get", name, err)
}

// patchOf returns the merge patch that makes the step's object be as text says.
func patchOf(s Step, text string) (map[string]any, error) {
	if s.Action == SetLabel {
		var value any
		if text != Absent {
			v, ok := strings.CutPrefix(text, "=")
			if !ok {
				return nil, fmt.Errorf("strictarp: %q: %w: a label becomes %q or = and a value, not %q", s, fs.ErrInvalid, Absent, text)
			}
			value = v
		}
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{s.Object: value}}}, nil
	}
	var patch map[string]any
	// The API machinery's decoder, for numbers to be of the types that objects have.
	err := utiljson.Unmarshal([]byte(text), &patch)
	if err == nil && patch == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, fmt.Errorf("strictarp: %q: %w: %q is no merge patch of an object: %w", s, fs.ErrInvalid, text, err)
	}
	return patch, nil
}

// found returns what the object has, as the step would say it.
func (c *objectChange) found() (string, error) {
	switch {
	case unchangedBy(c.object.Object, c.to):
		return c.step.To, nil
	case c.from != nil && unchangedBy(c.object.Object, c.from):
		return c.step.From, nil
	case c.step.Action == SetLabel:
		if value, ok := c.object.GetLabels()[c.step.Object]; ok {
			return "=" + value, nil
		}
		return Absent, nil
	}
	text, err := json.Marshal(restoring(c.object.Object, c.to))
	return string(text), err
}

// unchangedBy returns whether a merge patch (RFC 7396) would leave an object as it is,
// short of empty objects that it would add.
func unchangedBy(object, patch map[string]any) bool {
	for key, want := range patch {
		have, ok := object[key]
		switch want := want.(type) {
		case nil:
			if ok {
				return false
			}
		case map[string]any:
			inner, isObject := have.(map[string]any)
			if ok && !isObject || !unchangedBy(inner, want) {
				return false
			}
		default:
			if !ok || !reflect.DeepEqual(have, want) {
				return false
			}
		}
	}
	return true
}

// restoring returns the merge patch that makes an object be as it is again once
// patch was applied.
func restoring(object, patch map[string]any) map[string]any {
	back := map[string]any{}
	for key, want := range patch {
		have, ok := object[key]
		inner, isObject := have.(map[string]any)
		wanted, wantsObject := want.(map[string]any)
		switch {
		case !ok:
			back[key] = nil
		case isObject && wantsObject:
			back[key] = restoring(inner, wanted)
		default:
			back[key] = have
		}
	}
	return back
}

// mergeInto returns patch with members added to the object at key. It changes no
// map that it was given.
func mergeInto(patch map[string]any, key string, members map[string]any) map[string]any {
	inner := map[string]any{}
	if was, ok := patch[key].(map[string]any); ok {
		maps.Copy(inner, was)
	}
	maps.Copy(inner, members)
	merged := map[string]any{}
	maps.Copy(merged, patch)
	merged[key] = inner
	return merged
}

func objectError(verb, name string, err error) error {
	if apierrors.IsNotFound(err) {
		err = errors.Join(fs.ErrNotExist, err)
	}
	if err != nil {
		return fmt.Errorf("strictarp: %s %s: %w", verb, name, err)
	}
	return nil
}
