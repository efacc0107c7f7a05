package kubeproxytest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func TestZeroClusterServes(t *testing.T) {
	t.Parallel()
	var c kubeproxytest.Cluster
	cms := c.ConfigMaps("default")
	_, err := cms.Get(t.Context(), "a", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), err)
	made, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, made.UID)
	_, err = cms.Create(t.Context(), made, metav1.CreateOptions{})
	assert.True(t, apierrors.IsAlreadyExists(err), err)
	require.NoError(t, cms.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	assert.True(t, apierrors.IsNotFound(cms.Delete(t.Context(), "a", metav1.DeleteOptions{})))
	assert.Equal(t, kubeproxytest.Node{}, c.Node("nobody"))
}

func TestOptimisticLocking(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	cms := c.ConfigMaps(kubeproxytest.Namespace)
	old, err := cms.Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = cms.Update(t.Context(), old, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	now, err := cms.Update(t.Context(), old, metav1.UpdateOptions{})
	require.NoError(t, err, "the dry run changed nothing")
	assert.NotEqual(t, old.ResourceVersion, now.ResourceVersion)
	_, err = cms.Update(t.Context(), old, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), err)
	old.ResourceVersion = ""
	_, err = cms.Update(t.Context(), old, metav1.UpdateOptions{})
	require.NoError(t, err, "without a version it is unconditional")
	now.Data["config.conf"] = "mine"
	kept, err := cms.Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, "mine", kept.Data["config.conf"], "what is returned is a copy")
}

func TestGenerationCountsSpecs(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	dss := c.DaemonSets(kubeproxytest.Namespace)
	patch := func(text string) *appsv1.DaemonSet {
		ds, err := dss.Patch(t.Context(), kubeproxytest.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		require.NoError(t, err)
		return ds
	}
	first := patch(`{"metadata":{"labels":{"a":"b"}}}`)
	assert.EqualValues(t, 1, first.Generation)
	assert.Equal(t, "b", first.Labels["a"])
	assert.Equal(t, "kube-proxy", first.Labels["k8s-app"])
	assert.EqualValues(t, 2, patch(`{"spec":{"minReadySeconds":1},"metadata":{"labels":{"a":null}}}`).Generation)
	_, err := dss.Patch(t.Context(), kubeproxytest.Name, types.MergePatchType, []byte(`{"metadata":{"uid":"x"}}`), metav1.PatchOptions{})
	assert.True(t, apierrors.IsInvalid(err), err)
	first.UID, first.ResourceVersion = "x", ""
	_, err = dss.Update(t.Context(), first, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), err)
	_, err = dss.Patch(t.Context(), kubeproxytest.Name, types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{})
	assert.True(t, apierrors.IsBadRequest(err), err)
}

func TestListPages(t *testing.T) {
	t.Parallel()
	var c kubeproxytest.Cluster
	for i := range 5 {
		c.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Namespace: "a", Labels: map[string]string{"odd": fmt.Sprint(i % 2)}}})
	}
	c.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c9", Namespace: "b"}})
	names := func(namespace string, opts metav1.ListOptions) (names []string) {
		for {
			list, err := c.ConfigMaps(namespace).List(t.Context(), opts)
			require.NoError(t, err)
			for _, cm := range list.Items {
				names = append(names, cm.Name)
			}
			if opts.Continue = list.Continue; opts.Continue == "" {
				return names
			}
		}
	}
	assert.Equal(t, []string{"c0", "c1", "c2", "c3", "c4"}, names("a", metav1.ListOptions{Limit: 2}))
	assert.Equal(t, []string{"c1", "c3"}, names("a", metav1.ListOptions{LabelSelector: "odd=1"}))
	assert.Len(t, names("", metav1.ListOptions{Limit: 6}), 6)
	_, err := c.ConfigMaps("a").List(t.Context(), metav1.ListOptions{Continue: "other"})
	assert.True(t, apierrors.IsResourceExpired(err), err)
	_, err = c.ConfigMaps("a").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	assert.True(t, apierrors.IsBadRequest(err), err)
}

func TestDeniedIsRefusedAndSaid(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	c.Denied = []string{"list pods"}
	_, err := c.Pods("").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), err)
	review := func(verb string) bool {
		r, err := c.Access().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return r.Status.Allowed
	}
	assert.False(t, review("list"))
	assert.True(t, review("delete"))
}

// A kube-proxy reads its configuration when its pod starts, and changes kernels
// as it was measured.
func TestProxyFollowsItsPod(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose, "w1")
	restart := func(text string) kubeproxytest.Node {
		t.Helper()
		cm, err := c.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
		require.NoError(t, err)
		cm.Data[kubeproxytest.Key] = text
		c.Add(cm)
		before := c.Node("w1").Proxy
		c.Reconcile()
		require.Equal(t, before, c.Node("w1").Proxy, "a ConfigMap is not noticed before a restart")
		list, err := c.Pods(kubeproxytest.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		require.NoError(t, c.Pods(kubeproxytest.Namespace).Delete(t.Context(), list.Items[0].Name, metav1.DeleteOptions{}))
		require.True(t, c.Reconcile())
		return c.Node("w1")
	}
	strict := kubeproxy.ARP{Ignore: 1, Announce: 2}
	assert.Equal(t, strict, restart(kubeproxytest.Text(kubeproxy.ModeIPVS, true)).ARP)
	assert.Equal(t, strict, restart(kubeproxytest.Text(kubeproxy.ModeIPVS, false)).ARP, "never taken back")
	n := restart(kubeproxytest.Text(kubeproxy.ModeIPTables, true))
	assert.NotEmpty(t, n.IPVSAddresses, "iptables leaves kube-ipvs0 behind")
	assert.Equal(t, kubeproxy.ModeIPTables, n.Proxy.Mode)
	assert.Empty(t, restart(kubeproxytest.Text(kubeproxy.ModeNFTables, true)).IPVSAddresses)
	assert.Empty(t, restart("\t").Proxy.Mode, "it does not start with that")
	c.EditNode("w1", func(n *kubeproxytest.Node) { n.ARP = kubeproxy.ARP{} })
	assert.Equal(t, kubeproxy.ARP{}, restart(kubeproxytest.Text(kubeproxy.ModeIPTables, true)).ARP, "strictARP does nothing in another mode")
}

func TestAddPanicsForOtherKinds(t *testing.T) {
	t.Parallel()
	var c kubeproxytest.Cluster
	assert.PanicsWithValue(t, "kubeproxytest: add a *v1.Secret: only ConfigMaps, DaemonSets, Pods and Nodes can be added", func() { c.Add(&corev1.Secret{}) })
}
