package main

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxConfig is how long a text of a ConfigMap of others may be to be kept: a whole
// kube-proxy configuration has some 3 KiB.
const maxConfig = 64 << 10

// strip is the informers' transform: it leaves of objects what package kubeproxy or
// metallb reads, before they come to the caches. Managed fields stay on ConfigMaps
// and DaemonSets, as they tell when a configuration was changed and by whom.
func strip(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		return stripNode(o), nil
	case *corev1.Service:
		stripMeta(&o.ObjectMeta)
	case *discoveryv1.EndpointSlice:
		stripMeta(&o.ObjectMeta)
		o.Annotations, o.Ports = nil, nil
		for i := range o.Endpoints {
			e := &o.Endpoints[i]
			e.TargetRef, e.Hints, e.Hostname, e.DeprecatedTopology = nil, nil, nil, nil
		}
	case *corev1.Pod:
		stripMeta(&o.ObjectMeta)
		stripPod(&o.Spec)
		o.Status = corev1.PodStatus{Phase: o.Status.Phase, Conditions: o.Status.Conditions, ContainerStatuses: o.Status.ContainerStatuses}
	case *appsv1.DaemonSet:
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
		stripPod(&o.Spec.Template.Spec)
		o.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: o.Status.DesiredNumberScheduled, NumberReady: o.Status.NumberReady}
	case *corev1.ConfigMap:
		stripConfigMap(o)
	case *unstructured.Unstructured:
		o.SetManagedFields(nil)
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	}
	return o, nil
}

func stripMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
}

// stripNode makes a small copy: most of a Node is about images and volumes.
func stripNode(n *corev1.Node) *corev1.Node {
	small := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp, Labels: n.Labels,
	}}
	for _, key := range []string{"k3s.io/node-args", "rke2.io/node-args"} { // they may hold kube-proxy's arguments
		if value, ok := n.Annotations[key]; ok && len(value) <= maxConfig {
			metav1.SetMetaDataAnnotation(&small.ObjectMeta, key, value)
		}
	}
	small.Spec.Taints, small.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	small.Status.Addresses = n.Status.Addresses
	small.Status.NodeInfo.KubeletVersion, small.Status.NodeInfo.OperatingSystem = n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.OperatingSystem
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady || c.Type == corev1.NodeNetworkUnavailable {
			c.LastHeartbeatTime, c.Message = metav1.Time{}, "" // they change every few minutes
			small.Status.Conditions = append(small.Status.Conditions, c)
		}
	}
	return small
}

func stripPod(spec *corev1.PodSpec) {
	spec.Affinity, spec.ImagePullSecrets, spec.TopologySpreadConstraints, spec.EphemeralContainers = nil, nil, nil, nil
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			c := &list[i]
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
			c.Resources = corev1.ResourceRequirements{}
		}
	}
}

// stripConfigMap leaves of the ConfigMaps of a namespace the texts of those that
// can tell of kube-proxy or an announcer: others are nobody's business.
func stripConfigMap(cm *corev1.ConfigMap) {
	delete(cm.Annotations, corev1.LastAppliedConfigAnnotation)
	cm.BinaryData = nil
	known := strings.Contains(cm.Name, "proxy") || cm.Name == "cilium-config" || cm.Name == "antrea-config" ||
		strings.HasPrefix(cm.Name, "metallb") || cm.Name == "config" || strings.HasPrefix(cm.Name, "plndr") || strings.HasPrefix(cm.Name, "kube-vip")
	for key, text := range cm.Data {
		if !known && !strings.Contains(text, "KubeProxyConfiguration") || len(text) > maxConfig {
			delete(cm.Data, key)
		}
	}
	if !known && len(cm.Data) == 0 {
		cm.Annotations, cm.ManagedFields = nil, nil // those of locks change every few seconds
	}
}
