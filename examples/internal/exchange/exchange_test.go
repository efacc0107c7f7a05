package exchange_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	vip   = netip.MustParseAddr("10.0.3.20")
	mac1  = arpcheck.MAC{2, 0, 0, 0, 1, 0}
	mac2  = arpcheck.MAC{2, 0, 0, 0, 2, 0}
)

// factsOf are facts with something of everything that moves.
func factsOf(node string, at time.Time) strictarp.Facts {
	n := strictarp.NodeFacts{
		At: at, Source: "netlink and proc",
		Links:        []strictarp.Link{{Name: "eth0", MAC: mac1, Up: true, Addrs: []strictarp.Address{}}},
		Neighbours:   []arpcheck.Neighbour{{Addr: vip, MAC: mac1, Link: "eth0", State: arpcheck.NeighbourReachable}},
		Counters:     map[string]uint64{"TcpExtIPReversePathFilter": uint64(at.Unix())},
		KubeProxy:    []strictarp.Process{{PID: 7, Started: start}},
		Running:      &kubeproxy.Running{At: at, Source: "configz", Config: &kubeproxy.Config{At: at}},
		KubeProxyLog: []string{at.String()},
	}
	v := strictarp.Vantage{Name: node, Node: node, At: at, Source: "packet socket", Probes: []arpcheck.Result{{
		Target: vip, Verdict: arpcheck.Multiple, Started: at, Ended: at.Add(time.Second),
		Responders: []arpcheck.Responder{{MAC: mac1, Replies: 3, First: at, Last: at, WonRounds: 3}, {MAC: mac2, Replies: 3, First: at, Last: at}},
	}}}
	return strictarp.Facts{At: at, Nodes: map[string]strictarp.NodeFacts{node: n}, Vantages: []strictarp.Vantage{v},
		Missing: []strictarp.Missing{{What: "IPVS table", Where: node, Err: fmt.Sprint("port ", at.Unix()), Collect: "run as root"}}}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

func TestName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, node := range []string{
		"w1", "w1.example.com", "w1-example-com", "W1", "", "-", "../../etc", "é", "\x00\xff", "a b", strings.Repeat("a", 253),
		strings.Repeat("a", 252), strings.Repeat("-", 60) + "x", strings.Repeat("x", 39) + "é", "{{.}}", "strictarp-node-w1",
	} {
		name := exchange.Name(node)
		assert.Empty(t, validation.IsDNS1123Label(name), "%q of %q", name, node)
		assert.NotContains(t, seen, name, "%q and %q", node, seen[name])
		seen[name] = node
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := factsOf("w1", start)
	f.Nodes["w2"] = strictarp.NodeFacts{Source: "made up"}
	f.Vantages = append(f.Vantages, strictarp.Vantage{Name: "w2", Node: "w2"}, strictarp.Vantage{Name: "router"})
	cm, err := exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	again, err := exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	assert.Equal(t, cm, again, "equal facts, equal objects")

	node, got, err := exchange.Decode(cm, nil)
	require.NoError(t, err)
	assert.Equal(t, "w1", node)
	want := factsOf("w1", start)
	want.Version = strictarp.FactsVersion
	assert.JSONEq(t, asJSON(t, want), asJSON(t, got), "only what a node may say of itself")
	assert.NotNil(t, got.Nodes["w1"].Links[0].Addrs, "empty is not nil")
	assert.Nil(t, got.Nodes["w1"].Routes, "nil is not empty")
}

// TestCases: the facts of every node of every case come out as they went in.
func TestCases(t *testing.T) {
	t.Parallel()
	root := "../../../testdata/cases"
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	var sizes []int
	cases := 0
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		cases++
		f, err := strictarp.ReadBundle(os.DirFS(filepath.Join(root, dir.Name())))
		require.NoError(t, err, dir.Name())
		for name, n := range f.Nodes {
			one := strictarp.Facts{At: f.At, Nodes: map[string]strictarp.NodeFacts{name: n}}
			for _, v := range f.Vantages {
				if v.Node == name && v.Name == name {
					one.Vantages = append(one.Vantages, v)
				}
			}
			n.IPVS = nil // it is not published
			one.Nodes[name] = n
			cm, err := exchange.Encode("strictarp", name, one, nil)
			require.NoError(t, err, "%s %s", dir.Name(), name)
			node, got, err := exchange.Decode(cm, nil)
			require.NoError(t, err)
			assert.Equal(t, name, node)
			assert.JSONEq(t, asJSON(t, one), asJSON(t, got), "%s %s", dir.Name(), name)
			sizes = append(sizes, len(cm.BinaryData[exchange.DataKey]))
		}
	}
	slices.Sort(sizes)
	require.NotEmpty(t, sizes)
	t.Logf("%d cases, %d nodes; bytes: median %d, most %d", cases, len(sizes), sizes[len(sizes)/2], sizes[len(sizes)-1])
	assert.Less(t, sizes[len(sizes)-1], 32<<10)
}

