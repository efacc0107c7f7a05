package kubeproxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"time"

	"github.com/strictarp/strictarp/kubeproxy"
)

// Node is a node's kernel and the kube-proxy that runs on it.
type Node struct {
	ARP kubeproxy.ARP // the kernel's effective settings
	// IPVSAddresses are on kube-ipvs0; nil if there is no such device.
	IPVSAddresses []netip.Addr
	Proxy         Proxy
	// Stalled makes a pod that starts from now on never become ready.
	Stalled bool
}

// Proxy is a running kube-proxy. As an http.Handler, such as for
// httptest.NewServer, it answers /configz and /proxyMode as version 1.37 does.
type Proxy struct {
	Mode         kubeproxy.Mode // empty: it does not run, and answers status 503
	StrictARP    bool
	ExcludeCIDRs []string
	Started      time.Time
	// FellBackTo is the mode that it really runs in, if that is another.
	FellBackTo kubeproxy.Mode
}

// ServeHTTP implements http.Handler.
func (p Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.Mode == "":
		http.Error(w, "no kube-proxy runs here", http.StatusServiceUnavailable)
	case r.URL.Path == "/proxyMode":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		mode := p.Mode
		if p.FellBackTo != "" {
			mode = p.FellBackTo
		}
		_, _ = fmt.Fprint(w, mode) // the client may be gone
	case r.URL.Path == "/configz":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kubeproxy.config.k8s.io": p.configz()})
	default:
		http.NotFound(w, r)
	}
}

func (p Proxy) configz() map[string]any {
	return map[string]any{
		"kind": "KubeProxyConfiguration", "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
		"metricsBindAddress": "127.0.0.1:10249",
		"mode":               p.Mode,
		"ipvs":               map[string]any{"syncPeriod": "30s", "excludeCIDRs": p.ExcludeCIDRs, "strictARP": p.StrictARP},
	}
}

// Node returns a node's state; the zero Node if there is none of that name.
func (c *Cluster) Node(name string) Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.nodes[name]; ok {
		copied := *n
		copied.IPVSAddresses = slices.Clone(n.IPVSAddresses)
		return copied
	}
	return Node{}
}

// EditNode changes a node's state, as an administrator of the node would. change
// must not use the Cluster.
func (c *Cluster) EditNode(name string, change func(*Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.node(name))
}

// node returns a node, made if it is missing. mu is held.
func (c *Cluster) node(name string) *Node {
	if c.nodes == nil {
		c.nodes = map[string]*Node{}
	}
	if c.nodes[name] == nil {
		c.nodes[name] = &Node{}
	}
	return c.nodes[name]
}

// Do answers a request to a kube-proxy: the host's name in the URL is the
// node's. It makes a Cluster a kubeproxy.Doer.
func (c *Cluster) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	c.Node(r.URL.Hostname()).Proxy.ServeHTTP(w, r)
	return w.Result(), nil
}
