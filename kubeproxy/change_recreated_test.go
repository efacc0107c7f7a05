package kubeproxy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// Another DaemonSet of the same name, made a moment before the restart, is not
// restarted.
func TestDaemonSetIsMadeAnew(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	sets := c.DaemonSets(kubeproxytest.Namespace)
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err)
	c.Before = func(call kubeproxytest.Call) error {
		if call.Verb != "patch" {
			return nil
		}
		c.Before = nil
		ds, err := sets.Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, sets.Delete(t.Context(), ds.Name, metav1.DeleteOptions{}))
		ds.UID, ds.ResourceVersion = "", ""
		c.Add(ds)
		return nil
	}
	err = run(t.Context(), plan)
	var conflict *kubeproxy.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "daemonset/kube-proxy", conflict.Object)
	ds, err := sets.Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, ds.Spec.Template.Annotations)
}
