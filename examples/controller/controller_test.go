package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// looseFindings is what is kept of a loose scene of three nodes and Services.
func looseFindings() map[string][]string {
	node := []string{"arp-announce-off", "kernel-answers-vip"}
	service := []string{"local-policy-drop", "multiple-responders"}
	return map[string][]string{
		"Cluster": {"strictarp-off"}, "Node w1": node, "Node w2": node, "Node w3": node,
		"Service web/svc-0": service, "Service web/svc-1": service, "Service web/svc-2": service,
	}
}

// told asserts that each finding of a loose scene was told of so often, and no
// event twice.
func told(t *testing.T, s *scene, appearances, resolutions int) {
	t.Helper()
	events := s.events()
	want := 0
	for _, rules := range looseFindings() {
		want += len(rules)
	}
	assert.Equal(t, appearances*want, countOf(events, "appeared "), "%v", events)
	assert.Equal(t, resolutions*want, countOf(events, "resolved "), "%v", events)
	for text, times := range events {
		if strings.HasPrefix(text, "appeared ") {
			assert.Equal(t, appearances, times, text)
		}
	}
}

func TestFindingsComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		c, stop := s.start("a", nil)
		defer stop()
		after(10 * time.Second)
		assert.Equal(t, looseFindings(), s.kept())
		told(t, s, 1, 0)
		assert.True(t, c.metrics.isReady.Load() && c.metrics.alive())

		clear(s.api.calls)
		for range 60 {
			s.observe()
			after(time.Minute)
		}
		delete(s.api.calls, "update leases")
		assert.Empty(t, s.api.calls, "what has not changed is not written")

		s.mend()
		after(30 * time.Second)
		assert.Empty(t, s.kept())
		told(t, s, 1, 1)

		s.makeStrict(false, s.names...)
		s.config = false
		s.api.put(s.kubeProxyConfig())
		s.observe()
		after(30 * time.Second)
		assert.Equal(t, looseFindings(), s.kept())
		told(t, s, 2, 1)
	})
}

func TestServiceGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		c, stop := s.start("a", nil)
		after(10 * time.Second)
		counted := func() int { return int(c.metrics.tally.counts[[2]string{"local-policy-drop", "error"}]) }
		assert.Equal(t, 3, counted())
		service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "svc-1"}}
		s.api.remove(service)
		after(30 * time.Second)
		assert.NotContains(t, s.kept(), "Service web/svc-1")
		assert.Equal(t, 2, counted(), "before everything is judged again")

		// Another one that goes while nobody watches.
		stop()
		service.Name = "svc-2"
		s.api.remove(service)
		_, stop = s.start("b", nil)
		defer stop()
		after(30 * time.Second)
		assert.NotContains(t, s.kept(), "Service web/svc-2")
		assert.Contains(t, s.kept(), "Service web/svc-0")
	})
}

// TestCrash lets the leader lose its way to the API server after each of its
// writes: the next one finishes what it began, and tells nothing twice.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{true, false} {
		for writes := 1; ; writes++ {
			broken := false
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 3, 3, false)
				l := &link{fakeAPI: s.api, writes: writes, heard: heard}
				_, stop := s.startOn(l, "a", nil)
				defer stop()
				after(5 * time.Second)
				_, stopOther := s.start("b", nil)
				defer stopOther()
				s.mend()
				after(2 * time.Minute)
				broken = l.isBroken()
				if broken {
					require.Equal(t, "b", s.leader())
				}
				require.Empty(t, s.kept())
				events := s.events()
				for text, times := range events {
					require.Equal(t, 1, times, "after %d writes: %s", writes, text)
					if what, key, _ := strings.Cut(text, " "); what == string(appeared) {
						require.Contains(t, events, "resolved "+key, "after %d writes", writes)
					}
				}
			})
			if t.Failed() || !broken {
				require.Greater(t, writes, 40, "it was to break in the middle of something")
				break
			}
		}
	}
}

// TestLongTrouble is half an hour, and more, of everything that goes wrong: outages,
// watches that end, conflicts, answers that get lost, replicas that are restarted.
// Nodes become loose and strict all the while. It measures memory, and so no other
// test runs beside it.
func TestLongTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random, faults := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(8, 8))
		s := newScene(t, 3, 3, false)
		defer s.agents()()
		_, stopA := s.start("a", nil)
		_, stopB := s.start("b", nil)
		defer func() { stopA(); stopB() }()
		after(time.Minute)
		var heap []uint64
		for round := range 40 {
			storm := random.Float64() < 0.5
			s.api.mu.Lock()
			s.api.conflict = func(path string) bool { return storm && faults.Float64() < 0.5 }
			s.api.lost = func(path string) bool { return storm && faults.Float64() < 0.2 }
			s.api.mu.Unlock()
			strict := round%2 == 0
			switch random.IntN(5) {
			case 0:
				s.api.outage(true)
			case 1:
				s.api.forget()
			case 2:
				stopA()
				_, stopA = s.start("a", nil)
			case 3:
				stopB()
				_, stopB = s.start("b", nil)
			}
			s.makeStrict(strict, s.names...)
			after(time.Duration(5+random.IntN(40)) * time.Second)
			s.api.outage(false)
			// Calm: what is there now has to be told.
			s.api.mu.Lock()
			s.api.conflict, s.api.lost = nil, nil
			s.api.mu.Unlock()
			after(4 * time.Minute)
			alternate(t, s, !strict)
			s.expire()
			heap = append(heap, heapInUse())
		}
		early, late := slices.Min(heap[4:12]), slices.Min(heap[len(heap)-8:])
		assert.Less(t, float64(late), 1.1*float64(early), "bytes in use: %v", heap)
		t.Logf("%d KiB in use in the beginning, %d KiB in the end", early>>10, late>>10)
	})
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// alternate asserts that of every finding of a node or Service each appearance was
// followed by its end, and the last one by none if it is there.
func alternate(t *testing.T, s *scene, there bool) {
	t.Helper()
	balance := map[string]int{}
	for text, times := range s.events() {
		if what, key, _ := strings.Cut(text, " "); what == string(appeared) {
			balance[key] += times
		} else if what == string(resolved) {
			balance[key] -= times
		}
	}
	want := looseFindings()
	for owner, rules := range s.kept() {
		if owner == "Cluster" {
			continue // the configuration stays as it is
		}
		require.True(t, there, "%s: %v", owner, rules)
		require.Equal(t, want[owner], rules, owner)
	}
	sum := 0
	for key, open := range balance {
		if !strings.HasPrefix(key, "ConfigMap ") {
			require.Contains(t, []int{0, 1}, open, "lost or told twice: %s", key)
			sum += open
		}
	}
	require.Equal(t, map[bool]int{true: 12}[there], sum, "%v", balance)
}

