package strictarp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/sysctl"
)

// observeIn observes a host of the lab.
func observeIn(t testing.TB, h *netnstest.Host, o strictarp.ObserveOptions) (n strictarp.NodeFacts, missing []strictarp.Missing) {
	t.Helper()
	require.NoError(t, h.Do(func() error {
		n, missing = strictarp.Observe(t.Context(), o)
		return nil
	}))
	return n, missing
}

func newNode(t testing.TB) *netnstest.Host {
	t.Helper()
	n, err := netnstest.New(t).AddNode("w1", prefix("10.0.3.11/24"))
	require.NoError(t, err)
	return n
}

func whats(missing []strictarp.Missing) []string {
	var list []string
	for _, m := range missing {
		list = append(list, m.What)
	}
	return list
}

func TestObserve(t *testing.T) {
	t.Parallel()
	segment := netnstest.New(t)
	node, err := segment.AddNode("w1", prefix("10.0.3.11/24"))
	require.NoError(t, err)
	peer, err := segment.AddClient("client", prefix("10.0.3.50/24"))
	require.NoError(t, err)
	require.NoError(t, node.HoldVIP(addr("10.0.3.20")))
	require.NoError(t, node.SetStrictARP(true))
	require.NoError(t, node.AddRoute(prefix("172.31.0.0/16"), addr("10.0.3.1"), netnstest.NIC))
	require.NoError(t, node.AddAddr(netnstest.NIC, prefix("10.0.3.12/24")))
	_, err = node.Resolve(t.Context(), peer.Addr())
	require.NoError(t, err)

	before := time.Now()
	n, missing := observeIn(t, node, strictarp.ObserveOptions{Node: "w1", Root: t.TempDir(), Proc: fakeProc(t)})
	assert.Subset(t, []string{"IPVS table"}, whats(missing))
	assert.WithinRange(t, n.At, before, time.Now())
	assert.Equal(t, "netlink and proc", n.Source)

	eth0, ok := n.Link(netnstest.NIC)
	require.True(t, ok)
	assert.Equal(t, node.MAC(), eth0.MAC)
	assert.Equal(t, "veth", eth0.Kind)
	assert.True(t, eth0.Up)
	assert.Equal(t, []strictarp.Address{
		{Prefix: prefix("10.0.3.11/24"), Scope: strictarp.ScopeGlobal},
		{Prefix: prefix("10.0.3.12/24"), Scope: strictarp.ScopeGlobal, Secondary: true},
	}, eth0.Addrs)
	device, ok := n.Link(netnstest.VIPDevice)
	require.True(t, ok)
	assert.False(t, device.Up)
	assert.Equal(t, []strictarp.Address{{Prefix: prefix("10.0.3.20/32"), Scope: strictarp.ScopeGlobal}}, device.Addrs)
	lo, _ := n.Link("lo")
	assert.True(t, lo.Loopback)

	assert.Contains(t, n.Routes, strictarp.Route{
		Dst: prefix("172.31.0.0/16"), Type: strictarp.RouteUnicast, Table: strictarp.TableMain, Link: netnstest.NIC, Gateway: addr("10.0.3.1"),
	})
	for _, r := range n.Routes {
		assert.NotEqual(t, prefix("10.0.3.20/32"), r.Dst, "local routes of addresses follow from them")
	}
	assert.Len(t, n.Rules, 3)
	assert.Equal(t, 1, n.Sysctls.All[sysctl.ARPIgnore])
	assert.Contains(t, n.Sysctls.Interfaces, netnstest.VIPDevice)
	require.Len(t, n.Neighbours, 1)
	assert.Equal(t, peer.MAC(), n.Neighbours[0].MAC)
	assert.NotEmpty(t, n.Neighbours[0].State)
	assert.Equal(t, []strictarp.ProxyNeighbour{}, n.ProxyNeighbours)
	assert.NotNil(t, n.Persisted)
	assert.Len(t, n.KubeProxy, 1)

	only, _ := observeIn(t, node, strictarp.ObserveOptions{VIPs: []netip.Addr{addr("10.0.3.20")}})
	assert.Equal(t, []arpcheck.Neighbour{}, only.Neighbours)
}

