package metallbtest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Objects returns the cluster's objects: typed ones of Kubernetes, unstructured
// ones of MetalLB, and after them Extra. They are made anew each time.
func (c *Cluster) Objects() []runtime.Object {
	var all []runtime.Object
	for _, n := range c.Nodes {
		all = append(all, n.object())
	}
	for _, s := range c.Services {
		all = append(all, s.object(), s.slice())
	}
	if len(c.Speakers) > 0 {
		all = append(all, c.daemonSet())
	}
	for _, s := range c.Speakers {
		all = append(all, c.pod(s))
	}
	if c.ExcludeL2 != nil {
		all = append(all, c.excludeMap())
	}
	for i, e := range c.Events {
		all = append(all, e.object(i))
	}
	for _, cr := range c.customResources() {
		all = append(all, cr)
	}
	return append(all, c.Extra...)
}

func (c *Cluster) namespace() string { return cmp.Or(c.Namespace, "metallb-system") }
func (c *Cluster) version() string   { return cmp.Or(c.Version, "0.16.1") }

func (c *Cluster) meta(name string) metav1.ObjectMeta { return objectMeta(c.namespace(), name) }

// objectMeta makes UIDs of names: equal clusters make equal objects.
func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), CreationTimestamp: metav1.NewTime(Start())}
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func (n *Node) object() *corev1.Node {
	o := &corev1.Node{TypeMeta: core("Node"), ObjectMeta: objectMeta("", n.Name)}
	o.Labels = map[string]string{corev1.LabelHostname: n.Name}
	for k, v := range n.Labels {
		o.Labels[k] = v
	}
	if n.Excluded {
		o.Labels[corev1.LabelNodeExcludeBalancers] = ""
	}
	o.Spec.Unschedulable = n.Unschedulable
	ready := corev1.ConditionTrue
	if n.NotReady {
		ready = corev1.ConditionUnknown
	}
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if n.NetworkUnavailable {
		o.Status.Conditions = append(o.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue})
	}
	if n.IP != "" {
		o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.IP}}
	}
	return o
}

func (s *Service) object() *corev1.Service {
	o := &corev1.Service{TypeMeta: core("Service"), ObjectMeta: objectMeta(s.Namespace, s.Name)}
	o.Labels, o.Annotations = s.Labels, s.Annotations
	o.Spec.Type = corev1.ServiceTypeLoadBalancer
	o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	if s.Local {
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if s.Class != "" {
		o.Spec.LoadBalancerClass = &s.Class
	}
	if o.Spec.Selector = s.Selector; s.Selector == nil {
		o.Spec.Selector = map[string]string{"app": s.Name}
	}
	ports := s.Ports
	if ports == nil {
		ports = []int32{80}
	}
	for _, p := range ports {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "port-" + strconv.Itoa(int(p)), Protocol: corev1.ProtocolTCP, Port: p})
	}
	for _, a := range s.Addresses {
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	return o
}

func (s *Service) slice() *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: objectMeta(s.Namespace, s.Name+"-abcde"), AddressType: discoveryv1.AddressTypeIPv4}
	o.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	for i, e := range s.Endpoints {
		ready, serving, terminating := !e.NotReady && !e.Terminating, !e.NotReady, e.Terminating
		node := e.Node
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.%d.%d", i/250, i%250+1)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		})
	}
	return o
}

func (e *Event) object(i int) *corev1.Event {
	namespace, name, _ := strings.Cut(e.Service, "/")
	at := e.At
	if at.IsZero() {
		at = Start()
	}
	o := &corev1.Event{TypeMeta: core("Event"), ObjectMeta: objectMeta(namespace, fmt.Sprintf("%s.%x", name, i)),
		Reason: e.Reason, Message: e.Message, Type: corev1.EventTypeNormal, Count: max(e.Count, 1),
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at)}
	o.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: name}
	o.Source.Component = "metallb-speaker"
	if e.Warning {
		o.Type = corev1.EventTypeWarning
	}
	return o
}

func speakerLabels() map[string]string {
	return map[string]string{"app": "metallb", "component": "speaker"}
}

func (c *Cluster) daemonSet() *appsv1.DaemonSet {
	o := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: c.meta("speaker")}
	o.Labels = speakerLabels()
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: speakerLabels()}
	o.Spec.Template.Labels = speakerLabels()
	o.Spec.Template.Spec = c.podSpec(false)
	o.Status.DesiredNumberScheduled = int32(len(c.Nodes))
	for _, s := range c.Speakers {
		if s.running() && !s.NotReady {
			o.Status.NumberReady++
		}
	}
	return o
}

func (c *Cluster) podSpec(noNetRaw bool) corev1.PodSpec {
	capabilities := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	if !noNetRaw {
		capabilities.Add = []corev1.Capability{"NET_RAW"}
	}
	container := corev1.Container{
		Name: "speaker", Image: "quay.io/metallb/speaker:v" + c.version(),
		Args:            append([]string{"--port=7472", "--log-level=info"}, c.SpeakerArgs...),
		SecurityContext: &corev1.SecurityContext{Capabilities: capabilities},
		Env: []corev1.EnvVar{{Name: "METALLB_NODE_NAME",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
	}
	if !c.NoMemberlist {
		container.Env = append(container.Env,
			corev1.EnvVar{Name: "METALLB_ML_BIND_ADDR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			corev1.EnvVar{Name: "METALLB_ML_LABELS", Value: "app=metallb,component=speaker"})
	}
	return corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container}}
}

func (s *Speaker) name() string  { return cmp.Or(s.Name, "speaker-"+s.Node) }
func (s *Speaker) running() bool { return s.Waiting == "" }

func (s *Speaker) started() time.Time {
	if s.Started.IsZero() {
		return Start()
	}
	return s.Started
}

func (c *Cluster) pod(s *Speaker) *corev1.Pod {
	o := &corev1.Pod{TypeMeta: core("Pod"), ObjectMeta: c.meta(s.name()), Spec: c.podSpec(s.NoNetRaw)}
	o.Labels = speakerLabels()
	controller := true
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "speaker", UID: c.meta("speaker").UID, Controller: &controller}}
	o.Spec.NodeName = s.Node
	ready := s.running() && !s.NotReady
	status := corev1.ContainerStatus{Name: "speaker", Image: o.Spec.Containers[0].Image, Ready: ready}
	o.Status.Phase = corev1.PodRunning
	if s.running() {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.started())}
	} else {
		o.Status.Phase = corev1.PodPending
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: s.Waiting}
	}
	o.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	condition := corev1.ConditionTrue
	if !ready {
		condition = corev1.ConditionFalse
	}
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: condition}}
	return o
}
