package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/sysctl"
)

var (
	vip       = netip.MustParseAddr("10.0.3.20")
	errOutage = errors.New("connection refused")
)

// world is a node and an API server, as one agent after the other meets them.
type world struct {
	t      *testing.T
	client *fake.Clientset

	mu       sync.Mutex // guards what is below, which tests change by set
	refused  int        // calls during an outage
	outage   bool
	strict   int // arp_ignore of all
	skew     time.Duration
	linkDown bool
	observed int
	vips     []netip.Addr
	changed  chan struct{}
	retold   chan struct{}
	verbs    map[string]int // by verb and resource, of calls that reached the server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, vips: []netip.Addr{vip}, changed: make(chan struct{}, 1), retold: make(chan struct{}, 1), verbs: map[string]int{}}
	w.client = fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid-1"}})
	w.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.outage {
			w.refused++
			return true, nil, errOutage
		}
		name := a.GetResource().Resource
		if sub := a.GetSubresource(); sub != "" {
			name += "/" + sub
		}
		w.verbs[a.GetVerb()+" "+name]++
		return false, nil, nil
	})
	return w
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) facts() strictarp.NodeFacts {
	values := func(ignore int) sysctl.Values {
		v := sysctl.Values{}
		for _, p := range sysctl.Params() {
			v[p] = 0
		}
		v[sysctl.ARPIgnore] = ignore
		if ignore > 0 {
			v[sysctl.ARPAnnounce] = 2
		}
		return v
	}
	return strictarp.NodeFacts{
		At: time.Now().Add(w.skew), Source: "netlink and proc",
		Links: []strictarp.Link{
			{Name: "eth0", MAC: arpcheck.MAC{2, 0, 0, 0, 1, 0}, Up: !w.linkDown, Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("10.0.3.11/24"), Scope: strictarp.ScopeGlobal}}},
			{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Addrs: []strictarp.Address{{Prefix: netip.PrefixFrom(vip, 32), Scope: strictarp.ScopeGlobal}}},
		},
		Sysctls:    &sysctl.ARP{All: values(w.strict), Interfaces: map[string]sysctl.Values{"eth0": values(0), "kube-ipvs0": values(0)}},
		Routes:     []strictarp.Route{{Dst: netip.MustParsePrefix("10.0.3.0/24"), Link: "eth0"}},
		Rules:      []strictarp.PolicyRule{},
		Neighbours: []arpcheck.Neighbour{},
		Counters:   map[string]uint64{"x": uint64(w.observed)},
	}
}

// agent is one that has just been started.
func (w *world) agent() *agent {
	s := settings{node: "w1", namespace: "strictarp", events: true, every: time.Minute, probeEvery: 5 * time.Minute}
	a := s.newAgent(w.client, slog.New(slog.DiscardHandler), newMetrics())
	a.random = func() float64 { return 0.5 }
	a.changed, a.retold = w.changed, w.retold
	a.targets = func() ([]netip.Addr, bool, []strictarp.Missing) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.vips, w.vips != nil, nil
	}
	a.observe = func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.observed++
		return w.facts(), nil
	}
	a.probe = func(ctx context.Context, facts strictarp.NodeFacts, vips []netip.Addr, _ int) (strictarp.Vantage, []strictarp.Missing) {
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		now := time.Now().Add(w.skew)
		v := strictarp.Vantage{Name: "w1", Node: "w1", At: now, Source: "packet socket", Links: facts.Links}
		for _, vip := range vips {
			v.Probes = append(v.Probes, arpcheck.Result{Target: vip, Verdict: arpcheck.Inconclusive, Reasons: []arpcheck.Reason{arpcheck.HeldHere}, Started: now, Ended: now})
		}
		return v, nil
	}
	return a
}

// start runs an agent until the returned function is called.
func (w *world) start() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.agent().run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d) // of a bubble's time
	synctest.Wait()
}

func (w *world) condition() corev1.NodeCondition {
	n, err := w.client.CoreV1().Nodes().Get(w.t.Context(), "w1", metav1.GetOptions{})
	require.NoError(w.t, err)
	require.Len(w.t, n.Status.Conditions, 1)
	return n.Status.Conditions[0]
}

func (w *world) writes() map[string]int {
	w.client.ClearActions() // the fake would keep them all
	writes := map[string]int{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for call, n := range w.verbs {
		if !strings.HasPrefix(call, "get ") && !strings.HasPrefix(call, "list ") {
			writes[call] = n
		}
	}
	clear(w.verbs)
	return writes
}

// TestQuiet: half an hour in which nothing changes, with outages, restarts and
// clocks that jump.
func TestQuiet(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.start()
		w.pass(50 * time.Second)
		assert.Equal(t, map[string]int{
			"create configmaps": 1, "update configmaps": 1, // with what the first probes have seen
			"create leases": 1, "update leases": 1, // the second is sooner, to spread those of many
			"patch nodes/status": 1, "create events": 2,
		}, w.writes())
		c := w.condition()
		assert.Equal(t, corev1.ConditionTrue, c.Status)
		assert.Equal(t, "KernelAnswersVip", c.Reason)
		beats := 0
		for i := range 10 {
			w.set(func() { w.skew = time.Duration(i-5) * 24 * time.Hour })
			w.pass(90 * time.Second)
			w.set(func() { w.outage = true })
			w.pass(time.Minute)
			if i%3 == 0 { // also while the API server is away
				stop()
				stop = w.start()
			}
			w.set(func() { w.outage = false })
			w.pass(30 * time.Second)
			got := w.writes()
			beats += got["update leases"]
			delete(got, "update leases")
			assert.Empty(t, got, "round %d", i)
		}
		assert.InDelta(t, 30, beats, 10, "one a minute, without outages")
		assert.Equal(t, c, w.condition())
		events, err := w.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, events.Items, 2, "arp_ignore and arp_announce, each told once")
		for _, e := range events.Items {
			assert.EqualValues(t, 1, e.Count)
		}
		stop()
	})
}

