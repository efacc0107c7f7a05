package apiserver_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// requireUntouched requires that nothing was written.
func (p *proxies) requireUntouched(text string) {
	p.Helper()
	require.Equal(p, text, p.text())
	require.NotContains(p, p.daemonSet().Spec.Template.Annotations, "kubectl.kubernetes.io/restartedAt")
	_, err := p.backup()
	require.True(p, apierrors.IsNotFound(err), "%v", err)
}

func TestDenied(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	text := p.text()
	_, err := p.cluster("nobody").Plan(t.Context(), p.strict())
	require.ErrorIs(t, err, os.ErrPermission)
	require.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "get configmap/kube-proxy")

	p.grant("reader", reading()...)
	plan, err := p.cluster("reader").Plan(t.Context(), p.strict())
	require.NoError(t, err)
	for _, run := range []func() error{
		func() error { _, err := apply(t.Context(), plan); return err },
		func() error { return plan.DryRun(t.Context()) },
	} {
		var denied *kubeproxy.PermissionError
		require.ErrorAs(t, run(), &denied)
		require.ErrorIs(t, denied, os.ErrPermission)
		want := slices.DeleteFunc(p.permissions(), func(p kubeproxy.Permission) bool { return p.Verb == "get" })
		assert.Equal(t, names(want), names(denied.Denied))
	}
	p.requireUntouched(text)

	// Without asking beforehand the server itself refuses.
	blind := p.cluster("reader")
	blind.Access = nil
	plan, err = blind.Plan(t.Context(), p.strict())
	require.NoError(t, err)
	assert.Nil(t, plan.Permissions)
	_, err = apply(t.Context(), plan)
	require.ErrorIs(t, err, os.ErrPermission)
	require.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "create configmap/kube-proxy-strictarp-backup")
	p.requireUntouched(text)
}

// TestEachRightIsNeeded takes one right after the other away: each is missed, by
// name, before anything is changed.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	all := newProxies(t).permissions()
	require.Len(t, all, 6)
	for i, missing := range all {
		if missing.Verb == "get" { // Plan needs it, see TestDenied
			continue
		}
		t.Run(missing.Verb+" "+missing.Resource+" "+missing.Name, func(t *testing.T) {
			t.Parallel()
			p := newProxies(t)
			text := p.text()
			p.grant("almost", rulesOf(slices.Delete(slices.Clone(all), i, i+1))...)
			plan, err := p.cluster("almost").Plan(t.Context(), p.strict())
			require.NoError(t, err)
			_, err = apply(t.Context(), plan)
			var denied *kubeproxy.PermissionError
			require.ErrorAs(t, err, &denied)
			require.Len(t, denied.Denied, 1)
			assert.Equal(t, missing.Verb+" "+missing.Resource+" "+missing.Name,
				denied.Denied[0].Verb+" "+denied.Denied[0].Resource+" "+denied.Denied[0].Name)
			p.requireUntouched(text)
		})
	}
}

func names(permissions []kubeproxy.Permission) (list []string) {
	for _, p := range permissions {
		list = append(list, p.String())
	}
	return list
}

// TestRunningThroughTheServer asks for a pod's /configz as ReadRunning's doc says:
// what the server answers instead is told apart.
func TestRunningThroughTheServer(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	for user, want := range map[string]error{"nobody": os.ErrPermission, "admin": os.ErrNotExist} {
		config := server.Config(user)
		http, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		_, err = kubeproxy.ReadRunning(t.Context(), http, config.Host+"/api/v1/namespaces/"+p.namespace+"/pods/none:10249/proxy")
		require.ErrorIs(t, err, want, user)
	}
	list, err := p.admin.CoreV1().Pods(p.namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	config := server.Config("admin")
	http, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	_, err = kubeproxy.ReadRunning(t.Context(), http, config.Host+"/api/v1/namespaces/"+p.namespace+"/pods/"+list.Items[0].Name+":10249/proxy")
	require.Error(t, err, "the pod has no address")
	assert.False(t, errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist), "%v", err)
	assert.Equal(t, kubeproxytest.Name+"-", list.Items[0].GenerateName)
}
