package strictarp_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

const cases = "testdata/cases"

func readCase(t testing.TB, name string) strictarp.Facts {
	t.Helper()
	f, err := strictarp.ReadBundle(os.DirFS(cases + "/" + name))
	require.NoError(t, err)
	return f
}

func caseNames(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	require.Len(t, names, 67)
	return names
}

// Every file of every case is understood, to the last line and object.
func TestReadBundleCases(t *testing.T) {
	t.Parallel()
	for _, name := range caseNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := readCase(t, name)
			assert.Empty(t, f.Missing)
			require.NotNil(t, f.Cluster)
			assert.NotEmpty(t, f.Cluster.Objects)
			assert.Empty(t, f.MetalLB.Warnings)
			for _, o := range f.Cluster.Objects {
				kind := o.GetObjectKind().GroupVersionKind().Kind
				assert.NotEmpty(t, kind)
				if _, untyped := o.(*unstructured.Unstructured); untyped {
					assert.NotContains(t, []string{"Node", "Pod", "Service", "ConfigMap", "DaemonSet", "EndpointSlice"}, kind)
				}
			}
			partsOf(t, name, f)
			var again strictarp.Facts
			require.NoError(t, json.Unmarshal([]byte(asJSON(t, f)), &again))
			assert.Equal(t, asJSON(t, f), asJSON(t, again))
		})
	}
}

// asJSON is what facts are compared by: times of objects are of the machine's zone,
// which time.Time holds by pointer.
func asJSON(t testing.TB, f strictarp.Facts) string {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	return string(text)
}

// partsOf checks that there is a part for every file.
func partsOf(t *testing.T, name string, f strictarp.Facts) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(cases+"/"+name), ".", func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		folder, rest, _ := strings.Cut(path, "/")
		where, file, _ := strings.Cut(rest, "/")
		if e.IsDir() || file == "" {
			return nil
		}
		n, v := f.Nodes[where], vantageOf(f, where)
		switch folder + "/" + file {
		case "nodes/sysctl.txt":
			assert.NotEmpty(t, n.Sysctls.All, path)
			assert.Contains(t, n.Sysctls.Interfaces["lo"], sysctl.ARPIgnore, path)
		case "nodes/ip-addr.txt", "nodes/ip-addr.json":
			assert.Greater(t, len(n.Links), 1, path)
		case "nodes/ip-route.txt":
			assert.NotEmpty(t, n.Routes, path)
		case "nodes/kube-proxy.cmdline":
			assert.Contains(t, n.KubeProxy[0].Args[0], "kube-proxy", path)
			assert.Equal(t, n.KubeProxy[0].Args, n.Running.Args, path)
		case "nodes/kube-proxy.started":
			assert.False(t, n.Running.Started.IsZero(), path)
		case "nodes/configz.json":
			assert.Equal(t, kubeproxy.SourceConfigz, n.Running.Config.Source.Kind, path)
		case "nodes/proxy-mode.txt":
			assert.NotEmpty(t, n.Running.Mode, path)
		case "nodes/kube-proxy.config":
			assert.True(t, hasConfigOf(f, where), path)
		case "nodes/speaker.log":
			assert.NotZero(t, n.Speaker.Log.Lines, path)
			assert.Zero(t, n.Speaker.Log.Skipped, path)
		case "vantage/arp.pcap":
			assert.NotZero(t, v.Capture.Frames, path)
		case "vantage/ip-neigh.txt":
			assert.NotEmpty(t, v.Neighbours, path)
		case "vantage/ip-addr.txt":
			assert.NotEmpty(t, v.Links, path)
		default:
			assert.Contains(t, file, "root/", path)
			assert.NotEmpty(t, n.Persisted.Files, path)
		}
		return nil
	})
	require.NoError(t, err)
}

func vantageOf(f strictarp.Facts, name string) strictarp.Vantage {
	for _, v := range f.Vantages {
		if v.Name == name {
			return v
		}
	}
	return strictarp.Vantage{}
}

func hasConfigOf(f strictarp.Facts, node string) bool {
	for _, c := range f.KubeProxy.Configs {
		if c.Source.Kind == kubeproxy.SourceFile && c.Source.Node == node {
			return true
		}
	}
	return false
}

