// Package promtest holds a program's metrics against the dashboard and the alerts of
// examples/deploy/monitoring.
package promtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"
)

var (
	described = regexp.MustCompile(`fqName: "(strictarp_\w+)".*variableLabels: \{([^}]*)\}`)
	matcher   = regexp.MustCompile(`(\w+)[!=]~?"`)
	grouped   = regexp.MustCompile(`\b(?:by|on|without|group_left) \(([^)]*)\)`)
	shown     = regexp.MustCompile(`\{\{ *(?:\$labels\.)?(\w+) *\}\}`)
)

// added are labels that Prometheus and histograms add.
var added = []string{"node", "instance", "job", "le"}

// A query is an alert, or a target of a panel.
type query struct {
	expr string
	text string // with legend and annotations
}

// Check fails a test unless dashboard and alerts name all of a program's metrics,
// which begin with prefix, and none that is not there, with labels that they have or
// that Prometheus adds. dir is the folder of dashboard and alerts.
func Check(t *testing.T, dir string, metrics prometheus.Collector, prefix string) {
	t.Helper()
	labels, used := labelsOf(metrics), map[string]bool{}
	name := regexp.MustCompile(`(` + prefix + `\w+?)(?:_bucket)?\b(?:\{([^}]*)\})?`)
	for _, q := range queries(t, dir) {
		known := added
		found := name.FindAllStringSubmatch(q.expr, -1)
		for _, m := range found {
			used[m[1]] = true
			if labels[m[1]] == nil {
				t.Errorf("there is no metric %s", m[1])
			}
			known = slices.Concat(known, labels[m[1]])
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(slices.Concat(added, labels[m[1]]), l[1]) {
					t.Errorf("%s: there is no label %s", m[0], l[1])
				}
			}
		}
		if found == nil {
			continue // of the other program
		}
		for _, l := range named(q) {
			if !slices.Contains(known, l) {
				t.Errorf("%s: there is no label %s", q.expr, l)
			}
		}
	}
	for name := range labels {
		if !used[name] {
			t.Errorf("%s is neither on the dashboard nor in an alert", name)
		}
	}
}

// named returns the labels that a query joins, groups or shows by.
func named(q query) (list []string) {
	for _, m := range grouped.FindAllStringSubmatch(q.expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); l != "" {
				list = append(list, l)
			}
		}
	}
	for _, m := range shown.FindAllStringSubmatch(q.text, -1) {
		list = append(list, m[1])
	}
	return list
}

// Rules returns the rules that dashboard and alerts ask a metric for.
func Rules(t *testing.T, dir, metric string) (rules []string) {
	t.Helper()
	asked := regexp.MustCompile(metric + `\{[^}]*\brule=~?"([^"]+)"`)
	for _, q := range queries(t, dir) {
		for _, m := range asked.FindAllStringSubmatch(q.expr, -1) {
			rules = append(rules, strings.Split(m[1], "|")...)
		}
	}
	return rules
}

// Lint has promtool read what a program serves at /metrics.
func Lint(t *testing.T, handler http.Handler) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool; cure: apt-get install prometheus")
	}
	served := httptest.NewRecorder()
	handler.ServeHTTP(served, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = served.Body
	if out, err := cmd.CombinedOutput(); err != nil || served.Code != http.StatusOK {
		t.Errorf("status %d, promtool check metrics: %v\n%s", served.Code, err, out)
	}
}

func queries(t *testing.T, dir string) (list []query) {
	t.Helper()
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var tree any
		if err := yaml.Unmarshal(data, &tree); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, queriesIn(tree)...)
	}
	return list
}

func queriesIn(tree any) (list []query) {
	switch tree := tree.(type) {
	case map[string]any:
		if expr, ok := tree["expr"].(string); ok {
			return []query{{expr, fmt.Sprint(tree)}}
		}
		for _, v := range tree {
			list = append(list, queriesIn(v)...)
		}
	case []any:
		for _, v := range tree {
			list = append(list, queriesIn(v)...)
		}
	}
	return list
}

// labelsOf returns the labels of each metric of ours.
func labelsOf(metrics prometheus.Collector) map[string][]string {
	descs := make(chan *prometheus.Desc)
	go func() {
		metrics.Describe(descs)
		close(descs)
	}()
	labels := map[string][]string{}
	for d := range descs {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			labels[m[1]] = strings.Split(m[2], ",")
		}
	}
	return labels
}
