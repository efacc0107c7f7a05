package strictarp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func kubeProxyText(t *testing.T, c *kubeproxytest.Cluster, change func(string) string) string {
	t.Helper()
	client := c.ConfigMaps(kubeproxytest.Namespace)
	cm, err := client.Get(context.Background(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	text := cm.Data[kubeproxytest.Key]
	if change != nil {
		cm.Data[kubeproxytest.Key] = change(text)
		_, err = client.Update(context.Background(), cm, metav1.UpdateOptions{})
		require.NoError(t, err)
		return cm.Data[kubeproxytest.Key]
	}
	return text
}

func kubeProxyExecutor(c *kubeproxytest.Cluster) strictarp.KubeProxyExecutor {
	return strictarp.KubeProxyExecutor{Cluster: c.API(), Change: kubeproxy.Change{Source: kubeproxytest.Source()}}
}

func kubeProxyPlan(steps ...strictarp.Step) strictarp.Plan {
	return strictarp.Plan{Version: strictarp.PlanVersion, Steps: steps}
}

// requireStrict requires that kube-proxy is told, and on all nodes runs, strict
// or not, and that no change is left unfinished.
func requireStrict(t *testing.T, c *kubeproxytest.Cluster, strict bool) {
	t.Helper()
	for _, node := range []string{"w1", "w2", "w3"} {
		require.Equal(t, strict, c.Node(node).Proxy.StrictARP, node)
	}
	plan, err := c.API().Plan(t.Context(), kubeproxy.Change{Source: kubeproxytest.Source(), StrictARP: kubeproxy.StrictARPTrue})
	require.NoError(t, err)
	require.Nil(t, plan.Resumed)
	require.Equal(t, strict, plan.Before == plan.After)
}

func TestKubeProxyExecutor(t *testing.T) {
	t.Parallel()
	unset := func(s string) string { return strings.Replace(s, "  strictARP: false\n", "", 1) }
	for name, change := range map[string]func(string) string{"false": func(s string) string { return s }, "unset": unset} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, store := kubeproxytest.New(kubeproxytest.Loose), &undoMemory{}
				before := kubeProxyText(t, c, change)
				var ready []string
				x := kubeProxyExecutor(c)
				x.Progress = func(p kubeproxy.Progress) { ready = append(ready, p.Node) }
				o := strictarp.ApplyOptions{Executors: strictarp.Executors{x}, Undo: store}
				_, err := strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), o)
				require.NoError(t, err)
				requireStrict(t, c, true)
				assert.Subset(t, ready, []string{"w1", "w2", "w3"})

				undo, err := store.plan()
				require.NoError(t, err)
				o.Undo = nil
				_, err = strictarp.Apply(t.Context(), undo, o)
				require.NoError(t, err)
				requireStrict(t, c, false)
				assert.Equal(t, before, kubeProxyText(t, c, nil), "byte by byte")

				_, err = strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), strictarp.ApplyOptions{Executors: strictarp.Executors{x}, Undo: &undoMemory{}})
				require.NoError(t, err)
				requireStrict(t, c, true)
			})
		})
	}
}

func TestKubeProxyExecutorHandles(t *testing.T) {
	t.Parallel()
	x := kubeProxyExecutor(kubeproxytest.New(kubeproxytest.Loose))
	assert.True(t, x.Handles(edit))
	assert.True(t, x.Handles(restart))
	elsewhere, other, speaker := edit, edit, restart
	elsewhere.Namespace, other.Object, speaker.Object = "other", "configmap/other", "daemonset/speaker"
	for _, s := range []strictarp.Step{elsewhere, other, speaker, ignore} {
		assert.False(t, x.Handles(s))
	}
	x.Change.Source.Kind = kubeproxy.SourceFile
	assert.False(t, x.Handles(edit), "a file is changed on its node")
}

func TestKubeProxyExecutorPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Pending)
		_, err := strictarp.Apply(t.Context(), kubeProxyPlan(restart), strictarp.ApplyOptions{
			Executors: strictarp.Executors{kubeProxyExecutor(c)}, Undo: &undoMemory{},
		})
		require.NoError(t, err)
		requireStrict(t, c, true)
	})
}

