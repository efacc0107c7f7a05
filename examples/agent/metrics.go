package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// metrics are what Prometheus and the kubelet ask for. Labels are of the catalogue
// and of this program's own words: nothing that others can choose is one.
type metrics struct {
	registry     *prometheus.Registry
	findings     *prometheus.GaugeVec
	responders   *prometheus.GaugeVec
	reasons      *prometheus.GaugeVec
	vips         prometheus.Gauge
	observations *prometheus.CounterVec
	lastObserved prometheus.Gauge
	lastProbed   prometheus.Gauge
	calls        *prometheus.CounterVec
	writes       prometheus.Counter
	remedies     *prometheus.CounterVec

	lastAlive atomic.Int64 // since started, which clocks that are set do not change
	started   time.Time
	isReady   atomic.Bool
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: "strictarp_agent_" + name, Help: help}
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "strictarp_agent_" + name, Help: help}
	}
	m := &metrics{
		registry:     prometheus.NewRegistry(),
		findings:     prometheus.NewGaugeVec(gauge("findings", "Findings about this node by rule and severity."), []string{"rule", "severity"}),
		responders:   prometheus.NewGaugeVec(gauge("probed_vips", "LoadBalancer IPs by what the last pass of probes said of who answers."), []string{"verdict"}),
		reasons:      prometheus.NewGaugeVec(gauge("probe_reasons", "LoadBalancer IPs by what kept the last pass of probes from being conclusive."), []string{"reason"}),
		vips:         prometheus.NewGauge(gauge("vips", "LoadBalancer IPs that are asked for.")),
		observations: prometheus.NewCounterVec(counter("observations_total", "Observations of the node."), []string{"result"}),
		lastObserved: prometheus.NewGauge(gauge("last_observation_timestamp_seconds", "When the node was observed last.")),
		lastProbed:   prometheus.NewGauge(gauge("last_probe_timestamp_seconds", "When the last pass of probes began that could ask.")),
		calls:        prometheus.NewCounterVec(counter("api_calls_total", "What was told the API server, as far as it was needed."), []string{"call", "result"}),
		writes:       prometheus.NewCounter(counter("publishes_total", "Writes of the node's facts.")),
		remedies:     prometheus.NewCounterVec(counter("remedies_total", "Remedies that were applied."), []string{"result"}),
		started:      time.Now(),
	}
	m.registry.MustRegister(m.findings, m.responders, m.reasons, m.vips, m.observations, m.lastObserved, m.lastProbed, m.calls, m.writes, m.remedies,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func result(ok bool) string {
	if ok {
		return "success"
	}
	return "failure"
}

func (m *metrics) alive() { m.lastAlive.Store(int64(time.Since(m.started))) }
func (m *metrics) ready() { m.isReady.Store(true) }
func (m *metrics) wrote() { m.writes.Inc() }

func (m *metrics) called(call string, err error) {
	m.calls.WithLabelValues(call, result(err == nil)).Inc()
}

func (m *metrics) observed(facts strictarp.NodeFacts, findings []strictarp.Finding, vips int) {
	ok := facts.Links != nil && facts.Sysctls != nil
	m.observations.WithLabelValues(result(ok)).Inc()
	if ok {
		m.lastObserved.SetToCurrentTime()
	}
	m.vips.Set(float64(vips))
	m.findings.Reset()
	for _, f := range findings {
		if r, known := strictarp.RuleByID(f.Rule); known {
			m.findings.WithLabelValues(r.ID, f.Severity.String()).Inc()
		}
	}
}

func (m *metrics) probed(v strictarp.Vantage) {
	if len(v.Probes) > 0 { // otherwise no socket could be opened
		m.lastProbed.Set(float64(v.At.Unix()))
	}
	m.responders.Reset()
	m.reasons.Reset()
	for _, r := range v.Probes {
		switch r.Verdict {
		case arpcheck.None, arpcheck.Single, arpcheck.Multiple, arpcheck.Inconclusive:
			m.responders.WithLabelValues(string(r.Verdict)).Inc()
		}
		for _, reason := range r.Reasons {
			switch reason {
			case arpcheck.LinkDown, arpcheck.CutShort, arpcheck.KernelDrops, arpcheck.NotSent,
				arpcheck.HeldHere, arpcheck.TooManyReplies, arpcheck.TooFewRounds, arpcheck.ControlSilent:
				m.reasons.WithLabelValues(string(reason)).Inc()
			}
		}
	}
}

// stuck is how long the agent's loop may take for one turn: longer than it waits
// for anything.
const stuck = 10 * time.Minute

// handler serves /metrics, /healthz and /readyz.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if idle := time.Since(m.started) - time.Duration(m.lastAlive.Load()); idle > stuck {
			http.Error(w, fmt.Sprintf("nothing was done for %s", idle.Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !m.isReady.Load() {
			http.Error(w, "the node's facts were not published yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
