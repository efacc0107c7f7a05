package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/strictarp/strictarp/examples/internal/exchange"
)

func manyVIPs(n int) (vips []netip.Addr) {
	for i := range n {
		vips = append(vips, netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)}))
	}
	return vips
}

// TestShare: what all nodes together ask for in a pass is the same from a hundred nodes
// on, and nearly every VIP is asked for.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, vips, share, rate, asked int
		beyond                          bool
	}{
		{nodes: 0, vips: 10, share: 10, rate: 10, asked: 10},
		{nodes: 0, vips: 2000, share: 1024, rate: 10, asked: 1024, beyond: true},
		{nodes: 3, vips: 1024, share: 1024, rate: 10, asked: 1024},
		{nodes: 100, vips: 1000, share: 1000, rate: 10, asked: 1000},
		{nodes: 1000, vips: 2000, share: 102, rate: 1, asked: 1999},
		{nodes: 5000, vips: 10000, share: 20, rate: 1, asked: 3200}, // by the 200 that are looked at; 3298 are to be expected
		{nodes: 200000, vips: 10, share: 1, rate: 1, asked: 10},
	} {
		what := fmt.Sprintf("%+v", c)
		vips := manyVIPs(c.vips)
		asked := map[netip.Addr]bool{}
		for i := range min(max(c.nodes, 1), 200) {
			share, rate, missing := shareOf(fmt.Sprintf("node-%d", i), vips, c.nodes)
			require.Len(t, share, c.share, what)
			require.Equal(t, c.rate, rate, what)
			require.Equal(t, c.beyond, len(missing) > 0, what)
			for _, vip := range share {
				asked[vip] = true
			}
		}
		assert.GreaterOrEqual(t, len(asked), c.asked, what)
	}
	one, _, _ := shareOf("w1", manyVIPs(5000), 1000)
	again, _, _ := shareOf("w1", append(manyVIPs(5000), vip), 1000)
	kept := 0
	for _, vip := range one {
		for _, other := range again {
			if vip == other {
				kept++
			}
		}
	}
	assert.GreaterOrEqual(t, kept, len(one)-1, "another VIP changes it by one at most")
}

// TestCount: the number of nodes is told by a list of one of them.
func TestCount(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})
	remaining := int64(4999)
	var refused error
	client.PrependReactor("list", "nodes", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		assert.EqualValues(t, 1, a.(clienttesting.ListActionImpl).ListOptions.Limit)
		return true, &corev1.NodeList{ListMeta: metav1.ListMeta{RemainingItemCount: &remaining}, Items: make([]corev1.Node, 1)}, refused
	})
	n := nodeCondition{client: client.CoreV1().Nodes(), node: "w1"}
	require.NoError(t, n.look(t.Context()))
	assert.Equal(t, 5000, n.nodes)
	refused, n.checked = errOutage, time.Time{}
	require.NoError(t, n.look(t.Context()), "an agent without that right works as before")
	require.ErrorIs(t, n.unknown, errOutage)
	assert.Equal(t, 5000, n.nodes)
}

// TestWords: a condition whose words alone change is not written each time: all who
// follow Nodes are told.
func TestWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})
		n := nodeCondition{client: client.CoreV1().Nodes(), node: "w1"}
		set := func(status corev1.ConditionStatus, message string) bool {
			wrote, err := n.set(t.Context(), corev1.NodeCondition{Type: conditionType, Status: status, Message: message})
			require.NoError(t, err)
			return wrote
		}
		assert.True(t, set(corev1.ConditionTrue, "10 VIPs"))
		assert.False(t, set(corev1.ConditionTrue, "11 VIPs"))
		assert.True(t, set(corev1.ConditionFalse, "fine"), "another state is told at once")
		assert.False(t, set(corev1.ConditionFalse, "finer"))
		time.Sleep(recheck)
		assert.True(t, set(corev1.ConditionFalse, "finer"))
		assert.False(t, set(corev1.ConditionFalse, "finer"))
	})
}

// TestSpread: agents that were started together go on at times of their own, and come
// back at times of their own when the API server does.
func TestSpread(t *testing.T) {
	t.Parallel()
	a := &agent{random: func() float64 { return 0 }, metrics: newMetrics(), log: slog.New(slog.DiscardHandler)}
	assert.Zero(t, a.next(time.Minute, true))
	assert.Equal(t, 54*time.Second, a.next(time.Minute, false))
	for range 20 {
		a.told(errOutage, false)
	}
	assert.InDelta(t, maxBackoff/2, time.Until(a.holdUntil), float64(time.Second))
	a.random = func() float64 { return 1 }
	assert.Equal(t, time.Minute, a.next(time.Minute, true))
	a.told(errOutage, false)
	assert.InDelta(t, maxBackoff+maxBackoff/2, time.Until(a.holdUntil), float64(time.Second))
}

// TestKnown: what Services have is known once they were read.
func TestKnown(t *testing.T) {
	t.Parallel()
	x := &targets{}
	assert.Nil(t, x.known())
	synced := false
	x.synced = func() bool { return synced }
	web := service("web", "10.0.3.20")
	web.Spec.ClusterIP = "10.96.0.1"
	x.put(web, false)
	assert.Nil(t, x.known())
	synced = true
	assert.Equal(t, exchange.NewServices([]netip.Addr{vip, netip.MustParseAddr("10.96.0.1")}), x.known())
	assert.Same(t, x.known(), x.known(), "made once")
	internal := service("internal")
	internal.Spec.Type, internal.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "10.96.0.2"
	x.changed = func() { assert.Fail(t, "it is not asked for") }
	x.put(internal, false)
	assert.Equal(t, exchange.NewServices([]netip.Addr{vip, netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.96.0.2")}), x.known())
	x.put(internal, true)
	assert.Equal(t, exchange.NewServices([]netip.Addr{vip, netip.MustParseAddr("10.96.0.1")}), x.known())
}
