// Package incident_test is the incident and its relatives on a whole cluster of real
// components: each fault is brought about, observed live by this SDK, judged, cured
// and observed again. It runs in the machine that the command e2e boots.
package incident_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/internal/e2e/cluster"
	"github.com/strictarp/strictarp/internal/e2e/process"
)

func TestMain(m *testing.M) {
	process.Main()
	os.Exit(m.Run())
}

// lab is the cluster with the table of what was seen.
type lab struct {
	*cluster.Cluster
	rows []string
}

// scene is one scenario in the lab.
type scene struct {
	*testing.T
	*lab
	began    time.Time
	found    []string
	cure     string
	findings []strictarp.Finding
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(cluster.MachineEnv) != "1" {
		t.Skip("it takes over the machine: run it in one of its own, with: go run . (in internal/e2e)")
	}
	c, err := cluster.Start(t.Context(), t.TempDir(), t.Logf)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return &lab{Cluster: c}
}

// play plays a scenario and notes its row. It stops the test if that fails, since the
// next one begins where this one ends.
func (l *lab) play(t *testing.T, name string, f func(*scene)) {
	s := &scene{lab: l, began: time.Now()}
	ok := t.Run(name, func(t *testing.T) {
		s.T = t
		t.Cleanup(s.explain)
		f(s)
	})
	if s.T == nil {
		return // -run did not want it
	}
	l.rows = append(l.rows, fmt.Sprintf("%-28s | %s | %s | %.0f s", name, strings.Join(s.found, ", "), s.cure, time.Since(s.began).Seconds()))
	require.True(t, ok, "the rest is not played after %q failed", name)
}

// explain adds to a failure what the components said last.
func (s *scene) explain() {
	if !s.Failed() {
		return
	}
	for _, n := range s.Nodes {
		for line := range strings.Lines(n.Tail()) {
			s.Logf("%s %.300s", n.Name, strings.TrimSpace(line))
		}
	}
}

// print prints the table, which the command's output ends with.
func (l *lab) print() {
	fmt.Println("scenario | findings by live observation | cure | seconds")
	for _, row := range l.rows {
		fmt.Println(row)
	}
}

// observe judges the cluster as it is now.
func (s *scene) observe() []strictarp.Finding {
	s.Helper()
	facts, err := s.Observe(s.Context())
	require.NoError(s, err)
	findings, err := cluster.Evaluate(facts)
	require.NoError(s, err)
	for _, f := range findings {
		s.Logf("%s: %s %s: %s", f.Severity, f.Rule, f.Subject, f.Message)
	}
	return findings
}

// has returns whether a finding of a rule, such as "no-responder" or
// "kernel-answers-vip@w1", is among findings.
func has(findings []strictarp.Finding, rule string) bool {
	id, subject, _ := strings.Cut(rule, "@")
	return slices.ContainsFunc(findings, func(f strictarp.Finding) bool {
		return f.Rule == id && (subject == "" || string(f.Subject) == subject || f.Node == subject)
	})
}

// sees observes until all rules are found, since what caused them takes its time to
// spread, and notes them.
func (s *scene) sees(rules ...string) []strictarp.Finding {
	s.Helper()
	err := cluster.Await(s.Context(), "findings", func(context.Context) error {
		s.findings = s.observe()
		for _, rule := range rules {
			if !has(s.findings, rule) {
				return fmt.Errorf("%s is not among the findings: %v", rule, errorsOf(s.findings))
			}
		}
		return nil
	})
	require.NoError(s, err)
	s.found = append(s.found, rules...)
	return s.findings
}

// never requires that none of the rules was found last.
func (s *scene) never(rules ...string) {
	s.Helper()
	for _, rule := range rules {
		require.False(s, has(s.findings, rule), "%s in %v", rule, errorsOf(s.findings))
	}
}

// heals observes until nothing is found that is an error or cannot be told.
func (s *scene) heals() {
	s.Helper()
	err := cluster.Await(s.Context(), "the cure to show", func(context.Context) error {
		s.findings = s.observe()
		if left := errorsOf(s.findings); len(left) > 0 {
			return fmt.Errorf("there are still %v", left)
		}
		return nil
	})
	require.NoError(s, err)
	s.answered(map[string]int{"w1": 3})
	// The speaker may be faster than kube-proxy.
	err = cluster.Await(s.Context(), "the Service to serve the client", func(ctx context.Context) error {
		text, err := s.Client.Get(ctx)
		if err == nil && text != "web on w1\n" {
			err = fmt.Errorf("it says %q", text)
		}
		return err
	})
	require.NoError(s, err)
}

// errorsOf returns the keys of findings that are errors or cannot be told.
func errorsOf(findings []strictarp.Finding) (list []string) {
	for _, f := range findings {
		if f.Severity == strictarp.SeverityError || f.Severity == strictarp.SeverityUnknown {
			list = append(list, string(f.Key()))
		}
	}
	return list
}

// answered waits until three requests draw so many answers of each node.
func (s *scene) answered(want map[string]int) {
	s.Helper()
	err := cluster.Await(s.Context(), "answers", func(ctx context.Context) error {
		got, err := s.Answers(ctx)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("answers are %v, want %v", got, want)
		}
		return err
	})
	require.NoError(s, err)
}

// applies cures what was found by the remedies of findings of some rules: all if none
// is named.
func (s *scene) applies(rules ...string) {
	s.Helper()
	var picks []strictarp.Pick
	for _, f := range s.findings {
		if len(f.Remedies) > 0 && slices.Contains(rules, f.Rule) {
			picks = append(picks, strictarp.Pick{Finding: f.Key()})
		}
	}
	require.Equal(s, len(rules) > 0, len(picks) > 0, "no finding of %v has a remedy", rules)
	plan, err := strictarp.NewPlan(s.findings, picks...)
	require.NoError(s, err)
	s.Logf("plan:\n%s", plan)
	report, err := s.Cure(s.Context(), plan)
	for _, step := range report.Steps {
		s.Logf("%s: %s %s", step.Outcome, step.Step, step.Error)
	}
	require.NoError(s, err)
	require.True(s, report.Verification.Passed)
	var steps []string
	for _, step := range plan.Steps {
		steps = append(steps, step.String())
	}
	s.cure = strings.Join(steps, "; ")
}

var listAll = metav1.ListOptions{}

// pause waits a moment, and returns whether ctx is still good.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(300 * time.Millisecond):
		return true
	}
}
