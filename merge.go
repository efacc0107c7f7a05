package strictarp

import (
	"cmp"
	"maps"
	"slices"

	"github.com/strictarp/strictarp/kubeproxy"
)

// Merge puts facts of one cluster together that were gathered in several places
// or at several times. Of each part, such as a node's addresses, a vantage's
// probes, or a configuration by its source, that of the newest facts (Facts.At)
// wins which have it; of equally new ones that of the last. What a node's or
// vantage's At and Source say is of its newest facts. Missing is all that any facts
// are missing, each once, also where others have it.
//
// The result shares memory with what it is made of.
func Merge(facts ...Facts) Facts {
	merged := Facts{Version: FactsVersion}
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b Facts) int { return a.At.Compare(b.At) })
	for _, f := range sorted {
		merged = f.over(merged)
	}
	return merged
}

// over returns f with those parts of old that f does not have.
func (f Facts) over(old Facts) Facts {
	merged := Facts{
		Version: FactsVersion, At: f.At,
		Nodes:     maps.Clone(old.Nodes),
		Vantages:  slices.Clone(old.Vantages),
		Cluster:   f.Cluster.over(old.Cluster),
		KubeProxy: f.toldOver(old.KubeProxy),
		MetalLB:   cmp.Or(f.MetalLB, old.MetalLB),
		Missing:   slices.Clone(old.Missing),
	}
	if old.At.After(f.At) {
		merged.At = old.At
	}
	if merged.Nodes == nil && f.Nodes != nil {
		merged.Nodes = make(map[string]NodeFacts, len(f.Nodes))
	}
	for name, n := range f.Nodes {
		merged.Nodes[name] = n.over(old.Nodes[name])
	}
	merged.Vantages = put(merged.Vantages, f.Vantages, func(v Vantage) string { return v.Name }, Vantage.over)
	merged.Missing = put(merged.Missing, f.Missing, func(m Missing) Missing { return m }, nil)
	return merged
}

// toldOver returns what kube-proxy is told according to f, and to old where f says
// nothing of it: with objects f knows all that objects say, but not what files on
// nodes do.
func (f Facts) toldOver(old *kubeproxy.Found) *kubeproxy.Found {
	if f.KubeProxy == nil || old == nil {
		return cmp.Or(f.KubeProxy, old)
	}
	found := *old
	found.Configs = slices.Clone(old.Configs)
	if f.Cluster != nil {
		found = *f.KubeProxy
		found.Configs = slices.DeleteFunc(slices.Clone(old.Configs), func(c kubeproxy.Config) bool {
			return c.Source.Node == "" || c.Source.Kind == kubeproxy.SourceNodeArgs
		})
	}
	found.Configs = put(found.Configs, f.KubeProxy.Configs, func(c kubeproxy.Config) kubeproxy.Source { return c.Source }, nil)
	if len(found.Configs) > 0 {
		found.Presence = kubeproxy.Present
	}
	return &found
}

// put adds items to a list, each in the place of the one that has the same key, if
// there is.
func put[T any, K comparable](list, items []T, key func(T) K, over func(item, old T) T) []T {
	if list == nil && items != nil {
		list = []T{}
	}
	index := make(map[K]int, len(list)+len(items))
	for i, old := range list {
		index[key(old)] = i
	}
	before := len(list) // two of the same facts are not the same
	for _, item := range items {
		i, known := index[key(item)]
		switch {
		case !known || i >= before:
			index[key(item)] = len(list)
			list = append(list, item)
		case over != nil:
			list[i] = over(item, list[i])
		default:
			list[i] = item
		}
	}
	return list
}

func (n NodeFacts) over(old NodeFacts) NodeFacts {
	n.Links = observed(n.Links, old.Links)
	n.Sysctls = cmp.Or(n.Sysctls, old.Sysctls)
	n.Routes = observed(n.Routes, old.Routes)
	n.Rules = observed(n.Rules, old.Rules)
	n.Neighbours = observed(n.Neighbours, old.Neighbours)
	n.ProxyNeighbours = observed(n.ProxyNeighbours, old.ProxyNeighbours)
	n.IPVS = cmp.Or(n.IPVS, old.IPVS)
	n.Persisted = cmp.Or(n.Persisted, old.Persisted)
	n.KubeProxy = observed(n.KubeProxy, old.KubeProxy)
	n.Running = cmp.Or(n.Running, old.Running)
	n.KubeProxyLog = observed(n.KubeProxyLog, old.KubeProxyLog)
	if n.Counters == nil {
		n.Counters = old.Counters
	}
	if n.Speaker == nil || old.Speaker == nil {
		n.Speaker = cmp.Or(n.Speaker, old.Speaker)
		return n
	}
	n.Speaker = &SpeakerFacts{
		Args:    observed(n.Speaker.Args, old.Speaker.Args),
		Log:     cmp.Or(n.Speaker.Log, old.Speaker.Log),
		Metrics: cmp.Or(n.Speaker.Metrics, old.Speaker.Metrics),
	}
	return n
}

func (v Vantage) over(old Vantage) Vantage {
	v.Node = cmp.Or(v.Node, old.Node)
	v.Links = observed(v.Links, old.Links)
	v.Probes = observed(v.Probes, old.Probes)
	v.Claims = observed(v.Claims, old.Claims)
	v.Neighbours = observed(v.Neighbours, old.Neighbours)
	v.Capture = cmp.Or(v.Capture, old.Capture)
	return v
}

// over keeps objects together: of those of different times some are gone.
func (c *ClusterFacts) over(old *ClusterFacts) *ClusterFacts {
	if c == nil || old == nil {
		return cmp.Or(c, old)
	}
	merged := *c
	merged.Version = cmp.Or(c.Version, old.Version)
	if merged.Objects == nil {
		merged.Objects = old.Objects
	}
	return &merged
}

// observed returns a list, or the old one if it was not observed.
func observed[T any](list, old []T) []T {
	if list == nil {
		return old
	}
	return list
}