func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(f strictarp.Facts) string {
		h, err := exchange.Hash(f)
		require.NoError(t, err)
		return h
	}
	base := hash(factsOf("w1", start))
	later := factsOf("w1", start.Add(7*time.Hour+13*time.Second))
	p := later.Vantages[0].Probes[0].Responders
	p[0], p[1] = p[1], p[0]
	later.Nodes["w1"].Neighbours[0].State = arpcheck.NeighbourStale
	before := asJSON(t, later)
	assert.Equal(t, base, hash(later), "only what always moves has moved")
	assert.Equal(t, before, asJSON(t, later), "facts are not changed by hashing")

	// A pod comes: its veth, its settings and its route.
	pod := factsOf("w1", start)
	n := pod.Nodes["w1"]
	n.Sysctls = &sysctl.ARP{Interfaces: map[string]sysctl.Values{"eth0": {}}}
	n.Routes = []strictarp.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth0"}}
	pod.Nodes["w1"] = n
	before = hash(pod)
	n.Links = append(n.Links, strictarp.Link{Name: "cali1", Kind: "veth", Up: true, Addrs: []strictarp.Address{}})
	n.Sysctls.Interfaces["cali1"] = sysctl.Values{sysctl.ProxyARP: 1}
	n.Routes = append(n.Routes, strictarp.Route{Dst: netip.MustParsePrefix("10.244.1.7/32"), Link: "cali1"})
	pod.Nodes["w1"] = n
	assert.Equal(t, before, hash(pod))
	assert.Len(t, n.Sysctls.Interfaces, 2, "facts are not changed by hashing")
	n.Routes = append(n.Routes, strictarp.Route{Dst: netip.MustParsePrefix("10.9.0.0/16"), Link: "cali1"})
	pod.Nodes["w1"] = n
	assert.NotEqual(t, before, hash(pod), "that is no pod's")

	for name, change := range map[string]func(*strictarp.NodeFacts, *strictarp.Facts){
		"link":       func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.Links[0].Up = false },
		"observed":   func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.Routes = []strictarp.Route{} },
		"neighbour":  func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.Neighbours[0].MAC = mac2 },
		"failed":     func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.Neighbours[0].State = arpcheck.NeighbourFailed },
		"restart":    func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.KubeProxy[0].PID++ },
		"configz":    func(n *strictarp.NodeFacts, _ *strictarp.Facts) { n.Running.Config.Mode = "iptables" },
		"responders": func(_ *strictarp.NodeFacts, f *strictarp.Facts) { f.Vantages[0].Probes[0].Responders[1].MAC[5] = 9 },
		"verdict":    func(_ *strictarp.NodeFacts, f *strictarp.Facts) { f.Vantages[0].Probes[0].Verdict = arpcheck.None },
		"double": func(_ *strictarp.NodeFacts, f *strictarp.Facts) {
			f.Vantages[0].Probes[0].Responders[0].DoubleAnswer = true
		},
		"missing": func(_ *strictarp.NodeFacts, f *strictarp.Facts) { f.Missing = nil },
	} {
		f := factsOf("w1", start)
		n := f.Nodes["w1"]
		change(&n, &f)
		f.Nodes["w1"] = n
		assert.NotEqual(t, base, hash(f), name)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	f := factsOf("w1", start)
	n := f.Nodes["w1"]
	// Bytes that cannot be compressed, more of them than fit.
	n.Routes = nil
	seed := uint64(1)
	text := func(length int) string {
		var b strings.Builder
		for b.Len() < length {
			seed = seed*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&b, "%016x", seed)
		}
		return b.String()
	}
	for range 20000 {
		n.Routes = append(n.Routes, strictarp.Route{Link: text(96)})
	}
	n.KubeProxyLog = []string{text(1000)}
	f.Nodes["w1"] = n
	cm, err := exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(cm.BinaryData[exchange.DataKey]), exchange.MaxBytes)
	_, got, err := exchange.Decode(cm, nil)
	require.NoError(t, err)
	assert.Nil(t, got.Nodes["w1"].Routes)
	assert.Nil(t, got.Nodes["w1"].KubeProxyLog)
	assert.NotNil(t, got.Nodes["w1"].Links, "it fits without the routes")
	assert.Len(t, got.Vantages, 1)
	var what []string
	for _, m := range got.Missing {
		what = append(what, m.What)
	}
	assert.Subset(t, what, []string{"routes", "neighbours", "counters", "kube-proxy's log"})
	assert.Len(t, f.Nodes["w1"].Routes, 20000, "the caller's facts are as before")

	// A name that is larger than everything: even links have to go.
	n.Links = []strictarp.Link{{Name: text(exchange.MaxPlainBytes)}}
	f.Nodes["w1"] = n
	cm, err = exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	_, got, err = exchange.Decode(cm, nil)
	require.NoError(t, err)
	assert.Nil(t, got.Nodes["w1"].Links)

	for range 1000 {
		f.Missing = append(f.Missing, strictarp.Missing{What: strings.Repeat("é", 1000), Where: "elsewhere"})
	}
	cm, err = exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	_, got, err = exchange.Decode(cm, nil)
	require.NoError(t, err)
	assert.Less(t, len(got.Missing), 100)
	assert.Less(t, len(got.Missing[5].What), 600)
	assert.Equal(t, "w1", got.Missing[5].Where, "a node says nothing of others")
	assert.Equal(t, "interfaces, addresses and sysctls", got.Missing[len(got.Missing)-1].What)
}

