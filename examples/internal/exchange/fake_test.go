package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// store keeps objects of one kind as the API server does: with resource versions
// that have to match, and with faults that a test chooses. client-go's fake does
// not check versions.
type store[T interface {
	metav1.Object
	DeepCopy() T
}] struct {
	objects map[string]T
	version int
	calls   map[string]int
	fail    func(verb string) error // nil: nothing fails
	lost    bool                    // the next write is done and its answer is lost
}

var errOutage = errors.New("connection refused")

func (s *store[T]) called(verb string) error {
	if s.calls == nil {
		s.calls, s.objects = map[string]int{}, map[string]T{}
	}
	s.calls[verb]++
	if s.fail != nil {
		return s.fail(verb)
	}
	return nil
}

var resource = schema.GroupResource{Resource: "things"}

func (s *store[T]) Get(_ context.Context, name string, _ metav1.GetOptions) (T, error) {
	var none T
	if err := s.called("get"); err != nil {
		return none, err
	}
	if o, ok := s.objects[name]; ok {
		return o.DeepCopy(), nil
	}
	return none, apierrors.NewNotFound(resource, name)
}

func (s *store[T]) Create(_ context.Context, o T, _ metav1.CreateOptions) (T, error) {
	var none T
	if err := s.called("create"); err != nil {
		return none, err
	}
	if _, ok := s.objects[o.GetName()]; ok {
		return none, apierrors.NewAlreadyExists(resource, o.GetName())
	}
	return s.put(o)
}

func (s *store[T]) Update(_ context.Context, o T, _ metav1.UpdateOptions) (T, error) {
	var none T
	if err := s.called("update"); err != nil {
		return none, err
	}
	old, ok := s.objects[o.GetName()]
	switch {
	case !ok:
		return none, apierrors.NewNotFound(resource, o.GetName())
	case old.GetResourceVersion() != o.GetResourceVersion():
		return none, apierrors.NewConflict(resource, o.GetName(), errors.New("modified"))
	}
	return s.put(o)
}

func (s *store[T]) put(o T) (T, error) {
	s.version++
	o = o.DeepCopy()
	o.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[o.GetName()] = o
	if s.lost {
		s.lost = false
		var none T
		return none, errOutage
	}
	return o.DeepCopy(), nil
}

func (s *store[T]) count() map[string]int {
	calls := maps.Clone(s.calls)
	clear(s.calls)
	return calls
}

type (
	configMaps = store[*corev1.ConfigMap]
	leases     = store[*coordinationv1.Lease]
)

func publisher(node string) (*exchange.Publisher, *configMaps, *leases) {
	cms, ls := &configMaps{}, &leases{}
	return &exchange.Publisher{ConfigMaps: cms, Leases: ls, Namespace: "strictarp", Node: node}, cms, ls
}

func TestPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, cms, _ := publisher("w1")
		p.Owner = &metav1.OwnerReference{Kind: "Node", Name: "w1", UID: "u"}
		publish := func(f strictarp.Facts) bool {
			t.Helper()
			written, err := p.Publish(t.Context(), f, nil)
			require.NoError(t, err)
			return written
		}
		assert.True(t, publish(factsOf("w1", time.Now())))
		assert.Equal(t, map[string]int{"get": 1, "create": 1}, cms.count())
		assert.Equal(t, "u", string(cms.objects[exchange.Name("w1")].OwnerReferences[0].UID))
		for range 100 {
			time.Sleep(time.Second)
			assert.False(t, publish(factsOf("w1", time.Now())))
		}
		assert.Empty(t, cms.count(), "the same facts cost no call")

		other := factsOf("w1", time.Now())
		other.Nodes["w1"].Links[0].Up = false
		assert.True(t, publish(other))
		assert.Equal(t, map[string]int{"update": 1}, cms.count())

		// An agent that is started again finds what the one before has written.
		again := *p
		p = &exchange.Publisher{ConfigMaps: cms, Namespace: p.Namespace, Node: p.Node, Owner: p.Owner}
		assert.False(t, publish(other))
		assert.Equal(t, map[string]int{"get": 1}, cms.count())

		// Another one wrote in between.
		assert.True(t, publish(factsOf("w1", time.Now())))
		cms.count()
		p = &again
		p.Owner = &metav1.OwnerReference{Kind: "Node", Name: "w1", UID: "anew"}
		third := factsOf("w1", time.Now())
		third.Missing = nil
		assert.True(t, publish(third))
		assert.Equal(t, map[string]int{"update": 2, "get": 1}, cms.count(), "a conflict, and then it is written")

		assert.Equal(t, "anew", string(cms.objects[exchange.Name("w1")].OwnerReferences[0].UID), "the Node was made anew")

		// Somebody deletes it: that is noticed by the next change, or in a while.
		delete(cms.objects, exchange.Name("w1"))
		assert.False(t, publish(third))
		time.Sleep(exchange.DefaultRecheck)
		assert.True(t, publish(third))
		delete(cms.objects, exchange.Name("w1"))
		assert.True(t, publish(other))
		// Somebody edits it.
		cms.objects[exchange.Name("w1")].BinaryData = nil
		time.Sleep(exchange.DefaultRecheck)
		assert.True(t, publish(other))
		_, _, err := exchange.Decode(cms.objects[exchange.Name("w1")], nil)
		require.NoError(t, err)
	})
}

