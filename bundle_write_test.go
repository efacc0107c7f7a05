package strictarp_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// A bundle is written into a folder, and read again.
func writeRead(t *testing.T, f strictarp.Facts, o strictarp.WriteOptions) (strictarp.Facts, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, strictarp.WriteBundle(root, f, o))
	read, err := strictarp.ReadBundle(root.FS())
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range []string{"facts.json", "cluster/objects.json"} {
		text, err := root.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		all.Write(text)
	}
	return read, all.String()
}

func TestWriteBundle(t *testing.T) {
	t.Parallel()
	for _, name := range caseNames(t) {
		f := readCase(t, name)
		read, _ := writeRead(t, f, strictarp.WriteOptions{})
		require.Equal(t, asJSON(t, f), asJSON(t, read), name)
	}
}

func TestWriteBundleConceals(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a01", "d04", "f02", "g04", "c15"} {
		f := readCase(t, name)
		read, text := writeRead(t, f, strictarp.WriteOptions{Names: true, Addresses: true, Key: []byte("k")})
		for node, n := range f.Nodes {
			assert.NotRegexp(t, `\b`+node+`\b`, text, name)
			for _, l := range n.Links {
				if l.Loopback {
					continue
				}
				assert.NotContains(t, text, l.MAC.String(), name)
				for _, a := range l.Addrs {
					assert.NotContains(t, text, `"`+a.Prefix.Addr().String()+`"`, name)
				}
			}
		}
		assertSameShape(t, f, read)
		again, _ := writeRead(t, f, strictarp.WriteOptions{Names: true, Addresses: true, Key: []byte("k")})
		assert.Equal(t, asJSON(t, read), asJSON(t, again), "with the same key")
	}
}

// assertSameShape checks that concealed facts hang together as they did.
func assertSameShape(t *testing.T, f, g strictarp.Facts) {
	t.Helper()
	assert.Len(t, g.Nodes, len(f.Nodes))
	assert.Len(t, g.Cluster.Objects, len(f.Cluster.Objects))
	require.Len(t, g.Vantages, len(f.Vantages))
	for i := range f.Vantages {
		require.Len(t, g.Vantages[i].Probes, len(f.Vantages[i].Probes))
		for j, p := range f.Vantages[i].Probes {
			q := g.Vantages[i].Probes[j]
			assert.Equal(t, p.Verdict, q.Verdict)
			require.Len(t, q.Responders, len(p.Responders))
			for k := range p.Responders {
				assert.Equal(t, owners(f, p.Responders[k].MAC), owners(g, q.Responders[k].MAC), "nodes that have the responder's MAC")
			}
			assert.Equal(t, holders(f, p.Target), holders(g, q.Target), "interfaces that hold the target")
		}
	}
	assert.Len(t, g.MetalLB.Pools, len(f.MetalLB.Pools))
	for i, p := range f.MetalLB.Pools {
		assert.Empty(t, g.MetalLB.Pools[i].Invalid)
		require.Len(t, g.MetalLB.Pools[i].Ranges, len(p.Ranges))
		for _, r := range g.MetalLB.Pools[i].Ranges {
			assert.False(t, r.To.Less(r.From))
		}
	}
}

func owners(f strictarp.Facts, mac arpcheck.MAC) (count int) {
	for _, n := range f.Nodes {
		for _, l := range n.Links {
			if l.MAC == mac {
				count++
			}
		}
	}
	return count
}

func holders(f strictarp.Facts, addr netip.Addr) (count int) {
	for _, n := range f.Nodes {
		for _, l := range n.Links {
			for _, a := range l.Addrs {
				if a.Prefix.Contains(addr) {
					count++
				}
			}
		}
	}
	return count
}

func TestWriteBundleHidesSecrets(t *testing.T) {
	t.Parallel()
	f := strictarp.Facts{
		At: noon,
		Nodes: map[string]strictarp.NodeFacts{"w1": {
			Source:       "x",
			KubeProxy:    []strictarp.Process{{Args: []string{"kube-proxy", "--token=hunter2", "--v=2"}}},
			KubeProxyLog: []string{"GET with Authorization: Bearer hunter2hunter2", "eyJhbGciOiJSUzI1NiJ9.aHVudGVyMmh1bnRlcjI.c2ln"},
		}},
		Cluster: &strictarp.ClusterFacts{Objects: strictarp.Objects{
			&corev1.Secret{Data: map[string][]byte{"p": []byte("hunter2")}, StringData: map[string]string{"p": "hunter2"}},
			&corev1.ConfigMap{Data: map[string]string{"keepalived.conf": "auth_pass hunter\nauth_pass: hunter2\npassword=\"hunter2\"", "ca.key": "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----"}},
			&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: "hunter2"}, {Name: "MODE", Value: "ipvs"}}}}}},
		}},
	}
	for i, o := range f.Cluster.Objects {
		o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind([]string{"Secret", "ConfigMap", "Pod"}[i]))
	}
	read, text := writeRead(t, f, strictarp.WriteOptions{})
	assert.NotContains(t, text, "hunter2")
	assert.NotContains(t, text, "aHVudGVyMg")
	assert.Equal(t, []string{"kube-proxy", "--token=(hidden)", "--v=2"}, read.Nodes["w1"].KubeProxy[0].Args)
	pod, ok := read.Cluster.Objects[2].(*corev1.Pod)
	require.True(t, ok)
	assert.Equal(t, "ipvs", pod.Spec.Containers[0].Env[1].Value)
}

func TestWriteBundleErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	assert.ErrorIs(t, strictarp.WriteBundle(failingDir{full}, strictarp.Facts{}, strictarp.WriteOptions{}), full)
	assert.ErrorIs(t, strictarp.WriteBundle(failingDir{full}, strictarp.Facts{Cluster: &strictarp.ClusterFacts{Objects: strictarp.Objects{}}}, strictarp.WriteOptions{}), full)
	assert.Error(t, strictarp.WriteBundle(failingDir{full}, strictarp.Facts{Version: 99}, strictarp.WriteOptions{}))
}

type failingDir struct{ err error }

func (d failingDir) MkdirAll(string, fs.FileMode) error          { return d.err }
func (d failingDir) WriteFile(string, []byte, fs.FileMode) error { return d.err }
