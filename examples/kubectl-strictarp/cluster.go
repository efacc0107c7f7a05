package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/metallb"
)

// cluster is a running cluster.
type cluster struct {
	host    string // of the API server
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

func (a *app) connect() (*cluster, error) {
	config, err := a.kube.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w: choose one with --context or --kubeconfig, or judge collected facts with evaluate", err)
	}
	config.QPS, config.Burst = 50, 100 // some 20 lists at once, and pages of them
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &cluster{config.Host, typed, dynamic}, nil
}

// resource is what is listed. An optional one is one that a cluster need not know.
type resource struct {
	schema.GroupVersionResource
	optional bool
}

func (r resource) String() string { return r.GroupResource().String() }

// resources are what is read besides ConfigMaps.
func resources() []resource {
	list := []resource{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "services"}},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "events"}},
		{GroupVersionResource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}},
		{GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("daemonsets")},
	}
	felix := schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "felixconfigurations"}
	for _, r := range slices.Concat(metallb.Resources(), metallb.ControllerResources(), []schema.GroupVersionResource{felix}) {
		if !slices.ContainsFunc(list, func(have resource) bool { return have.GroupVersionResource == r }) {
			list = append(list, resource{r, true})
		}
	}
	return list
}

// gather reads what bears on VIPs. What may not be read is among the Missing.
func (c *cluster) gather(ctx context.Context, now time.Time) (strictarp.Facts, error) {
	g := gathering{cluster: c, facts: strictarp.Facts{Version: strictarp.FactsVersion, At: now}}
	version, err := c.typed.Discovery().ServerVersion()
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return g.facts, fmt.Errorf("ask %s: %w: log in, or choose another user with --context", c.host, err)
	case errors.As(err, &status):
		g.miss("the server's version", "kubectl version -o json", err)
	case err != nil:
		return g.facts, fmt.Errorf("ask %s: %w: is it the right cluster (--context), and does it run? Collected facts can be judged with evaluate", c.host, err)
	}
	if err := g.objects(ctx); err != nil {
		return g.facts, err
	}
	objects := strictarp.ClusterFacts{At: now, Source: source, Objects: g.read}
	if version != nil {
		objects.Version = version.GitVersion
	}
	g.facts.SetCluster(objects)
	g.facts.MetalLB.Missing = g.absent
	return g.facts, nil
}

const source = "API server"

// gathering is a run of gather.
type gathering struct {
	*cluster
	facts  strictarp.Facts
	pages  []json.RawMessage
	read   strictarp.Objects
	absent []metallb.Missing // kinds that the server does not know, so that there are none
}

func (g *gathering) miss(what, collect string, err error) {
	if apierrors.IsForbidden(err) {
		collect = "grant the verb list on " + what + ", or have somebody run: " + collect
	}
	g.facts.Missing = append(g.facts.Missing, strictarp.Missing{What: what, Where: "cluster", Err: err.Error(), Collect: collect})
}

// objects lists everything.
func (g *gathering) objects(ctx context.Context) error {
	for _, r := range resources() {
		if err := g.list(ctx, r, ""); err != nil {
			return err
		}
	}
	var sets strictarp.Objects
	if err := g.decode(&sets); err != nil {
		return err
	}
	// Of ConfigMaps only those that may tell of kube-proxy and announcers: others
	// are nobody's business.
	namespaces := []string{"kube-system"}
	for _, o := range sets {
		if set, ok := o.(*appsv1.DaemonSet); ok && !slices.Contains(namespaces, set.Namespace) {
			namespaces = append(namespaces, set.Namespace)
		}
	}
	for _, namespace := range namespaces {
		r := resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
		if err := g.list(ctx, r, namespace); err != nil {
			return err
		}
	}
	return g.decode(&g.read)
}

func (g *gathering) decode(objects *strictarp.Objects) error {
	text, err := json.Marshal(g.pages)
	if err == nil {
		err = json.Unmarshal(text, objects)
	}
	if err != nil {
		return fmt.Errorf("understand what %s lists: %w", g.host, err)
	}
	return nil
}

// list reads a resource whole or not at all: half a list would look as if the rest
// were not there.
func (g *gathering) list(ctx context.Context, r resource, namespace string) error {
	pages, err := g.allPages(ctx, r, namespace, pageSize)
	if apierrors.IsResourceExpired(err) { // the list grew old between pages
		pages, err = g.allPages(ctx, r, namespace, 0)
	}
	where := " -A"
	if namespace != "" {
		where = " -n " + namespace
	}
	collect := "kubectl get " + r.String() + where + " -o yaml"
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("list %s: %w", r, context.Cause(ctx))
	case err == nil:
		g.pages = append(g.pages, pages...)
	case r.optional && apierrors.IsNotFound(err):
		g.absent = append(g.absent, metallb.Missing{What: r.String(), Err: err.Error(), Absent: true, Collect: "nothing: the API server does not know " + r.String()})
	default:
		g.miss(strings.TrimSpace(r.String()+strings.TrimPrefix(where, " -A")), collect, err)
	}
	return nil
}

const (
	pageSize = 500    // as kubectl asks
	maxPages = 10_000 // of a server that never ends a list
)

func (g *gathering) allPages(ctx context.Context, r resource, namespace string, size int) ([]json.RawMessage, error) {
	path := []string{"/apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"/api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	var pages []json.RawMessage
	next := ""
	for range maxPages {
		request := g.typed.Discovery().RESTClient().Get().AbsPath(append(path, r.Resource)...)
		if size > 0 {
			request = request.Param("limit", strconv.Itoa(size))
		}
		if next != "" {
			request = request.Param("continue", next)
		}
		text, err := request.SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		var head struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			return nil, fmt.Errorf("the answer is no list: %w", err)
		}
		pages = append(pages, text)
		if next = head.Metadata.Continue; next == "" {
			return pages, nil
		}
	}
	return nil, errors.New("the list does not end")
}
