package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// fakeAPI is an API server in memory, below client-go's real clients: resource
// versions that have to match, UIDs, selectors, watches with initial events and
// bookmarks, discovery, and faults that a test chooses. client-go's own fakes check
// no versions and have no outages. It needs no network, so that time in a synctest
// bubble can pass. It knows no admission, no defaults, no permissions.
type fakeAPI struct {
	t  testing.TB
	mu sync.Mutex

	version  int
	objects  map[string]map[string]any // by path
	watchers map[*watcher]bool
	log      []change
	served   map[string]map[string]string // custom resources: kinds by name, by group and version
	calls    map[string]int               // writes by verb and resource
	bytes    int                          // of bodies that were written

	down     bool                       // nothing answers
	conflict func(path string) bool     // of updates
	lost     func(path string) bool     // of writes that are done and whose answer gets lost
	deleted  func(o map[string]any)     // is called after a deletion, without the lock
	deny     func(verb, p string) error // nil: nothing is
}

type change struct {
	version int
	kind    string
	path    string
	object  map[string]any
}

func newFakeAPI(t testing.TB) *fakeAPI {
	return &fakeAPI{t: t, objects: map[string]map[string]any{}, watchers: map[*watcher]bool{}, served: map[string]map[string]string{}, calls: map[string]int{}}
}

func (a *fakeAPI) clients() (kubernetes.Interface, dynamic.Interface) { return clients(a.t, a) }

func clients(t testing.TB, transport http.RoundTripper) (kubernetes.Interface, dynamic.Interface) {
	config := &rest.Config{Host: "http://cluster.test", Transport: transport, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	typed, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	dynamic, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return typed, dynamic
}

// resources of kinds, besides those that are served.
var plurals = map[string]string{
	"Node": "nodes", "Service": "services", "Pod": "pods", "ConfigMap": "configmaps", "DaemonSet": "daemonsets", "EndpointSlice": "endpointslices",
	"Lease": "leases", "Event": "events", "IPAddressPool": "ipaddresspools", "L2Advertisement": "l2advertisements", "ServiceL2Status": "servicel2statuses",
	"BGPAdvertisement": "bgpadvertisements", "ConfigurationState": "configurationstates",
}

// serveMetalLB installs MetalLB's kinds, or removes them with their objects.
func (a *fakeAPI) serveMetalLB(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const group = "metallb.io/v1beta1"
	delete(a.served, group)
	if on {
		a.served[group] = map[string]string{}
		for _, kind := range []string{"IPAddressPool", "L2Advertisement", "BGPAdvertisement", "ServiceL2Status", "ConfigurationState"} {
			a.served[group][plurals[kind]] = kind
		}
		return
	}
	maps.DeleteFunc(a.objects, func(path string, _ map[string]any) bool { return strings.HasPrefix(path, "/apis/"+group) })
	for w := range a.watchers {
		if strings.HasPrefix(w.path, "/apis/"+group) {
			w.end()
		}
	}
}

// put creates or replaces objects, as their own programs would.
func (a *fakeAPI) put(objects ...runtime.Object) {
	for _, o := range objects {
		path, u := a.asMap(o)
		if u == nil {
			continue
		}
		a.mu.Lock()
		if _, err := a.store(path, u, "", a.objects[path] == nil); err != nil {
			a.t.Errorf("put %s: %v", path, err)
		}
		a.mu.Unlock()
	}
}

func (a *fakeAPI) asMap(o runtime.Object) (string, map[string]any) {
	data, err := json.Marshal(o)
	require.NoError(a.t, err)
	u := &unstructured.Unstructured{}
	require.NoError(a.t, json.Unmarshal(data, &u.Object))
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		require.NoError(a.t, err)
		u.SetGroupVersionKind(kinds[0])
	}
	plural := plurals[u.GetKind()]
	if plural == "" {
		return "", nil // lists say that there are none
	}
	return objectPath(u.GetAPIVersion(), u.GetNamespace(), plural, u.GetName()), u.Object
}

