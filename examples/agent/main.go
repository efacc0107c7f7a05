// Agent observes the node that it runs on, as a DaemonSet does on each: what its
// kernel would answer to ARP requests for LoadBalancer IPs, and who answers on the
// wire. It publishes that through the API server for a controller to judge, sets
// the Node condition StrictARPProblem and serves metrics. Findings are told of by the
// controller's events; with --events, which is for clusters without one, the agent
// writes those about its node.
//
//	agent [--node NAME] [--namespace NAME] [--interface NAME] [--events] [--remedy]
//	agent --npd [--vips-file FILE]     as a custom plugin of node-problem-detector
//	agent --undo                       takes back what --remedy has done
//
// It runs in the host's network namespace and needs CAP_NET_RAW to probe; what it
// lacks is among what is missing, and the rest works without. It changes nothing
// on the node but with --remedy, which needs CAP_NET_ADMIN and a writable
// /proc/sys/net.
//
// Exit codes: 0 it was told to stop; 2 it could not be run. With --npd: 0 no
// problem, 1 a problem, 2 not known.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/sysctl"
)

const (
	exitOK    = 0
	exitError = 2
)

type settings struct {
	node, namespace, link, vipsFile string
	listen, kubeconfig              string
	root, procSys, undoDir          string
	every, probeEvery               time.Duration
	npd, remedy, undo, events       bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // client-go's
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	set, err := parse(args, errOut)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
	case set.npd:
		t := targets{file: set.vipsFile}
		vips, _, _ := t.all(set.node)
		return npd(ctx, out, set.node, vips, set.observe)
	case set.undo:
		var r *remedy
		if r, err = set.newRemedy(slog.New(slog.NewTextHandler(errOut, nil)), newMetrics()); err == nil {
			err = r.undo(ctx)
		}
	default:
		err = set.serve(ctx, slog.New(slog.NewTextHandler(errOut, nil)))
	}
	if err != nil {
		fmt.Fprintln(errOut, "agent:", err)
		return exitError
	}
	return exitOK
}

const usage = `Observe this node, publish what its kernel and the wire say of who answers ARP.

Usage: agent [flags]

%s`

func parse(args []string, errOut io.Writer) (settings, error) {
	var s settings
	host, _ := os.Hostname() // only a default
	f := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&s.node, "node", cmp.Or(os.Getenv("NODE_NAME"), host), "the Node's name (default: $NODE_NAME, or the host's name)")
	f.StringVar(&s.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "strictarp"), "where facts are published (default: $POD_NAMESPACE, or strictarp)")
	f.StringVar(&s.link, "interface", "", "interface to probe on (default: the one with the VIP's subnet, or the default route's)")
	f.StringVar(&s.vipsFile, "vips-file", "", "file with more addresses to probe, one a line, read again each time")
	f.DurationVar(&s.every, "every", time.Minute, "time between observations when nothing seems to change")
	f.DurationVar(&s.probeEvery, "probe-every", 5*time.Minute, "time between passes of probes")
	f.StringVar(&s.listen, "listen", "127.0.0.1:9793", "where /metrics, /healthz and /readyz are served")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "path of a kubeconfig (default: the pod's service account)")
	f.StringVar(&s.root, "root", "/host", "where the node's root file system is mounted; without it settings for the next boot are not observed")
	f.BoolVar(&s.events, "events", false, "write events about the Node, for want of a controller that does")
	f.BoolVar(&s.npd, "npd", false, "say once whether there is a problem, as node-problem-detector wants it")
	f.BoolVar(&s.remedy, "remedy", false, "make the node's settings strict where its kernel would answer for VIPs")
	f.BoolVar(&s.undo, "undo", false, "take back what --remedy has done, and exit")
	f.StringVar(&s.undoDir, "undo-dir", "/var/lib/strictarp", "where --remedy keeps what takes it back")
	f.StringVar(&s.procSys, "proc-sys", "/proc/sys", "where --remedy writes: in a container a writable mount of the host's")
	f.Usage = func() { fmt.Fprintf(errOut, usage, f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.every < calm || s.probeEvery < probeCalm:
		return s, fmt.Errorf("--every %s, --probe-every %s: want at least %s and %s", s.every, s.probeEvery, calm, probeCalm)
	case s.npd && (s.remedy || s.undo) || s.remedy && s.undo:
		return s, errors.New("--npd, --remedy and --undo exclude each other")
	}
	return s, nil
}

