package strictarp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strictarp/strictarp"
)

// fakeObjects is an API server's objects of one kind, by name. It takes merge
// patches, and refuses those of another resource version.
type fakeObjects map[string]map[string]any

func newObjects(t *testing.T, name, text string) fakeObjects {
	t.Helper()
	var object map[string]any
	require.NoError(t, utiljson.Unmarshal([]byte(text), &object))
	return fakeObjects{name: object}
}

func (o fakeObjects) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	object, ok := o[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, name)
	}
	return (&unstructured.Unstructured{Object: object}).DeepCopy(), nil
}

func (o fakeObjects) Patch(_ context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	var patch map[string]any
	if err := utiljson.Unmarshal(data, &patch); err != nil || pt != types.MergePatchType {
		return nil, errors.Join(errors.New("no merge patch"), err)
	}
	object := &unstructured.Unstructured{Object: o[name]}
	version, _, _ := unstructured.NestedString(patch, "metadata", "resourceVersion")
	if version != object.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, name, errors.New("the object has been modified"))
	}
	mergePatch(object.Object, patch)
	n, _ := strconv.Atoi(version)
	object.SetResourceVersion(strconv.Itoa(n + 1))
	return object.DeepCopy(), nil
}

// mergePatch applies a JSON merge patch (RFC 7396).
func mergePatch(object, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject:
			have, ok := object[key].(map[string]any)
			if !ok {
				have = map[string]any{}
				object[key] = have
			}
			mergePatch(have, inner)
		default:
			object[key] = value
		}
	}
}

func (o fakeObjects) text(t *testing.T, name string) string {
	t.Helper()
	u := (&unstructured.Unstructured{Object: o[name]}).DeepCopy()
	u.SetResourceVersion("1")
	data, err := json.Marshal(u.Object)
	require.NoError(t, err)
	return string(data)
}

func clientFor(kind string, o fakeObjects) strictarp.ObjectExecutor {
	return strictarp.ObjectExecutor{Client: func(k, _ string) strictarp.ObjectClient {
		if k != kind {
			return nil
		}
		return o
	}}
}

func patchStep(from, to string) strictarp.Step {
	return strictarp.Step{Action: strictarp.PatchObject, Namespace: "metallb-system", Object: "l2advertisement/web", From: from, To: to}
}

func labelStep(from, to string) strictarp.Step {
	return strictarp.Step{Action: strictarp.SetLabel, Node: "w1", Object: "node.kubernetes.io/exclude-from-external-load-balancers", From: from, To: to}
}

