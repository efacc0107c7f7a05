package thousands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	factsSelector    = "app.kubernetes.io/part-of=strictarp,app.kubernetes.io/component=node-facts"
	findingsSelector = "app.kubernetes.io/part-of=strictarp,app.kubernetes.io/component=findings"
)

// A cluster's life with agents on all nodes: they start at once, nothing happens,
// Services and endpoints come and go, one node and then all become loose and strict
// again, the API server is away, and the controller is started anew. Facts are
// written when, and by whom, something has changed, and everything is found.
func TestThousands(t *testing.T) {
	s := newScene(t)
	s.phase("all agents and the controller start", func() {
		s.startFleet()
		s.startController()
		s.await("all nodes published", func(ctx context.Context) (bool, error) {
			n, err := s.count(ctx, factsSelector)
			return n == *nodes, err
		})
		s.await("everything was judged", s.judged)
		s.await("nobody writes any more", s.calm())
	})
	s.phase("nothing happens", func() {
		time.Sleep(*quiet)
		assert.Zero(s, s.writes(), "facts were written though pods and counters alone have moved")
	})
	s.phase("a Service without a VIP comes and an endpoint moves", func() {
		require.NoError(s, s.makeClusterIP(s.Context()))
		s.moveEndpoint(0)
		time.Sleep(15 * time.Second) // kube-proxies follow within ten
		assert.Zero(s, s.writes(), "facts were written though nodes hold what Services have")
	})
	s.phase("one node becomes loose", func() {
		s.tellFleet(fmt.Sprintf("loose?first=%d&last=%[1]d", *nodes/2))
		s.await("it was found", s.looseNodes(1))
		assert.Equal(s, 1, s.writes(), "the facts of one node")
		s.tellFleet("strict")
		s.await("it was resolved", s.looseNodes(0))
		s.writes()
	})
	s.phase("all nodes become loose as kube-proxy is restarted", func() {
		s.tellFleet("loose?restarted=yes")
		s.await("all were found", s.looseNodes(*nodes))
		assert.LessOrEqual(s, s.writes(), 2**nodes)
	})
	s.phase("the API server is away while all become strict", func() {
		gone := make(chan error)
		go func() { gone <- s.plane.RestartAPIServer(s.Context(), true, *away) }()
		s.tellFleet("strict?restarted=yes")
		require.NoError(s, <-gone)
		s.await("all were resolved", s.looseNodes(0))
		assert.LessOrEqual(s, s.writes(), 3**nodes)
	})
	s.phase("a Service with a VIP comes", func() {
		require.NoError(s, s.makeService(s.Context(), *services))
		time.Sleep(*quiet) // it is asked for
		assert.LessOrEqual(s, s.writes(), min(*nodes, 100), "facts were written by nodes that did not ask for it")
	})
	s.phase("the controller is started anew", func() {
		require.NoError(s, s.controller.Stop())
		s.startController()
		s.await("it is ready", ready)
		s.await("everything was judged", s.judged)
	})
	require.NoError(s, s.fleet.Failed())
}

// calm returns what reports whether agents wrote no facts lately.
func (s *scene) calm() func(context.Context) (bool, error) {
	since := time.Now()
	return func(context.Context) (bool, error) {
		if s.traffic().writes() > 0 {
			since = time.Now()
		}
		return time.Since(since) > 15*time.Second, nil // a pass of probes takes five
	}
}

// ready reports whether the controller has listed everything.
func ready(context.Context) (bool, error) {
	resp, err := http.Get("http://" + controllerAddress + "/readyz")
	if err != nil {
		return false, err
	}
	return resp.StatusCode == http.StatusOK, resp.Body.Close()
}

// phase does something and tells what it cost.
func (s *scene) phase(what string, do func()) {
	s.Helper()
	before, began := s.costs(), time.Now()
	do()
	s.Logf("%s: %.0f s;%s", strings.ToUpper(what), time.Since(began).Seconds(), s.costs().since(before))
	if m := s.controllerMetrics("strictarp_controller_", "go_memstats_heap_inuse_bytes"); m != nil {
		s.Logf("controller: heap %.0f MiB, %.0f judgements in %.1f s, findings %.0f, writes %.0f, silent nodes %.0f", m["go_memstats_heap_inuse_bytes"]/(1<<20),
			m["strictarp_controller_evaluation_seconds_count"], m["strictarp_controller_evaluation_seconds_sum"], m["strictarp_controller_findings"], m["strictarp_controller_api_writes_total"], m["strictarp_controller_stale_nodes"])
	}
	s.logEtcd()
}

// logEtcd tells how large the database is.
func (s *scene) logEtcd() {
	if info, err := os.Stat(filepath.Join(s.dir, "etcd", "member", "snap", "db")); err == nil {
		s.Logf("etcd's database: %.0f MiB", float64(info.Size())/(1<<20))
	}
}

// writes tells what agents told, and returns how often facts were written.
func (s *scene) writes() int {
	s.Helper()
	r := s.traffic()
	s.Log(r)
	return r.writes()
}

// count returns how many ConfigMaps there are, asking for one.
func (s *scene) count(ctx context.Context, selector string) (int, error) {
	list, err := s.admin.CoreV1().ConfigMaps(own).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	return len(list.Items), err
}

// judged reports whether the controller has judged everything.
func (s *scene) judged(context.Context) (bool, error) {
	return s.controllerMetrics(`strictarp_controller_evaluation_seconds_count{scope="all"}`)["strictarp_controller_evaluation_seconds_count"] > 0, nil
}

// looseNodes reports whether the findings objects of so many nodes, and no others,
// say that their kernels answer.
func (s *scene) looseNodes(want int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		list, err := s.admin.CoreV1().ConfigMaps(own).List(ctx, metav1.ListOptions{LabelSelector: findingsSelector + ",strictarp.github.io/kind=Node", ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		loose := 0
		for _, cm := range list.Items {
			var r struct {
				Untold   []any
				Findings []struct{ Finding struct{ Rule string } }
			}
			if err := json.Unmarshal([]byte(cm.Data["findings.json"]), &r); err != nil {
				return false, err
			}
			for _, f := range r.Findings {
				if f.Finding.Rule == "kernel-answers-vip" {
					loose++
				}
			}
		}
		return loose == want, nil
	}
}

// moveEndpoint gives a Service's endpoint another address.
func (s *scene) moveEndpoint(i int) {
	s.Helper()
	_, err := s.admin.DiscoveryV1().EndpointSlices("default").Patch(s.Context(), fmt.Sprintf("svc-%05d-1", i), types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/endpoints/0/addresses/0", "value": "10.244.1.3"}]`), metav1.PatchOptions{})
	require.NoError(s, err)
}
