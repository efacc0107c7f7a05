package strictarp_test

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
	"github.com/strictarp/strictarp/sysctl"
)

// lab is a cluster whose nodes are network namespaces: w1 to w3 hold the VIP of
// default/web on kube-ipvs0, w1 has the endpoint and announces it. Kernels, caches
// and what is on the wire are real; API server and kube-proxy are stand-ins, of
// which kube-proxy writes to the real kernels (see follow).
//
// The observer probes, so that the client's cache is only what its own traffic
// makes of it: a prober's host learns from the answers to its probes.
type lab struct {
	nodes            []*netnstest.Host
	client, observer *netnstest.Host
	prober           *arpcheck.Prober
	cache            *arpcheck.Neighbours // the client's
	cluster          *kubeproxytest.Cluster
	metallb          *metallbtest.Cluster
	empty            string // a folder for nodes without persisted settings and kube-proxy's process

	// stir is what goes on while the observer listens; nil: nothing.
	stir func() error
}

func newLab(t *testing.T, s kubeproxytest.Situation) *lab {
	t.Helper()
	segment := netnstest.New(t)
	l := &lab{empty: t.TempDir(), metallb: metallbtest.New("w1", "w2", "w3"), cluster: kubeproxytest.New(s)}
	l.metallb.AddService(web, webVIP, "w1").Local = true
	l.metallb.Announce(web, "w1", netnstest.NIC)
	l.cluster.After = func(kubeproxytest.Call) error { return l.follow() }
	for _, n := range l.metallb.Nodes {
		node, err := segment.AddNode(n.Name, netip.PrefixFrom(addr(n.IP), 24))
		require.NoError(t, err)
		l.nodes = append(l.nodes, node)
		require.NoError(t, node.HoldVIP(vip))
		l.startKubeProxy(t, node)
	}
	require.NoError(t, l.follow())
	// Gratuitous frames would heal the client's cache now and then.
	_, err := l.nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
	require.NoError(t, err)
	_, err = l.nodes[0].Serve(netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	l.addClients(t, segment)
	return l
}

func (l *lab) addClients(t *testing.T, segment *netnstest.Segment) {
	t.Helper()
	var err error
	l.client, err = segment.AddClient("client", prefix("10.0.3.50/24"))
	require.NoError(t, err)
	l.observer, err = segment.AddClient("observer", prefix("10.0.3.60/24"))
	require.NoError(t, err)
	l.prober, err = l.observer.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.prober.Close()) })
	l.prober.Wait = 250 * time.Millisecond // an answer takes less than 1 ms, of a busy machine some 10
	require.NoError(t, l.client.Do(func() (err error) {
		l.cache, err = arpcheck.OpenNeighbours()
		return err
	}))
	t.Cleanup(func() { assert.NoError(t, l.cache.Close()) })
}

// facts are all there are, observed anew.
func (l *lab) facts(ctx context.Context) (strictarp.Facts, error) {
	f := strictarp.Facts{At: time.Now().UTC(), Nodes: map[string]strictarp.NodeFacts{}}
	told, err := l.told(ctx)
	if err != nil {
		return f, err
	}
	announced := metallb.FromObjects(l.metallb.Objects()...)
	announced.At, announced.Source = f.At, "API server"
	f.KubeProxy, f.MetalLB = &told, &announced
	f.Cluster = &strictarp.ClusterFacts{At: f.At, Source: "API server", Version: "v1.34.1", Objects: l.metallb.Objects()}

	result, err := l.probe(ctx)
	if err != nil {
		return f, err
	}
	for _, node := range l.nodes {
		n, missing, err := l.look(ctx, node)
		if err != nil {
			return f, err
		}
		f.Nodes[node.Name()], f.Missing = n, append(f.Missing, missing...)
	}
	for _, host := range []*netnstest.Host{l.observer, l.client} {
		n, _, err := l.look(ctx, host)
		if err != nil {
			return f, err
		}
		v := strictarp.Vantage{Name: host.Name(), At: n.At, Source: n.Source, Links: n.Links, Neighbours: n.Neighbours}
		if host == l.observer {
			v.Probes = []arpcheck.Result{result}
		}
		f.Vantages = append(f.Vantages, v)
	}
	return f, nil
}

