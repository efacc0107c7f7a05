package endurance_test

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// makeObjects makes what the cluster consists of: nodes, kube-proxy with
// strictARP, MetalLB's pool, and two Services, each with an endpoint on the node that
// announces its VIP.
func (s *scene) makeObjects() {
	s.Helper()
	ctx := s.Context()
	_, err := s.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metallb-system"}}, metav1.CreateOptions{})
	require.NoError(s, err)
	for _, name := range nodes {
		node, err := s.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		}}, metav1.CreateOptions{})
		require.NoError(s, err)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.node(name).Addr().String()}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		_, err = s.admin.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		require.NoError(s, err)
	}
	s.makeSpeakers()
	fake := kubeproxytest.New(kubeproxytest.Strict)
	cm, err := fake.ConfigMaps(kubeproxytest.Namespace).Get(ctx, kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	ds, err := fake.DaemonSets(kubeproxytest.Namespace).Get(ctx, kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	cm.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Labels: cm.Labels}
	ds.ObjectMeta = metav1.ObjectMeta{Name: ds.Name, Labels: ds.Labels}
	_, err = s.admin.CoreV1().ConfigMaps(kubeproxytest.Namespace).Create(ctx, cm, metav1.CreateOptions{FieldManager: "kubeadm"})
	require.NoError(s, err)
	_, err = s.admin.AppsV1().DaemonSets(kubeproxytest.Namespace).Create(ctx, ds, metav1.CreateOptions{FieldManager: "kubeadm"})
	require.NoError(s, err)
	s.create("ipaddresspools", "IPAddressPool", map[string]any{"addresses": []any{"10.0.3.20-10.0.3.40"}})
	s.create("l2advertisements", "L2Advertisement", map[string]any{"ipAddressPools": []any{"all"}})
	for service, node := range announcers {
		require.NoError(s, s.makeService(ctx, service, vips[service].String()))
		require.NoError(s, s.setEndpoint(ctx, service, node))
	}
}

// setStrictARP edits kube-proxy's configuration and has it read.
func (s *scene) setStrictARP(on bool) {
	s.Helper()
	maps := s.admin.CoreV1().ConfigMaps(kubeproxytest.Namespace)
	cm, err := maps.Get(s.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	cm.Data[kubeproxytest.Key] = kubeproxytest.Text(kubeproxy.ModeIPVS, on)
	_, err = maps.Update(s.Context(), cm, metav1.UpdateOptions{})
	require.NoError(s, err)
	pods := s.admin.CoreV1().Pods(kubeproxytest.Namespace)
	list, err := pods.List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	for _, pod := range list.Items {
		require.NoError(s, pods.Delete(s.Context(), pod.Name, metav1.DeleteOptions{}))
	}
}

// otherKinds are what the controller reads of other announcers where they are
// installed.
var otherKinds = []struct{ group, version, plural, kind string }{
	{"cilium.io", "v2alpha1", "ciliuml2announcementpolicies", "CiliumL2AnnouncementPolicy"},
	{"crd.antrea.io", "v1beta1", "egresses", "Egress"},
	{"crd.projectcalico.org", "v1", "bgpconfigurations", "BGPConfiguration"},
	{"crd.projectcalico.org", "v1", "felixconfigurations", "FelixConfiguration"},
	{"network.kubesphere.io", "v1alpha2", "eips", "Eip"},
	{"redhatcop.redhat.io", "v1alpha1", "keepalivedgroups", "KeepalivedGroup"},
}

// otherCRDs defines these kinds, of any content.
func otherCRDs() []byte {
	var text []byte
	for _, k := range otherKinds {
		text = fmt.Appendf(text, `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s}
spec:
  group: %[1]s
  scope: Cluster
  names: {plural: %[3]s, kind: %[4]s}
  versions:
    - {name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, k.group, k.version, k.plural, k.kind)
	}
	return text
}

// makeSpeakers makes the pods of MetalLB's speakers.
func (s *scene) makeSpeakers() {
	s.Helper()
	pods := s.admin.CoreV1().Pods("metallb-system")
	for _, node := range nodes {
		pod, err := pods.Create(s.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "speaker-" + node, Labels: map[string]string{"app": "metallb", "component": "speaker"}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "speaker", Image: "quay.io/metallb/speaker:v0.16.1"}}},
		}, metav1.CreateOptions{})
		require.NoError(s, err)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_, err = pods.UpdateStatus(s.Context(), pod, metav1.UpdateOptions{})
		require.NoError(s, err)
	}
}

// create makes one of MetalLB's objects.
func (s *scene) create(resource, kind string, spec map[string]any) {
	s.Helper()
	_, err := s.dynamic.Resource(schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: resource}).Namespace("metallb-system").
		Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "metallb.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": "all"}, "spec": spec,
		}}, metav1.CreateOptions{})
	require.NoError(s, err)
}

// makeService makes a Service with an address and without an endpoint. Like those
// that follow it may be called again when it has failed half way.
func (s *scene) makeService(ctx context.Context, name, address string) error {
	services := s.admin.CoreV1().Services("default")
	service, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		service, err = services.Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	if _, err := services.UpdateStatus(ctx, service, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = s.admin.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *scene) removeService(ctx context.Context, name string) error {
	for _, err := range []error{
		s.admin.DiscoveryV1().EndpointSlices("default").Delete(ctx, name+"-1", metav1.DeleteOptions{}),
		s.admin.CoreV1().Services("default").Delete(ctx, name, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// setEndpoint gives a Service one endpoint on a node, or none if that is empty.
func (s *scene) setEndpoint(ctx context.Context, service, node string) error {
	slices := s.admin.DiscoveryV1().EndpointSlices("default")
	slice, err := slices.Get(ctx, service+"-1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	slice.Endpoints, slice.Ports = nil, nil
	if node != "" {
		port, name, yes := int32(8080), "http", true
		slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
		slice.Endpoints = []discoveryv1.Endpoint{{
			Addresses: []string{"10.244.1.2"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
		}}
	}
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}
