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
	m.found([]strictarp.Finding{found("strictarp-off", strictarp.SeverityError)}, true, time.Millisecond)
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
	m.found([]strictarp.Finding{{Rule: "strictarp-pending", Node: "w1", Severity: strictarp.SeverityError}}, true, time.Millisecond)
	m.call("write-event", nil)
	m.remedies.WithLabelValues("success").Inc()
	promtest.Lint(t, m.handler())
}

// TestNodeFindings: they are bounded, and the worst are kept.
func TestNodeFindings(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	findings := []strictarp.Finding{
		{Rule: "strictarp-pending", Node: "w1", Severity: strictarp.SeverityError},
		{Rule: "strictarp-pending", Node: "no \xff name", Severity: strictarp.SeverityError},
		{Rule: "strictarp-off", Severity: strictarp.SeverityError},
	}
	for i := range 2 * maxNodeSeries {
		findings = append(findings, strictarp.Finding{Rule: "strictarp-residue", Node: fmt.Sprintf("n%d", i), Severity: strictarp.SeverityWarning})
	}
	findings = append(findings, strictarp.Finding{Rule: "useless-sysctl", Node: "w1", Severity: strictarp.SeverityInfo})
	m.found(findings, true, time.Millisecond)
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	assert.Equal(t, maxNodeSeries, strings.Count(w.Body.String(), "strictarp_controller_node_findings{"))
	assert.Contains(t, w.Body.String(), `strictarp_controller_node_findings{rule="strictarp-pending",severity="error",subject_node="w1"} 1`)
	assert.NotContains(t, w.Body.String(), "useless-sysctl\",severity=\"info\",subject_node")
}
