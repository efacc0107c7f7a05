package strictarp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	link := []strictarp.Link{{Name: "eth0"}}
	a := strictarp.Facts{
		At: noon,
		Nodes: map[string]strictarp.NodeFacts{
			"w1": {At: noon, Source: "a", Links: link, Routes: []strictarp.Route{{Link: "eth0"}}, Speaker: &strictarp.SpeakerFacts{Args: []string{"a"}}},
			"w2": {At: noon, Source: "a"},
		},
		Vantages: []strictarp.Vantage{{Name: "c", Probes: []arpcheck.Result{{Target: vip}}, Neighbours: []arpcheck.Neighbour{{Addr: vip}}}},
		KubeProxy: &kubeproxy.Found{Configs: []kubeproxy.Config{
			{Source: kubeproxy.Source{Kind: kubeproxy.SourceConfigMap, Name: "kube-proxy"}, StrictARP: kubeproxy.StrictARPFalse},
			{Source: kubeproxy.Source{Kind: kubeproxy.SourceConfigMap, Name: "deleted-since"}},
			{Source: kubeproxy.Source{Kind: kubeproxy.SourceFile, Node: "w1"}},
		}},
		Cluster: &strictarp.ClusterFacts{Version: "v1.34.0", Objects: strictarp.Objects{&corev1.Node{}}},
		Missing: []strictarp.Missing{{What: "x"}, {What: "y"}},
	}
	b := strictarp.Facts{
		At: later,
		Nodes: map[string]strictarp.NodeFacts{
			"w1": {At: later, Source: "b", Routes: []strictarp.Route{}, Speaker: &strictarp.SpeakerFacts{}},
			"w3": {At: later, Source: "b"},
		},
		Vantages: []strictarp.Vantage{{Name: "c", Probes: []arpcheck.Result{}}, {Name: "d"}},
		KubeProxy: &kubeproxy.Found{Configs: []kubeproxy.Config{
			{Source: kubeproxy.Source{Kind: kubeproxy.SourceConfigMap, Name: "kube-proxy"}, StrictARP: kubeproxy.StrictARPTrue},
		}},
		Cluster: &strictarp.ClusterFacts{},
		Missing: []strictarp.Missing{{What: "y"}, {What: "z"}},
	}
	for _, m := range []strictarp.Facts{strictarp.Merge(a, b), strictarp.Merge(b, a), strictarp.Merge(strictarp.Merge(), b, a, b)} {
		assert.Equal(t, later, m.At)
		assert.Len(t, m.Nodes, 3)
		w1 := m.Nodes["w1"]
		assert.Equal(t, "b", w1.Source)
		assert.Equal(t, link, w1.Links, "only the older facts have it")
		assert.Equal(t, []strictarp.Route{}, w1.Routes, "newer, and there is nothing")
		assert.Equal(t, []string{"a"}, w1.Speaker.Args)
		require.Len(t, m.Vantages, 2)
		assert.Empty(t, m.Vantages[0].Probes)
		assert.Len(t, m.Vantages[0].Neighbours, 1)
		require.Len(t, m.KubeProxy.Configs, 2)
		assert.Equal(t, "w1", m.KubeProxy.Configs[0].Source.Node)
		assert.Equal(t, kubeproxy.StrictARPTrue, m.KubeProxy.Configs[1].StrictARP)
		assert.Equal(t, "v1.34.0", m.Cluster.Version)
		assert.Len(t, m.Cluster.Objects, 1)
		assert.Len(t, m.Missing, 3)
	}
	assert.Len(t, a.Nodes, 2, "its arguments are as they were")
	assert.Equal(t, kubeproxy.StrictARPFalse, a.KubeProxy.Configs[0].StrictARP)
	assert.Nil(t, strictarp.Merge(strictarp.Facts{}).Nodes)
}
