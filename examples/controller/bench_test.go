package main

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
)

// loaded returns a controller whose caches hold a cluster, without running it.
func loaded(tb testing.TB, s *scene) *controller {
	tb.Helper()
	typed, dynamic := s.api.clients()
	c, err := newController(options{namespace: ownNamespace, watched: []string{"kube-system", "metallb-system"}}, typed, dynamic, slog.New(slog.DiscardHandler), newMetrics())
	require.NoError(tb, err)
	stop := make(chan struct{})
	c.sources.start(stop)
	tb.Cleanup(func() {
		close(stop)
		c.sources.shutdown()
		c.customs.stopAll()
		c.customs.waiting.Wait()
	})
	c.customs.look(tb.Context())
	require.True(tb, c.waitSynced(tb.Context()))
	for c.collector.Facts(time.Now(), nil).Nodes == nil || len(c.collector.Facts(time.Now(), nil).Nodes) < len(s.names) {
		runtime.Gosched() // handlers are told after the store is filled
	}
	return c
}

// BenchmarkJudge is of 200 nodes and 2,000 Services, of which every node holds all
// and one node has asked for all.
func BenchmarkJudge(b *testing.B) {
	for _, loose := range []bool{false, true} {
		name := map[bool]string{false: "strict", true: "loose"}[loose]
		s := newScene(b, 200, 2000, !loose)
		before := heapInUse()
		c := loaded(b, s)
		c.facts(time.Now())
		heap := heapInUse() - before
		bytes := 0
		for _, cm := range all[corev1.ConfigMap](s.api, "configmaps") {
			for _, data := range cm.BinaryData {
				bytes += len(data)
			}
		}
		b.Run(name+"/objects", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.stale.Store(true)
				c.facts(time.Now())
			}
			b.ReportMetric(float64(heap)/(1<<20), "heapMiB")
			b.ReportMetric(float64(bytes)/float64(len(s.names)), "publishedB/node")
		})
		b.Run(name+"/all", func(b *testing.B) {
			b.ReportAllocs()
			f := c.facts(time.Now())
			for b.Loop() {
				newSharing(&f).divide(strictarp.Evaluate(f))
			}
		})
		b.Run(name+"/service", func(b *testing.B) {
			b.ReportAllocs()
			f := c.facts(time.Now())
			for b.Loop() {
				strictarp.Evaluate(f, "web/svc-7")
			}
		})
		b.Run(name+"/digest", func(b *testing.B) {
			b.ReportAllocs()
			f, lacks, _ := c.collector.Published("w1")
			for b.Loop() {
				digestOf("w1", f, lacks)
			}
		})
	}
}
