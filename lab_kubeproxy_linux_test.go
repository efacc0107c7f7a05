package strictarp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// startKubeProxy has the node's stand-in of kube-proxy listen where a real one
// does: on the node's loopback address.
func (l *lab) startKubeProxy(t *testing.T, node *netnstest.Host) {
	t.Helper()
	var listener net.Listener
	require.NoError(t, node.Do(func() (err error) {
		var config net.ListenConfig
		listener, err = config.Listen(t.Context(), "tcp4", "127.0.0.1:10249")
		return err
	}))
	server := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.cluster.Node(node.Name()).Proxy.ServeHTTP(w, r)
		}),
	}}
	server.Start()
	t.Cleanup(server.Close)
}

// doerIn sends HTTP requests from within a host.
func doerIn(h *netnstest.Host) kubeproxy.Doer {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		return h.Dial(ctx, to)
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// follow writes to the real kernels what kube-proxies have written to those of
// the stand-in since the last time: one that starts in mode ipvs with strictARP
// sets conf/all, and none takes it back (pkg/proxy/ipvs/proxier.go of kube-proxy).
func (l *lab) follow() error {
	var errs []error
	for _, n := range l.nodes {
		wrote := false
		l.cluster.EditNode(n.Name(), func(s *kubeproxytest.Node) {
			wrote, s.ARP = s.ARP.Strict(), kubeproxy.ARP{}
		})
		if wrote {
			errs = append(errs, n.SetStrictARP(true))
		}
	}
	return errors.Join(errs...)
}

// boot is the nodes' next boot: kernels come up loose, then kube-proxy starts.
func (l *lab) boot(t *testing.T) {
	t.Helper()
	pods := l.cluster.Pods(kubeproxytest.Namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, len(l.nodes))
	for _, n := range l.nodes {
		require.NoError(t, n.SetStrictARP(false))
	}
	for _, pod := range list.Items {
		require.NoError(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	for l.cluster.Reconcile() {
	}
	require.NoError(t, l.follow())
}

// told reads what kube-proxy is told, as of a cluster.
func (l *lab) told(ctx context.Context) (kubeproxy.Found, error) {
	return kubeproxy.Read(ctx, kubeproxy.Clients{
		ConfigMaps: l.cluster.ConfigMaps(kubeproxytest.Namespace), DaemonSets: l.cluster.DaemonSets(""),
		Pods: l.cluster.Pods(kubeproxytest.Namespace), Nodes: l.cluster.Nodes(),
	})
}

// text is what kube-proxy is told.
func (l *lab) text(t *testing.T) string {
	t.Helper()
	cm, err := l.cluster.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	return cm.Data[kubeproxytest.Key]
}
