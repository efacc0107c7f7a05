package strictarp_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

// eachCase runs a test for all cases, with the case's findings.
func eachCase(t *testing.T, test func(t *testing.T, name string, f strictarp.Facts, findings []strictarp.Finding)) {
	t.Parallel()
	for _, name := range caseNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := readCase(t, name)
			test(t, name, f, strictarp.Evaluate(f))
		})
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// fresh returns facts that share no memory with f.
func fresh(t testing.TB, f strictarp.Facts) strictarp.Facts {
	t.Helper()
	var g strictarp.Facts
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, f)), &g))
	return g
}

// Evaluate is a pure function: it does not change facts, gives the same again, and
// the same of facts that were written and read.
func TestEvaluateIsPure(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		before, want := jsonOf(t, f), jsonOf(t, findings)
		wellFormed(t, findings)
		for range 3 {
			assert.Equal(t, want, jsonOf(t, strictarp.Evaluate(f)))
		}
		assert.Equal(t, before, jsonOf(t, f), "facts were changed")
		assert.Equal(t, want, jsonOf(t, strictarp.Evaluate(fresh(t, f))), "after JSON")
	})
}

// Findings do not depend on the order in which objects were listed and vantages
// visited.
func TestEvaluateInAnyOrder(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 4 {
			g := fresh(t, f)
			r.Shuffle(len(g.Cluster.Objects), func(i, j int) { o := g.Cluster.Objects; o[i], o[j] = o[j], o[i] })
			r.Shuffle(len(g.Vantages), func(i, j int) { v := g.Vantages; v[i], v[j] = v[j], v[i] })
			told := kubeproxy.FromObjects(g.Cluster.Objects...)
			m := metallb.FromObjects(g.Cluster.Objects...)
			m.At, m.Source = f.MetalLB.At, f.MetalLB.Source
			for i := range told.Configs {
				told.Configs[i].At = f.At
			}
			g.KubeProxy.Configs = slices.Concat(told.Configs, slices.DeleteFunc(g.KubeProxy.Configs, func(c kubeproxy.Config) bool {
				return c.Source.Node == "" || c.Source.Kind == kubeproxy.SourceNodeArgs || c.Source.Workload != ""
			}))
			g.MetalLB = &m
			assert.Equal(t, jsonOf(t, findings), jsonOf(t, strictarp.Evaluate(g)))
		}
	})
}

// Facts that were gathered apart and merged lead to the same.
func TestEvaluateMerged(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		parts := []strictarp.Facts{{At: f.At, Cluster: f.Cluster, MetalLB: f.MetalLB, KubeProxy: f.KubeProxy, Missing: f.Missing}}
		for name, n := range f.Nodes {
			links := n
			links.Sysctls, links.Persisted = nil, nil
			rest := strictarp.NodeFacts{At: n.At, Source: n.Source, Sysctls: n.Sysctls, Persisted: n.Persisted}
			parts = append(parts, strictarp.Facts{At: f.At, Nodes: map[string]strictarp.NodeFacts{name: links}},
				strictarp.Facts{At: f.At, Nodes: map[string]strictarp.NodeFacts{name: rest}})
		}
		for _, v := range f.Vantages {
			parts = append(parts, strictarp.Facts{At: f.At, Vantages: []strictarp.Vantage{v}})
		}
		assert.Equal(t, jsonOf(t, findings), jsonOf(t, strictarp.Evaluate(strictarp.Merge(parts...))))
	})
}

// A second host that sees the same adds nothing but its name.
func TestEvaluateVantageTwice(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		for _, v := range f.Vantages {
			v.Name += "-again"
			f.Vantages = append(f.Vantages, v)
		}
		assert.ElementsMatch(t, summaries(findings), summaries(strictarp.Evaluate(f)))
	})
}

// Strict kernels answer for nothing that they merely hold.
func TestEvaluateStrictEverywhere(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, _ []strictarp.Finding) {
		for _, n := range f.Nodes {
			if n.Sysctls == nil {
				continue
			}
			for _, v := range append(slices.Collect(maps.Values(n.Sysctls.Interfaces)), n.Sysctls.All) {
				if v != nil {
					v[sysctl.ARPIgnore], v[sysctl.ARPAnnounce] = 0, 0
				}
			}
			if n.Sysctls.All == nil {
				n.Sysctls.All = sysctl.Values{}
			}
			n.Sysctls.All[sysctl.ARPIgnore], n.Sysctls.All[sysctl.ARPAnnounce] = 1, 2
		}
		findings := strictarp.Evaluate(f)
		for _, x := range findings {
			switch x.Rule {
			case "arp-announce-off", "strictarp-overridden", "arp-ignore-side-effects":
				t.Errorf("%s: %s", x.Key(), x.Message)
			case "kernel-answers-vip":
				assert.Equal(t, strictarp.SeverityUnknown, x.Severity, x.Message)
			}
		}
		wellFormed(t, findings)
	})
}
