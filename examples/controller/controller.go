package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

const (
	// settle is how long a change waits for others that belong to it: a Service comes
	// with its EndpointSlice and its address, and one judgement is enough for all.
	settle = 500 * time.Millisecond
	// fullPause is the time between judgements of everything, which changes of a node
	// or of MetalLB's configuration ask for. It is longer where one takes long, so that
	// no more than a tenth of the time goes into them.
	fullPause  = 10 * time.Second
	fullFactor = 10
	// lookEvery is how often it is looked whether agents fell silent.
	lookEvery = 15 * time.Second

	retryFirst, retryLast = time.Second, time.Minute // after a failed write
)

const byVIP = "vip" // index of Services

// options of a controller.
type options struct {
	namespace string         // the program's own
	identity  string         // of this replica, different for each
	watched   []string       // namespaces of kube-proxy and announcers
	resync    time.Duration  // between judgements of everything when nothing changes
	remedy    *remedyOptions // nil: nothing is changed
}

// controller joins what nodes published with what the API server has, judges it,
// and keeps and tells what was found. All replicas watch; the leader writes.
type controller struct {
	options
	client    kubernetes.Interface
	log       *slog.Logger
	metrics   *metrics
	sources   *sources
	customs   *customs
	collector exchange.Collector
	ledger    *ledger
	notes     notes

	stale atomic.Bool // objects changed since base was made
	build sync.Mutex  // guards base
	base  base

	mu       sync.Mutex // guards what follows
	queue    workqueue.TypedRateLimitingInterface[owner]
	lastFull time.Time
	lastTook time.Duration       // of the last judgement of everything
	latest   []strictarp.Finding // of the last judgement of everything
}

func newController(o options, client kubernetes.Interface, dynamic dynamic.Interface, log *slog.Logger, m *metrics) (*controller, error) {
	c := &controller{options: o, client: client, log: log, metrics: m, sources: newSources(client, o.namespace, o.watched)}
	c.customs = &customs{client: dynamic, discovery: client.Discovery(), log: log, changed: c.customChanged, came: c.touchAll}
	c.ledger = &ledger{client: client, namespace: o.namespace, metrics: m, cached: func(name string) *corev1.ConfigMap {
		return get[*corev1.ConfigMap](c.sources.findings, o.namespace+"/"+name)
	}}
	c.stale.Store(true)
	if err := c.sources.services.AddIndexers(cache.Indexers{byVIP: vipsOf}); err != nil {
		return nil, fmt.Errorf("watch Services: %w", err)
	}
	if err := c.sources.watch(c); err != nil {
		return nil, fmt.Errorf("watch the API server: %w", err)
	}
	return c, nil
}

// vipsOf is the index of Services by their addresses.
func vipsOf(o any) ([]string, error) {
	s, ok := o.(*corev1.Service)
	if !ok || !hasVIPs(s) {
		return nil, nil
	}
	var list []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(i.IP); err == nil {
			list = append(list, addr.String())
		}
	}
	for _, text := range s.Spec.ExternalIPs {
		if addr, err := netip.ParseAddr(text); err == nil {
			list = append(list, addr.String())
		}
	}
	return list, nil
}

// having returns the Services that have a VIP.
func (c *controller) having(vip string) (list []owner) {
	found, err := c.sources.services.GetIndexer().ByIndex(byVIP, vip)
	if err != nil {
		return nil // there is such an index
	}
	for _, o := range found {
		if s, ok := o.(*corev1.Service); ok {
			list = append(list, serviceOwner(s.Namespace, s.Name))
		}
	}
	return list
}

// sharers returns the Services that share an address with one: whether they can is
// decided together.
func (c *controller) sharers(s *corev1.Service) (list []owner) {
	vips, _ := vipsOf(s)
	for _, vip := range vips {
		list = append(list, c.having(vip)...)
	}
	return list
}

