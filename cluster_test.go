package strictarp_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
)

func toldLoose() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta("kube-system", "kube-proxy"), Data: map[string]string{"config.conf": configText("ipvs", "false")}}
}

func proxySet() *appsv1.DaemonSet {
	return daemonSet("kube-system", "kube-proxy", "registry.k8s.io/kube-proxy:v1.35.0", []string{"kube-proxy", "--config=/var/lib/kube-proxy/config.conf"}, "kube-proxy")
}

func exposed() *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta("default", "web")}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: webVIP}}
	return s
}

// Whatever a caller holds objects in, the facts are the same.
func TestSetCluster(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pool := map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": map[string]any{"namespace": "metallb-system", "name": "p"},
		"spec": map[string]any{"addresses": []any{"10.0.3.20-10.0.3.30"}}}
	noAdvertisements := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "L2AdvertisementList"}}
	text := func(o runtime.Object) []byte {
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		return raw
	}
	withKind := func(o runtime.Object, apiVersion, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(text(o), &u.Object))
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		return u
	}
	service, configMap, set := withKind(exposed(), "v1", "Service"), withKind(toldLoose(), "v1", "ConfigMap"), withKind(proxySet(), "apps/v1", "DaemonSet")
	var want string
	for _, c := range []struct {
		name    string
		objects strictarp.Objects
	}{
		{"typed, without kinds", strictarp.Objects{exposed(), toldLoose(), proxySet(), &unstructured.Unstructured{Object: pool}, noAdvertisements, &corev1.NodeList{}}},
		{"lists of a cache", strictarp.Objects{
			&corev1.ServiceList{Items: []corev1.Service{*exposed()}}, &corev1.ConfigMapList{Items: []corev1.ConfigMap{*toldLoose()}}, &appsv1.DaemonSetList{Items: []appsv1.DaemonSet{*proxySet()}},
			&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPoolList"}, Items: []unstructured.Unstructured{{Object: pool}}}, noAdvertisements, &corev1.NodeList{},
		}},
		{"of a dynamic client", strictarp.Objects{service, configMap, set, &unstructured.Unstructured{Object: pool}, noAdvertisements, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "NodeList"}}}},
		{"as kubectl prints them", strictarp.Objects{&corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{
			{Raw: text(service)}, {Object: toldLoose()}, {Raw: text(set)}, {Raw: text(&unstructured.Unstructured{Object: pool})}, {Raw: text(noAdvertisements)}, {Raw: []byte(`{"apiVersion":"v1","kind":"NodeList","items":[]}`)},
		}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := strictarp.Facts{At: at}
			f.SetCluster(strictarp.ClusterFacts{At: at, Source: "test", Version: "v1.35.0", Objects: c.objects})
			assert.Equal(t, "v1.35.0", f.Cluster.Version)
			assert.Equal(t, []any{at, "test"}, []any{f.MetalLB.At, f.MetalLB.Source})
			require.Len(t, f.KubeProxy.Configs, 1)
			assert.Equal(t, at, f.KubeProxy.Configs[0].At)
			assert.Equal(t, kubeproxy.StrictARPFalse, f.KubeProxy.Configs[0].StrictARP)
			require.Len(t, f.MetalLB.Services, 1)
			assert.Len(t, f.MetalLB.Pools, 1)
			assert.NotNil(t, f.MetalLB.Nodes, "an empty list was seen")
			written, err := json.Marshal(f)
			require.NoError(t, err)
			var back strictarp.Facts
			require.NoError(t, json.Unmarshal(written, &back), "every object says its kind")
			assert.Len(t, back.Cluster.Objects, 6)
			if want == "" {
				want = string(written)
			}
			assert.JSONEq(t, want, string(written))
		})
	}
}

func TestSetClusterLeavesObjectsAlone(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "swordfish"}}, StringData: map[string]string{"p": "swordfish"}}
	before := secret.DeepCopy()
	var nobody *corev1.Pod
	f := strictarp.Facts{}
	f.SetCluster(strictarp.ClusterFacts{Objects: strictarp.Objects{secret, nil, nobody, &unstructured.Unstructured{}}})
	assert.Equal(t, before, secret)
	require.Len(t, f.Cluster.Objects, 1)
	written, err := json.Marshal(f)
	require.NoError(t, err)
	assert.NotContains(t, string(written), "swordfish")

	f.SetCluster(strictarp.ClusterFacts{})
	assert.Nil(t, f.Cluster.Objects, "nothing was observed")
	assert.Nil(t, f.MetalLB.Services)
}

func ExampleFacts_SetCluster() {
	proxy, set := toldLoose(), proxySet() // as informers hold them
	var facts strictarp.Facts
	facts.SetCluster(strictarp.ClusterFacts{Source: "informers", Objects: strictarp.Objects{proxy, set}})
	for _, c := range facts.KubeProxy.Configs {
		fmt.Println(c.Source, "strictARP", c.StrictARP)
	}
	// Output:
	// configmap kube-system/kube-proxy config.conf /var/lib/kube-proxy/config.conf strictARP false
}
