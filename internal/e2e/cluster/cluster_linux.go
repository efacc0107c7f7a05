package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/daemonset"
	"github.com/strictarp/strictarp/internal/e2e/process"
)

// Cluster is a cluster that runs. Its methods are to be called by one goroutine.
type Cluster struct {
	Plane   *controlplane.ControlPlane
	API     kubernetes.Interface
	Dynamic dynamic.Interface
	Nodes   []*Node
	Client  *Host // of the nodes' subnet
	HAProxy *Host // of another subnet

	dir                        string
	kubeconfig, kubeconfigText string
	memberlistKey              string
	controller                 *process.Process
	daemons                    []*daemonset.Controller
	stop                       context.CancelFunc
	stopped                    chan error
}

// Start makes the network, starts everything and returns when MetalLB has given the
// Service its VIP. There is no way back but to switch the machine off.
func Start(ctx context.Context, dir string, log func(format string, args ...any)) (*Cluster, error) {
	c := &Cluster{dir: dir, memberlistKey: "e2e-memberlist-key-0123456789"}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"network", c.makeNetwork},
		{"etcd and kube-apiserver", c.startControlPlane},
		{"objects", c.makeObjects},
		{"MetalLB's controller", c.startController},
		{"kube-proxies and speakers", c.startDaemons},
		{"an address for the Service", c.awaitVIP},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start a cluster: %s: %w", step.what, err), c.Stop())
		}
		log("%-28s %5.1f s", step.what, time.Since(began).Seconds())
	}
	return c, nil
}

func (c *Cluster) makeNetwork(context.Context) error {
	if err := newBridge(); err != nil {
		return err
	}
	for i, name := range []string{"w1", "w2", "w3"} {
		routes := []route{{"0.0.0.0/0", Router.String()}}
		if i > 0 {
			routes = append(routes, route{"10.244.1.0/24", "10.0.3.11"})
		}
		h, err := newHost(name, fmt.Sprintf("10.0.3.%d/24", 11+i), routes...)
		if err != nil {
			return err
		}
		if err := h.Sysctl("net/ipv4/ip_forward=1"); err != nil {
			return err
		}
		n := &Node{Host: h, dir: filepath.Join(c.dir, name)}
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, n)
	}
	var err error
	if c.Client, err = newHost("client", "10.0.3.50/24", route{"0.0.0.0/0", Router.String()}); err != nil {
		return err
	}
	if c.HAProxy, err = newHost("haproxy", "172.31.9.9/24", route{"10.0.3.0/24", ""}); err != nil {
		return err
	}
	return c.serveEndpoint()
}

func (c *Cluster) startControlPlane(ctx context.Context) (err error) {
	c.Plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: c.dir, Etcd: filepath.Join(Programs, "etcd"), APIServer: filepath.Join(Programs, "kube-apiserver"), Address: Router, Port: 6443, Ready: patience,
	})
	if err != nil {
		return err
	}
	if c.API, err = kubernetes.NewForConfig(c.Plane.Config(controlplane.Admin)); err != nil {
		return err
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Plane.Config(controlplane.Admin)); err != nil {
		return err
	}
	if c.kubeconfig, err = c.Plane.Kubeconfig(controlplane.Admin); err != nil {
		return err
	}
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		return err
	}
	c.kubeconfigText = string(text)
	crds, err := os.ReadFile(CRDs)
	if err != nil {
		return err
	}
	return c.Plane.InstallCRDs(ctx, crds)
}

// MetalLB returns a client for one of MetalLB's resources.
func (c *Cluster) MetalLB(resource string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(metalLBResource(resource)).Namespace(metalLB)
}

func (c *Cluster) startController(context.Context) (err error) {
	c.controller, err = process.Start(process.Spec{
		Path: filepath.Join(Programs, "controller"), Args: []string{"--port=7472", "--log-level=info", "--webhook-mode=disabled", "--disable-cert-rotation"},
		Log: filepath.Join(c.dir, "controller.log"),
		Env: []string{"KUBECONFIG=" + c.kubeconfig, "METALLB_NAMESPACE=" + metalLB, "METALLB_DEPLOYMENT=controller", "METALLB_POD_NAME=controller"},
	})
	return err
}

func (c *Cluster) startDaemons(ctx context.Context) error {
	names := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		names[i] = n.Name
	}
	address := func(node string) string { return c.node(node).Addr.Addr().String() }
	c.daemons = []*daemonset.Controller{
		{Client: c.API, Namespace: metalLB, Name: "speaker", Nodes: names, Address: address, Start: c.startSpeaker, Stop: c.stopSpeaker},
		{Client: c.API, Namespace: "kube-system", Name: "kube-proxy", Nodes: names, Address: address, Start: c.startProxy, Stop: c.stopProxy},
	}
	for _, d := range c.daemons {
		if err := d.Settle(ctx); err != nil {
			return err
		}
	}
	c.control()
	return nil
}

// control has the DaemonSets' pods replaced when their templates change, until Stop.
func (c *Cluster) control() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop, c.stopped = cancel, make(chan error, len(c.daemons))
	for _, d := range c.daemons {
		go func() { c.stopped <- d.Run(ctx) }()
	}
}

func (c *Cluster) awaitVIP(ctx context.Context) error {
	return Await(ctx, "MetalLB's controller to give the Service its address", func(ctx context.Context) error {
		if err := c.controller.Failed(); err != nil {
			return stop{err}
		}
		s, err := c.API.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := s.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != VIP.String() {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// Stop ends all processes.
func (c *Cluster) Stop() error {
	var errs []error
	if c.stop != nil {
		c.stop()
		for range c.daemons {
			errs = append(errs, <-c.stopped)
		}
	}
	processes := []*process.Process{c.controller}
	for _, n := range c.Nodes {
		proxy, speaker := n.processes()
		processes = append(processes, proxy, speaker)
	}
	for _, p := range processes {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	if c.Plane != nil {
		errs = append(errs, c.Plane.Stop())
	}
	return errors.Join(errs...)
}

// node returns a node by its name, which must exist.
func (c *Cluster) node(name string) *Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	panic("there is no node " + name)
}

// Node returns a node by its name.
func (c *Cluster) Node(name string) *Node { return c.node(name) }

// serveEndpoint makes the pod that serves the Service, on w1: it says who it is.
func (c *Cluster) serveEndpoint() error {
	pod, err := newPod(c.node("w1"))
	if err != nil {
		return err
	}
	var l net.Listener
	err = pod.NS.Do(func() error {
		l, err = net.Listen("tcp", endpoint.String()+":8080")
		return err
	})
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "web on w1") }))
	}() // it serves until the machine is off
	return nil
}
