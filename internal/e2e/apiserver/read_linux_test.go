package apiserver_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/programs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

func (p *proxies) readProxies(user string) kubeproxy.Found {
	p.Helper()
	c := client(p.T, user)
	found, err := kubeproxy.Read(p.Context(), kubeproxy.Clients{
		ConfigMaps: c.CoreV1().ConfigMaps(p.namespace), DaemonSets: c.AppsV1().DaemonSets(p.namespace),
		Pods: c.CoreV1().Pods(p.namespace), Nodes: c.CoreV1().Nodes(),
	})
	require.NoError(p, err)
	return found
}

// TestReadProxies has several read at the same time while one changes: each sees a
// whole configuration, the one of before or the one of after.
func TestReadProxies(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	p.manyConfigMaps(600)
	first := p.readProxies(controlplane.Admin)
	require.Len(t, first.Configs, 1)
	assert.Empty(t, first.Missing)
	assert.Equal(t, p.source(), first.Configs[0].Source)
	plan, err := p.cluster(controlplane.Admin).Plan(t.Context(), kubeproxy.Change{Source: first.Configs[0].Source, StrictARP: kubeproxy.StrictARPTrue, Poll: every})
	require.NoError(t, err)

	changed := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := false; ; {
				found := p.readProxies(controlplane.Admin)
				if !assert.Len(t, found.Configs, 1) {
					return
				}
				now := found.Configs[0].Strict()
				assert.True(t, now || !last, "it never goes back")
				last = now
				select {
				case <-changed:
					assert.True(t, p.readProxies(controlplane.Admin).Configs[0].Strict())
					return
				default:
				}
			}
		})
	}
	_, err = apply(t.Context(), plan)
	require.NoError(t, err)
	close(changed)
	readers.Wait()
	config := p.readProxies(controlplane.Admin).Configs[0]
	assert.Equal(t, kubeproxy.ModeIPVS, config.EffectiveMode())
	assert.WithinDuration(t, time.Now(), config.Changed, 10*time.Minute, "managed fields tell when the text was changed")
}

// manyConfigMaps makes more than one page of them.
func (p *proxies) manyConfigMaps(n int) {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < n; i += 8 {
				_, err := p.admin.CoreV1().ConfigMaps(p.namespace).Create(p.Context(),
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-%04d", i)}}, metav1.CreateOptions{})
				assert.NoError(p, err)
			}
		})
	}
	all.Wait()
}

func TestReadProxiesForbidden(t *testing.T) {
	t.Parallel()
	p := newProxies(t)
	found := p.readProxies("nobody")
	assert.Empty(t, found.Configs)
	require.Len(t, found.Missing, 4)
	for i, resource := range []string{"configmaps", "daemonsets.apps", "pods", "nodes"} {
		assert.Equal(t, resource, found.Missing[i].Source.Name)
		assert.Contains(t, found.Missing[i].Message, "grant the verb list on it")
	}
}

func readMetalLB(t *testing.T, user string) metallb.State {
	t.Helper()
	config := server.Config(user)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	d, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	state, err := metallb.Read(t.Context(), metallb.Clients{
		Services: c.CoreV1().Services(""), EndpointSlices: c.DiscoveryV1().EndpointSlices(""), Nodes: c.CoreV1().Nodes(),
		Pods: c.CoreV1().Pods(""), DaemonSets: c.AppsV1().DaemonSets(""), ConfigMaps: c.CoreV1().ConfigMaps("metallb-system"), Events: c.CoreV1().Events(""),
		Dynamic: func(r schema.GroupVersionResource) metallb.Lister[*unstructured.UnstructuredList] {
			return d.Resource(r)
		},
		PageSize: 2,
	})
	require.NoError(t, err)
	return state
}

// missing returns what is missing of a State, and whether it is because the server
// does not know the kind.
func missing(s metallb.State) map[string]bool {
	m := map[string]bool{}
	for _, what := range s.Missing {
		m[what.What] = what.Absent
	}
	return m
}

// TestReadMetalLB goes from a server without MetalLB's definitions to one with
// objects of them.
func TestReadMetalLB(t *testing.T) {
	t.Parallel()
	state := readMetalLB(t, controlplane.Admin)
	absent := map[string]bool{}
	for _, r := range metallb.Resources() {
		absent[r.Resource+"."+r.Group] = true
	}
	assert.Equal(t, absent, missing(state))
	assert.Nil(t, state.Pools)
	forbidden := readMetalLB(t, "lister")
	require.Len(t, forbidden.Missing, 12)
	for _, m := range forbidden.Missing {
		assert.False(t, m.Absent, "who may not list it is not told whether it is there")
		assert.Equal(t, "grant the verb list on "+m.What, m.Collect)
	}

	crds, err := programs.CRDs(t.Context())
	require.NoError(t, err)
	require.NoError(t, server.InstallCRDs(t.Context(), crds))
	state = readMetalLB(t, controlplane.Admin)
	assert.Empty(t, state.Missing)
	assert.NotNil(t, state.Pools)
	assert.Empty(t, state.Pools)
	makeMetalLBObjects(t)
	state = readMetalLB(t, controlplane.Admin)
	assert.Empty(t, state.Missing)
	require.Len(t, state.Pools, 3, "of two pages")
	require.Len(t, state.L2Advertisements, 1)
	require.NotEmpty(t, state.Services)
	findings := strictarp.Evaluate(strictarp.Facts{At: time.Now(), MetalLB: &state}, "10.0.3.20")
	assert.Contains(t, rules(findings), "no-ready-endpoint", "%v", findings)
	assert.NotContains(t, rules(findings), "no-l2-advertisement")
}

func rules(findings []strictarp.Finding) (list []string) {
	for _, f := range findings {
		list = append(list, f.Rule)
	}
	return list
}

func makeMetalLBObjects(t *testing.T) {
	t.Helper()
	d, err := dynamic.NewForConfig(server.Config(controlplane.Admin))
	require.NoError(t, err)
	admin := client(t, controlplane.Admin)
	makeNamespace(t, "metallb-system")
	create := func(resource, kind, name string, spec map[string]any) {
		t.Helper()
		_, err := d.Resource(schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: resource}).Namespace("metallb-system").Create(t.Context(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "metallb.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
			}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for i := range 3 {
		create("ipaddresspools", "IPAddressPool", fmt.Sprintf("pool-%d", i), map[string]any{"addresses": []any{fmt.Sprintf("10.0.%d.20-10.0.%d.40", i+3, i+3)}})
	}
	create("l2advertisements", "L2Advertisement", "all", map[string]any{})
	service, err := admin.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.3.20"}}
	_, err = admin.CoreV1().Services("default").UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	require.NoError(t, err)
}
