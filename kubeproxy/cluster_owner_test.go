package kubeproxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func managed(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	const data = `{"f:data":{".":{},"f:config.conf":{}}}`
	controller := true
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want []string // name and when it reverts
	}{
		"nobody":                   {metav1.ObjectMeta{}, nil},
		"kubeadm":                  {metav1.ObjectMeta{Annotations: map[string]string{"kubeadm.kubernetes.io/component-config.hash": "sha256:ab"}, ManagedFields: []metav1.ManagedFieldsEntry{managed("kubeadm", data)}}, []string{"kubeadm never"}},
		"Argo CD":                  {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "net:/ConfigMap:kube-system/kube-proxy"}}, []string{"Argo CD soon"}},
		"Flux":                     {metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "infra"}}, []string{"Flux soon"}},
		"Helm by Flux":             {metav1.ObjectMeta{Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "p", "app.kubernetes.io/managed-by": "Helm"}, Annotations: map[string]string{"meta.helm.sh/release-name": "p"}}, []string{"Flux soon", "Helm on-upgrade"}},
		"not Helm":                 {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "somebody"}}, nil},
		"addon manager":            {metav1.ObjectMeta{Labels: map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}}, []string{"addon manager soon"}},
		"addon manager, once":      {metav1.ObjectMeta{Labels: map[string]string{"addonmanager.kubernetes.io/mode": "EnsureExists"}}, []string{"addon manager never"}},
		"Rancher":                  {metav1.ObjectMeta{Annotations: map[string]string{"objectset.rio.cattle.io/id": ""}}, []string{"Rancher soon"}},
		"k0s":                      {metav1.ObjectMeta{Labels: map[string]string{"k0s.k0sproject.io/stack": "kubeproxy"}}, []string{"k0s soon"}},
		"EKS":                      {metav1.ObjectMeta{Labels: map[string]string{"eks.amazonaws.com/component": "kube-proxy"}, ManagedFields: []metav1.ManagedFieldsEntry{managed("eks", data)}}, []string{"EKS add-on on-upgrade"}},
		"Gardener":                 {metav1.ObjectMeta{Labels: map[string]string{"resources.gardener.cloud/managed-by": "gardener"}}, []string{"Gardener soon"}},
		"an operator":              {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Network", Name: "cluster", Controller: &controller}}}, []string{"Network cluster soon"}},
		"somebody by hand, and us": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{managed("kubectl-edit", data), managed("strictarp", data)}}, []string{"kubectl on-upgrade"}},
		"an unknown manager":       {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{managed("acme-operator", data)}}, []string{"acme-operator "}},
		"managers of other fields": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{managed("acme", `{"f:metadata":{}}`), managed("acme", `{"f:data":{"f:kubeconfig.conf":{}}}`), managed("acme", `{"f:data":7}`)}}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, o := range kubeproxy.Owners(&corev1.ConfigMap{ObjectMeta: tt.meta}, "data", "config.conf") {
				got = append(got, o.Name+" "+string(o.Reverts))
				assert.NotEmpty(t, o.Mark)
				assert.NotEmpty(t, o.Knob)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestOwnerThatRevertsIsRespected(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	cm, err := c.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	cm.Labels["kustomize.toolkit.fluxcd.io/name"] = "infra"
	c.Add(cm)
	change := makeStrict()
	plan, err := c.API().Plan(t.Context(), change)
	require.NoError(t, err)
	err = run(t.Context(), plan)
	var owner *kubeproxy.OwnerError
	require.ErrorAs(t, err, &owner)
	assert.Equal(t, "configmap/kube-proxy", owner.Owner.Object)
	assert.ErrorContains(t, plan.DryRun(t.Context()), "Flux (label kustomize.toolkit.fluxcd.io/name=infra)")
	change.DespiteOwner = true
	plan, err = c.API().Plan(t.Context(), change)
	require.NoError(t, err)
	require.NoError(t, plan.DryRun(t.Context()))
}

func FuzzOwners(f *testing.F) {
	f.Add("kubeadm", `{"f:data":{".":{},"f:config.conf":{}}}`)
	f.Add("argocd-controller", `{"f:data":[]}`)
	f.Add("", `{`)
	f.Fuzz(func(t *testing.T, manager, fields string) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{managed(manager, fields)}}}
		got := kubeproxy.Owners(cm, "data", "config.conf")
		if len(got) > 1 || len(got) == 1 && !strings.Contains(fields, "f:") && !strings.Contains(fields, `\u`) {
			t.Errorf("%q: %v", fields, got)
		}
	})
}
