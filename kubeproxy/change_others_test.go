package kubeproxy_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// revert is what somebody does who does not know of the change.
func revert(s string) string {
	return strings.Replace(s, "strictARP: true", "strictARP: false", 1)
}

// stopAtFirstNode breaks the change off once the first node is restarted.
func stopAtFirstNode(t *testing.T, c *kubeproxytest.Cluster) {
	t.Helper()
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err)
	for pr, err := range plan.Apply(t.Context()) {
		require.NoError(t, err)
		if pr.Node != "" {
			break
		}
	}
	require.True(t, c.Node("w1").Proxy.StrictARP)
	require.False(t, c.Node("w3").Proxy.StrictARP)
}

func TestRevertedWhileRollingOut(t *testing.T) {
	t.Parallel()
	t.Run("the change restarts all nodes again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := kubeproxytest.New(kubeproxytest.Loose)
			stopAtFirstNode(t, c)
			setText(t, c, revert)
			for c.Reconcile() { // the rest starts with the reverted text
			}
			require.False(t, c.Node("w3").Proxy.StrictARP)
			require.NoError(t, change(t.Context(), c))
			for _, node := range []string{"w1", "w2", "w3"} {
				assert.True(t, c.Node(node).Proxy.StrictARP, node)
			}
		})
	})
	t.Run("undoing restarts what runs strict", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := kubeproxytest.New(kubeproxytest.Loose)
			stopAtFirstNode(t, c)
			setText(t, c, revert)
			require.NoError(t, undo(t.Context(), c))
			assert.False(t, c.Node("w1").Proxy.StrictARP)
		})
	})
}

// An edit that inserts lines is undone to the byte as well.
func TestUndoInsertion(t *testing.T) {
	t.Parallel()
	for _, original := range []string{
		"kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nmode: ipvs # fast\n",
		"kind: KubeProxyConfiguration\r\napiVersion: kubeproxy.config.k8s.io/v1alpha1\r\nmode: ipvs\r\nipvs: null\r\n",
		`{"kind":"KubeProxyConfiguration","apiVersion":"kubeproxy.config.k8s.io/v1alpha1","mode":"ipvs","ipvs":{}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := kubeproxytest.New(kubeproxytest.Loose)
			setText(t, c, func(string) string { return original })
			require.NoError(t, change(t.Context(), c))
			require.NotEqual(t, original, text(t, c))
			require.True(t, c.Node("w1").Proxy.StrictARP)
			require.NoError(t, undo(t.Context(), c))
			assert.Equal(t, original, text(t, c))
		})
	}
}

// Of two programs that do the same at once one gives way, and all ends well.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		var errs [2]error
		plans := make([]*kubeproxy.Plan, 2)
		for i := range plans {
			var err error
			plans[i], err = c.API().Plan(t.Context(), makeStrict())
			require.NoError(t, err)
		}
		var group sync.WaitGroup
		for i := range plans {
			group.Go(func() { errs[i] = run(t.Context(), plans[i]) })
		}
		group.Wait()
		failed := errors.Join(errs[:]...)
		var conflict *kubeproxy.ConflictError
		require.ErrorAs(t, failed, &conflict)
		require.True(t, errs[0] == nil || errs[1] == nil, "%v", failed)
		assert.True(t, c.Node("w3").Proxy.StrictARP)
	})
}

func TestBackupThatSomebodyEdited(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(data, annotations map[string]string)
		undo   string // what undoing says
		plan   string // what planning again says; empty if it works
	}{
		"its phase":  {change: func(_, a map[string]string) { a["strictarp.github.io/phase"] = "half" }, undo: "which no change writes", plan: "which no change writes"},
		"its object": {change: func(d, _ map[string]string) { d["object.json"] = "{" }, undo: "restore it from the file"},
		"its key":    {change: func(d, _ map[string]string) { d["object.json"] = "{}" }, undo: "has no such key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				require.NoError(t, change(t.Context(), c))
				cms := c.ConfigMaps(kubeproxytest.Namespace)
				backup, err := cms.Get(t.Context(), kubeproxy.BackupName(kubeproxytest.Name), metav1.GetOptions{})
				require.NoError(t, err)
				tt.change(backup.Data, backup.Annotations)
				_, err = cms.Update(t.Context(), backup, metav1.UpdateOptions{})
				require.NoError(t, err)
				require.ErrorContains(t, undo(t.Context(), c), tt.undo)
				if err := change(t.Context(), c); tt.plan == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, tt.plan)
				}
			})
		})
	}
}

func TestTooLargeToCopy(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	cm, err := c.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	cm.Data["other"] = strings.Repeat("x", 600<<10)
	c.Add(cm)
	require.ErrorContains(t, change(t.Context(), c), "would not fit")
	for _, call := range c.Calls() {
		assert.False(t, call.Writes(), call)
	}
}

// What was there before a change that was cut short is what the file gets also
// from the run that finishes it.
func TestBackupFileOfResumedChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		stopAtFirstNode(t, c)
		var file strings.Builder
		ch := makeStrict()
		ch.Backup = &file
		plan, err := c.API().Plan(t.Context(), ch)
		require.NoError(t, err)
		require.NoError(t, run(t.Context(), plan))
		assert.Contains(t, file.String(), "strictARP: false")
	})
}