func objectPath(version, namespace, plural, name string) string {
	path := "/apis/" + version
	if version == "v1" {
		path = "/api/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + plural + "/" + name
}

// remove deletes an object, which need not be there.
func (a *fakeAPI) remove(o runtime.Object) {
	path, _ := a.asMap(o)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(path)
}

func (a *fakeAPI) drop(path string) map[string]any {
	o := a.objects[path]
	if o != nil {
		delete(a.objects, path)
		a.version++
		o = maps.Clone(o)
		m := maps.Clone(o["metadata"].(map[string]any))
		m["resourceVersion"] = strconv.Itoa(a.version)
		o["metadata"] = m
		a.tell(change{a.version, "DELETED", path, o})
	}
	return o
}

// store keeps an object if its version is that of what is there.
func (a *fakeAPI) store(path string, o map[string]any, version string, create bool) (map[string]any, error) {
	old := a.objects[path]
	switch {
	case create && old != nil:
		return nil, statusError(http.StatusConflict, metav1.StatusReasonAlreadyExists, path)
	case !create && old == nil:
		return nil, statusError(http.StatusNotFound, metav1.StatusReasonNotFound, path)
	case version != "" && metaOf(old)["resourceVersion"] != version:
		return nil, statusError(http.StatusConflict, metav1.StatusReasonConflict, path)
	}
	a.version++
	m := metaOf(o)
	m["resourceVersion"] = strconv.Itoa(a.version)
	if old != nil {
		m["uid"], m["creationTimestamp"] = metaOf(old)["uid"], metaOf(old)["creationTimestamp"]
	} else {
		if m["uid"] == nil {
			m["uid"] = fmt.Sprintf("uid-%d", a.version)
		}
		if m["creationTimestamp"] == nil {
			m["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		}
	}
	a.objects[path] = o
	a.tell(change{a.version, map[bool]string{true: "ADDED", false: "MODIFIED"}[old == nil], path, o})
	return o, nil
}

func metaOf(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func (a *fakeAPI) tell(c change) {
	a.log = append(a.log, c)
	if len(a.log) > 256 {
		a.log = slices.Clone(a.log[128:])
	}
	for w := range a.watchers {
		w.offer(c)
	}
}

type fakeStatus struct {
	code   int
	reason metav1.StatusReason
	path   string
}

func (e fakeStatus) Error() string { return fmt.Sprintf("%d %s %s", e.code, e.reason, e.path) }

func statusError(code int, reason metav1.StatusReason, path string) error {
	return fakeStatus{code, reason, path}
}

var errDown = errors.New("dial tcp 192.0.2.1:6443: connect: connection refused")

// outage lets nothing through, and ends all watches.
func (a *fakeAPI) outage(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = on
	if on {
		for w := range a.watchers {
			w.end()
		}
	}
}

// forget makes versions that watches could go on from too old, and ends watches.
func (a *fakeAPI) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = nil
	a.version++
	for w := range a.watchers {
		w.end()
	}
}

// RoundTrip implements http.RoundTripper.
func (a *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	var body map[string]any
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(data) > 0 {
			if err := json.Unmarshal(data, &body); err != nil {
				return nil, err
			}
		}
		a.mu.Lock()
		a.bytes += len(data)
		a.mu.Unlock()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	if a.down {
		a.mu.Unlock()
		return nil, errDown
	}
	answer, watch, after, err := a.serve(r, body)
	a.mu.Unlock()
	if after != nil {
		after()
	}
	var status fakeStatus
	switch {
	case errors.As(err, &status):
		return respond(r, status.code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Code: int32(status.code), Reason: status.reason, Message: status.Error()}), nil
	case err != nil:
		return nil, err
	case watch != nil:
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: watch, Request: r}, nil
	}
	return respond(r, http.StatusOK, answer), nil
}

func respond(r *http.Request, code int, v any) *http.Response {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was JSON before
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}
}

