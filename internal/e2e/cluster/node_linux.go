package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/internal/e2e/process"
)

// Node is a node of the cluster.
type Node struct {
	*Host
	dir string // of its files and logs

	mu      sync.Mutex // guards what follows, which the DaemonSets' controller changes
	proxy   *process.Process
	speaker *process.Process
}

// processes returns what runs on the node, or ran last; nil if nothing did.
func (n *Node) processes() (proxy, speaker *process.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proxy, n.speaker
}

// patience is how long what takes seconds may take on a busy, emulated machine.
const patience = 3 * time.Minute

// HTTP returns a client whose connections begin on the host.
func (h *Host) HTTP() *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: h.Dial}}
}

// Dial connects from the host.
func (h *Host) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	var d net.Dialer
	// Of several addresses to try the standard library tries some on another thread,
	// outside of the namespace; here there is always one.
	err = h.NS.Do(func() error {
		conn, err = d.DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// get returns an error unless a URL is answered with status 200.
func (h *Host) get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := h.HTTP().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("get %s: status %d: %s", url, resp.StatusCode, text), err)
	}
	return err
}

// startProxy starts a node's kube-proxy with the ConfigMap as it is now, as a
// kubelet does, and returns once it has synced its rules.
func (c *Cluster) startProxy(ctx context.Context, name string, _ *corev1.Pod) error {
	n := c.node(name)
	cm, err := c.API.CoreV1().ConfigMaps("kube-system").Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := n.writeFiles("kube-proxy", cm.Data); err != nil {
		return err
	}
	proxy, err := process.Start(process.Spec{
		Path: filepath.Join(Programs, "kube-proxy"), Args: []string{"--config=/var/lib/kube-proxy/config.conf", "--hostname-override=" + name, "--v=2"},
		Log: filepath.Join(n.dir, "kube-proxy.log"), NS: n.NS,
		Mounts: map[string]string{"/var/lib/kube-proxy": filepath.Join(n.dir, "kube-proxy")},
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proxy = proxy
	n.mu.Unlock()
	return Await(ctx, "kube-proxy on "+name, func(ctx context.Context) error {
		if err := proxy.Failed(); err != nil {
			return stop{err}
		}
		return n.get(ctx, "http://127.0.0.1:10256/healthz")
	})
}

func (c *Cluster) stopProxy(_ context.Context, name string) error {
	if proxy, _ := c.node(name).processes(); proxy != nil {
		return proxy.Stop()
	}
	return nil
}

func (n *Node) writeFiles(volume string, files map[string]string) error {
	dir := filepath.Join(n.dir, volume)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// startSpeaker starts a node's speaker with the arguments and environment of its
// DaemonSet.
func (c *Cluster) startSpeaker(_ context.Context, name string, pod *corev1.Pod) error {
	n := c.node(name)
	if err := n.writeFiles("memberlist", map[string]string{"secretkey": c.memberlistKey}); err != nil {
		return err
	}
	speaker, err := process.Start(process.Spec{
		Path: filepath.Join(Programs, "speaker"), Args: pod.Spec.Containers[0].Args, Log: filepath.Join(n.dir, "speaker.log"), NS: n.NS,
		Env: []string{
			"KUBECONFIG=" + c.kubeconfig, "METALLB_NAMESPACE=" + metalLB, "METALLB_NODE_NAME=" + name, "METALLB_POD_NAME=" + pod.Name,
			"METALLB_HOST=" + n.Addr.Addr().String(), "METALLB_ML_BIND_ADDR=" + n.Addr.Addr().String(),
			"METALLB_ML_LABELS=app=metallb,component=speaker", "METALLB_ML_SECRET_KEY_PATH=" + filepath.Join(n.dir, "memberlist"),
		},
	})
	n.mu.Lock()
	n.speaker = speaker
	n.mu.Unlock()
	return err
}

func (c *Cluster) stopSpeaker(_ context.Context, name string) error {
	if _, speaker := c.node(name).processes(); speaker != nil {
		return speaker.Stop()
	}
	return nil
}

// stop is an error that waiting does not help against.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// Await calls f until it returns nil.
func Await(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
	defer cancel()
	for {
		err := f(ctx)
		var hopeless stop
		if err == nil || errors.As(err, &hopeless) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Tail returns the ends of the logs of what runs on the node.
func (n *Node) Tail() string {
	proxy, speaker := n.processes()
	return "kube-proxy:\n" + proxy.Tail(15) + "\nspeaker:\n" + speaker.Tail(5)
}
