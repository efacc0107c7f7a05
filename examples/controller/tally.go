package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/strictarp/strictarp"
)

// maxNodeSeries bounds the findings that are counted by node, those of the highest
// severity first.
const maxNodeSeries = 2000

// tally counts what was found. As everything is judged now and then and single
// Services and nodes in between, it knows whose each finding is.
type tally struct {
	findings, atNodes *prometheus.GaugeVec

	known  map[owner][]counted
	counts map[[2]string]float64 // as findings has them: by rule and severity
	nodes  map[[3]string]float64 // as atNodes has them: by node, rule and severity
}

// counted is what is counted of a finding.
type counted struct {
	key        strictarp.Key
	rule, node string
	severity   strictarp.Severity
}

// found takes what a judgement found of owners; after one of everything nobody else is
// left.
func (t *tally) found(owners map[owner]bool, by map[owner][]strictarp.Finding, all bool) {
	if all || t.known == nil {
		t.known = map[owner][]counted{}
	}
	for o := range owners {
		delete(t.known, o)
	}
	for o, findings := range by {
		if !all && !owners[o] {
			continue // only a part of what is about it was judged
		}
		for _, f := range findings {
			t.known[o] = append(t.known[o], counted{f.Key(), f.Rule, f.Node, f.Severity})
		}
	}
	t.count()
}

// count sets the metrics. A finding that several Services have, for they share a VIP,
// counts once.
func (t *tally) count() {
	once := map[strictarp.Key]counted{}
	for _, list := range t.known {
		for _, c := range list {
			once[c.key] = c
		}
	}
	counts, nodes := map[[2]string]float64{}, map[[3]string]float64{}
	worstFirst := func(a, b counted) int { return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(a.key, b.key)) }
	for _, c := range slices.SortedFunc(maps.Values(once), worstFirst) {
		counts[[2]string{c.rule, c.severity.String()}]++
		if c.severity < strictarp.SeverityWarning || len(validation.NameIsDNSSubdomain(c.node, false)) > 0 {
			continue
		}
		series := [3]string{c.node, c.rule, c.severity.String()}
		if nodes[series] > 0 || len(nodes) < maxNodeSeries {
			nodes[series]++
		}
	}
	set(t.findings, t.counts, counts, func(k [2]string) []string { return k[:] })
	set(t.atNodes, t.nodes, nodes, func(k [3]string) []string { return k[:] })
	t.counts, t.nodes = counts, nodes
}

// set makes a gauge say now where it says old, at no time less than both.
func set[K comparable](gauge *prometheus.GaugeVec, old, now map[K]float64, labels func(K) []string) {
	for k, v := range now {
		gauge.WithLabelValues(labels(k)...).Set(v)
	}
	for k := range old {
		if _, still := now[k]; !still {
			gauge.DeleteLabelValues(labels(k)...)
		}
	}
}