// TestSize: a node of a large cluster, with 613 addresses on kube-ipvs0 and 110
// pods, is far from the limit.
func TestSize(t *testing.T) {
	t.Parallel()
	f := factsOf("w1", start)
	n := f.Nodes["w1"]
	values := sysctl.Values{}
	for _, p := range sysctl.Params() {
		values[p] = 1
	}
	n.Sysctls = &sysctl.ARP{All: values, Default: values, Interfaces: map[string]sysctl.Values{}}
	held := strictarp.Link{Name: "kube-ipvs0", Kind: "dummy", NoARP: true}
	table := &ipvs.Table{Version: "1.2.1"}
	for i := range 613 {
		addr := netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})
		held.Addrs = append(held.Addrs, strictarp.Address{Prefix: netip.PrefixFrom(addr, 32), Scope: strictarp.ScopeGlobal})
		s := ipvs.Service{Protocol: ipvs.TCP, Addr: addr, Port: 80, Scheduler: "rr"}
		for j := range 3 {
			s.RealServers = append(s.RealServers, ipvs.RealServer{Addr: netip.AddrFrom4([4]byte{10, 244, byte(i), byte(j)}), Port: 8080, Forward: ipvs.Masq, Weight: 1})
		}
		table.Services = append(table.Services, s)
	}
	for i := range 110 {
		name := fmt.Sprintf("cali%x", i*7919+0x10000000)
		n.Links = append(n.Links, strictarp.Link{Name: name, Kind: "veth", MAC: arpcheck.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}, Up: true, Addrs: []strictarp.Address{}})
		n.Sysctls.Interfaces[name] = values
		n.Routes = append(n.Routes, strictarp.Route{Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, 1, byte(i)}), 32), Link: name})
	}
	n.Links, n.IPVS = append(n.Links, held), table
	f.Nodes["w1"] = n
	probe := f.Vantages[0].Probes[0]
	for i := range 306 {
		probe.Target = netip.AddrFrom4([4]byte{10, 0, byte(3 + i>>8), byte(i)})
		f.Vantages[0].Probes = append(f.Vantages[0].Probes, probe)
	}
	cm, err := exchange.Encode("strictarp", "w1", f, nil)
	require.NoError(t, err)
	plain, err := json.Marshal(f)
	require.NoError(t, err)
	t.Logf("%d bytes, %d before compression", len(cm.BinaryData[exchange.DataKey]), len(plain))
	assert.Less(t, len(cm.BinaryData[exchange.DataKey]), exchange.MaxBytes/8)
	_, got, err := exchange.Decode(cm, nil)
	require.NoError(t, err)
	assert.Len(t, got.Missing, len(f.Missing), "nothing was left out")
}

