package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/strictarp/strictarp/metallb"
)

// customResources are those that a cluster need not have. Deployments and Leases,
// by which metallb.FindControllers knows a few more programs, are left out: they
// change all the time.
func customResources() []schema.GroupVersionResource {
	list := append(metallb.Resources(), metallb.ControllerResources()...)
	list = append(list, schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "felixconfigurations"})
	return slices.DeleteFunc(list, func(r schema.GroupVersionResource) bool { return r.Group == "apps" || r.Group == "coordination.k8s.io" })
}

const (
	// discoverEvery is how often it is looked which of them the API server has: who
	// installs MetalLB waits longer for its pods.
	discoverEvery = 30 * time.Second
	// patience is how long a list may fail, as where it is forbidden, until the kind
	// counts as missing and the rest is judged without it.
	patience = 20 * time.Second
)

// customs follow kinds that come and go.
type customs struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	log       *slog.Logger
	changed   func(old, now any)
	came      func() // a kind came or went

	mu      sync.Mutex
	looked  bool // discovery has answered for all of them
	version string
	kinds   map[schema.GroupVersionResource]*custom
	waiting sync.WaitGroup
}

// custom is a kind that the API server has.
type custom struct {
	kind     string
	informer cache.SharedIndexInformer
	stop     chan struct{}
	started  time.Time
	err      error // of the last list or watch, until it is synced
}

// run looks for kinds until ctx is done, and returns when all informers have ended.
func (c *customs) run(ctx context.Context) {
	defer c.waiting.Wait()
	defer c.stopAll()
	for {
		c.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(discoverEvery):
		}
	}
}

// look starts informers of kinds that came, and ends those of kinds that went. A
// group that cannot be asked for stays as it was.
func (c *customs) look(ctx context.Context) {
	byGroup := map[schema.GroupVersion][]schema.GroupVersionResource{}
	for _, r := range customResources() {
		byGroup[r.GroupVersion()] = append(byGroup[r.GroupVersion()], r)
	}
	all := true
	if v, err := c.discovery.ServerVersion(); err == nil {
		c.mu.Lock()
		c.version = v.GitVersion
		c.mu.Unlock()
	}
	for version, resources := range byGroup {
		if ctx.Err() != nil {
			return
		}
		list, err := c.discovery.ServerResourcesForGroupVersion(version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			all = false
			c.log.Warn("the API server does not say which resources it has", "group", version.String(), "error", err)
			continue
		}
		has := map[string]string{}
		if err == nil {
			for _, r := range list.APIResources {
				has[r.Name] = r.Kind
			}
		}
		for _, r := range resources {
			c.set(r, has[r.Resource])
		}
	}
	if all {
		c.mu.Lock()
		c.looked = true
		c.mu.Unlock()
	}
}

// set starts or ends the informer of a kind; an empty one says that there is none.
func (c *customs) set(r schema.GroupVersionResource, kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.kinds[r]
	switch {
	case kind == "" && have != nil:
		close(have.stop)
		delete(c.kinds, r)
	case kind != "" && have == nil:
		if c.kinds == nil {
			c.kinds = map[schema.GroupVersionResource]*custom{}
		}
		c.kinds[r] = c.start(r, kind)
	default:
		return
	}
	c.came()
}

func (c *customs) start(r schema.GroupVersionResource, kind string) *custom {
	informer := dynamicinformer.NewFilteredDynamicInformer(c.client, r, "", 0, cache.Indexers{}, nil).Informer()
	k := &custom{kind: kind, informer: informer, stop: make(chan struct{}), started: time.Now()}
	err := cmp.Or(informer.SetTransform(strip), informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		k.err = err
	}))
	if err == nil {
		_, err = informer.AddEventHandler(handler(c.changed))
	}
	if err != nil {
		k.err = err // it is never synced then, and so among what is missing
		return k
	}
	c.waiting.Go(func() { informer.Run(k.stop) })
	return k
}

func (c *customs) stopAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, k := range c.kinds {
		close(k.stop)
		delete(c.kinds, r)
	}
}

// synced reports whether all kinds are known, or are known to be out of reach.
func (c *customs) synced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if !k.informer.HasSynced() && (k.err == nil || !apierrors.IsForbidden(k.err) && time.Since(k.started) < patience) {
			return false
		}
	}
	return c.looked
}

// objects returns the objects of all kinds, and which kinds are missing.
func (c *customs) objects() (objects []runtime.Object, missing []metallb.Missing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range customResources() {
		k, name := c.kinds[r], r.GroupResource().String()
		switch {
		case k == nil:
			missing = append(missing, metallb.Missing{What: name, Err: "the API server does not know it", Absent: true, Collect: "nothing: the API server does not know " + name})
		case !k.informer.HasSynced():
			m := metallb.Missing{What: name, Err: fmt.Sprintf("not listed yet: %v", k.err), Collect: "kubectl get " + name + " -A -o yaml"}
			if apierrors.IsForbidden(k.err) {
				m.Collect = "grant the verbs list and watch on " + name
			}
			missing = append(missing, m)
		default:
			// An empty list says that there are none.
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(r.GroupVersion().WithKind(k.kind + "List"))
			objects = append(objects, list)
			objects = append(objects, listed(k.informer)...)
		}
	}
	return objects, missing
}

// serverVersion is the API server's; empty if it is not known.
func (c *customs) serverVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}
