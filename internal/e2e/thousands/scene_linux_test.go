package thousands_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/manifests"
	"github.com/strictarp/strictarp/internal/e2e/process"
	"github.com/strictarp/strictarp/internal/e2e/programs"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// own is the namespace of agents and controllers.
const own = "strictarp"

// scene is a cluster with everything in it.
type scene struct {
	*testing.T
	dir        string
	plane      *controlplane.ControlPlane
	admin      *kubernetes.Clientset
	fleet      *process.Process
	controller *process.Process
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func vip(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)}) }

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, dir: t.TempDir()}
	s.startControlPlane()
	s.makeObjects()
	for _, folder := range []string{"base", "metallb"} {
		objects, err := manifests.Build(filepath.Join("..", "..", "..", "examples", "deploy", folder))
		require.NoError(t, err)
		require.NoError(t, manifests.Apply(t.Context(), s.plane.Config(controlplane.Admin), objects, false))
	}
	return s
}

func (s *scene) startControlPlane() {
	s.Helper()
	ctx := s.Context()
	built, err := programs.Build(ctx, programs.ControlPlane()...)
	require.NoError(s, err)
	s.plane, err = controlplane.Start(ctx, controlplane.Options{Dir: s.dir, Etcd: built[programs.Etcd], APIServer: built[programs.APIServer]})
	require.NoError(s, err)
	s.Cleanup(func() { _ = s.plane.Stop() })
	s.admin, err = kubernetes.NewForConfig(s.plane.Config(controlplane.Admin))
	require.NoError(s, err)
	crds, err := programs.CRDs(ctx)
	require.NoError(s, err)
	require.NoError(s, s.plane.InstallCRDs(ctx, crds))
}

