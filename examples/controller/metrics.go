package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what Prometheus and the kubelet ask for. Labels are of the catalogue
// and of this program's own words, and names of nodes: nothing else that others can
// choose is one.
type metrics struct {
	registry    *prometheus.Registry
	tally       tally
	evaluations *prometheus.HistogramVec
	queue       prometheus.GaugeFunc
	calls       *prometheus.CounterVec
	conflicts   prometheus.Counter
	stale       prometheus.Gauge
	leading     prometheus.Gauge
	remedies    *prometheus.CounterVec

	queued  atomic.Int64
	isReady atomic.Bool
	started time.Time
	turn    atomic.Int64 // when the work began that is done now, since started; 0: none is
}

func newMetrics() *metrics {
	const prefix = "strictarp_controller_"
	m := &metrics{registry: prometheus.NewRegistry(), started: time.Now()}
	m.tally.findings = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "findings", Help: "Findings that there are."}, []string{"rule", "severity"})
	m.tally.atNodes = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "node_findings", Help: "Errors and warnings by the node that is at fault."}, []string{"subject_node", "rule", "severity"})
	m.evaluations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "evaluation_seconds", Help: "Time to judge, by whether everything was.", Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
	}, []string{"scope"})
	m.queue = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "queue_length", Help: "Services and nodes that wait to be judged."},
		func() float64 { return float64(m.queued.Load()) })
	m.calls = prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "api_writes_total", Help: "Writes to the API server."}, []string{"call", "result"})
	m.conflicts = prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "conflicts_total", Help: "Writes that were repeated, as others were faster."})
	m.stale = prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "stale_nodes", Help: "Nodes whose agent is not heard of any more."})
	m.leading = prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "leading", Help: "Whether this replica is the one that writes."})
	m.remedies = prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "remedied_nodes_total", Help: "Nodes whose kube-proxy was restarted by --remedy."}, []string{"result"})
	m.registry.MustRegister(m.tally.findings, m.tally.atNodes, m.evaluations, m.queue, m.calls, m.conflicts, m.stale, m.leading, m.remedies,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) call(name string, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.calls.WithLabelValues(name, result).Inc()
}

// judged notes how long a judgement took, and whether it was of everything.
func (m *metrics) judged(all bool, took time.Duration) {
	scope := "some"
	if all {
		scope = "all"
	}
	m.evaluations.WithLabelValues(scope).Observe(took.Seconds())
}

func (m *metrics) begin() { m.turn.Store(int64(max(time.Since(m.started), 1))) }
func (m *metrics) end()   { m.turn.Store(0) }

// maxTurn is how long one batch of work may take before the kubelet is to restart
// the program: it bounds calls, and so it means that something hangs.
const maxTurn = 10 * time.Minute

func (m *metrics) alive() bool {
	began := time.Duration(m.turn.Load())
	return began == 0 || time.Since(m.started)-began < maxTurn
}

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	say := func(ok func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if !ok() {
				http.Error(w, "not ok", http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte("ok\n")) // who asked may be gone
		}
	}
	mux.Handle("/healthz", say(m.alive))
	mux.Handle("/readyz", say(m.isReady.Load))
	return mux
}
