package endurance_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/daemonset"
	"github.com/strictarp/strictarp/internal/e2e/manifests"
	"github.com/strictarp/strictarp/internal/e2e/process"
	"github.com/strictarp/strictarp/internal/e2e/programs"
	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// own is the namespace of agents and controllers.
const own = "strictarp"

// nodes hold the VIPs of the Services, by name, of which each is announced by one
// node: the one that MetalLB's election gives, as only that has an endpoint.
var (
	nodes      = []string{"w1", "w2", "w3"}
	vips       = map[string]netip.Addr{"web": netip.MustParseAddr("10.0.3.20"), "api": netip.MustParseAddr("10.0.3.21")}
	announcers = map[string]string{"web": "w1", "api": "w3"}
)

// scene is a cluster with everything in it.
type scene struct {
	*testing.T
	dir     string
	lab     *netnstest.Segment
	server  *netnstest.Host // where the control plane and the controllers run
	ns      *netns.NS       // server's
	plane   *controlplane.ControlPlane
	admin   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	began   time.Time

	mu       sync.Mutex
	programs map[string]*program     // by name: agents by their node
	proxies  map[string]*http.Server // by node
	away     []span                  // the API server was, or had just come back
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, dir: t.TempDir(), lab: netnstest.New(t), began: time.Now(), programs: map[string]*program{}, proxies: map[string]*http.Server{}}
	s.makeNodes()
	s.startControlPlane()
	s.makeObjects()
	s.startProxies()
	return s
}

// makeNodes makes the nodes, and a host for the rest.
func (s *scene) makeNodes() {
	s.Helper()
	for i, name := range nodes {
		h, err := s.lab.AddNode(name, prefix(byte(11+i)))
		require.NoError(s, err)
		for _, vip := range vips {
			require.NoError(s, h.HoldVIP(vip))
		}
	}
	for service, node := range announcers {
		_, err := s.node(node).Announce(vips[service])
		require.NoError(s, err)
	}
	var err error
	s.server, err = s.lab.AddClient("server", prefix(5))
	require.NoError(s, err)
	require.NoError(s, s.server.Do(func() error {
		s.ns, err = netns.Current()
		return err
	}))
	s.Cleanup(func() { _ = s.ns.Close() })
}

func prefix(host byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, host}), 24)
}

func (s *scene) node(name string) *netnstest.Host { return s.lab.Host(name) }

func (s *scene) startControlPlane() {
	s.Helper()
	ctx := s.Context()
	built, err := programs.Build(ctx, programs.ControlPlane()...)
	require.NoError(s, err)
	s.plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: s.dir, Etcd: built[programs.Etcd], APIServer: built[programs.APIServer], Address: s.server.Addr(), Port: 6443, NS: s.ns, Audit: true,
	})
	require.NoError(s, err)
	s.Cleanup(func() { _ = s.plane.Stop() })
	config := s.plane.Config(controlplane.Admin)
	s.admin, err = kubernetes.NewForConfig(config)
	require.NoError(s, err)
	s.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(s, err)
	crds, err := programs.CRDs(ctx)
	require.NoError(s, err)
	require.NoError(s, s.plane.InstallCRDs(ctx, append(crds, otherCRDs()...)))
}

// apply applies one of the folders of examples/deploy.
func (s *scene) apply(folder string) {
	s.Helper()
	objects, err := manifests.Build(filepath.Join("..", "..", "..", "examples", "deploy", folder))
	require.NoError(s, err)
	require.NoError(s, manifests.Apply(s.Context(), s.plane.Config(controlplane.Admin), objects, false))
}

// startProxies runs a stand-in for kube-proxy on each node.
func (s *scene) startProxies() {
	s.Helper()
	d := &daemonset.Controller{
		Client: s.admin, Namespace: kubeproxytest.Namespace, Name: kubeproxytest.Name, Nodes: nodes,
		Address: func(node string) string { return s.node(node).Addr().String() },
		Start:   s.startProxy, Stop: s.stopProxy,
	}
	require.NoError(s, d.Settle(s.Context()))
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil { // the API server is away now and then
			_ = d.Run(ctx)
		}
	}()
	s.Cleanup(func() {
		cancel()
		<-done
	})
}

