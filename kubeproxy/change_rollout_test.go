package kubeproxy_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// podOf returns the pod on a node.
func podOf(t *testing.T, c *kubeproxytest.Cluster, node string) corev1.Pod {
	t.Helper()
	list, err := c.Pods(kubeproxytest.Namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node })
	require.GreaterOrEqual(t, i, 0)
	return list.Items[i]
}

func deleted(c *kubeproxytest.Cluster) (names []string) {
	for _, call := range c.Calls() {
		if call.Verb == "delete" {
			names = append(names, call.Name)
		}
	}
	return names
}

// However slow the controller is, no second node is without its kube-proxy.
func TestOnDeleteWaitsForTheController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		onDelete(t, c)
		c.Auto = false
		looks := 0
		c.Before = func(call kubeproxytest.Call) error {
			switch call.Verb + " " + call.Resource {
			case "get daemonsets":
				if looks++; looks%4 == 0 {
					c.Reconcile()
				}
			case "delete pods":
				for _, node := range []string{"w1", "w2", "w3"} {
					assert.NotEmpty(t, podOf(t, c, node).Status.Conditions, node)
				}
			}
			return nil
		}
		require.NoError(t, change(t.Context(), c))
		assert.Len(t, deleted(c), 3)
	})
}

// A node that lost its kubelet must not keep the others waiting.
func TestOnDeleteTakesReadyPodsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		onDelete(t, c)
		lost := podOf(t, c, "w1")
		lost.Status.Conditions = nil
		c.Add(&lost)
		c.EditNode("w1", func(n *kubeproxytest.Node) { n.Stalled = true })
		want := []string{podOf(t, c, "w2").Name, podOf(t, c, "w3").Name, lost.Name}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var rollout *kubeproxy.RolloutError
		require.ErrorAs(t, change(ctx, c), &rollout)
		assert.Equal(t, []string{"w1"}, rollout.Waiting)
		assert.Equal(t, want, deleted(c))
	})
}

func TestRolloutLeavesOtherPodsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		onDelete(t, c)
		now := metav1.Now()
		going := podOf(t, c, "w1")
		going.Name, going.DeletionTimestamp = "a-going", &now
		other := podOf(t, c, "w1")
		other.Name, other.OwnerReferences, other.Spec.NodeName = "a-other", nil, "w0"
		c.Add(&going, &other)
		require.NoError(t, change(t.Context(), c))
		assert.Len(t, deleted(c), 3)
		assert.NotContains(t, deleted(c), "a-going")
		assert.NotContains(t, deleted(c), "a-other")
	})
}

// The status may be of before the restart, or wrong: pods count.
func TestRolloutLooksAtPods(t *testing.T) {
	t.Parallel()
	for name, generation := range map[string]int64{"old status": 1, "wrong status": 99} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				c.Auto = false
				ds, err := c.DaemonSets(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
				require.NoError(t, err)
				ds.Status.ObservedGeneration = generation
				c.Add(ds)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var rollout *kubeproxy.RolloutError
				require.ErrorAs(t, change(ctx, c), &rollout)
				assert.Equal(t, []string{"w1", "w2", "w3"}, rollout.Waiting)
			})
		})
	}
}

// The API server itself is restarted now and then while a rollout goes on.
func TestRolloutOutlastsTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		failures := 0
		c.Before = func(call kubeproxytest.Call) error {
			if call.Verb == "list" && failures < 3 {
				failures++
				return kubeproxytest.Timeout(call)
			}
			return nil
		}
		require.NoError(t, change(t.Context(), c))
		assert.Equal(t, 3, failures)
	})
}

func TestRolloutErrorNamesLastFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		c.Before = func(call kubeproxytest.Call) error {
			if call.Verb == "list" {
				return kubeproxytest.Timeout(call)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := change(ctx, c)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "list pods")
	})
}

// Somebody else's rollback of the pod template is not fought.
func TestRestartTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		plan, err := c.API().Plan(t.Context(), makeStrict())
		require.NoError(t, err)
		var last error
		for pr, err := range plan.Apply(t.Context()) {
			if last = err; pr.Step == kubeproxy.StepRestart {
				ds, err := c.DaemonSets(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
				require.NoError(t, err)
				ds.Spec.Template.Annotations = nil
				ds.Generation++
				c.Add(ds)
			}
		}
		var conflict *kubeproxy.ConflictError
		require.ErrorAs(t, last, &conflict)
		assert.Equal(t, "daemonset/kube-proxy", conflict.Object)
		require.NoError(t, change(t.Context(), c), "planned again, it restarts again")
	})
}

func TestUndoOnlyOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		require.NoError(t, change(t.Context(), c))
		require.NoError(t, undo(t.Context(), c))
		setText(t, c, func(string) string { return kubeproxytest.Text(kubeproxy.ModeIPVS, true) })
		plan, err := c.API().PlanUndo(t.Context(), makeStrict())
		require.NoError(t, err)
		assert.Empty(t, plan.Steps, "what somebody did afterwards is not ours to undo")
	})
}