func zip(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want error
	}{
		"no annotations":      {func(cm *corev1.ConfigMap) { cm.Annotations = nil }, exchange.ErrNotFacts},
		"another node's name": {func(cm *corev1.ConfigMap) { cm.Annotations[exchange.NodeAnnotation] = "w2" }, exchange.ErrNotFacts},
		"hostile name":        {func(cm *corev1.ConfigMap) { cm.Annotations[exchange.NodeAnnotation] = "w1\x1b[2J" }, exchange.ErrNotFacts},
		"bad format":          {func(cm *corev1.ConfigMap) { cm.Annotations[exchange.FormatAnnotation] = "x" }, exchange.ErrNotFacts},
		"newer format":        {func(cm *corev1.ConfigMap) { cm.Annotations[exchange.FormatAnnotation] = "3" }, errors.ErrUnsupported},
		"no data":             {func(cm *corev1.ConfigMap) { cm.BinaryData = nil }, exchange.ErrNotFacts},
		"another format":      {func(cm *corev1.ConfigMap) { cm.Annotations[exchange.FormatAnnotation] = "2" }, exchange.ErrNotFacts},
		"no gzip":             {func(cm *corev1.ConfigMap) { cm.BinaryData[exchange.DataKey] = []byte("{}") }, exchange.ErrNotFacts},
		"cut": {func(cm *corev1.ConfigMap) {
			d := cm.BinaryData[exchange.DataKey]
			cm.BinaryData[exchange.DataKey] = d[:len(d)/2]
		}, exchange.ErrNotFacts},
		"no JSON": {func(cm *corev1.ConfigMap) { cm.BinaryData[exchange.DataKey] = zip(t, "{") }, exchange.ErrNotFacts},
		"no node": {func(cm *corev1.ConfigMap) {
			cm.BinaryData[exchange.DataKey] = zip(t, `{"version":1,"nodes":{"w2":{}}}`)
		}, exchange.ErrNotFacts},
		"newer facts": {func(cm *corev1.ConfigMap) { cm.BinaryData[exchange.DataKey] = zip(t, `{"version":99}`) }, errors.ErrUnsupported},
		"bomb": {func(cm *corev1.ConfigMap) {
			cm.BinaryData[exchange.DataKey] = zip(t, strings.Repeat(" ", exchange.MaxPlainBytes+1))
		}, strictarp.ErrLimit},
		"large": {func(cm *corev1.ConfigMap) { cm.BinaryData[exchange.DataKey] = make([]byte, exchange.MaxBytes+1) }, strictarp.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cm, err := exchange.Encode("strictarp", "w1", factsOf("w1", start), nil)
			require.NoError(t, err)
			c.edit(cm)
			_, _, err = exchange.Decode(cm, nil)
			require.ErrorIs(t, err, c.want)
			assert.NotContains(t, err.Error(), "\x1b")
		})
	}
	_, err := exchange.Encode("strictarp", "w1", strictarp.Facts{}, nil)
	require.ErrorIs(t, err, exchange.ErrNotFacts)
	_, err = exchange.Encode("strictarp", "W 1", factsOf("W 1", start), nil)
	require.ErrorIs(t, err, exchange.ErrNotFacts)
	assert.NotErrorIs(t, err, fs.ErrNotExist)
}

func FuzzDecode(f *testing.F) {
	facts := factsOf("w1", start)
	plain, err := json.Marshal(facts)
	require.NoError(f, err)
	f.Add("w1", "1", string(plain), true)
	f.Add("w1", "2", "{", true)
	f.Add("w1", "1", "\x1f\x8b\b", false)
	f.Add("w1", "2", `{"facts":{"version":1,"nodes":{"w1":{"links":[{"name":"a","noARP":true,"addrs":[]},{"name":"a"}]}}},"held":[{"link":"a","lacks":["10.0.3.20","::1"]},{"link":"b"},{"link":"a"}]}`, true)
	f.Add("x\x00", "", `{"version":1,"nodes":{"x":{"links":[{"addrs":null}]}}}`, true)
	f.Fuzz(func(t *testing.T, node, format, data string, compressed bool) {
		payload := []byte(data)
		if compressed {
			payload = zip(t, data)
		}
		cm := &corev1.ConfigMap{BinaryData: map[string][]byte{exchange.DataKey: payload}}
		cm.Name = exchange.Name(node)
		cm.Annotations = map[string]string{exchange.NodeAnnotation: node, exchange.FormatAnnotation: format}
		got, facts, err := exchange.Decode(cm, nil)
		if err != nil {
			return
		}
		// What was read can be written, and what is published is the same then.
		for _, services := range []*exchange.Services{nil, exchange.NewServices([]netip.Addr{vip})} {
			for range 2 {
				again, err := exchange.Encode("strictarp", got, facts, services)
				require.NoError(t, err)
				_, same, err := exchange.Decode(again, services)
				require.NoError(t, err)
				once, err := exchange.Encode("strictarp", got, same, services)
				require.NoError(t, err)
				assert.Equal(t, again, once)
				facts = same
			}
		}
	})
}
