package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/promtest"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitOK, ""},
		{[]string{"more"}, exitError, `unexpected argument "more"`},
		{[]string{"--remedy", "loose"}, exitError, "want strict or none"},
		{[]string{"--remedy", "strict", "--remedy-soak", "1s"}, exitError, "want at least"},
		{[]string{"--resync", "1s"}, exitError, "want at least"},
		{[]string{"--watch-namespaces", ""}, exitError, "must not be empty"},
		{[]string{"--kubeconfig", "/nowhere"}, exitError, "find the API server"},
	} {
		var says buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &says), "%q", c.args)
		assert.Contains(t, string(says), c.says)
	}
	set, err := parse([]string{"--remedy", "strict"}, io.Discard)
	assert.NoError(t, err)
	assert.NotNil(t, set.remedy)
	set, err = parse(nil, io.Discard)
	assert.NoError(t, err)
	assert.Nil(t, set.remedy, "nothing is changed unless that is asked for")
}

func TestHandler(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, _ := ask("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	m.isReady.Store(true)
	code, _ = ask("/readyz")
	assert.Equal(t, http.StatusOK, code)
	code, _ = ask("/healthz")
	assert.Equal(t, http.StatusOK, code)
	m.started = m.started.Add(-2 * maxTurn)
	m.turn.Store(1) // it began long ago and has not ended
	code, _ = ask("/healthz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	countAll(m, found("strictarp-off", strictarp.SeverityError))
	m.judged(true, time.Millisecond)
	m.call("write-event", errDown)
	_, text := ask("/metrics")
	assert.Contains(t, text, `strictarp_controller_findings{rule="strictarp-off",severity="error"} 1`)
	assert.Contains(t, text, `strictarp_controller_api_writes_total{call="write-event",result="failure"} 1`)
	assert.Contains(t, text, "strictarp_controller_evaluation_seconds_count")
	assert.Contains(t, text, "strictarp_controller_queue_length 0")
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func TestMonitoring(t *testing.T) {
	t.Parallel()
	promtest.Check(t, "../deploy/monitoring", newMetrics().registry, "strictarp_controller_")
	m := newMetrics()
	countAll(m, strictarp.Finding{Rule: "strictarp-pending", Node: "w1", Severity: strictarp.SeverityError})
	m.judged(true, time.Millisecond)
	m.call("write-event", nil)
	m.remedies.WithLabelValues("success").Inc()
	promtest.Lint(t, m.handler())
}

// countAll counts findings as those of everything.
func countAll(m *metrics, findings ...strictarp.Finding) {
	m.tally.found(nil, map[owner][]strictarp.Finding{theCluster: findings}, true)
}

// What is judged alone replaces what was counted for it, and nothing else.
func TestTally(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	served := func() (lines []string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "strictarp_controller_findings{") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	finding := func(rule string, subject strictarp.Subject) strictarp.Finding {
		return strictarp.Finding{Rule: rule, Subject: subject, Severity: strictarp.SeverityError}
	}
	shared, alone := finding("multiple-responders", "10.0.3.20"), finding("multiple-responders", "10.0.3.21")
	a, b := serviceOwner("web", "a"), serviceOwner("web", "b")
	m.tally.found(nil, map[owner][]strictarp.Finding{a: {shared}, b: {shared, alone}, theCluster: {finding("strictarp-off", "x")}}, true)
	const off = `strictarp_controller_findings{rule="strictarp-off",severity="error"} 1`
	assert.Equal(t, []string{`strictarp_controller_findings{rule="multiple-responders",severity="error"} 2`, off}, served(), "a VIP that two Services share counts once")
	m.tally.found(map[owner]bool{b: true}, map[owner][]strictarp.Finding{theCluster: {}}, false)
	assert.Equal(t, []string{`strictarp_controller_findings{rule="multiple-responders",severity="error"} 1`, off}, served(), "a still has it, and the cluster was not judged")
	m.tally.found(map[owner]bool{a: true}, nil, false)
	assert.Equal(t, []string{off}, served())
	m.tally.found(map[owner]bool{theCluster: true}, nil, true)
	assert.Empty(t, served())
}

// TestNodeFindings: they are bounded, and the worst are kept.
func TestNodeFindings(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	findings := []strictarp.Finding{
		{Rule: "strictarp-pending", Subject: "w1", Node: "w1", Severity: strictarp.SeverityError},
		{Rule: "strictarp-pending", Subject: "?", Node: "no \xff name", Severity: strictarp.SeverityError},
		{Rule: "strictarp-off", Severity: strictarp.SeverityError},
	}
	for i := range 2 * maxNodeSeries {
		findings = append(findings, strictarp.Finding{Rule: "strictarp-residue", Subject: strictarp.Subject(fmt.Sprint(i)), Node: fmt.Sprintf("n%d", i), Severity: strictarp.SeverityWarning})
	}
	findings = append(findings, strictarp.Finding{Rule: "useless-sysctl", Node: "w1", Severity: strictarp.SeverityInfo})
	countAll(m, findings...)
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Equal(t, maxNodeSeries, strings.Count(w.Body.String(), "strictarp_controller_node_findings{"))
	assert.Contains(t, w.Body.String(), `strictarp_controller_node_findings{rule="strictarp-pending",severity="error",subject_node="w1"} 1`)
	assert.NotContains(t, w.Body.String(), "useless-sysctl\",severity=\"info\",subject_node")
}