func (a *fakeAPI) serve(r *http.Request, body map[string]any) (answer any, watch *watcher, after func(), err error) {
	path := r.URL.Path
	if path == "/version" {
		return map[string]string{"gitVersion": "v1.34.3", "major": "1", "minor": "34"}, nil, nil, nil
	}
	if strings.HasSuffix(path, "/selfsubjectaccessreviews") {
		body["status"] = map[string]any{"allowed": true}
		return body, nil, nil, nil
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	version, rest := "v1", parts[2:]
	if parts[0] == "apis" {
		version, rest = parts[1]+"/"+parts[2], parts[3:]
	}
	if len(rest) == 0 {
		return a.discover(version, path)
	}
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	verb := map[string]string{http.MethodGet: "list", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	if len(rest) > 1 && verb == "list" {
		verb = "get"
	}
	if a.deny != nil {
		if err := a.deny(verb, path); err != nil {
			return nil, nil, nil, err
		}
	}
	if verb != "list" && verb != "get" {
		a.calls[verb+" "+rest[0]]++
	}
	switch verb {
	case "list":
		return a.list(r, version, namespace, rest[0])
	case "get":
		if o := a.objects[path]; o != nil {
			return o, nil, nil, nil
		}
		return nil, nil, nil, statusError(http.StatusNotFound, metav1.StatusReasonNotFound, path)
	case "delete":
		return a.delete(path, body)
	}
	return a.write(r.Method, path, body)
}

func (a *fakeAPI) write(method, path string, body map[string]any) (answer any, watch *watcher, after func(), err error) {
	name, _ := metaOf(body)["name"].(string)
	version, _ := metaOf(body)["resourceVersion"].(string)
	if method == http.MethodPost {
		path += "/" + name
	} else if a.conflict != nil && a.conflict(path) {
		return nil, nil, nil, statusError(http.StatusConflict, metav1.StatusReasonConflict, path)
	}
	o, err := a.store(path, body, version, method == http.MethodPost)
	if err == nil && a.lost != nil && a.lost(path) {
		err = errDown
	}
	return o, nil, nil, err
}

func (a *fakeAPI) delete(path string, body map[string]any) (answer any, watch *watcher, after func(), err error) {
	o := a.objects[path]
	if o == nil {
		return nil, nil, nil, statusError(http.StatusNotFound, metav1.StatusReasonNotFound, path)
	}
	if conditions, ok := body["preconditions"].(map[string]any); ok && conditions["uid"] != metaOf(o)["uid"] {
		return nil, nil, nil, statusError(http.StatusConflict, metav1.StatusReasonConflict, path)
	}
	o = a.drop(path)
	if a.deleted != nil {
		after = func() { a.deleted(o) }
	}
	return o, nil, after, nil
}

func (a *fakeAPI) discover(version, path string) (any, *watcher, func(), error) {
	kinds := a.served[version]
	if kinds == nil {
		return nil, nil, nil, statusError(http.StatusNotFound, metav1.StatusReasonNotFound, path)
	}
	list := metav1.APIResourceList{GroupVersion: version}
	for name, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}})
	}
	return list, nil, nil, nil
}

func (a *fakeAPI) list(r *http.Request, version, namespace, plural string) (any, *watcher, func(), error) {
	if strings.Contains(version, ".") && a.served[version][plural] == "" && !strings.HasSuffix(strings.Split(version, "/")[0], ".k8s.io") {
		return nil, nil, nil, statusError(http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path)
	}
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, nil, nil, err
	}
	prefix := strings.TrimSuffix(objectPath(version, "", plural, ""), plural+"/")
	w := &watcher{api: a, ctx: r.Context(), path: r.URL.Path, signal: make(chan struct{}, 1), match: func(path string, o map[string]any) bool {
		return strings.HasPrefix(path, prefix) && strings.Contains(path, "/"+plural+"/") &&
			(namespace == "" || metaOf(o)["namespace"] == namespace) && selector.Matches(labelsOf(o))
	}}
	if query.Get("watch") != "" {
		return a.watch(w, query)
	}
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		if w.match(path, a.objects[path]) {
			items = append(items, a.objects[path])
		}
	}
	kind := ""
	for k, name := range plurals {
		if name == plural {
			kind = k
		}
	}
	return map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items}, nil, nil, nil
}

// all returns the objects of a resource as T.
func all[T any](a *fakeAPI, plural string) (list []T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		if strings.Contains(path, "/"+plural+"/") {
			var o T
			data, err := json.Marshal(a.objects[path])
			require.NoError(a.t, err)
			require.NoError(a.t, json.Unmarshal(data, &o))
			list = append(list, o)
		}
	}
	return list
}
