// Package promtest holds a program's metrics against the dashboard and the alerts of
// examples/deploy/monitoring.
package promtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	described = regexp.MustCompile(`fqName: "(strictarp_\w+)".*variableLabels: \{([^}]*)\}`)
	matcher   = regexp.MustCompile(`(\w+)[!=]~?"`)
)

// Check fails a test unless dashboard and alerts name all of a program's metrics,
// which begin with prefix, and none that is not there, with labels that they have or
// that Prometheus adds. dir is the folder of dashboard and alerts.
func Check(t *testing.T, dir string, metrics prometheus.Collector, prefix string) {
	t.Helper()
	labels, used := labelsOf(metrics), map[string]bool{}
	name := regexp.MustCompile(`(` + prefix + `\w+?)(?:_bucket)?\b(?:\{([^}]*)\})?`)
	for _, m := range name.FindAllStringSubmatch(read(t, dir), -1) {
		used[m[1]] = true
		if labels[m[1]] == nil {
			t.Errorf("there is no metric %s", m[1])
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels[m[1]], l[1]) && !slices.Contains([]string{"node", "instance", "job"}, l[1]) {
				t.Errorf("%s: there is no label %s", m[0], l[1])
			}
		}
	}
	for name := range labels {
		if !used[name] {
			t.Errorf("%s is neither on the dashboard nor in an alert", name)
		}
	}
}

func read(t *testing.T, dir string) (text string) {
	t.Helper()
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		text += strings.ReplaceAll(string(data), `\"`, `"`)
	}
	return text
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
