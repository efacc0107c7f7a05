package kubeproxy_test

import (
	"context"
	"errors"
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

func TestRolloutStalls(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"RollingUpdate", "OnDelete"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				if strategy == "OnDelete" {
					onDelete(t, c)
				}
				c.EditNode("w2", func(n *kubeproxytest.Node) { n.Stalled = true })
				plan, err := c.API().Plan(t.Context(), makeStrict())
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = run(ctx, plan)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var rollout *kubeproxy.RolloutError
				require.ErrorAs(t, err, &rollout)
				assert.Equal(t, 1, rollout.Ready)
				assert.Equal(t, []string{"w2", "w3"}, rollout.Waiting)
				assert.False(t, c.Node("w3").Proxy.StrictARP, "one node at a time")

				c.EditNode("w2", func(n *kubeproxytest.Node) { n.Stalled = false })
				resumed, err := c.API().Plan(t.Context(), makeStrict())
				require.NoError(t, err)
				require.NoError(t, run(t.Context(), resumed))
				assert.True(t, c.Node("w3").Proxy.StrictARP)
			})
		})
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	bad := errors.New("arp_ignore is 0")
	for strategy, wantStrict := range map[string]bool{"RollingUpdate": true, "OnDelete": false} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				if strategy == "OnDelete" {
					onDelete(t, c)
				}
				change := makeStrict()
				late := 0
				change.Verify = func(_ context.Context, node string) error {
					if node == "w1" && late < 3 { // it takes a while
						late++
						return bad
					}
					if node == "w2" {
						return bad
					}
					return nil
				}
				plan, err := c.API().Plan(t.Context(), change)
				require.NoError(t, err)
				err = run(t.Context(), plan)
				require.ErrorIs(t, err, bad)
				var verify *kubeproxy.VerifyError
				require.ErrorAs(t, err, &verify)
				assert.Equal(t, map[string]error{"w2": bad}, verify.Nodes)
				assert.Equal(t, wantStrict, c.Node("w3").Proxy.StrictARP, "with OnDelete the others are spared")

				undo, err := c.API().PlanUndo(t.Context(), makeStrict())
				require.NoError(t, err)
				require.NoError(t, run(t.Context(), undo))
				assert.Equal(t, kubeproxytest.Text(kubeproxy.ModeIPVS, false), text(t, c))
				assert.False(t, c.Node("w1").Proxy.StrictARP)
			})
		})
	}
}
