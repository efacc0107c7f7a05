package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	metalLB        = "metallb-system" // the namespace
	metalLBVersion = "v0.16.1"
	// proxyText is a ConfigMap's as kubeadm writes it, but for conntrack: only the
	// machine's first namespace has those settings.
	proxyText = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: 0
  min: 0
  tcpCloseWaitTimeout: 0s
  tcpEstablishedTimeout: 0s
healthzBindAddress: ""
hostnameOverride: ""
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 0s
kind: KubeProxyConfiguration
metricsBindAddress: ""
mode: ipvs
`
)

// makeObjects makes all objects but the DaemonSets' pods.
func (c *Cluster) makeObjects(ctx context.Context) error {
	for _, node := range c.Nodes {
		if err := c.makeNode(ctx, node); err != nil {
			return fmt.Errorf("make node %s: %w", node.Name, err)
		}
	}
	if _, err := c.API.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metalLB}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.makeKubeProxy(ctx); err != nil {
		return err
	}
	if err := c.makeMetalLB(ctx); err != nil {
		return err
	}
	return c.makeService(ctx)
}

func (c *Cluster) makeNode(ctx context.Context, n *Node) error {
	node, err := c.API.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, Labels: map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Addr.Addr().String()}, {Type: corev1.NodeHostName, Address: n.Name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = c.API.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	// The admission plugin TaintNodesByCondition taints new nodes; the node
	// controller, which is not there, would take it off.
	_, err = c.API.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	return err
}

func daemonSet(namespace, name string, labels map[string]string, pod corev1.PodSpec) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

func (c *Cluster) makeKubeProxy(ctx context.Context) error {
	_, err := c.API.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy", Labels: map[string]string{"app": "kube-proxy"}},
		Data:       map[string]string{"config.conf": proxyText, "kubeconfig.conf": c.kubeconfigText},
	}, metav1.CreateOptions{FieldManager: "kubeadm"})
	if err != nil {
		return err
	}
	_, err = c.API.AppsV1().DaemonSets("kube-system").Create(ctx, daemonSet("kube-system", "kube-proxy", map[string]string{"k8s-app": "kube-proxy"}, corev1.PodSpec{
		HostNetwork: true, NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}, PriorityClassName: "system-node-critical",
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.37.2",
			Command:      []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"},
			Env:          []corev1.EnvVar{fieldEnv("NODE_NAME", "spec.nodeName")},
			VolumeMounts: []corev1.VolumeMount{{Name: "kube-proxy", MountPath: "/var/lib/kube-proxy"}},
		}},
		Volumes: []corev1.Volume{{Name: "kube-proxy", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-proxy"}},
		}}},
	}), metav1.CreateOptions{FieldManager: "kubeadm"})
	return err
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func (c *Cluster) makeMetalLB(ctx context.Context) error {
	labels := map[string]string{"app": "metallb", "component": "controller"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "controller", Image: "quay.io/metallb/controller:" + metalLBVersion}}}
	_, err := c.API.AppsV1().Deployments(metalLB).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "controller", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := c.API.CoreV1().Pods(metalLB).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "controller", Labels: labels}, Spec: pod}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = c.API.AppsV1().DaemonSets(metalLB).Create(ctx, daemonSet(metalLB, "speaker", map[string]string{"app": "metallb", "component": "speaker"}, corev1.PodSpec{
		HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "speaker", Image: "quay.io/metallb/speaker:" + metalLBVersion, Args: []string{"--port=7472", "--log-level=info"},
			Env: []corev1.EnvVar{
				fieldEnv("METALLB_NODE_NAME", "spec.nodeName"), fieldEnv("METALLB_POD_NAME", "metadata.name"), fieldEnv("METALLB_HOST", "status.hostIP"),
				fieldEnv("METALLB_ML_BIND_ADDR", "status.podIP"), {Name: "METALLB_ML_LABELS", Value: "app=metallb,component=speaker"},
				{Name: "METALLB_ML_SECRET_KEY_PATH", Value: "/etc/ml_secret_key"},
			},
			SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_RAW"}}},
		}},
	}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := c.create(ctx, "ipaddresspools", "IPAddressPool", "web", map[string]any{"addresses": []any{"10.0.3.20-10.0.3.40"}}); err != nil {
		return err
	}
	return c.create(ctx, "l2advertisements", "L2Advertisement", "web", map[string]any{"ipAddressPools": []any{"web"}, "interfaces": []any{NIC}})
}

// create makes one of MetalLB's objects.
func (c *Cluster) create(ctx context.Context, resource, kind, name string, spec map[string]any) error {
	_, err := c.MetalLB(resource).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metallb.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	return err
}

func metalLBResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: name}
}

// makeService makes the Service, which MetalLB gives the VIP, and its endpoint.
func (c *Cluster) makeService(ctx context.Context) error {
	_, err := c.API.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node, port, name := "w1", int32(8080), "http"
	yes, no := true, false
	_, err = c.API.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{endpoint.String()}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
		}},
	}, metav1.CreateOptions{})
	return err
}