// run watches, and leads while it is elected, until ctx is done. It returns when
// all that it started has ended.
func (c *controller) run(ctx context.Context) error {
	stop := make(chan struct{})
	var work sync.WaitGroup
	c.sources.start(stop)
	work.Go(func() { c.customs.run(ctx) })
	work.Go(func() { c.waitReady(ctx) })
	err := c.elect(ctx)
	close(stop)
	c.sources.shutdown()
	work.Wait()
	return err
}

func (c *controller) waitReady(ctx context.Context) {
	if c.waitSynced(ctx) {
		c.metrics.isReady.Store(true)
	}
}

// waitSynced waits until everything was listed, and reports whether it was before
// ctx was done. Before that what is not there yet would look as if it were gone.
func (c *controller) waitSynced(ctx context.Context) bool {
	for !c.sources.synced() || !c.customs.synced() {
		if !pause(ctx, 100*time.Millisecond) {
			return false
		}
	}
	return true
}

// pause reports whether ctx was not done meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lead judges what is in the queue until ctx is done.
func (c *controller) lead(ctx context.Context) {
	if !c.waitSynced(ctx) {
		return
	}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[owner](retryFirst, retryLast),
		workqueue.TypedRateLimitingQueueConfig[owner]{})
	c.mu.Lock()
	c.queue, c.lastFull, c.latest = queue, time.Time{}, nil
	c.mu.Unlock()
	c.notes.reset()
	c.metrics.leading.Set(1)
	defer context.AfterFunc(ctx, queue.ShutDown)()
	var others sync.WaitGroup
	others.Go(func() { c.tick(ctx) })
	if c.remedy != nil {
		others.Go(func() { newRemedy(c).run(ctx) })
	}
	c.touchAll()
	for c.turn(ctx, queue) {
		continue
	}
	c.mu.Lock()
	c.queue = nil
	c.mu.Unlock()
	queue.ShutDown()
	others.Wait()
	c.metrics.leading.Set(0)
}

// tick judges everything now and then, whatever was missed, and looks for agents
// that fell silent.
func (c *controller) tick(ctx context.Context) {
	last := time.Now()
	for pause(ctx, lookEvery) {
		silent := c.collector.Stale(time.Now())
		c.metrics.stale.Set(float64(len(silent)))
		if c.notes.silence(silent) || time.Since(last) >= c.resync {
			last = time.Now()
			c.touchAll()
		}
	}
}

// touch asks for owners to be judged.
func (c *controller) touch(owners ...owner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return // a leader begins with everything
	}
	for _, o := range owners {
		c.queue.Add(o)
	}
}

// touchAll asks for everything to be judged.
func (c *controller) touchAll() {
	c.stale.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.AddAfter(theCluster, max(0, max(fullPause, fullFactor*c.lastTook)-time.Since(c.lastFull)))
	}
}

// touchFacts asks for what the facts of a node bear on to be judged.
func (c *controller) touchFacts(node string) {
	c.notes.changed(node)
	c.touch(changedFacts)
}

func (c *controller) customChanged(old, now any) {
	if !sameBut(old, now) {
		c.touchAll()
	}
}

// turn judges all that is in the queue at once, and reports whether there is more
// to come.
func (c *controller) turn(ctx context.Context, queue workqueue.TypedRateLimitingInterface[owner]) bool {
	first, down := queue.Get()
	if down {
		return false
	}
	batch := []owner{first}
	if pause(ctx, settle) {
		for queue.Len() > 0 {
			next, down := queue.Get()
			if down {
				break
			}
			batch = append(batch, next)
		}
	}
	c.metrics.queued.Store(int64(len(batch)))
	var again map[owner]bool
	if ctx.Err() == nil {
		again = c.judge(ctx, batch)
	}
	c.metrics.end()
	c.metrics.queued.Store(int64(queue.Len()))
	for _, o := range batch {
		if !again[o] {
			queue.Forget(o)
		}
		queue.Done(o)
	}
	for o := range again {
		queue.AddRateLimited(o)
	}
	return ctx.Err() == nil
}