func TestReadBundleVantages(t *testing.T) {
	t.Parallel()
	t.Run("a node that holds the VIP does not hear itself", func(t *testing.T) {
		t.Parallel()
		v := readCase(t, "f11").Vantages[0]
		assert.Equal(t, "node-a", v.Node)
		assert.Equal(t, []arpcheck.Reason{arpcheck.HeldHere}, v.Probes[0].Reasons)
		assert.Equal(t, "ens33", v.Probes[0].Interface)
		assert.Equal(t, "node-a", v.Probes[0].Vantage)
	})
	t.Run("a node's addresses count for its capture", func(t *testing.T) {
		t.Parallel()
		v := vantageOf(readCase(t, "f02"), "vm-2")
		assert.Equal(t, "vm-2", v.Node)
		assert.Empty(t, v.Probes, "it only answers")
		assert.NotNil(t, v.Probes)
		assert.NotEmpty(t, v.Claims)
	})
	t.Run("a router without a capture", func(t *testing.T) {
		t.Parallel()
		f := readCase(t, "a01")
		v := vantageOf(f, "router")
		assert.Nil(t, v.Probes)
		assert.Nil(t, v.Claims)
		assert.Len(t, v.Neighbours, 2)
		assert.Equal(t, f.At, v.At)
	})
}

func TestReadBundleForwarding(t *testing.T) {
	t.Parallel()
	f := readCase(t, "a01")
	for name, n := range f.Nodes {
		assert.Contains(t, n.Sysctls.All, sysctl.Forwarding, name)
	}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// What is wrong is named, with file and line, and costs nothing else.
func TestReadBundleNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	f, err := strictarp.ReadBundle(fstest.MapFS{
		"cluster/a.yaml": text("apiVersion: v1\nkind: Node\nmetadata: {name: w1, creationTimestamp: \"2026-01-02T03:04:05Z\"}\n---\nkind: [\n---\n# nothing\n---\napiVersion: v1\nkind: Service\n" +
			"metadata: {name: web}\nspec: {ports: none}\n---\nmetadata: {name: x}\n"),
		"cluster/b.json":                text(`{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"name":"s1"}}]} {"kind":"List","apiVersion":"v1","items":[]} nonsense`),
		"cluster/empty.yaml":            text("apiVersion: metallb.io/v1beta1\nkind: L2AdvertisementList\nitems: []\n"),
		"cluster/secret.yaml":           text("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}\ndata: {p: aHVudGVyMg==}\nstringData: {p: hunter2}\n"),
		"cluster/notes.txt":             text("remember the milk"),
		"cluster/version.json":          text(`{"clientVersion":{}}`),
		"nodes/w1/sysctl.txt":           text("net.ipv4.conf.all.arp_ignore = 1\nsysctl: permission denied on key\n"),
		"nodes/w1/ip-addr.txt":          text("2: eth0: <UP> mtu 1500\n    inet 1.2.3/24 scope global eth0\n"),
		"nodes/w1/kube-proxy.started":   text("yesterday"),
		"nodes/w1/proxy-mode.txt":       text("<html>404</html>"),
		"nodes/w1/core.dump":            text(""),
		"nodes/w1/kube-proxy.cmdline":   text("kube-proxy\x00--config\x00/var/lib/kube-proxy/config.conf\x00"),
		"nodes/w1/kube-proxy.config":    text("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs: {strictARP: true}\n"),
		"nodes/w1/kube-proxy.log":       text("one\ntwo\n"),
		"nodes/w1/speaker.cmdline":      text("/speaker\n--port=7472\n"),
		"nodes/w1/ip_vs.txt":            text("IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n"),
		"nodes/w1/nstat.txt":            text("#kernel\nIpInReceives 1 0.0\n"),
		"nodes/w1/root/etc/sysctl.conf": text("net.ipv4.conf.all.arp_ignore=0\n"),
		"vantage/c/arp.pcap":            text("not a capture"),
		"README":                        text("hello"),
	})
	require.NoError(t, err)
	var found []string
	for _, m := range f.Missing {
		found = append(found, m.Where+": "+m.What+": "+m.Err)
		assert.NotEmpty(t, m.Collect)
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{
		"cluster/a.yaml:5: ", "cluster/a.yaml:9: ", "cluster/a.yaml:14: ", "cluster/b.json:1: ", "the file cluster/notes.txt", "no serverVersion",
		"w1: some sysctls: nodes/w1/sysctl.txt: line 2", "w1: some interfaces and addresses: nodes/w1/ip-addr.txt: line 2",
		"w1: kube-proxy's start time", "w1: kube-proxy's mode", "the file nodes/w1/core.dump", "c: captured ARP frames", "the file README",
	} {
		assert.Contains(t, all, want)
	}
	assert.Len(t, f.Missing, 13, all)

	assert.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), f.At)
	w1 := f.Nodes["w1"]
	assert.Equal(t, f.At, w1.At)
	assert.Equal(t, 1, w1.Sysctls.All[sysctl.ARPIgnore])
	assert.Empty(t, w1.Links[0].Addrs)
	assert.Equal(t, []string{"one", "two"}, w1.KubeProxyLog)
	assert.Equal(t, []string{"/speaker", "--port=7472"}, w1.Speaker.Args)
	assert.NotNil(t, w1.IPVS)
	assert.Equal(t, map[string]uint64{"IpInReceives": 1}, w1.Counters)
	assert.Len(t, w1.Persisted.Files, 1)
	assert.Nil(t, w1.Routes)
	require.Len(t, f.KubeProxy.Configs, 1)
	assert.Equal(t, "/var/lib/kube-proxy/config.conf", f.KubeProxy.Configs[0].Source.Path)
	assert.True(t, f.KubeProxy.Configs[0].Strict())
	assert.Nil(t, f.Vantages[0].Probes)

	var kinds []string
	for _, o := range f.Cluster.Objects {
		kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind)
	}
	assert.Equal(t, []string{"Node", "Service", "Service", "L2AdvertisementList", "Secret"}, kinds)
	assert.IsType(t, &corev1.Service{}, f.Cluster.Objects[2], "an item takes its kind from its list")
	assert.NotNil(t, f.MetalLB.L2Advertisements)
	data, err := json.Marshal(f)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "hunter2")
	assert.NotContains(t, string(data), "aHVudGVyMg")
}