func TestPublishFails(t *testing.T) {
	t.Parallel()
	p, cms, ls := publisher("w1")
	for _, verb := range []string{"get", "create"} {
		cms.fail = func(v string) error {
			if v == verb {
				return errOutage
			}
			return nil
		}
		_, err := p.Publish(t.Context(), factsOf("w1", start), nil)
		require.ErrorIs(t, err, errOutage)
		assert.Contains(t, err.Error(), exchange.Name("w1"))
		require.NoError(t, p.Beat(t.Context()))
		assert.Empty(t, ls.calls, "nothing was written, so nothing is confirmed")
	}
	// It is written and the answer is lost: it is not written twice.
	cms.fail, cms.lost = nil, true
	_, err := p.Publish(t.Context(), factsOf("w1", start), nil)
	require.ErrorIs(t, err, errOutage)
	written, err := p.Publish(t.Context(), factsOf("w1", start), nil)
	require.NoError(t, err)
	assert.False(t, written)
	// One that always conflicts does not go on for ever.
	cms.count()
	cms.fail = func(v string) error {
		if v == "update" {
			return apierrors.NewConflict(resource, "x", errors.New("modified"))
		}
		return nil
	}
	changed := factsOf("w1", start)
	changed.Missing = nil
	_, err = p.Publish(t.Context(), changed, nil)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.LessOrEqual(t, cms.calls["update"], 3)
}

func TestBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, ls := publisher("w1")
		_, err := p.Publish(t.Context(), factsOf("w1", time.Now()), nil)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, p.Beat(t.Context()))
			time.Sleep(exchange.DefaultInterval)
		}
		assert.Equal(t, map[string]int{"get": 1, "create": 1, "update": 2}, ls.count(), "one write each")
		lease := ls.objects[exchange.Name("w1")]
		assert.Equal(t, time.Now().Add(-exchange.DefaultInterval), lease.Spec.RenewTime.Time)
		assert.EqualValues(t, 180, *lease.Spec.LeaseDurationSeconds)
		require.NotEmpty(t, lease.Annotations[exchange.HashAnnotation])

		lease.ResourceVersion = "999" // somebody wrote to it
		require.NoError(t, p.Beat(t.Context()))
		delete(ls.objects, lease.Name)
		require.NoError(t, p.Beat(t.Context()))
		ls.fail = func(string) error { return errOutage }
		require.ErrorIs(t, p.Beat(t.Context()), errOutage)
	})
}

// put publishes facts of a node into a Collector, as informers would.
func put(t *testing.T, c *exchange.Collector, f strictarp.Facts, node string, now time.Time) (changed bool) {
	t.Helper()
	cm, err := exchange.Encode("strictarp", node, f, nil)
	require.NoError(t, err)
	got, changed, err := c.Put(cm, now)
	require.NoError(t, err)
	require.Equal(t, node, got)
	return changed
}

func leaseOf(t *testing.T, node string, f strictarp.Facts, renewed time.Time) *coordinationv1.Lease {
	t.Helper()
	hash, err := exchange.Hash(strictarp.Facts{Version: 1, Nodes: f.Nodes, Vantages: f.Vantages, Missing: f.Missing})
	require.NoError(t, err)
	at := metav1.NewMicroTime(renewed)
	seconds := int32(180)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: exchange.Name(node), Annotations: map[string]string{exchange.NodeAnnotation: node, exchange.HashAnnotation: hash}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at, LeaseDurationSeconds: &seconds},
	}
}

