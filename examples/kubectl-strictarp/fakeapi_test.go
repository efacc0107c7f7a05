package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// fakeAPI is an API server of a cluster with MetalLB, whose kube-proxy can be
// changed. It lists everything, and knows no selectors.
type fakeAPI struct {
	lb        *metallbtest.Cluster
	proxy     *kubeproxytest.Cluster
	forbidden []string // resources that may not be listed
	page      int      // objects in a page of a list; 0: all
	url       string
}

// newFakeAPI serves a cluster and returns it with the arguments that lead there.
func newFakeAPI(t *testing.T, s kubeproxytest.Situation) (*fakeAPI, []string) {
	t.Helper()
	f := &fakeAPI{lb: metallbtest.New("w1", "w2", "w3"), proxy: kubeproxytest.New(s)}
	f.lb.AddService("default/web", "10.0.3.20", "w1")
	f.lb.Announce("default/web", "w1")
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u"}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, server.URL)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	return f, []string{"--kubeconfig", config}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := f.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := apierrors.NewInternalError(err)
		errors.As(err, &status)
		status.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer = status.ErrStatus
		w.WriteHeader(int(status.ErrStatus.Code))
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone
}

// answer serves /version, /api/v1/... and /apis/GROUP/VERSION/...
func (f *fakeAPI) answer(r *http.Request) (any, error) {
	if r.URL.Path == "/version" {
		return map[string]string{"gitVersion": "v1.34.1"}, nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[2:]
	namespace := ""
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 1 && r.Method == http.MethodGet {
		return f.list(r, group, parts[0], namespace)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return f.one(r, append(parts, "")[:2], namespace, body)
}

// one serves requests for one object of kube-proxy.
func (f *fakeAPI) one(r *http.Request, path []string, namespace string, body []byte) (any, error) {
	ctx := r.Context()
	switch resource, name := path[0], path[1]; r.Method + " " + resource {
	case "GET configmaps":
		return f.proxy.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	case "POST configmaps":
		return stored(body, func(o *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return f.proxy.ConfigMaps(namespace).Create(ctx, o, metav1.CreateOptions{})
		})
	case "PUT configmaps":
		return stored(body, func(o *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			return f.proxy.ConfigMaps(namespace).Update(ctx, o, metav1.UpdateOptions{})
		})
	case "GET daemonsets":
		return f.proxy.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	case "PATCH daemonsets":
		return f.proxy.DaemonSets(namespace).Patch(ctx, name, types.PatchType(r.Header.Get("Content-Type")), body, metav1.PatchOptions{})
	case "POST selfsubjectaccessreviews":
		return stored(body, func(o *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
			return f.proxy.Access().Create(ctx, o, metav1.CreateOptions{})
		})
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: path[0]}, path[1])
}

// stored decodes a body, which may be JSON or protobuf, and writes it.
func stored[T any, P interface {
	*T
	runtime.Object
}](body []byte, write func(P) (P, error)) (P, error) {
	o := P(new(T))
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), body, o); err != nil {
		return nil, err
	}
	return write(o)
}

// emptyKinds are of resources that the server knows also if there are no objects.
var emptyKinds = map[string]string{
	"nodes": "Node", "services": "Service", "pods": "Pod", "events": "Event", "configmaps": "ConfigMap",
	"endpointslices": "EndpointSlice", "daemonsets": "DaemonSet", "deployments": "Deployment", "leases": "Lease",
}

// list serves a list of objects, in pages if the server has them.
func (f *fakeAPI) list(r *http.Request, group, resource, namespace string) (any, error) {
	for _, name := range f.forbidden {
		if name == resource {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", errors.New("the test forbids it"))
		}
	}
	objects, err := f.objects(r.Context(), namespace)
	if err != nil {
		return nil, err
	}
	items := []any{}
	kind := emptyKinds[resource]
	for _, o := range objects {
		if gvk := kindOf(o); gvk.Group == group && resourceOf(gvk.Kind) == resource {
			kind = gvk.Kind
			items = append(items, o)
		}
	}
	if kind == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, "")
	}
	apiVersion := schema.GroupVersion{Group: group, Version: "v1"}
	if group == "metallb.io" {
		apiVersion.Version = "v1beta1"
	}
	from, next := 0, ""
	if _, err := fmt.Sscan(r.URL.Query().Get("continue"), &from); err != nil {
		from = 0
	}
	if f.page > 0 && from+f.page < len(items) {
		items, next = items[:from+f.page], fmt.Sprint(from+f.page)
	}
	return map[string]any{"apiVersion": apiVersion.String(), "kind": kind + "List", "metadata": map[string]any{"continue": next}, "items": items[from:]}, nil
}

// objects are all objects, in a namespace if one is named.
func (f *fakeAPI) objects(ctx context.Context, namespace string) ([]runtime.Object, error) {
	objects := f.lb.Objects()
	maps, err := f.proxy.ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range maps.Items {
		objects = append(objects, &maps.Items[i])
	}
	sets, err := f.proxy.DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	pods, err := f.proxy.Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		objects = append(objects, &pods.Items[i])
	}
	var list []runtime.Object
	for _, o := range objects {
		if m, err := meta.Accessor(o); err == nil && (namespace == "" || m.GetNamespace() == namespace) {
			list = append(list, o)
		}
	}
	return list, nil
}

func kindOf(o runtime.Object) schema.GroupVersionKind {
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		return gvk
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return kinds[0]
}

// resourceOf is the name in a path of a kind.
func resourceOf(kind string) string {
	name := strings.ToLower(kind)
	if strings.HasSuffix(name, "s") {
		return name + "es"
	}
	return name + "s"
}
