package strictarp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// ruleTest edits a scene in which all is well and says all findings that come of
// it. It is a positive test of a rule, or a negative one: of what looks like it and
// is something else, or nothing.
type ruleTest struct {
	rule string // what it is about
	name string
	edit func(*scene)
	// want are all findings, in their order: "severity rule@subject". A want that is
	// of the rule makes the test a positive one.
	want []string
}

func ruleTests() []ruleTest {
	return slices.Concat(responderTests(), wireFaultTests(), kernelTests(), holderTests(), pathTests(), kubeProxyTests(), silenceTests(), speakerTests(), announcementTests())
}

// positive reports whether the rule is among what is wanted, at the severity that
// is usual for it.
func (rt ruleTest) positive() bool {
	usual, _ := strictarp.RuleByID(rt.rule)
	return slices.ContainsFunc(rt.want, func(w string) bool { return strings.HasPrefix(w, usual.Severity.String()+" "+rt.rule+"@") })
}

func summaries(findings []strictarp.Finding) []string {
	list := []string{}
	for _, f := range findings {
		text := f.Severity.String() + " " + f.Rule + "@" + string(f.Subject)
		if !slices.Contains(list, text) { // from several vantages
			list = append(list, text)
		}
	}
	return list
}

func TestEvaluateRules(t *testing.T) {
	t.Parallel()
	for _, rt := range ruleTests() {
		t.Run(rt.rule+"/"+rt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			rt.edit(s)
			findings := strictarp.Evaluate(s.facts())
			got := summaries(findings)
			if !assert.ElementsMatch(t, rt.want, got) {
				for _, f := range findings {
					t.Log(f.Severity, f.Key(), f.Message)
				}
			}
			wellFormed(t, findings)
		})
	}
}

// Nothing is found where all is well.
func TestEvaluateHealthy(t *testing.T) {
	t.Parallel()
	assert.Empty(t, strictarp.Evaluate(newScene(t).facts()))
	assert.Empty(t, strictarp.Evaluate(strictarp.Facts{}))
}

// Each rule is shown to be found, and not to be found where something only looks
// like it.
func TestEvaluateRulesAreTested(t *testing.T) {
	t.Parallel()
	positive, negative := map[string]bool{}, map[string]bool{}
	seen := map[string]bool{}
	for _, rt := range ruleTests() {
		_, known := strictarp.RuleByID(rt.rule)
		assert.True(t, known, rt.rule)
		assert.False(t, seen[rt.rule+rt.name], "%s/%s: twice", rt.rule, rt.name)
		seen[rt.rule+rt.name] = true
		if rt.positive() {
			positive[rt.rule] = true
		} else {
			negative[rt.rule] = true
		}
	}
	for _, r := range strictarp.Rules() {
		if r.ID == "subject-not-found" { // see TestEvaluateSubjectsNotFound: only of what is named
			continue
		}
		assert.True(t, positive[r.ID], "%s has no positive test", r.ID)
		assert.True(t, negative[r.ID], "%s has no negative test", r.ID)
	}
}

// wellFormed checks what holds of all findings.
func wellFormed(t testing.TB, findings []strictarp.Finding) {
	t.Helper()
	keys := map[strictarp.Key]bool{}
	for _, f := range findings {
		assert.False(t, keys[f.Key()], "%s: twice", f.Key())
		keys[f.Key()] = true
	}
	for _, f := range findings {
		_, known := strictarp.RuleByID(f.Rule)
		assert.True(t, known, f.Rule)
		assert.NotEmpty(t, f.Subject, f.Rule)
		assert.NotEmpty(t, f.Message, f.Rule)
		if f.Severity > strictarp.SeverityUnknown {
			assert.NotEmpty(t, f.Evidence, f.Key())
		}
		for _, e := range f.Evidence {
			assert.NotEmpty(t, e.Observed, f.Key())
			assert.NotEmpty(t, e.Source, f.Key())
		}
		if f.Severity == strictarp.SeverityUnknown {
			assert.Contains(t, f.Message, "Collect: ", f.Key())
		}
		for _, c := range f.Causes {
			assert.True(t, keys[c], "%s: its cause %s is no finding", f.Key(), c)
			assert.NotEqual(t, f.Key(), c)
		}
		soundRemedies(t, f)
	}
	rooted(t, findings)
	require.True(t, slices.IsSortedFunc(findings, func(a, b strictarp.Finding) int { return int(b.Severity) - int(a.Severity) }))
}

// rooted: causes lead to a finding without one, never in a circle.
func rooted(t testing.TB, findings []strictarp.Finding) {
	t.Helper()
	explained := map[strictarp.Key]bool{}
	for range findings {
		for _, f := range findings {
			explained[f.Key()] = !slices.ContainsFunc(f.Causes, func(c strictarp.Key) bool { return !explained[c] })
		}
	}
	for key, ok := range explained {
		assert.True(t, ok, "%s is its own cause", key)
	}
}

// soundRemedies: none does harm, none is warned of, each can be undone.
func soundRemedies(t testing.TB, f strictarp.Finding) {
	t.Helper()
	for _, r := range f.Remedies {
		assert.NotEmpty(t, r.Summary, f.Key())
		require.NotEmpty(t, r.Steps, f.Key())
		for _, s := range r.Steps {
			why, bad := strictarp.Harmful(s)
			assert.False(t, bad, "%s offers %s: %s", f.Key(), s, why)
			for _, c := range f.Avoid {
				assert.NotEqual(t, normal(c.Step), normal(s.String()), "%s offers what it warns of", f.Key())
			}
			switch s.Action {
			case strictarp.ForgetNeighbour, strictarp.RestartRollout, strictarp.RestartUnit: // nothing is to be put back
			default:
				assert.NotEmpty(t, r.Undo, "%s: %s cannot be undone", f.Key(), s)
			}
			assert.NotContains(t, s.String(), "\n")
		}
		again := strictarp.NewRemedy(r.Summary, r.Steps...)
		assert.Equal(t, again.Undo, r.Undo, f.Key())
	}
	for _, c := range f.Avoid {
		assert.NotEmpty(t, c.Why, f.Key())
	}
	_, err := json.Marshal(f)
	assert.NoError(t, err)
}
