package strictarp_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

// facts puts a scene together as a collector would.
func (s *scene) facts() strictarp.Facts {
	objects := append(s.Objects(), s.kubeProxyObjects()...)
	m := metallb.FromObjects(objects...)
	m.At, m.Source = s.now(), "API server"
	told := kubeproxy.FromObjects(objects...)
	f := strictarp.Facts{
		At: s.now(), Nodes: map[string]strictarp.NodeFacts{}, MetalLB: &m, KubeProxy: &told,
		Cluster: &strictarp.ClusterFacts{At: s.now(), Source: "API server", Version: s.version, Objects: objects},
	}
	for name, n := range s.nodes {
		f.Nodes[name] = *n
	}
	for _, v := range append([]*strictarp.Vantage{s.client}, s.others...) {
		f.Vantages = append(f.Vantages, *v)
	}
	return f
}

// kubeProxyObjects are those of kubeadm.
func (s *scene) kubeProxyObjects() []runtime.Object {
	var objects []runtime.Object
	if s.config != "" {
		objects = append(objects, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: meta("kube-system", "kube-proxy"), Data: map[string]string{"config.conf": s.config}})
	}
	switch {
	case s.unset:
	case s.noKubeProxy:
		objects = append(objects, &appsv1.DaemonSetList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSetList"}})
	default:
		args := append([]string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"}, s.flags...)
		objects = append(objects, daemonSet("kube-system", "kube-proxy", "registry.k8s.io/kube-proxy:"+s.version, args, "kube-proxy"))
	}
	return objects
}

// daemonSet makes one with a container of that image. Config is a ConfigMap that it
// mounts at /var/lib/NAME; empty: none.
func daemonSet(namespace, name, image string, command []string, config string, env ...string) *appsv1.DaemonSet {
	set := map[string]string{"k8s-app": name}
	d := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: meta(namespace, name)}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: set}
	d.Spec.Template.Labels = set
	c := corev1.Container{Name: name, Image: image, Command: command}
	for i := 0; i+1 < len(env); i += 2 {
		c.Env = append(c.Env, corev1.EnvVar{Name: env[i], Value: env[i+1]})
	}
	if config != "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: config, MountPath: "/var/lib/" + config}}
		volume := corev1.Volume{Name: config}
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}}
		d.Spec.Template.Spec.Volumes = []corev1.Volume{volume}
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{c}
	return d
}

// kubeVIP is a kube-vip that serves Services by ARP.
func kubeVIP(env ...string) *appsv1.DaemonSet {
	return daemonSet("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.0", []string{"/kube-vip", "manager"}, "",
		append(env, "vip_arp", "true", "svc_enable", "true")...) // kube-vip takes the first of a name
}

// noStatuses says that ServiceL2Statuses were asked for, and there are none.
func noStatuses() runtime.Object {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": "ServiceL2StatusList", "items": []any{}}}
}

// emptyList says that objects of a kind were asked for, and there are none.
func emptyList(apiVersion, kind string) runtime.Object {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": []any{}}}
}

// lease is held by a node.
func lease(namespace, name, holder string, renewed time.Time) runtime.Object {
	seconds, at := int32(15), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: meta(namespace, name),
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}
}