// startProxy does on a node what kube-proxy does when it starts: it reads its
// configuration, makes the kernel strict if that says so, and answers on the
// loopback interface.
func (s *scene) startProxy(ctx context.Context, node string, _ *corev1.Pod) error {
	cm, err := s.admin.CoreV1().ConfigMaps(kubeproxytest.Namespace).Get(ctx, kubeproxytest.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	config, err := kubeproxy.Parse([]byte(cm.Data[kubeproxytest.Key]), kubeproxy.ParseOptions{Version: "1.37.2"})
	if err != nil {
		return err
	}
	strict := config.StrictARP == kubeproxy.StrictARPTrue
	if strict {
		if err := s.node(node).SetStrictARP(true); err != nil {
			return err
		}
	}
	var l net.Listener
	err = s.node(node).Do(func() error {
		l, err = net.Listen("tcp", "127.0.0.1:10249")
		return err
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: kubeproxytest.Proxy{Mode: kubeproxy.ModeIPVS, StrictARP: strict, Started: time.Now()}}
	s.mu.Lock()
	s.proxies[node] = server
	s.mu.Unlock()
	go func() { _ = server.Serve(l) }()
	return nil
}

func (s *scene) stopProxy(_ context.Context, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxies[node].Close()
}

// program is a program that is started again when it was ended.
type program struct {
	spec  process.Spec
	now   *process.Process
	since time.Time
}

// buildPrograms builds the programs as their images have them.
func (s *scene) buildPrograms() (agent, controller string) {
	s.Helper()
	agent, controller = filepath.Join(s.dir, "agent"), filepath.Join(s.dir, "controller")
	for _, file := range []string{agent, controller} {
		build := exec.CommandContext(s.Context(), "go", "build", "-trimpath", "-o", file, "./examples/"+filepath.Base(file))
		build.Dir, build.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(s, err, string(out))
	}
	return agent, controller
}

// startPrograms starts an agent on each node and two controllers, each as its service
// account.
func (s *scene) startPrograms() {
	s.Helper()
	agent, controller := s.buildPrograms()
	for _, node := range nodes {
		var ns *netns.NS
		require.NoError(s, s.node(node).Do(func() (err error) {
			ns, err = netns.Current()
			return err
		}))
		s.Cleanup(func() { _ = ns.Close() })
		s.start("agent-"+node, process.Spec{Path: agent, NS: ns, Args: []string{
			"--node=" + node, "--kubeconfig=" + s.kubeconfig("strictarp-agent", "agent-"+node, node), "--every=5s", "--probe-every=30s",
		}})
	}
	for i, name := range []string{"controller-a", "controller-b"} {
		s.start(name, process.Spec{Path: controller, NS: s.ns, Args: []string{
			"--kubeconfig=" + s.kubeconfig("strictarp-controller", name, "w1"), fmt.Sprintf("--listen=127.0.0.1:%d", 9794+i),
			"--remedy=strict", "--remedy-soak=10s",
		}})
	}
}

func (s *scene) start(name string, spec process.Spec) {
	s.Helper()
	spec.Log = filepath.Join(s.dir, name+".log")
	p, err := process.Start(spec)
	require.NoError(s, err)
	s.programs[name] = &program{spec: spec, now: p, since: time.Now()}
	s.Cleanup(func() { _ = s.programs[name].now.Kill() })
}

// kubeconfig makes a pod of a service account on a node, and a file with a token
// that is bound to it, as the kubelet asks for.
func (s *scene) kubeconfig(account, pod, node string) string {
	s.Helper()
	ctx := s.Context()
	made, err := s.admin.CoreV1().Pods(own).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "only", Image: account}}},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
	seconds := int64(24 * time.Hour / time.Second)
	token, err := s.admin.CoreV1().ServiceAccounts(own).CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: made.UID},
	}}, metav1.CreateOptions{})
	require.NoError(s, err)
	file, err := s.plane.KubeconfigOf(pod, token.Status.Token)
	require.NoError(s, err)
	return file
}
