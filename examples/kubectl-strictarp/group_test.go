package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp"
)

func finding(rule string, severity strictarp.Severity, causes ...string) strictarp.Finding {
	f := strictarp.Finding{Rule: rule, Severity: severity, Subject: "s"}
	for _, c := range causes {
		f.Causes = append(f.Causes, strictarp.Key(c+"|s|"))
	}
	return f
}

func rules(roots []root) map[string][]string {
	all := map[string][]string{}
	for _, r := range roots {
		list := []string{}
		for _, k := range r.consequences {
			list = append(list, k.findings[0].Rule)
		}
		all[r.findings[0].Rule] = list
	}
	return all
}

func TestGroup(t *testing.T) {
	t.Parallel()
	const info, warning, bad = strictarp.SeverityInfo, strictarp.SeverityWarning, strictarp.SeverityError
	for _, c := range []struct {
		name     string
		findings []strictarp.Finding
		want     map[string][]string
	}{
		{"none", nil, map[string][]string{}},
		{"chain", []strictarp.Finding{finding("seen", bad, "kernel"), finding("kernel", bad, "config"), finding("config", warning)}, map[string][]string{"config": {"seen", "kernel"}}},
		{"two causes, told once", []strictarp.Finding{finding("a", bad), finding("b", bad), finding("c", bad, "b", "a")}, map[string][]string{"a": {"c"}, "b": {}}},
		{"the cause is not among them", []strictarp.Finding{finding("a", bad, "gone")}, map[string][]string{"a": {}}},
		{"its own cause", []strictarp.Finding{finding("a", bad, "a")}, map[string][]string{"a": {}}},
		{"circle", []strictarp.Finding{finding("a", bad, "b"), finding("b", bad, "a")}, map[string][]string{"a": {"b"}}},
		{"into a circle", []strictarp.Finding{finding("a", bad, "b"), finding("b", bad, "c"), finding("c", info, "d"), finding("d", info, "c")}, map[string][]string{"c": {"a", "b", "d"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, rules(group(c.findings)))
		})
	}
}

func TestGroupPutsTheWorstFirst(t *testing.T) {
	t.Parallel()
	roots := group([]strictarp.Finding{
		finding("seen", strictarp.SeverityError, "told"), finding("note", strictarp.SeverityWarning), finding("told", strictarp.SeverityInfo),
	})
	assert.Equal(t, "told", roots[0].findings[0].Rule, "what follows from it is an error")
}

// Whatever explains what, every finding is told once, and it ends.
func TestGroupKeepsAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		var findings []strictarp.Finding
		for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "n")] {
			causes := rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "causes of "+name)
			findings = append(findings, finding(name, strictarp.SeverityError, causes...))
		}
		count := 0
		for _, r := range group(findings) {
			count += len(r.findings)
			for _, k := range r.consequences {
				count += len(k.findings)
			}
		}
		assert.Equal(t, len(findings), count)
	})
}
