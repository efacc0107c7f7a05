package strictarp_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// TestLabFromFactsToCureAndBack goes all the way with every fault, without root:
// observe, evaluate, plan, apply, verify, undo.
func TestLabFromFactsToCureAndBack(t *testing.T) {
	t.Parallel()
	for _, s := range labScenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			l, findings := newFault(t, s)
			before := l.snapshot(t)

			var picks []strictarp.Pick
			if s.picks != nil {
				picks = s.picks(findings)
			}
			plan, err := strictarp.NewPlan(findings, picks...)
			require.NoError(t, err)
			assert.Equal(t, s.plan, "\n"+plan.String())
			l.requireDryRun(t, plan)

			path := filepath.Join(t.TempDir(), "undo.json")
			report, err := strictarp.Apply(t.Context(), plan, l.options(t, path))
			require.NoError(t, err)
			assert.True(t, report.Verification.Passed)
			l.requireServed(t)
			if s.manual != nil {
				l.requireSingle(t, s.manual.left...)
				require.NoError(t, s.manual.do(l))
			}
			l.requireSingle(t)
			l.boot(t)
			l.requireSingle(t)

			l.undo(t, path)
			if s.manual != nil {
				require.NoError(t, s.manual.undo(l))
			}
			if s.kept != nil {
				assert.Equal(t, before["configmap"], l.text(t))
				l.requireSingle(t, s.kept...)
				if !s.boots {
					return
				}
				l.boot(t)
			}
			assert.Equal(t, before, l.snapshot(t))
			l.requireFault(t, s)
		})
	}
}

// TestLabRollsBack: plans that look right and are not enough are taken back by
// themselves.
func TestLabRollsBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rules     []string         // whose findings are to be cured
		meanwhile func(*lab) error // after each look that is good; nil: nothing
		remaining string           // in the error
		looks     int
	}{
		"nobody made the client ask again": {
			rules: []string{"kernel-answers-vip"}, remaining: "still there is stale-neighbour|10.0.3.20|client", looks: 1,
		},
		"something loosens a node again": {
			rules: []string{"kernel-answers-vip", "stale-neighbour"}, looks: 2,
			meanwhile: func(l *lab) error { return l.nodes[2].SetStrictARP(false) },
			remaining: "still there is kernel-answers-vip|w3|",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loose := labScenarios()[0]
			l, findings := newFault(t, loose)
			before := l.snapshot(t)
			plan, err := strictarp.NewPlan(findings, pickSysctls(tt.rules...)(findings)...)
			require.NoError(t, err)

			o := l.options(t, filepath.Join(t.TempDir(), "undo.json"))
			o.Rollback, o.Soak = true, time.Minute
			o.Progress = func(p strictarp.Progress) {
				if p.Looked != nil && tt.meanwhile != nil {
					assert.NoError(t, tt.meanwhile(l))
				}
			}
			report, err := strictarp.Apply(t.Context(), plan, o)
			var failed *strictarp.VerifyError
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, tt.remaining)
			assert.Equal(t, tt.looks, report.Verification.Looks)
			for _, r := range report.Steps {
				if r.Step.Action == strictarp.SetSysctl {
					assert.Equal(t, undone, r.Outcome, r.Step)
				}
			}
			assert.Equal(t, before, l.snapshot(t))
			l.requireFault(t, loose)
		})
	}
}

// options apply a plan and look for some time whether it helps. The client goes
// on meanwhile.
func (l *lab) options(t *testing.T, undo string) strictarp.ApplyOptions {
	t.Helper()
	return strictarp.ApplyOptions{
		Executors: l.executors(t), Undo: strictarp.UndoFile(undo), Soak: 100 * time.Millisecond, Every: 10 * time.Millisecond,
		Verify: func(ctx context.Context) ([]strictarp.Finding, error) {
			if _, err := l.client.Resolve(ctx, vip); err != nil {
				return nil, err
			}
			f, err := l.facts(ctx)
			return strictarp.Evaluate(f), err
		},
	}
}

func (l *lab) undo(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	plan, err := strictarp.ReadUndo(file)
	require.NoError(t, file.Close())
	require.NoError(t, err)
	_, err = strictarp.Apply(t.Context(), plan, strictarp.ApplyOptions{Executors: l.executors(t)})
	require.NoError(t, err)
}

func (l *lab) requireDryRun(t *testing.T, p strictarp.Plan) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "none.json")
	o := l.options(t, path)
	o.DryRun = true
	state, calls := l.snapshot(t), len(l.cluster.Calls())
	entry, _ := l.client.Neighbour(vip) // there may be none
	report, err := strictarp.Apply(t.Context(), p, o)
	require.NoError(t, err)
	for _, r := range report.Steps {
		assert.Equal(t, planned, r.Outcome, r.Step)
	}
	for _, call := range l.cluster.Calls()[calls:] {
		assert.False(t, call.Writes(), call)
	}
	assert.Equal(t, state, l.snapshot(t))
	assert.NoFileExists(t, path)
	now, _ := l.client.Neighbour(vip)
	assert.Equal(t, entry.MAC, now.MAC)
}

// newFault makes a lab with a scenario's fault, and finds it.
func newFault(t *testing.T, s labScenario) (*lab, []strictarp.Finding) {
	t.Helper()
	l := newLab(t, s.situation)
	if s.prepare != nil {
		require.NoError(t, s.prepare(l))
	}
	return l, l.requireFault(t, s)
}

// requireFault requires that the scenario's errors are found, no others, and its
// warnings.
func (l *lab) requireFault(t *testing.T, s labScenario) []strictarp.Finding {
	t.Helper()
	if s.suffer != nil {
		s.suffer(l, t)
	}
	f, err := l.facts(t.Context())
	require.NoError(t, err)
	findings := strictarp.Evaluate(f)
	require.ElementsMatch(t, s.errors, keysOf(findings, strictarp.SeverityError))
	require.Subset(t, keysOf(findings, strictarp.SeverityWarning), s.warnings)
	require.Empty(t, keysOf(findings, strictarp.SeverityUnknown))
	return findings
}

// requireSingle requires that one host answers each request once, the announcer,
// which the client has in its cache, and that nothing is found but the errors
// named: without any, no warning either.
func (l *lab) requireSingle(t *testing.T, left ...string) {
	t.Helper()
	mac, err := l.client.Resolve(t.Context(), vip)
	require.NoError(t, err)
	require.Equal(t, l.nodes[0].MAC(), mac)
	f, err := l.facts(t.Context())
	require.NoError(t, err)
	r := f.Vantages[0].Probes[0]
	require.Equal(t, arpcheck.Single, r.Verdict, r)
	require.Equal(t, l.nodes[0].MAC(), r.Responders[0].MAC)
	require.Equal(t, r.Quality.Requests, r.Responders[0].Replies)

	findings := strictarp.Evaluate(f)
	require.ElementsMatch(t, left, keysOf(findings, strictarp.SeverityError))
	require.Empty(t, keysOf(findings, strictarp.SeverityUnknown))
	if len(left) == 0 {
		require.Empty(t, keysOf(findings, strictarp.SeverityWarning))
	}
}

// requireServed requires that the client's connections get to the endpoint.
func (l *lab) requireServed(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	served, err := l.client.Visit(ctx, netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	require.Equal(t, "w1", served)
}