// published returns what the node's ConfigMap holds.
func (w *world) published() strictarp.Facts {
	w.t.Helper()
	cm, err := w.client.CoreV1().ConfigMaps("strictarp").Get(w.t.Context(), exchange.Name("w1"), metav1.GetOptions{})
	require.NoError(w.t, err)
	_, f, err := exchange.Decode(cm, nil)
	require.NoError(w.t, err)
	require.Len(w.t, cm.OwnerReferences, 1)
	assert.EqualValues(w.t, "uid-1", cm.OwnerReferences[0].UID, "it goes with the Node")
	return f
}

func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.start()
		defer func() { stop() }()
		w.pass(time.Minute)
		assert.Len(t, w.published().Vantages[0].Probes, 1)
		w.writes()

		// Somebody makes it strict; no event of the kernel tells of it.
		w.set(func() { w.strict = 1 })
		w.pass(time.Minute + 15*time.Second)
		assert.Equal(t, corev1.ConditionFalse, w.condition().Status)
		since := w.condition().LastTransitionTime
		got := w.writes()
		assert.Equal(t, 1, got["update configmaps"])
		assert.Equal(t, 1, got["patch nodes/status"])
		assert.Equal(t, 2, got["patch events"], "both are marked as gone")

		// An interface goes down and up, as the kernel does tell.
		w.set(func() { w.linkDown = true })
		signalTo(w.changed)()
		w.pass(12 * time.Second)
		assert.False(t, w.published().Nodes["w1"].Links[0].Up)
		w.set(func() { w.linkDown = false })
		signalTo(w.changed)()
		w.pass(12 * time.Second)
		assert.True(t, w.published().Nodes["w1"].Links[0].Up)
		assert.Equal(t, since, w.condition().LastTransitionTime, "it was never anything but fine")

		// Back to loose: the same events, counted up.
		w.set(func() { w.strict = 0 })
		w.pass(time.Minute + 15*time.Second)
		events, err := w.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, events.Items, 2)
		assert.EqualValues(t, 2, events.Items[0].Count)

		// Another VIP is asked for soon, and none not at all.
		other := netip.MustParseAddr("10.0.3.21")
		w.set(func() { w.vips = append(w.vips, other) })
		signalTo(w.retold)()
		w.pass(time.Minute)
		assert.Len(t, w.published().Vantages[0].Probes, 2)
		w.set(func() { w.vips = []netip.Addr{} })
		w.pass(6 * time.Minute)
		assert.Empty(t, w.published().Vantages)

		// The Node is made anew, without the condition.
		w.set(func() { w.vips = []netip.Addr{vip} })
		w.pass(2 * time.Minute)
		require.NoError(t, w.client.CoreV1().Nodes().Delete(t.Context(), "w1", metav1.DeleteOptions{}))
		_, err = w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid-1"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		w.pass(recheck + 2*time.Minute)
		assert.Equal(t, corev1.ConditionTrue, w.condition().Status)
	})
}

// TestStorm: whatever changes all the time is written now and then, and an API
// server that is away is not hammered.
func TestStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.start()
		w.pass(time.Minute)
		w.writes()
		w.set(func() { w.observed = 0 })
		for range 600 {
			w.set(func() { w.linkDown = !w.linkDown })
			signalTo(w.changed)()
			signalTo(w.retold)()
			w.pass(500 * time.Millisecond)
		}
		w.set(func() { assert.LessOrEqual(t, w.observed, 61, "in five minutes") })
		assert.LessOrEqual(t, w.writes()["update configmaps"], 31)

		w.set(func() { w.outage = true })
		w.pass(time.Hour)
		w.set(func() { assert.Less(t, w.refused, 6*75, "one try a minute") })
		w.set(func() { w.outage = false })
		stop()
	})
}

// TestMemory: what an agent keeps does not grow.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.start()
		live := func() uint64 {
			w.writes()
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		hours := func() {
			for i := range 4 * 60 {
				w.set(func() { w.strict, w.outage = i%2, i%7 == 0 })
				signalTo(w.changed)()
				w.pass(time.Minute)
				w.client.ClearActions()
			}
		}
		hours()
		before := live()
		hours()
		after := live()
		t.Logf("live heap: %d KiB after four hours, %d KiB after eight", before>>10, after>>10)
		assert.Less(t, int64(after)-int64(before), int64(1<<20))
		stop()
	})
}

func TestNotObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.agent()
		a.observe = func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
			return strictarp.NodeFacts{Source: "netlink and proc"}, []strictarp.Missing{{What: "interfaces and addresses", Err: "operation not permitted"}}
		}
		a.probing = make(chan probed, 1)
		a.look(t.Context())
		a.tell(t.Context())
		c := w.condition()
		assert.Equal(t, corev1.ConditionUnknown, c.Status)
		assert.Contains(t, c.Message, "operation not permitted")
		assert.Equal(t, map[string]int{"create configmaps": 1, "patch nodes/status": 1}, w.writes(), "no heartbeat: nothing is confirmed")

		// While the Services are not known nothing is said of them.
		w = newWorld(t)
		w.set(func() { w.vips = nil })
		a = w.agent()
		a.look(t.Context())
		a.tell(t.Context())
		assert.Equal(t, map[string]int{"create configmaps": 1, "create leases": 1}, w.writes())
		assert.False(t, a.metrics.isReady.Load())
	})
}