// look observes a host from within. A node's kube-proxy is asked, by HTTP.
func (l *lab) look(ctx context.Context, h *netnstest.Host) (n strictarp.NodeFacts, missing []strictarp.Missing, err error) {
	o := strictarp.ObserveOptions{Node: h.Name(), Root: l.empty, Proc: l.empty, Device: netnstest.VIPDevice}
	if h.IsNode() {
		o.KubeProxy = doerIn(h)
	}
	err = h.Do(func() error {
		n, missing = strictarp.Observe(ctx, o)
		return nil
	})
	return n, missing, err
}

// probe asks who answers, while stir goes on.
func (l *lab) probe(ctx context.Context) (arpcheck.Result, error) {
	if l.stir == nil {
		return l.prober.Probe(ctx, vip)
	}
	probed, stirred := make(chan struct{}), make(chan error)
	go func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for {
			if err := l.stir(); err != nil {
				stirred <- err
				return
			}
			select {
			case <-probed:
				stirred <- nil
				return
			case <-every.C:
			}
		}
	}()
	r, err := l.prober.Probe(ctx, vip)
	close(probed)
	return r, errors.Join(err, <-stirred)
}

// executors carry out steps on all hosts, and on what kube-proxy is told.
func (l *lab) executors(t *testing.T) strictarp.Executors {
	t.Helper()
	told, err := l.told(t.Context())
	require.NoError(t, err)
	require.Len(t, told.Configs, 1)
	list := strictarp.Executors{
		strictarp.KubeProxyExecutor{Cluster: l.cluster.API(), Change: kubeproxy.Change{Source: told.Configs[0].Source, Poll: time.Millisecond}},
		strictarp.NeighbourExecutor{Host: l.client.Name(), Cache: l.cache},
	}
	for _, n := range l.nodes {
		list = append(list, strictarp.SysctlExecutor{Node: n.Name(), Tree: n.Sysctls()})
	}
	return list
}

// mislead makes the client ask until a wrong answer comes first. Of kernels the last
// added one is fastest.
func (l *lab) mislead(t *testing.T) {
	t.Helper()
	for range 20 {
		require.NoError(t, l.client.Forget(vip))
		mac, err := l.client.Resolve(t.Context(), vip)
		require.NoError(t, err)
		if mac != l.nodes[0].MAC() {
			return
		}
	}
	require.Fail(t, "the announcer was first 20 times")
}

// poison has w2 talk to the client under the VIP, as what runs there and is bound
// to it does, until the client's cache has w2's MAC for it. w2 goes on so whenever
// the observer listens.
func (l *lab) poison(t *testing.T) {
	t.Helper()
	mac, err := l.client.Resolve(t.Context(), vip)
	require.NoError(t, err)
	require.Equal(t, l.nodes[0].MAC(), mac, "nobody but the announcer answers")
	w2 := l.nodes[1]
	l.stir = func() error {
		return errors.Join(w2.Forget(l.client.Addr()), w2.SendFrom(vip, l.client.Addr()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for e, err := range l.cache.Watch(ctx, netnstest.NIC) {
		require.NoError(t, err)
		if e.Type == arpcheck.NeighboursRead {
			require.NoError(t, l.stir())
		}
		if e.Neighbour.Addr == vip && e.Neighbour.MAC == w2.MAC() {
			return
		}
	}
}

// snapshot is all that plans may change and keep, as it stands there.
func (l *lab) snapshot(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"configmap": l.text(t)}
	for _, n := range l.nodes {
		for _, link := range []string{"all", "default", netnstest.NIC, netnstest.VIPDevice} {
			for _, p := range []sysctl.Param{sysctl.ARPIgnore, sysctl.ARPAnnounce, sysctl.ARPFilter, sysctl.RPFilter, sysctl.ProxyARP} {
				key, err := sysctl.ConfKey(link, p)
				require.NoError(t, err)
				value, err := n.Sysctls().Get(key)
				if !errors.Is(err, fs.ErrNotExist) {
					require.NoError(t, err)
					all[n.Name()+" "+string(key)] = value
				}
			}
		}
	}
	return all
}

// keysOf returns the keys of findings of some severities.
func keysOf(findings []strictarp.Finding, severities ...strictarp.Severity) []string {
	keys := []string{}
	for _, f := range findings {
		if slices.Contains(severities, f.Severity) {
			keys = append(keys, string(f.Key()))
		}
	}
	slices.Sort(keys)
	return keys
}