// observe reads the node, and asks kube-proxy, which answers on the host's
// loopback only.
func (s settings) observe(ctx context.Context, vips []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return strictarp.Observe(ctx, strictarp.ObserveOptions{Node: s.node, Root: s.root, KubeProxy: client, VIPs: vips})
}

func (s settings) newRemedy(log *slog.Logger, m *metrics) (*remedy, error) {
	root, err := os.OpenRoot(s.procSys)
	if err != nil {
		return nil, fmt.Errorf("open the settings that are to be written: %w", err)
	}
	if info, err := os.Stat(s.undoDir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("--undo-dir %s is no directory: what takes changes back has to outlive this program: %w", s.undoDir, cmp.Or(err, os.ErrInvalid))
	}
	return &remedy{node: s.node, dir: s.undoDir, tree: sysctl.In(root), log: log, metrics: m}, nil
}

func (s settings) client() (kubernetes.Interface, error) {
	var config *rest.Config
	var err error
	if s.kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server (--kubeconfig outside of a pod): %w", err)
	}
	return newClient(config)
}

// newClient has the API server spoken to in protobuf: it takes less than JSON, in
// which bytes are written as text.
func newClient(config *rest.Config) (kubernetes.Interface, error) {
	config.UserAgent = "strictarp-agent"
	config.Timeout = 0 // watches last; each call has a deadline
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

func (s settings) serve(ctx context.Context, log *slog.Logger) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	m := newMetrics()
	a := s.newAgent(client, log, m)
	if s.remedy {
		if a.remedy, err = s.newRemedy(log, m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	node, retold := make(chan struct{}, 1), make(chan struct{}, 1)
	a.changed, a.retold = node, retold
	t := &targets{file: s.vipsFile, changed: signalTo(retold)}
	a.targets = func() ([]netip.Addr, bool, []strictarp.Missing) { return t.all(s.node) }
	a.services = t.known
	done, err := t.watch(ctx, client)
	if err != nil {
		return fmt.Errorf("watch Services: %w", err)
	}
	var group sync.WaitGroup
	failures := make(chan error, 2)
	for _, serve := range []func() error{
		func() error { return watch(ctx, make(chan struct{}), signalTo(node)) },
		func() error { return listen(ctx, s.listen, m.handler()) },
	} {
		group.Go(func() {
			failures <- serve()
			cancel() // the kubelet starts it again
		})
	}
	log.Info("observing", "node", s.node, "namespace", s.namespace, "remedy", s.remedy)
	a.run(ctx)
	group.Wait()
	done()
	return errors.Join(<-failures, <-failures)
}

func (s settings) newAgent(client kubernetes.Interface, log *slog.Logger, m *metrics) *agent {
	core := client.CoreV1()
	a := &agent{
		node: s.node, log: log, metrics: m, every: s.every, probeEvery: s.probeEvery, random: rand.Float64,
		observe:  s.observe,
		services: func() *exchange.Services { return nil },
		probe:    prober{node: s.node, link: s.link, open: arpcheck.Open}.probe,
		publisher: &exchange.Publisher{
			ConfigMaps: core.ConfigMaps(s.namespace), Leases: client.CoordinationV1().Leases(s.namespace), Namespace: s.namespace, Node: s.node,
		},
		condition: &nodeCondition{client: core.Nodes(), node: s.node},
	}
	if s.events {
		a.events = &exchange.Events{Client: core.Events("default"), Namespace: "default", Component: "strictarp-agent", Host: s.node}
	}
	return a
}

// signalTo returns a function that makes sure that something is in a channel.
func signalTo(c chan<- struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// listen serves until ctx is done.
func listen(ctx context.Context, addr string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve metrics: %w (--listen)", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
