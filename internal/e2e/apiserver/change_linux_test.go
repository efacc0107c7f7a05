package apiserver_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func apply(ctx context.Context, p *kubeproxy.Plan) (done []string, err error) {
	for pr, err := range p.Apply(ctx) {
		if err != nil {
			return done, err
		}
		done = append(done, strings.TrimSpace(string(pr.Step)+" "+pr.Node))
	}
	return done, nil
}

func (p *proxies) daemonSet() *appsv1.DaemonSet {
	p.Helper()
	ds, err := p.admin.AppsV1().DaemonSets(p.namespace).Get(p.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(p, err)
	return ds
}

// pods returns the names of the DaemonSet's pods.
func (p *proxies) pods() []string {
	p.Helper()
	list, err := p.admin.CoreV1().Pods(p.namespace).List(p.Context(), metav1.ListOptions{})
	require.NoError(p, err)
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func (p *proxies) backup() (*corev1.ConfigMap, error) {
	return p.admin.CoreV1().ConfigMaps(p.namespace).Get(p.Context(), kubeproxy.BackupName(kubeproxytest.Name), metav1.GetOptions{})
}

// TestChange goes there and back with the rights that the plan asks for and no
// others, by both update strategies.
func TestChange(t *testing.T) {
	t.Parallel()
	for _, strategy := range []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			p := newProxies(t)
			_, err := p.admin.AppsV1().DaemonSets(p.namespace).Patch(t.Context(), kubeproxytest.Name, types.MergePatchType,
				[]byte(`{"spec":{"updateStrategy":{"type":"`+string(strategy)+`","rollingUpdate":null}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			p.grant("changer", rulesOf(p.permissions())...)
			p.thereAndBack(p.cluster("changer"))
		})
	}
}

func (p *proxies) thereAndBack(cluster kubeproxy.Cluster) {
	before, pods := p.text(), p.pods()
	var kept strings.Builder
	change := p.strict()
	change.Backup = &kept
	var verified []string
	change.Verify = func(_ context.Context, node string) error {
		verified = append(verified, node)
		return nil
	}
	plan, err := cluster.Plan(p.Context(), change)
	require.NoError(p, err)
	p.dryRun(plan)

	done, err := apply(p.Context(), plan)
	require.NoError(p, err)
	assert.Subset(p, done, []string{"backup", "apply", "restart", "rollout w1", "rollout w2", "rollout w3", "rollout", "finish"})
	assert.Len(p, done, 8)
	assert.ElementsMatch(p, nodes, verified)
	assert.Equal(p, strings.Replace(before, "strictARP: false", "strictARP: true", 1), p.text())
	restarted := p.daemonSet().Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
	assert.NotEmpty(p, restarted)
	now := p.pods()
	assert.Len(p, now, len(nodes))
	for _, pod := range pods {
		assert.NotContains(p, now, pod, "it was replaced")
	}
	backup, err := p.backup()
	require.NoError(p, err)
	assert.Equal(p, "done", backup.Annotations["strictarp.github.io/phase"])
	var file corev1.ConfigMap
	require.NoError(p, yaml.UnmarshalStrict([]byte(kept.String()), &file))
	assert.Equal(p, before, file.Data[kubeproxytest.Key])
	again, err := cluster.Plan(p.Context(), change)
	require.NoError(p, err)
	assert.Empty(p, again.Steps)

	undo, err := cluster.PlanUndo(p.Context(), change)
	require.NoError(p, err)
	_, err = apply(p.Context(), undo)
	require.NoError(p, err)
	assert.Equal(p, before, p.text(), "byte by byte")
	assert.NotEqual(p, restarted, p.daemonSet().Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])

	// What was kept is what kubectl replace takes.
	_, err = p.admin.CoreV1().ConfigMaps(p.namespace).Update(p.Context(), &file, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(p, err)
}

// dryRun requires that the server checked all and changed nothing.
func (p *proxies) dryRun(plan *kubeproxy.Plan) {
	p.Helper()
	cm, template := p.configMap(), p.daemonSet().Spec.Template
	require.NoError(p, plan.DryRun(p.Context()))
	assert.Equal(p, cm.ResourceVersion, p.configMap().ResourceVersion)
	assert.Equal(p, template, p.daemonSet().Spec.Template)
	_, err := p.backup()
	assert.True(p, apierrors.IsNotFound(err), "%v", err)
}

func TestConflict(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	cluster := p.cluster(controlplane.Admin)
	plan, err := cluster.Plan(t.Context(), p.strict())
	require.NoError(t, err)
	p.edit(func(text string) string { return "# somebody's\n" + text })
	others := p.text()

	err = plan.DryRun(t.Context())
	var conflict *kubeproxy.ConflictError
	require.ErrorAs(t, err, &conflict, "the server finds it in a dry run")
	done, err := apply(t.Context(), plan)
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "configmap/kube-proxy", conflict.Object)
	assert.True(t, apierrors.IsConflict(err))
	assert.Equal(t, []string{"backup"}, done)
	assert.Equal(t, others, p.text(), "what somebody wrote is there")

	plan, err = cluster.Plan(t.Context(), p.strict())
	require.NoError(t, err)
	assert.NotNil(t, plan.Resumed)
	_, err = apply(t.Context(), plan)
	require.NoError(t, err)
	p.edit(func(text string) string { return text + "# and more\n" })
	undo, err := cluster.PlanUndo(t.Context(), p.strict())
	require.NoError(t, err)
	_, err = apply(t.Context(), undo)
	require.NoError(t, err)
	assert.Equal(t, others+"# and more\n", p.text(), "only strictARP is taken back")
}

// TestManyAtOnce has several make the same change at the same time: one comes
// through, the others are told so, and nobody's text is lost.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	before := p.text()
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		cluster := p.cluster(controlplane.Admin)
		all.Go(func() {
			plan, err := cluster.Plan(t.Context(), p.strict())
			if err == nil {
				_, err = apply(t.Context(), plan)
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		var conflict *kubeproxy.ConflictError
		assert.True(t, err == nil || errors.As(err, &conflict), "%v", err)
	}
	assert.Equal(t, strings.Replace(before, "strictARP: false", "strictARP: true", 1), p.text())
	plan, err := p.cluster(controlplane.Admin).Plan(t.Context(), p.strict())
	require.NoError(t, err)
	_, err = apply(t.Context(), plan)
	require.NoError(t, err, "what the last one left is finished")
	backup, err := p.backup()
	require.NoError(t, err)
	assert.Equal(t, "done", backup.Annotations["strictarp.github.io/phase"])
	undo, err := p.cluster(controlplane.Admin).PlanUndo(t.Context(), p.strict())
	require.NoError(t, err)
	_, err = apply(t.Context(), undo)
	require.NoError(t, err)
	assert.Equal(t, before, p.text())
}

// recreated is a DaemonSet's client; between Get and Patch somebody deletes the
// DaemonSet and makes it again.
type recreated struct {
	kubeproxy.DaemonSetClient
	again func()
}

func (r recreated) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*appsv1.DaemonSet, error) {
	r.again()
	return r.DaemonSetClient.Patch(ctx, name, pt, data, opts, subresources...)
}

// TestAnotherDaemonSet: the patch names the UID, and a server refuses it for another
// object of the same name.
func TestAnotherDaemonSet(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	cluster := p.cluster(controlplane.Admin)
	cluster.DaemonSets = recreated{cluster.DaemonSets, func() {
		ds := p.daemonSet()
		sets := p.admin.AppsV1().DaemonSets(p.namespace)
		require.NoError(t, sets.Delete(t.Context(), ds.Name, metav1.DeleteOptions{}))
		_, err := sets.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: ds.Name}, Spec: ds.Spec}, metav1.CreateOptions{})
		require.NoError(t, err)
	}}
	plan, err := cluster.Plan(t.Context(), p.strict())
	require.NoError(t, err)
	_, err = apply(t.Context(), plan)
	var conflict *kubeproxy.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "daemonset/kube-proxy", conflict.Object)
	assert.NotContains(t, p.daemonSet().Spec.Template.Annotations, "kubectl.kubernetes.io/restartedAt")
}

// TestRolloutStops: with a pod that does not become ready the wait ends with the
// context, says which node it is, and goes on later.
func TestRolloutStops(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	cluster := p.cluster(controlplane.Admin)
	change := p.strict()
	ctx, cancel := context.WithCancel(t.Context())
	change.Verify = func(context.Context, string) error {
		cancel()
		return nil
	}
	plan, err := cluster.Plan(t.Context(), change)
	require.NoError(t, err)
	_, err = apply(ctx, plan)
	var rollout *kubeproxy.RolloutError
	require.ErrorAs(t, err, &rollout)
	require.ErrorIs(t, err, context.Canceled)
	assert.NotEmpty(t, rollout.Waiting)

	change.Verify = nil
	plan, err = cluster.Plan(t.Context(), change)
	require.NoError(t, err)
	require.NotNil(t, plan.Resumed)
	assert.Equal(t, kubeproxy.PhaseRestarting, plan.Resumed.Phase)
	done, err := apply(t.Context(), plan)
	require.NoError(t, err)
	assert.NotContains(t, done, "apply", "the text is written")
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	cluster := p.cluster(controlplane.Admin)
	_, err := cluster.PlanUndo(t.Context(), p.strict())
	require.ErrorIs(t, err, fs.ErrNotExist)
	change := p.strict()
	change.Source.Name = "kube-proxy-windows"
	_, err = cluster.Plan(t.Context(), change)
	require.ErrorIs(t, err, fs.ErrNotExist)
	change = p.strict()
	change.Source.Workload = "daemonset/other"
	_, err = cluster.Plan(t.Context(), change)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "daemonset/other")
	immutable := true
	cm := p.configMap()
	cm.Immutable = &immutable
	_, err = p.admin.CoreV1().ConfigMaps(p.namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = cluster.Plan(t.Context(), p.strict())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