func TestObjectExecutor(t *testing.T) {
	t.Parallel()
	const advertisement = `{"kind":"L2Advertisement","metadata":{"name":"web","resourceVersion":"1"},"spec":{"interfaces":["eth9"],"ipAddressPools":["web"],"weight":3}}`
	const node = `{"kind":"Node","metadata":{"name":"w1","resourceVersion":"1","labels":{"zone":"a","node.kubernetes.io/exclude-from-external-load-balancers":"false"}}}`
	for name, tt := range map[string]struct {
		kind, name, object string
		step               strictarp.Step
		after              string
	}{
		"a value": {
			"l2advertisement", "web", advertisement, patchStep(`{"spec":{"interfaces":["eth9"]}}`, `{"spec":{"interfaces":["eth0"]}}`),
			`{"kind":"L2Advertisement","metadata":{"name":"web","resourceVersion":"1"},"spec":{"interfaces":["eth0"],"ipAddressPools":["web"],"weight":3}}`,
		},
		"a value that is removed": {
			"l2advertisement", "web", advertisement, patchStep(`{"spec":{"interfaces": ["eth9"]}}`, `{"spec":{"interfaces":null}}`),
			`{"kind":"L2Advertisement","metadata":{"name":"web","resourceVersion":"1"},"spec":{"ipAddressPools":["web"],"weight":3}}`,
		},
		"what was there is not known": {
			"l2advertisement", "web", advertisement, patchStep("", `{"spec":{"interfaces":null,"weight":4,"new":true},"metadata":{"annotations":{"a":"b"}}}`),
			`{"kind":"L2Advertisement","metadata":{"name":"web","resourceVersion":"1","annotations":{"a":"b"}},"spec":{"ipAddressPools":["web"],"weight":4,"new":true}}`,
		},
		"a label that is removed": {
			"node", "w1", node, labelStep("=false", strictarp.Absent),
			`{"kind":"Node","metadata":{"name":"w1","resourceVersion":"1","labels":{"zone":"a"}}}`,
		},
		"a label whose value is not known": {
			"node", "w1", node, labelStep("", strictarp.Absent),
			`{"kind":"Node","metadata":{"name":"w1","resourceVersion":"1","labels":{"zone":"a"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, store := newObjects(t, tt.name, tt.object), &undoMemory{}
			x := clientFor(tt.kind, o)
			options := strictarp.ApplyOptions{Executors: strictarp.Executors{x}, Undo: store}
			p := strictarp.Plan{Version: strictarp.PlanVersion, Steps: []strictarp.Step{tt.step}}
			report, err := strictarp.Apply(t.Context(), p, options)
			require.NoError(t, err)
			assert.Equal(t, []strictarp.Outcome{done}, outcomes(report))
			assert.JSONEq(t, tt.after, o.text(t, tt.name))

			report, err = strictarp.Apply(t.Context(), p, options)
			require.NoError(t, err)
			assert.Equal(t, []strictarp.Outcome{already}, outcomes(report))

			undo, err := store.plan()
			require.NoError(t, err)
			options.Undo = nil
			_, err = strictarp.Apply(t.Context(), undo, options)
			require.NoError(t, err)
			assert.JSONEq(t, tt.object, o.text(t, tt.name))
		})
	}
}

func TestObjectExecutorRefuses(t *testing.T) {
	t.Parallel()
	object := `{"metadata":{"name":"web","resourceVersion":"1"},"spec":{"interfaces":["eth1"]}}`
	o := newObjects(t, "web", object)
	x := clientFor("l2advertisement", o)
	assert.True(t, x.Handles(patchStep("", "{}")))
	assert.False(t, x.Handles(labelStep("", strictarp.Absent)), "it has no client for nodes")
	assert.False(t, strictarp.ObjectExecutor{}.Handles(patchStep("", "{}")))
	assert.False(t, x.Handles(strictarp.Step{Action: strictarp.PatchObject, Object: "l2advertisement"}))

	var c *strictarp.ConflictError
	err := x.Do(t.Context(), patchStep(`{"spec":{"interfaces":["eth9"]}}`, `{"spec":{"interfaces":["eth0"]}}`))
	require.ErrorAs(t, err, &c)
	assert.JSONEq(t, `{"spec":{"interfaces":["eth1"]}}`, c.Found)

	for _, s := range []strictarp.Step{patchStep("", "[]"), patchStep("", "null"), patchStep("x", "{}"), patchStep("", `{"a":`)} {
		_, err := x.Read(t.Context(), s)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err = clientFor("node", o).Read(t.Context(), labelStep("", "false"))
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = clientFor("node", o).Read(t.Context(), labelStep("", strictarp.Absent))
	require.ErrorIs(t, err, fs.ErrNotExist)

	// Somebody else writes between the reading and the patch.
	raced := raced{o}
	err = strictarp.ObjectExecutor{Client: func(string, string) strictarp.ObjectClient { return raced }}.
		Do(t.Context(), patchStep("", `{"spec":{"interfaces":["eth0"]}}`))
	require.ErrorAs(t, err, &c)
	require.ErrorContains(t, err, "has been modified")
	assert.JSONEq(t, object, o.text(t, "web"))
}

type raced struct{ fakeObjects }

func (r raced) Get(ctx context.Context, name string, opts metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	u, err := r.fakeObjects.Get(ctx, name, opts)
	if err == nil {
		(&unstructured.Unstructured{Object: r.fakeObjects[name]}).SetResourceVersion("9")
	}
	return u, err
}