// TestSilentAgents: of a node whose agent is dead nothing is known, and so nothing
// is resolved.
func TestSilentAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		defer s.agents()()
		_, stop := s.start("a", nil)
		defer stop()
		after(time.Minute)
		before := s.events()
		s.mute = map[string]bool{"w1": true, "w2": true, "w3": true}
		s.makeStrict(true, s.names...)
		after(time.Hour)
		assert.Equal(t, before, s.events())
		assert.Equal(t, looseFindings(), s.kept())

		s.mu.Lock()
		s.mute = nil
		s.mu.Unlock()
		after(2 * time.Minute)
		alternate(t, s, false)
		assert.Equal(t, map[string][]string{"Cluster": {"strictarp-off"}}, s.kept())
	})
}

// TestMetalLBComesAndGoes: its kinds need not be there.
func TestMetalLBComesAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		s.api.serveMetalLB(false)
		c, stop := s.start("a", nil)
		defer stop()
		after(20 * time.Second)
		assert.Contains(t, s.kept()["Node w1"], "kernel-answers-vip", "judged all the same")
		assert.Nil(t, c.facts(time.Now()).MetalLB.Pools)

		s.api.serveMetalLB(true)
		s.putCluster()
		after(2 * time.Minute)
		assert.Len(t, c.facts(time.Now()).MetalLB.Pools, 1)

		s.api.serveMetalLB(false)
		after(2 * time.Minute)
		assert.Nil(t, c.facts(time.Now()).MetalLB.Pools)
	})
}

// TestNamespaceForbidden: the permissions for MetalLB's namespace come with MetalLB.
func TestNamespaceForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		s.api.deny = func(verb, path string) error {
			if verb == "list" && strings.Contains(path, "/metallb-system/pods") {
				return statusError(403, metav1.StatusReasonForbidden, path)
			}
			return nil
		}
		c, stop := s.start("a", nil)
		defer stop()
		after(time.Minute)
		assert.Equal(t, looseFindings(), s.kept(), "no speaker is missed")
		f := c.facts(time.Now())
		assert.Nil(t, f.MetalLB.Speakers)
		assert.Contains(t, fmt.Sprint(f.MetalLB.Missing), "pods and configmaps in metallb-system")

		s.api.mu.Lock()
		s.api.deny = nil
		s.api.mu.Unlock()
		after(2 * time.Minute)
		assert.Len(t, c.facts(time.Now()).MetalLB.Speakers, 3)
	})
}

// TestForbidden: a kind that must not be listed is missing, and the rest is judged.
func TestForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		s.api.deny = func(verb, path string) error {
			if verb == "list" && strings.Contains(path, "l2advertisements") {
				return statusError(403, metav1.StatusReasonForbidden, path)
			}
			return nil
		}
		c, stop := s.start("a", nil)
		defer stop()
		after(time.Minute)
		assert.Contains(t, s.kept()["Node w1"], "kernel-answers-vip")
		missing := fmt.Sprint(c.facts(time.Now()).MetalLB.Missing)
		assert.Contains(t, missing, "grant the verbs list and watch on l2advertisements.metallb.io")
	})
}

// TestOthersWrite: what others write to findings objects, or delete, is put right.
func TestOthersWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		_, stop := s.start("a", nil)
		defer stop()
		after(20 * time.Second)
		maps := s.client.CoreV1().ConfigMaps(ownNamespace)
		name := serviceOwner("web", "svc-1").objectName()
		cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		cm.Data[findingsKey] = `{"version":1,"kind":"Service","namespace":"web","name":"other"}`
		_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, maps.Delete(t.Context(), serviceOwner("web", "svc-2").objectName(), metav1.DeleteOptions{}))
		forged := cm.DeepCopy()
		forged.Name, forged.ResourceVersion = "forged", ""
		_, err = maps.Create(t.Context(), forged, metav1.CreateOptions{})
		require.NoError(t, err)
		after(20 * time.Second)
		assert.Equal(t, looseFindings(), s.kept())
		told(t, s, 1, 0)
	})
}
