package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	exitOK    = 0
	exitError = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))) // client-go's
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

func run(ctx context.Context, args []string, errOut io.Writer) int {
	set, err := parse(args, errOut)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = set.serve(ctx, slog.New(slog.NewTextHandler(errOut, nil)))
	}
	if err != nil {
		fmt.Fprintln(errOut, "controller:", err)
		return exitError
	}
	return exitOK
}

type settings struct {
	options
	listen, kubeconfig, strict string
	qps                        float32
	soak, patience             time.Duration
}

const usage = `Judge who answers ARP for the LoadBalancer IPs of a cluster, and tell of it.

Usage: controller [flags]

%s`

func parse(args []string, errOut io.Writer) (settings, error) {
	var s settings
	host, _ := os.Hostname() // only to know it by
	s.identity = host + "_" + string(uuid.NewUUID())
	f := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&s.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "strictarp"), "where agents publish, and where findings are kept (default: $POD_NAMESPACE, or strictarp)")
	f.StringSliceVar(&s.watched, "watch-namespaces", []string{"kube-system", "metallb-system"}, "where kube-proxy and announcers run: Pods and ConfigMaps of no other are read")
	f.DurationVar(&s.resync, "resync", 10*time.Minute, "time between judgements of everything when nothing changes")
	f.StringVar(&s.listen, "listen", ":9794", "where /metrics, /healthz and /readyz are served")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "path of a kubeconfig (default: the pod's service account)")
	f.Float32Var(&s.qps, "qps", 100, "calls to the API server a second, in the long run")
	f.StringVar(&s.strict, "remedy", "none", "strict: set strictARP in kube-proxy's ConfigMap and restart kube-proxy, node by node; none: change nothing")
	f.DurationVar(&s.soak, "remedy-soak", 6*time.Minute, "how long all has to stay good on a node until the next one's turn; longer than the agents' --probe-every")
	f.DurationVar(&s.patience, "remedy-patience", 10*time.Minute, "how long a node may take to be good until all is taken back")
	f.Usage = func() { fmt.Fprintf(errOut, usage, f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.namespace == "" || len(s.watched) == 0:
		return s, errors.New("--namespace and --watch-namespaces must not be empty")
	case s.resync < fullPause || s.soak < remedyEvery || s.patience < remedyEvery || s.qps <= 0:
		return s, fmt.Errorf("--resync %s, --remedy-soak %s, --remedy-patience %s, --qps %g: want at least %s, %s, %s and more than 0",
			s.resync, s.soak, s.patience, s.qps, fullPause, remedyEvery, remedyEvery)
	case s.strict == "strict":
		s.remedy = &remedyOptions{s.soak, s.patience}
	case s.strict != "none":
		return s, fmt.Errorf("--remedy %q: want strict or none", s.strict)
	}
	return s, nil
}

func (s settings) serve(ctx context.Context, log *slog.Logger) error {
	config, err := s.config()
	if err != nil {
		return fmt.Errorf("find the API server (--kubeconfig outside of a pod): %w", err)
	}
	config.UserAgent, config.QPS, config.Burst = "strictarp-controller", s.qps, int(2*s.qps)+1
	typed, err := kubernetes.NewForConfig(inProtobuf(config))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	m := newMetrics()
	c, err := newController(s.options, typed, dynamic, log, m)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: m.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("serve metrics: %w: choose another address with --listen", err)
	}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		served <- server.Serve(listener)
		cancel()
	}()
	err = c.run(ctx)
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	err = errors.Join(err, server.Shutdown(closing))
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve metrics: %w", failed))
	}
	return err
}

// inProtobuf is for kinds that the API server speaks it of: it takes less than JSON, in
// which bytes are written as text.
func inProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

func (s settings) config() (*rest.Config, error) {
	if s.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", s.kubeconfig)
}