// A request that fails, whichever it is, leaves what can be finished, taken back
// by the undo file, or is rolled back.
func TestKubeProxyExecutorEveryFault(t *testing.T) {
	t.Parallel()
	for _, served := range []bool{false, true} {
		for _, then := range []string{"again", "back", "rollback"} {
			for n, fired := 0, true; fired; n++ {
				synctest.Test(t, func(t *testing.T) { fired = kubeProxyFault(t, n, served, then) })
				require.Less(t, n, 200)
			}
		}
	}
}

func kubeProxyFault(t *testing.T, n int, served bool, then string) (fired bool) {
	t.Helper()
	c, store := kubeproxytest.New(kubeproxytest.Loose), &undoMemory{}
	before := kubeProxyText(t, c, nil)
	hook := func(kubeproxytest.Call) error {
		if n--; n != -1 {
			return nil
		}
		fired = true
		return errBroken
	}
	if served {
		c.After = hook
	} else {
		c.Before = hook
	}
	o := strictarp.ApplyOptions{Executors: strictarp.Executors{kubeProxyExecutor(c)}, Undo: store, Rollback: then == "rollback"}
	_, failed := strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), o)
	c.Before, c.After = nil, nil
	if failed == nil {
		requireStrict(t, c, true)
		return fired
	}
	switch {
	case then == "again":
		_, err := strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), o)
		require.NoError(t, err)
		requireStrict(t, c, true)
	case then == "back" && store.data != nil:
		undo, err := store.plan()
		require.NoError(t, err)
		o.Undo = nil
		_, err = strictarp.Apply(t.Context(), undo, o)
		require.NoError(t, err)
		fallthrough
	default:
		require.Equal(t, before, kubeProxyText(t, c, nil))
		for _, node := range []string{"w1", "w2", "w3"} {
			require.False(t, c.Node(node).Proxy.StrictARP, node)
		}
		// A record of a change that did not come to its first write may be left, and
		// is in nobody's way.
		o.Undo = &undoMemory{}
		_, err := strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), o)
		require.NoError(t, err)
		requireStrict(t, c, true)
	}
	return fired
}

// An undoing that fails, at whichever request, can be finished, or followed by
// the same cure once more.
func TestKubeProxyExecutorEveryFaultOfUndo(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"back", "cure"} {
		for n, fired := 0, true; fired; n++ {
			synctest.Test(t, func(t *testing.T) { fired = kubeProxyUndoFault(t, n, then) })
			require.Less(t, n, 200)
		}
	}
}

func kubeProxyUndoFault(t *testing.T, n int, then string) (fired bool) {
	t.Helper()
	c := kubeproxytest.New(kubeproxytest.Loose)
	before := kubeProxyText(t, c, nil)
	store := &undoMemory{}
	cure := func() {
		_, err := strictarp.Apply(t.Context(), kubeProxyPlan(edit, restart), strictarp.ApplyOptions{Executors: strictarp.Executors{kubeProxyExecutor(c)}, Undo: store})
		require.NoError(t, err)
		requireStrict(t, c, true)
	}
	undo := func() error {
		p, err := store.plan()
		require.NoError(t, err)
		_, err = strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{Executors: strictarp.Executors{kubeProxyExecutor(c)}})
		return err
	}
	cure()
	c.Before = func(kubeproxytest.Call) error {
		if n--; n != -1 {
			return nil
		}
		fired = true
		return errBroken
	}
	failed := undo()
	c.Before = nil
	if failed == nil {
		requireStrict(t, c, false)
	}
	if then == "cure" {
		cure()
	}
	require.NoError(t, undo())
	requireStrict(t, c, false)
	require.Equal(t, before, kubeProxyText(t, c, nil))
	return fired
}

func TestKubeProxyExecutorConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		x := kubeProxyExecutor(c)
		unexpected := edit
		unexpected.From, unexpected.To = "true", "true "
		var conflict *strictarp.ConflictError
		require.ErrorAs(t, x.Do(t.Context(), unexpected), &conflict)
		assert.Equal(t, "false", conflict.Found)
		c.Before = func(call kubeproxytest.Call) error {
			if call.Verb == "update" && call.Name == kubeproxytest.Name {
				return kubeproxytest.Conflict(call)
			}
			return nil
		}
		require.ErrorAs(t, x.Do(t.Context(), edit), &conflict)
		require.ErrorContains(t, conflict, "changed by somebody else")
	})
}
