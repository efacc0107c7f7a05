package endurance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
)

// patience is how long anything may take: after the API server was away, clients
// wait for up to a minute each, and agents and controllers do so one after the other.
const patience = 5 * time.Minute

// await waits until f says that something is so.
func (s *scene) await(what string, f func(context.Context) (bool, error)) {
	s.Helper()
	for began := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		done, err := f(ctx)
		cancel()
		if done && err == nil {
			return
		}
		if time.Since(began) > patience {
			s.dump()
			require.FailNow(s, "waited too long", "%s: %v after %v: %v", what, done, patience, err)
		}
	}
}

// awaitDone does something until it succeeds.
func (s *scene) awaitDone(what string, do func(context.Context) error) {
	s.Helper()
	s.await(what, func(ctx context.Context) (bool, error) { return true, do(ctx) })
}

// dump logs the ends of all programs' logs.
func (s *scene) dump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.programs {
		s.Logf("%s:\n%s", name, p.now.Tail(15))
	}
}

// judged is what a controller found of something, as it keeps it.
type judged struct {
	Findings []struct {
		Undecided bool
		Finding   strictarp.Finding
	}
	Untold []any
}

// judgements returns the findings objects.
func (s *scene) judgements(ctx context.Context) (list []judged, err error) {
	maps, err := s.admin.CoreV1().ConfigMaps(own).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=findings"})
	if err != nil {
		return nil, err
	}
	for _, cm := range maps.Items {
		var j judged
		if err := json.Unmarshal([]byte(cm.Data["findings.json"]), &j); err != nil {
			return nil, fmt.Errorf("read configmap/%s: %w", cm.Name, err)
		}
		list = append(list, j)
	}
	return list, nil
}

// loud returns the keys of what was found of severity warning and error.
func (s *scene) loud(ctx context.Context) (map[strictarp.Key]bool, error) {
	list, err := s.judgements(ctx)
	keys := map[strictarp.Key]bool{}
	for _, j := range list {
		for _, e := range j.Findings {
			if e.Finding.Severity >= strictarp.SeverityWarning && !e.Undecided {
				keys[e.Finding.Key()] = true
			}
		}
	}
	return keys, err
}

// awaitFinding waits until a finding is kept, or is not any more.
func (s *scene) awaitFinding(key strictarp.Key, there bool) {
	s.Helper()
	s.await(fmt.Sprintf("%s there: %t", key, there), func(ctx context.Context) (bool, error) {
		keys, err := s.loud(ctx)
		return keys[key] == there, err
	})
}

// events returns the controllers' events by the finding they tell of.
func (s *scene) events(ctx context.Context) (map[strictarp.Key][]corev1.Event, error) {
	list, err := s.admin.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "source=strictarp-controller"})
	if err != nil {
		return nil, err
	}
	told := map[strictarp.Key][]corev1.Event{}
	for _, e := range list.Items {
		key := strictarp.Key(e.Annotations["strictarp.github.io/finding"])
		told[key] = append(told[key], e)
	}
	return told, nil
}

// checkEvents demands that each finding was told of when it appeared and when it
// went, each time and once: of one that came n times there are n events of either
// kind, and one less of its going if it is still there.
func (s *scene) checkEvents(planted map[strictarp.Key]int) {
	s.Helper()
	s.await("all events written", func(ctx context.Context) (bool, error) {
		list, err := s.judgements(ctx)
		for _, j := range list {
			if len(j.Untold) > 0 {
				return false, err
			}
		}
		return true, err
	})
	told, err := s.events(s.Context())
	require.NoError(s, err)
	there, err := s.loud(s.Context())
	require.NoError(s, err)
	for key := range there {
		assert.Contains(s, told, key, "found, and never told")
	}
	for key, events := range told {
		count := map[string]int{}
		for _, e := range events {
			assert.EqualValues(s, 1, e.Count, e.Name)
			count[e.Annotations["strictarp.github.io/what"]]++
		}
		went := count["appeared"]
		if there[key] {
			went--
		}
		if events[0].InvolvedObject.Name == "gone" {
			went = 0 // what is found of a Service goes with it, in silence
		}
		assert.Equal(s, went, count["resolved"], "%s: appeared %d times, there now: %t", key, count["appeared"], there[key])
		if n, ok := planted[key]; ok {
			assert.Equal(s, n, count["appeared"], "%s: planted %d times", key, n)
		}
	}
	for key, n := range planted {
		assert.NotEmpty(s, told[key], "%s: planted %d times, never told", key, n)
	}
	s.Logf("%d findings were told of, by %d events; there now: %s", len(told), total(told), strings.Join(names(there), ", "))
}

func total(told map[strictarp.Key][]corev1.Event) (n int) {
	for _, events := range told {
		n += len(events)
	}
	return n
}

func names(keys map[strictarp.Key]bool) (list []string) {
	for key := range keys {
		list = append(list, string(key))
	}
	return list
}

// settled reports whether all agents have published and a controller leads.
func (s *scene) settled(ctx context.Context) (bool, error) {
	facts, err := s.admin.CoreV1().ConfigMaps(own).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=node-facts"})
	if err != nil {
		return false, err
	}
	lease, err := s.admin.CoordinationV1().Leases(own).Get(ctx, "strictarp-controller", metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return len(facts.Items) == len(nodes) && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
}

// remedied reports whether the controller has mended the cluster.
func (s *scene) remedied(ctx context.Context) (bool, error) {
	cm, err := s.admin.CoreV1().ConfigMaps(own).Get(ctx, "strictarp-remedy", metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	var state struct{ Phase, Why string }
	err = json.Unmarshal([]byte(cm.Data["remedy.json"]), &state)
	if state.Phase == "failed" {
		require.FailNow(s, "the remedy failed", state.Why)
	}
	return state.Phase == "done", err
}