func TestReadBundleErrors(t *testing.T) {
	t.Parallel()
	_, err := strictarp.ReadBundle(fstest.MapFS{"x": text("")})
	assert.ErrorIs(t, err, strictarp.ErrNotBundle)
	_, err = strictarp.ReadBundle(os.DirFS("testdata/nowhere"))
	assert.ErrorIs(t, err, fs.ErrNotExist)

	f, err := strictarp.ReadBundle(fstest.MapFS{"nodes/w1": &fstest.MapFile{Mode: fs.ModeDir}})
	require.NoError(t, err)
	assert.Nil(t, f.Cluster)
	assert.Nil(t, f.Vantages)
	assert.Contains(t, f.Nodes, "w1")
	assert.True(t, f.At.IsZero())
}

func FuzzReadBundle(f *testing.F) {
	seed := func(path, content string) { f.Add(path, content) }
	for _, path := range []string{
		"a01/cluster/services.yaml", "g04/cluster/dump.json", "c15/nodes/node-a/speaker.log", "b11-tab/nodes/node-a/kube-proxy.config",
		"b09/nodes/ha-1/kube-proxy.cmdline", "a01/nodes/node-a/sysctl.txt", "g10/vantage/prober/arp.pcap",
	} {
		content, err := os.ReadFile(cases + "/" + path)
		require.NoError(f, err)
		_, rest, _ := strings.Cut(path, "/")
		seed(rest, string(content))
	}
	seed("facts.json", `{"version":1,"at":"2026-01-01T00:00:00Z","nodes":{"w1":{"at":"2026-01-01T00:00:00Z","source":"x"}}}`)
	seed("cluster/a.yaml", "a: &a [1]\nb: *a\n---\n---\n!!binary x\n")
	seed("nodes/w1/nstat.txt", "#kernel\nA 1\n")
	seed("nodes/w1/kube-proxy.started", "2026-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, path, content string) {
		if !fs.ValidPath(path) || path == "." {
			return
		}
		facts, err := strictarp.ReadBundle(fstest.MapFS{path: text(content), "nodes/w1": &fstest.MapFile{Mode: fs.ModeDir}})
		if err != nil {
			return
		}
		data, err := json.Marshal(facts)
		require.NoError(t, err)
		var again strictarp.Facts
		require.NoError(t, json.Unmarshal(data, &again))
		for _, v := range facts.Vantages {
			for _, r := range v.Probes {
				require.True(t, r.Target.Is4())
			}
		}
	})
}
