package main

import (
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// sources are the informers of the kinds that every cluster has.
type sources struct {
	factories  []informers.SharedInformerFactory
	nodes      cache.SharedIndexInformer
	services   cache.SharedIndexInformer
	slices     cache.SharedIndexInformer
	daemonSets cache.SharedIndexInformer
	findings   cache.SharedIndexInformer
	watched    []string                    // namespaces, sorted
	pods       []cache.SharedIndexInformer // one for each of them
	configMaps []cache.SharedIndexInformer // likewise
	facts      cache.SharedIndexInformer
	beats      cache.SharedIndexInformer
	all        []cache.SharedIndexInformer

	mu        sync.Mutex
	forbidden map[cache.SharedIndexInformer]bool // that is what the last list or watch met
}

// newSources makes informers that are not started yet. Pods and ConfigMaps are
// those of the watched namespaces, which kube-proxy and announcers run in; facts,
// heartbeats and findings are in the program's own.
func newSources(client kubernetes.Interface, own string, watched []string) *sources {
	s := &sources{forbidden: map[cache.SharedIndexInformer]bool{}}
	factory := func(options ...informers.SharedInformerOption) informers.SharedInformerFactory {
		f := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
		s.factories = append(s.factories, f)
		return f
	}
	selecting := func(selector string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector })
	}
	whole := factory(informers.WithTransform(strip))
	s.nodes, s.services = whole.Core().V1().Nodes().Informer(), whole.Core().V1().Services().Informer()
	s.slices, s.daemonSets = whole.Discovery().V1().EndpointSlices().Informer(), whole.Apps().V1().DaemonSets().Informer()
	s.watched = slices.Compact(slices.Sorted(slices.Values(watched)))
	for _, namespace := range s.watched {
		f := factory(informers.WithNamespace(namespace), informers.WithTransform(strip))
		s.pods = append(s.pods, f.Core().V1().Pods().Informer())
		s.configMaps = append(s.configMaps, f.Core().V1().ConfigMaps().Informer())
	}
	published := factory(informers.WithNamespace(own), selecting(exchange.Selector), informers.WithTransform(withoutManagers))
	s.facts, s.beats = published.Core().V1().ConfigMaps().Informer(), published.Coordination().V1().Leases().Informer()
	s.findings = factory(informers.WithNamespace(own), selecting(findingsSelector), informers.WithTransform(withoutManagers)).Core().V1().ConfigMaps().Informer()
	s.all = append([]cache.SharedIndexInformer{s.nodes, s.services, s.slices, s.daemonSets, s.facts, s.beats, s.findings}, slices.Concat(s.pods, s.configMaps)...)
	return s
}

func withoutManagers(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// watch has the controller told of changes.
func (s *sources) watch(c *controller) error {
	for _, informer := range s.all {
		err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			s.mu.Lock()
			s.forbidden[informer] = apierrors.IsForbidden(err)
			s.mu.Unlock()
			c.log.Warn("a watch ended or failed, and is tried again", "error", clip(err.Error()))
		})
		if err != nil {
			return err
		}
	}
	handlers := map[cache.SharedIndexInformer]func(old, now any){
		s.nodes:      c.nodeChanged,
		s.services:   c.serviceChanged,
		s.slices:     c.sliceChanged,
		s.daemonSets: c.anyChanged,
		s.facts:      c.factsChanged,
		s.beats:      c.beatChanged,
		s.findings:   c.findingsChanged,
	}
	for _, i := range slices.Concat(s.pods, s.configMaps) {
		handlers[i] = c.anyChanged
	}
	for informer, changed := range handlers {
		if _, err := informer.AddEventHandler(handler(changed)); err != nil {
			return err
		}
	}
	return nil
}

// handler calls changed with nil for what was not, or is no longer, there.
func handler(changed func(old, now any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changed(nil, o) },
		UpdateFunc: func(old, now any) { changed(old, now) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			changed(o, nil)
		},
	}
}

func (s *sources) start(stop <-chan struct{}) {
	for _, f := range s.factories {
		f.Start(stop)
	}
}

// shutdown waits for the informers after stop was closed.
func (s *sources) shutdown() {
	for _, f := range s.factories {
		f.Shutdown()
	}
}

// synced reports whether all was listed, but for what must not be in namespaces
// that are watched: permissions may come with MetalLB, later.
func (s *sources) synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.all, func(i cache.SharedIndexInformer) bool {
		optional := slices.Contains(s.pods, i) || slices.Contains(s.configMaps, i)
		return !i.HasSynced() && (!optional || !s.forbidden[i])
	})
}

// sees reports whether the Pods and ConfigMaps of a namespace are known.
func (s *sources) sees(namespace string) bool {
	i, ok := slices.BinarySearch(s.watched, namespace)
	return ok && s.pods[i].HasSynced() && s.configMaps[i].HasSynced()
}

// objects returns what is in the caches, for kubeproxy.FromObjects and
// metallb.FromObjects: the objects themselves, in no order.
func (s *sources) objects() (all, services []runtime.Object) {
	lists := append([]cache.SharedIndexInformer{s.nodes, s.slices, s.daemonSets}, slices.Concat(s.pods, s.configMaps)...)
	services = listed(s.services)
	all = slices.Clone(services)
	for _, i := range lists {
		all = append(all, listed(i)...)
	}
	return all, services
}

func listed(i cache.SharedIndexInformer) []runtime.Object {
	list := i.GetStore().List()
	objects := make([]runtime.Object, 0, len(list))
	for _, o := range list {
		if object, ok := o.(runtime.Object); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// get returns the cached object of a name; nil if there is none.
func get[T any](i cache.SharedIndexInformer, key string) (object T) {
	if o, ok, err := i.GetStore().GetByKey(key); err == nil && ok {
		object, _ = o.(T)
	}
	return object
}