// each does something for all numbers below n, several at a time.
func (s *scene) each(n int, what string, do func(ctx context.Context, i int) error) {
	s.Helper()
	began := time.Now()
	next := make(chan int)
	var mu sync.Mutex
	var errs []error
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for i := range next {
				if err := do(s.Context(), i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	require.NoError(s, errors.Join(errs...), what)
	s.Logf("made %d %s in %v", n, what, time.Since(began).Round(time.Second))
}

// makeObjects makes nodes, kube-proxy's and MetalLB's pods and configuration, and
// Services with an endpoint each.
func (s *scene) makeObjects() {
	s.Helper()
	ctx := s.Context()
	for _, name := range []string{own, "metallb-system"} {
		_, err := s.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(s, err)
	}
	s.each(*nodes, "nodes", s.makeNode)
	fake := kubeproxytest.New(kubeproxytest.Strict)
	cm, err := fake.ConfigMaps(kubeproxytest.Namespace).Get(ctx, kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	ds, err := fake.DaemonSets(kubeproxytest.Namespace).Get(ctx, kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	cm.ObjectMeta, ds.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Labels: cm.Labels}, metav1.ObjectMeta{Name: ds.Name, Labels: ds.Labels}
	_, err = s.admin.CoreV1().ConfigMaps(kubeproxytest.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	require.NoError(s, err)
	ds, err = s.admin.AppsV1().DaemonSets(kubeproxytest.Namespace).Create(ctx, ds, metav1.CreateOptions{})
	require.NoError(s, err)
	dynamic, err := dynamic.NewForConfig(s.plane.Config(controlplane.Admin))
	require.NoError(s, err)
	for resource, o := range map[string]map[string]any{
		"ipaddresspools":   {"kind": "IPAddressPool", "spec": map[string]any{"addresses": []any{"10.200.0.0/16"}}},
		"l2advertisements": {"kind": "L2Advertisement", "spec": map[string]any{"ipAddressPools": []any{"all"}}},
	} {
		o["apiVersion"], o["metadata"] = "metallb.io/v1beta1", map[string]any{"name": "all"}
		_, err := dynamic.Resource(schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: resource}).Namespace("metallb-system").
			Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
		require.NoError(s, err)
	}
	s.each(*nodes, "pods of kube-proxy and speakers", func(ctx context.Context, i int) error { return s.makePods(ctx, i, ds) })
	s.each(*services, "Services", s.makeService)
}

func (s *scene) makeNode(ctx context.Context, i int) error {
	node, err := s.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName(i), Labels: map[string]string{corev1.LabelHostname: nodeName(i), corev1.LabelOSStable: "linux"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	address := netip.AddrFrom4([4]byte{10, 0, byte((i + 11) >> 8), byte(i + 11)})
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = s.admin.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

func (s *scene) makePods(ctx context.Context, i int, ds *appsv1.DaemonSet) error {
	pod := func(namespace, name string, labels map[string]string, spec corev1.PodSpec) error {
		spec.NodeName = nodeName(i)
		made, err := s.admin.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Status.Phase = corev1.PodRunning
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_, err = s.admin.CoreV1().Pods(namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		return err
	}
	return errors.Join(
		pod(kubeproxytest.Namespace, fmt.Sprintf("kube-proxy-%05d", i), map[string]string{"k8s-app": "kube-proxy"}, *ds.Spec.Template.Spec.DeepCopy()),
		pod("metallb-system", fmt.Sprintf("speaker-%05d", i), map[string]string{"app": "metallb", "component": "speaker"},
			corev1.PodSpec{Containers: []corev1.Container{{Name: "speaker", Image: "quay.io/metallb/speaker:v0.16.1"}}}),
	)
}

// makeClusterIP makes a Service without a VIP.
func (s *scene) makeClusterIP(ctx context.Context) error {
	_, err := s.admin.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "internal"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	return err
}

// makeService makes one with a VIP and an endpoint.
func (s *scene) makeService(ctx context.Context, i int) error {
	name := fmt.Sprintf("svc-%05d", i)
	service, err := s.admin.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(bool), Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: vip(i).String()}}
	if _, err := s.admin.CoreV1().Services("default").UpdateStatus(ctx, service, metav1.UpdateOptions{}); err != nil {
		return err
	}
	port, portName, yes, node := int32(8080), "http", true, nodeName(i%*nodes)
	_, err = s.admin.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.2"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes}}},
	}, metav1.CreateOptions{})
	return err
}

// tokenOf makes a pod of a service account on a node, and a token that is bound to
// it, as the kubelet asks for.
func (s *scene) tokenOf(ctx context.Context, account, pod, node string) (string, error) {
	made, err := s.admin.CoreV1().Pods(own).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "only", Image: account}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	seconds := int64(24 * time.Hour / time.Second)
	token, err := s.admin.CoreV1().ServiceAccounts(own).CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: made.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// build builds a program of examples, or its tests.
func (s *scene) build(name string, args ...string) string {
	s.Helper()
	file := filepath.Join(s.dir, name)
	c := exec.CommandContext(s.Context(), "go", append(args, "-trimpath", "-o", file, "./examples/"+name)...)
	c.Dir, c.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(s, err, string(out))
	return file
}

const fleetAddress, controllerAddress = "127.0.0.1:9799", "127.0.0.1:9798"

// startFleet starts all agents at once.
func (s *scene) startFleet() {
	s.Helper()
	var mu sync.Mutex
	tokens := map[string]string{}
	s.each(*nodes, "tokens", func(ctx context.Context, i int) error {
		token, err := s.tokenOf(ctx, "strictarp-agent", fmt.Sprintf("agent-%05d", i), nodeName(i))
		mu.Lock()
		defer mu.Unlock()
		tokens[nodeName(i)] = token
		return err
	})
	text, err := json.Marshal(tokens)
	require.NoError(s, err)
	file := filepath.Join(s.dir, "tokens.json")
	require.NoError(s, os.WriteFile(file, text, 0o600))
	config, err := s.plane.Kubeconfig(controlplane.Admin)
	require.NoError(s, err)
	s.fleet, err = process.Start(process.Spec{Path: s.build("agent", "test", "-c"), Log: filepath.Join(s.dir, "fleet.log"), Args: []string{
		"-test.run=TestFleet", "-test.timeout=0", "-fleet=" + file, "-fleet-kubeconfig=" + config, "-fleet-listen=" + fleetAddress, fmt.Sprintf("-fleet-pods=%d", *pods), "-fleet-every=" + every.String(),
	}})
	require.NoError(s, err)
	s.Cleanup(func() { _ = s.fleet.Kill() })
}

func (s *scene) startController() {
	s.Helper()
	config := filepath.Join(s.dir, "kubeconfig-controller")
	if _, err := os.Stat(config); err != nil {
		token, err := s.tokenOf(s.Context(), "strictarp-controller", "controller", nodeName(0))
		require.NoError(s, err)
		config, err = s.plane.KubeconfigOf("controller", token)
		require.NoError(s, err)
	}
	program := filepath.Join(s.dir, "controller")
	if _, err := os.Stat(program); err != nil {
		program = s.build("controller", "build")
	}
	args := []string{"--kubeconfig=" + config, "--listen=" + controllerAddress}
	if *qps > 0 {
		args = append(args, fmt.Sprintf("--qps=%d", *qps))
	}
	var err error
	s.controller, err = process.Start(process.Spec{Path: program, Log: filepath.Join(s.dir, "controller.log"), Args: args, Env: []string{"GOMEMLIMIT=" + memory}})
	require.NoError(s, err)
	s.Cleanup(func() { _ = s.controller.Kill() })
}

// memory is the GOMEMLIMIT of examples/deploy/base/controller.yaml.
const memory = "400MiB"
