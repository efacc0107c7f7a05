package strictarp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// expected is what a case expects of the findings, see testdata/cases.
type expected struct {
	Question      string   `json:"question"`
	Must          []string `json:"must"`
	MustNot       []string `json:"must_not"`
	May           []string `json:"may"`
	RemedyMustNot []string `json:"remedy_must_not"`
}

func readExpected(t testing.TB, dir string) expected {
	t.Helper()
	text, err := os.ReadFile(path.Join(dir, "expected.json"))
	require.NoError(t, err)
	var e expected
	require.NoError(t, json.Unmarshal(text, &e))
	return e
}

// matches reports whether a finding is what "rule" or "rule@subject" names.
func matches(f strictarp.Finding, name string) bool {
	rule, subject, named := strings.Cut(name, "@")
	return f.Rule == rule && (!named || string(f.Subject) == subject)
}

// faults lists what is wrong with the findings of a case.
func (e expected) faults(findings []strictarp.Finding) []string {
	var faults []string
	has := func(name string) bool {
		return slices.ContainsFunc(findings, func(f strictarp.Finding) bool { return matches(f, name) })
	}
	for _, name := range e.Must {
		if !has(name) {
			faults = append(faults, "missing: "+name)
		}
	}
	for _, name := range e.MustNot {
		if has(name) {
			faults = append(faults, "must not be: "+name)
		}
	}
	known := slices.Concat(e.Must, e.May)
	for _, f := range findings {
		if f.Severity == strictarp.SeverityError && !slices.ContainsFunc(known, func(name string) bool { return matches(f, name) }) {
			faults = append(faults, fmt.Sprintf("unexpected: %s@%s: %s", f.Rule, f.Subject, f.Message))
		}
		for _, r := range f.Remedies {
			for _, text := range e.RemedyMustNot {
				if offers(r, text) {
					faults = append(faults, fmt.Sprintf("%s offers %q by %q", f.Key(), text, r))
				}
			}
		}
	}
	return faults
}

// offers reports whether a remedy contains a text, however it is spelled.
func offers(r strictarp.Remedy, text string) bool {
	return strings.Contains(normal(r.String()), normal(text))
}

// normal takes out spaces, says dots and slashes in one way and daemonset for ds.
func normal(text string) string {
	text = strings.NewReplacer(" ds/", " daemonset/", "\n", ";").Replace(strings.ToLower(text))
	return strings.NewReplacer(" ", "", "/", ".").Replace(text)
}

// Every fault that somebody had is found, nothing else is said to be one, and
// nothing is advised that would make it worse.
func TestEvaluateCases(t *testing.T) {
	t.Parallel()
	for _, name := range caseNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := readExpected(t, path.Join(cases, name))
			findings := strictarp.Evaluate(readCase(t, name))
			assert.Empty(t, e.faults(findings), "%s", e.Question)
		})
	}
}

// The same of cases that were constructed, see testdata/constructed.
func TestEvaluateConstructedCases(t *testing.T) {
	t.Parallel()
	const constructed = "testdata/constructed"
	entries, err := os.ReadDir(constructed)
	require.NoError(t, err)
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			dir := path.Join(constructed, entry.Name())
			e := readExpected(t, dir)
			facts, err := strictarp.ReadBundle(os.DirFS(dir))
			require.NoError(t, err)
			assert.Empty(t, e.faults(strictarp.Evaluate(facts)), "%s", e.Question)
		})
	}
}
