// Package controlplane runs a real etcd and kube-apiserver as child processes, with
// certificates and users of their own: RBAC is in force, admission works, and
// nothing else does. There is no controller manager, no scheduler and no kubelet:
// who wants pods makes them.
package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/strictarp/strictarp/internal/e2e/process"
	"github.com/strictarp/strictarp/internal/netns"
)

// Options say how to run a control plane.
type Options struct {
	Dir             string // for certificates, data and logs; it must exist
	Etcd, APIServer string // the programs
	// Address is where the API server listens; 127.0.0.1 if not set.
	Address netip.Addr
	Port    uint16 // of the API server; any that is free if 0
	// NS is the network namespace that it runs in, with Address as one of its
	// addresses; nil: the caller's. Clients of Config dial from there.
	NS *netns.NS
	// Audit keeps a line for each request in AuditLog.
	Audit bool
	// Users are those with a token, besides Admin. They have no rights until some
	// are granted.
	Users []string
	// Ready is how long it may take to be ready; 3 minutes if 0: 10 s on two idle
	// cores, and a minute on emulated ones.
	Ready time.Duration
}

// Admin is the name of the user who may do everything.
const Admin = "admin"

// ControlPlane is a control plane that runs. It is safe for concurrent use, but
// for RestartAPIServer.
type ControlPlane struct {
	o          Options
	url        string
	ca         []byte   // PEM
	secret     string   // what tokens are made of
	serverArgs []string // kube-apiserver's
	etcd       *process.Process
	server     *process.Process
}

// Start starts a control plane and waits until it is ready. The caller must stop
// it.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if !o.Address.IsValid() {
		o.Address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if o.Ready == 0 {
		o.Ready = 3 * time.Minute
	}
	c := &ControlPlane{o: o, secret: rand.Text()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Ready, fmt.Errorf("it was not ready within %v", c.o.Ready))
	defer cancel()
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	if c.o.Port != 0 {
		ports[2] = strconv.Itoa(int(c.o.Port))
	}
	c.url = "https://" + net.JoinHostPort(c.o.Address.String(), ports[2])
	if c.ca, err = c.writeCredentials(); err != nil {
		return err
	}
	if err := c.startEtcd(ports[0], ports[1]); err != nil {
		return err
	}
	if c.serverArgs, err = c.apiServerArgs(ports[0], ports[2]); err != nil {
		return err
	}
	if err := c.startAPIServer(); err != nil {
		return err
	}
	return c.wait(ctx)
}

// RestartAPIServer ends kube-apiserver, in order or at once, starts it again after
// a pause and waits until it is ready.
func (c *ControlPlane) RestartAPIServer(ctx context.Context, kill bool, pause time.Duration) error {
	end := c.server.Stop
	if kill {
		end = c.server.Kill
	}
	if err := end(); err != nil {
		return err
	}
	time.Sleep(pause)
	if err := c.startAPIServer(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Ready, fmt.Errorf("it was not ready within %v", c.o.Ready))
	defer cancel()
	return c.wait(ctx)
}

func (c *ControlPlane) startEtcd(client, peer string) (err error) {
	clients, peers := "http://127.0.0.1:"+client, "http://127.0.0.1:"+peer
	c.etcd, err = process.Start(process.Spec{Path: c.o.Etcd, NS: c.o.NS, Log: c.path("etcd.log"), Args: []string{
		"--data-dir=" + c.path("etcd"), "--log-level=warn",
		"--unsafe-no-fsync", // what is lost in a crash is not missed
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
	}})
	return err
}

func (c *ControlPlane) startAPIServer() (err error) {
	c.server, err = process.Start(process.Spec{Path: c.o.APIServer, NS: c.o.NS, Args: c.serverArgs, Log: c.path("kube-apiserver.log")})
	return err
}

func (c *ControlPlane) apiServerArgs(etcd, port string) ([]string, error) {
	args := []string{
		"--etcd-servers=http://127.0.0.1:" + etcd,
		"--bind-address=" + c.o.Address.String(), "--secure-port=" + port, "--advertise-address=" + c.o.Address.String(),
		"--tls-cert-file=" + c.path(certFile), "--tls-private-key-file=" + c.path(keyFile), "--token-auth-file=" + c.path(tokenFile),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + c.path(keyFile),
		"--service-account-signing-key-file=" + c.path(keyFile),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--allow-privileged", "--profiling=false",
		// Nobody makes the default service accounts that it would put into pods.
		"--disable-admission-plugins=ServiceAccount",
	}
	if c.o.Address.IsLoopback() {
		// An EndpointSlice must not have a loopback address.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if c.o.Audit {
		args = append(args, "--audit-policy-file="+c.path(auditPolicyFile), "--audit-log-path="+c.AuditLog())
		return args, os.WriteFile(c.path(auditPolicyFile), []byte(auditPolicy), 0o600)
	}
	return args, nil
}

const (
	auditPolicyFile = "audit-policy.yaml"
	auditPolicy     = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`
)

// AuditLog returns the file that has a line of JSON (audit.k8s.io/v1, Event, of
// level Metadata) for each request that was answered, and two for a watch, if there
// is an Audit.
func (c *ControlPlane) AuditLog() string { return c.path("audit.log") }

// wait returns once the API server is ready.
func (c *ControlPlane) wait(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	for {
		last := client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(10 * time.Second).Do(ctx).Error()
		if last == nil {
			return nil
		}
		if err := errors.Join(c.etcd.Failed(), c.server.Failed()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; the end of the API server's log:\n%s", context.Cause(ctx), last, c.server.Tail(30))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// Config returns how a client reaches the API server as a user, who must be Admin
// or one of Options.Users. There is no limit on the rate of requests.
func (c *ControlPlane) Config(user string) *rest.Config {
	config := &rest.Config{
		Host: c.url, BearerToken: c.token(user), QPS: -1, UserAgent: "strictarp-e2e " + user,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
	}
	if c.o.NS != nil {
		config.Dial = c.dial
	}
	return config
}

func (c *ControlPlane) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = c.o.NS.Do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// CA returns the certificate, as PEM, by which the API server is known.
func (c *ControlPlane) CA() []byte { return slices.Clone(c.ca) }

// Kubeconfig returns a file by which programs reach the API server as a user.
func (c *ControlPlane) Kubeconfig(user string) (string, error) {
	return c.KubeconfigOf(user, c.token(user))
}

// KubeconfigOf is Kubeconfig for a token of somebody else, such as a service
// account, whom the name stands for in the file's.
func (c *ControlPlane) KubeconfigOf(name, token string) (string, error) {
	text := strings.NewReplacer("URL", c.url, "CA", c.path(caFile), "TOKEN", token).Replace(kubeconfig)
	file := c.path("kubeconfig-" + name)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "URL", certificate-authority: "CA"}}]
users: [{name: e2e, user: {token: "TOKEN"}}]
contexts: [{name: e2e, context: {cluster: e2e, user: e2e}}]
current-context: e2e
`

// Stop ends what was started. It keeps the directory.
func (c *ControlPlane) Stop() error {
	var errs []error
	for _, p := range []*process.Process{c.server, c.etcd} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(errs...)
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.o.Dir, name) }

// freePorts returns ports of the loopback address that nobody listens on.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // only at the end, so that they differ
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