func TestCollector(t *testing.T) {
	t.Parallel()
	var c exchange.Collector
	now := start
	w1, w2 := factsOf("w1", start), factsOf("w2", start)
	assert.True(t, put(t, &c, w1, "w1", now))
	assert.True(t, put(t, &c, w2, "w2", now))
	assert.False(t, put(t, &c, factsOf("w1", start.Add(time.Hour)), "w1", now), "nothing that matters is new")

	f := c.Facts(now, nil)
	assert.Len(t, f.Nodes, 2)
	assert.Len(t, f.Vantages, 2)
	assert.Len(t, f.Missing, 2)

	// The clock of w2 is a day behind, and jumps; it renews, so it is not old.
	for i := range 30 {
		now = now.Add(time.Minute)
		skew := -24 * time.Hour
		if i%2 == 0 {
			skew = 48 * time.Hour
		}
		c.Beat(leaseOf(t, "w2", w2, now.Add(skew)), now)
	}
	assert.Equal(t, []string{"w1"}, c.Stale(now))
	f = c.Facts(now, nil)
	assert.NotNil(t, f.Nodes["w1"].Links, "by its MACs it is still known")
	assert.Nil(t, f.Nodes["w1"].Running)
	assert.NotNil(t, f.Nodes["w2"].Running)
	assert.Len(t, f.Vantages, 1)
	assert.Contains(t, f.Missing[0].Err, "nothing was heard of its agent")

	// A Lease that confirms other facts than those that are there does not count.
	other := factsOf("w2", start)
	other.Missing = nil
	now = now.Add(time.Minute)
	c.Beat(leaseOf(t, "w2", other, now), now)
	assert.Equal(t, []string{"w1", "w2"}, c.Stale(now))
	assert.True(t, put(t, &c, other, "w2", now))
	assert.Equal(t, []string{"w1"}, c.Stale(now))

	// It is told again without being renewed, as informers do.
	for range 5 {
		now = now.Add(time.Minute)
		c.Beat(leaseOf(t, "w2", other, start), now)
	}
	assert.Contains(t, c.Stale(now.Add(time.Minute)), "w2")

	assert.Equal(t, "w1", c.Delete(exchange.Name("w1")))
	assert.Empty(t, c.Delete(exchange.Name("w1")))
	c.DeleteBeat(exchange.Name("w2"))
	assert.NotContains(t, c.Facts(now, nil).Nodes, "w1")

	// After its start a program does not take an old Lease for a new one.
	var late exchange.Collector
	put(t, &late, other, "w2", now)
	late.Beat(leaseOf(t, "w2", other, now.Add(-time.Hour)), now)
	assert.Equal(t, []string{"w2"}, late.Stale(now))
}

func TestCollectorRefuses(t *testing.T) {
	t.Parallel()
	var c exchange.Collector
	f := factsOf("w1", start)
	put(t, &c, f, "w1", start)
	cm, err := exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	cm.BinaryData = nil
	node, changed, err := c.Put(cm, start)
	require.ErrorIs(t, err, exchange.ErrNotFacts)
	assert.Equal(t, "w1", node)
	assert.True(t, changed)
	got := c.Facts(start, nil)
	assert.Empty(t, got.Nodes, "what was there before is not taken for what is there now")
	require.Len(t, got.Missing, 1)
	assert.Contains(t, got.Missing[0].Collect, "see who writes to it")

	cm.Annotations[exchange.FormatAnnotation] = "9"
	_, _, err = c.Put(cm, start)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.Contains(t, c.Facts(start, nil).Missing[0].Collect, "update this program")

	_, _, err = c.Put(&corev1.ConfigMap{}, start)
	require.Error(t, err)
	forged := leaseOf(t, "w1", f, start)
	forged.Name = "other"
	c.Beat(forged, start)
	c.Beat(&coordinationv1.Lease{}, start)
}

func BenchmarkFacts(b *testing.B) {
	var c exchange.Collector
	for i := range 1000 {
		node := fmt.Sprintf("w%d", i)
		f := factsOf(node, start)
		f.Nodes[node].Links[0].MAC = arpcheck.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}
		cm, err := exchange.Encode("strictarp", node, f, nil)
		require.NoError(b, err)
		_, _, err = c.Put(cm, start)
		require.NoError(b, err)
	}
	for b.Loop() {
		c.Facts(start, nil)
	}
}

func ExampleCollector() {
	observed := strictarp.Facts{Nodes: map[string]strictarp.NodeFacts{"w1": {Source: "netlink and proc"}}}
	cm, err := exchange.Encode("strictarp", "w1", observed, nil) // on the node; see Publisher
	if err != nil {
		fmt.Println(err)
		return
	}
	var c exchange.Collector // in the controller, fed by informers
	node, changed, err := c.Put(cm, start)
	fmt.Println(node, changed, err)
	fmt.Println(len(c.Facts(start, nil).Nodes), c.Stale(start.Add(time.Hour)))
	// Output:
	// w1 true <nil>
	// 1 [w1]
}