// fakeProc is a /proc with a kube-proxy of 250 s after the boot.
func fakeProc(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stat":        "cpu 1 2\nbtime 1700000000\nprocesses 9\n",
		"7/cmdline":   "/usr/local/bin/kube-proxy\x00--config=/var/lib/kube-proxy/config.conf\x00--hostname-override=w\xff1\x00",
		"7/stat":      "7 (kube) pro)) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 9 0 25000 1 2 3",
		"8/cmdline":   "", // a thread of the kernel
		"9/cmdline":   "/bin/not-kube-proxy\x00kube-proxy\x00",
		"net/cmdline": "kube-proxy\x00",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestObserveKubeProxy(t *testing.T) {
	t.Parallel()
	dir := fakeProc(t)
	n, _ := strictarp.Observe(t.Context(), strictarp.ObserveOptions{Proc: dir})
	assert.Equal(t, []strictarp.Process{{
		PID: 7, Started: time.Unix(1700000250, 0).UTC(),
		Args: []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=w\uFFFD1"},
	}}, n.KubeProxy)

	// That of another node on this host does not count, and none at all counts
	// only where it would have been seen.
	for name, target := range map[string]string{"thread-self/ns/net": "net:[1]", "7/ns/net": "net:[2]"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	n, missing := strictarp.Observe(t.Context(), strictarp.ObserveOptions{Proc: dir})
	assert.Nil(t, n.KubeProxy)
	assert.Contains(t, whats(missing), "kube-proxy's process")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "self/ns"), 0o755))
	pids := filepath.Join(dir, "self/ns/pid")
	require.NoError(t, os.Symlink("pid:[4026531836]", pids))
	n, missing = strictarp.Observe(t.Context(), strictarp.ObserveOptions{Proc: dir})
	assert.Equal(t, []strictarp.Process{}, n.KubeProxy)
	assert.NotContains(t, whats(missing), "kube-proxy's process")
	require.NoError(t, os.Remove(pids))
	require.NoError(t, os.Symlink("pid:[7]", pids))
	n, _ = strictarp.Observe(t.Context(), strictarp.ObserveOptions{Proc: dir})
	assert.Nil(t, n.KubeProxy)
}

func TestObserveSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	node := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, missing := strictarp.Observe(ctx, strictarp.ObserveOptions{Node: "w1"})
	assert.Len(t, missing, 8)
	for _, m := range missing {
		assert.Equal(t, "w1", m.Where)
		assert.Equal(t, context.Canceled.Error(), m.Err)
		assert.NotEmpty(t, m.Collect)
	}
	assert.Equal(t, strictarp.NodeFacts{At: n.At, Source: n.Source}, n)

	n, missing = observeIn(t, node, strictarp.ObserveOptions{
		Root: filepath.Join(t.TempDir(), "gone"), Proc: filepath.Join(t.TempDir(), "gone"), MaxRoutes: 1,
	})
	assert.Subset(t, whats(missing), []string{"addresses of kube-ipvs0", "routes", "persisted settings", "kube-proxy's process"})
	assert.Nil(t, n.Routes)
	assert.Nil(t, n.Persisted)
	assert.Nil(t, n.KubeProxy)
	assert.NotNil(t, n.Links)
}

// TestObserveDeletedLocalRoute: the address is still listed, and nothing is
// answered for it.
func TestObserveDeletedLocalRoute(t *testing.T) {
	t.Parallel()
	node := newNode(t)
	require.NoError(t, node.HoldVIP(addr("10.0.3.20")))
	q := strictarp.Question{Link: netnstest.NIC, Sender: addr("10.0.3.50"), Target: addr("10.0.3.20")}
	for _, replies := range []bool{true, false} {
		n, _ := observeIn(t, node, strictarp.ObserveOptions{})
		a, err := n.WouldReply(q)
		require.NoError(t, err)
		assert.Equal(t, replies, a.Replies, a.Why)
		if replies {
			require.NoError(t, node.Do(func() error {
				return netlink.RouteDel(&netlink.Route{Dst: ipNet(prefix("10.0.3.20/32")), Table: strictarp.TableLocal, Type: 2, Scope: netlink.SCOPE_HOST})
			}))
		}
	}
}

// TestObserveHostileNames: names survive JSON, and stay apart.
func TestObserveHostileNames(t *testing.T) {
	t.Parallel()
	node := newNode(t)
	raw := []string{"eth0.100", "\x1b[31m\"<b>", "a\xff", "a\xfe", `a\xff`, "ü"}
	want := []string{"eth0.100", "\x1b[31m\"<b>", `a\xff`, `a\xfe`, `a\x5cxff`, "ü"}
	require.NoError(t, node.Do(func() error {
		for _, name := range raw {
			if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
				return err
			}
		}
		return nil
	}))
	n, missing := observeIn(t, node, strictarp.ObserveOptions{Proc: fakeProc(t)})
	text, err := json.Marshal(strictarp.Facts{Nodes: map[string]strictarp.NodeFacts{"w1": n}, Missing: missing})
	require.NoError(t, err)
	var again strictarp.Facts
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, n, again.Nodes["w1"])
	assert.Equal(t, missing, again.Missing)
	for _, name := range want {
		_, ok := n.Link(name)
		assert.True(t, ok, "%q", name)
		assert.Contains(t, n.Sysctls.Interfaces, name)
	}
}

