package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/strictarp/strictarp/examples/reconcile"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// reconciled returns the events of a Service of a cluster.
func reconciled(t *testing.T, c *metallbtest.Cluster, name string) []string {
	t.Helper()
	recorder := events.NewFakeRecorder(10)
	r := &reconcile.Reconciler{Client: fake.NewClientBuilder().WithRuntimeObjects(c.Objects()...).Build(), Recorder: recorder}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	require.NoError(t, err)
	var list []string
	for len(recorder.Events) > 0 {
		list = append(list, <-recorder.Events)
	}
	return list
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	healthy := metallbtest.New("w1", "w2")
	healthy.AddService("default/web", "10.0.3.20", "w1")
	assert.Empty(t, reconciled(t, healthy, "web"))
	assert.Empty(t, reconciled(t, healthy, "gone"))

	silent := metallbtest.New("w1", "w2")
	silent.AddService("default/web", "10.0.3.20", "w1").Endpoints[0].NotReady = true
	list := reconciled(t, silent, "web")
	require.Len(t, list, 1)
	assert.Contains(t, list[0], "no-ready-endpoint")
}

func TestReconcileTellsOfKubeProxy(t *testing.T) {
	t.Parallel()
	c := metallbtest.New("w1")
	c.AddService("default/web", "10.0.3.20", "w1")
	proxy := kubeproxytest.New(kubeproxytest.Loose, "w1")
	cm, err := proxy.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	set, err := proxy.DaemonSets(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, cm.Data[kubeproxytest.Key], string(kubeproxy.ModeIPVS))
	c.Extra = append(c.Extra, cm, set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	list := reconciled(t, c, "web")
	require.Len(t, list, 1)
	assert.Contains(t, list[0], "strictarp-off")
}