func TestObserveRoutesAndNeighbours(t *testing.T) {
	t.Parallel()
	node := newNode(t)
	_, err := node.AddNIC("eth1", prefix("10.9.0.1/24"))
	require.NoError(t, err)
	require.NoError(t, node.Do(func() error {
		eth0, err := netlink.LinkByName(netnstest.NIC)
		if err != nil {
			return err
		}
		eth1, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		i, j := eth0.Attrs().Index, eth1.Attrs().Index
		mac := []byte{2, 0, 0, 0, 9, 9}
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("198.51.100.0/24")), MultiPath: []*netlink.NexthopInfo{
				{LinkIndex: i, Gw: addr("10.0.3.1").AsSlice()}, {LinkIndex: j, Gw: addr("10.9.0.254").AsSlice()},
			}}),
			netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("192.0.2.0/24")), Type: unix.RTN_UNREACHABLE, Priority: 7}),
			netlink.RouteAdd(&netlink.Route{Dst: ipNet(prefix("203.0.113.0/24")), LinkIndex: j, Table: 1000, Scope: unix.RT_SCOPE_LINK}),
			netlink.NeighAdd(&netlink.Neigh{LinkIndex: i, IP: addr("10.0.3.8").AsSlice(), State: unix.NUD_PERMANENT, HardwareAddr: mac}),
			netlink.NeighAdd(&netlink.Neigh{LinkIndex: i, IP: addr("10.0.3.9").AsSlice(), State: unix.NUD_PERMANENT, HardwareAddr: mac}),
			netlink.NeighAdd(&netlink.Neigh{LinkIndex: i, IP: addr("172.31.0.7").AsSlice(), Flags: netlink.NTF_PROXY, Family: netlink.FAMILY_V4}),
		)
	}))
	n, _ := observeIn(t, node, strictarp.ObserveOptions{})
	for _, want := range []strictarp.Route{
		{Dst: prefix("198.51.100.0/24"), Type: strictarp.RouteUnicast, Table: strictarp.TableMain, Link: "eth0", NextHops: []string{"eth1"}, Gateway: addr("10.0.3.1")},
		{Dst: prefix("192.0.2.0/24"), Type: strictarp.RouteUnreachable, Table: strictarp.TableMain, Metric: 7},
		{Dst: prefix("203.0.113.0/24"), Type: strictarp.RouteUnicast, Table: 1000, Link: "eth1"},
	} {
		assert.Contains(t, n.Routes, want)
	}
	assert.ElementsMatch(t, []arpcheck.Neighbour{
		{Addr: addr("10.0.3.8"), MAC: [6]byte{2, 0, 0, 0, 9, 9}, Link: "eth0", State: arpcheck.NeighbourPermanent},
		{Addr: addr("10.0.3.9"), MAC: [6]byte{2, 0, 0, 0, 9, 9}, Link: "eth0", State: arpcheck.NeighbourPermanent},
	}, n.Neighbours)
	assert.Equal(t, []strictarp.ProxyNeighbour{{Addr: addr("172.31.0.7"), Link: "eth0"}}, n.ProxyNeighbours)

	few, missing := observeIn(t, node, strictarp.ObserveOptions{MaxNeighbours: 1})
	assert.Nil(t, few.Neighbours)
	assert.NotNil(t, few.ProxyNeighbours)
	assert.Contains(t, whats(missing), "neighbours")
}

// proxyClient answers for a kube-proxy without a network: the tests' own has no
// loopback interface that is up.
type proxyClient struct {
	proxy kubeproxytest.Proxy
	err   error
}

func (c *proxyClient) Do(r *http.Request) (*http.Response, error) {
	if c.err != nil {
		return nil, c.err
	}
	w := httptest.NewRecorder()
	c.proxy.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestObserveRunningKubeProxy(t *testing.T) {
	t.Parallel()
	client := &proxyClient{proxy: kubeproxytest.Proxy{Mode: kubeproxy.ModeIPVS, StrictARP: true}}
	o := strictarp.ObserveOptions{Node: "w1", Proc: fakeProc(t), KubeProxy: client}
	n, missing := strictarp.Observe(t.Context(), o)
	const what = "kube-proxy's configuration in force"
	assert.NotContains(t, whats(missing), what)
	require.NotNil(t, n.Running)
	assert.Equal(t, "http://127.0.0.1:10249", n.Running.Source)
	assert.Equal(t, kubeproxy.ModeIPVS, n.Running.Mode)
	require.NotNil(t, n.Running.Config)
	assert.True(t, n.Running.Config.Strict())
	assert.Equal(t, "w1", n.Running.Node)
	assert.Equal(t, time.Unix(1700000250, 0).UTC(), n.Running.Started)
	assert.NotEmpty(t, n.Running.Args)

	client.err = errors.New("connection refused")
	n, missing = strictarp.Observe(t.Context(), o)
	assert.Contains(t, whats(missing), what)
	require.NotNil(t, n.Running, "its process tells something")
	assert.Nil(t, n.Running.Config)
}
