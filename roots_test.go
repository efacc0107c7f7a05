package strictarp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp"
)

func explained(rule string, severity strictarp.Severity, causes ...string) strictarp.Finding {
	f := strictarp.Finding{Rule: rule, Severity: severity, Subject: "s"}
	for _, c := range causes {
		f.Causes = append(f.Causes, strictarp.Key(c+"|s|"))
	}
	return f
}

// below returns the rules of consequences by the rule of their cause.
func below(roots []strictarp.Root) map[string][]string {
	all := map[string][]string{}
	for _, r := range roots {
		list := []string{}
		for _, g := range r.Consequences {
			list = append(list, g[0].Rule)
		}
		all[r.Causes[0].Rule] = list
	}
	return all
}

func TestRoots(t *testing.T) {
	t.Parallel()
	const info, warning, bad = strictarp.SeverityInfo, strictarp.SeverityWarning, strictarp.SeverityError
	for _, c := range []struct {
		name     string
		findings []strictarp.Finding
		want     map[string][]string
	}{
		{"none", nil, map[string][]string{}},
		{"chain", []strictarp.Finding{explained("seen", bad, "kernel"), explained("kernel", bad, "config"), explained("config", warning)}, map[string][]string{"config": {"seen", "kernel"}}},
		{"two causes, told once", []strictarp.Finding{explained("a", bad), explained("b", bad), explained("c", bad, "b", "a")}, map[string][]string{"a": {"c"}, "b": {}}},
		{"the cause is not among them", []strictarp.Finding{explained("a", bad, "gone")}, map[string][]string{"a": {}}},
		{"its own cause", []strictarp.Finding{explained("a", bad, "a")}, map[string][]string{"a": {}}},
		{"circle", []strictarp.Finding{explained("a", bad, "b"), explained("b", bad, "a")}, map[string][]string{"a": {"b"}}},
		{"into a circle", []strictarp.Finding{explained("a", bad, "b"), explained("b", bad, "c"), explained("c", info, "d"), explained("d", info, "c")}, map[string][]string{"c": {"a", "b", "d"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, below(strictarp.Roots(c.findings)))
		})
	}
}

func TestRootsPutTheWorstFirst(t *testing.T) {
	t.Parallel()
	roots := strictarp.Roots([]strictarp.Finding{
		explained("seen", strictarp.SeverityError, "told"), explained("note", strictarp.SeverityWarning), explained("told", strictarp.SeverityInfo),
	})
	require.Len(t, roots, 2)
	assert.Equal(t, "told", roots[0].Causes[0].Rule)
	assert.Equal(t, strictarp.SeverityError, roots[0].Severity, "what follows from it is an error")
}

func TestRootsJoinWhatIsAlike(t *testing.T) {
	t.Parallel()
	loose := func(node, to string) strictarp.Finding {
		return strictarp.Finding{
			Rule: "kernel-answers-vip", Severity: strictarp.SeverityError, Subject: strictarp.Subject(node), Node: node, Vantage: "client",
			Remedies: []strictarp.Remedy{strictarp.NewRemedy("Set it.", strictarp.Step{Action: strictarp.SetSysctl, Node: node, Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: to})},
		}
	}
	roots := strictarp.Roots([]strictarp.Finding{loose("w1", "1"), loose("w2", "1"), loose("w3", "2"), loose("w2", "1")})
	require.Len(t, roots, 2)
	joined := roots[0].Causes
	assert.Len(t, joined, 3)
	assert.Equal(t, []strictarp.Subject{"w1", "w2"}, joined.Subjects())
	assert.Equal(t, []string{"w1", "w2"}, joined.Nodes())
	assert.Equal(t, []string{"client"}, joined.Vantages())
	assert.Equal(t, []string{"w3"}, roots[1].Causes.Nodes(), "another remedy is another matter")
}

// Whatever explains what, every finding is told once, and it ends.
func TestRootsKeepAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		var findings, got []strictarp.Finding
		for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "n")] {
			causes := rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "causes of "+name)
			findings = append(findings, explained(name, strictarp.SeverityError, causes...))
		}
		for _, r := range strictarp.Roots(findings) {
			got = append(got, r.Causes...)
			for _, g := range r.Consequences {
				got = append(got, g...)
			}
		}
		assert.ElementsMatch(t, findings, got)
	})
}

func ExampleRoots() {
	findings := []strictarp.Finding{
		{Rule: "multiple-responders", Severity: strictarp.SeverityError, Subject: "10.0.3.20", Causes: []strictarp.Key{"kernel-answers-vip|w2|"}},
		{Rule: "kernel-answers-vip", Severity: strictarp.SeverityError, Subject: "w2", Node: "w2", Causes: []strictarp.Key{"strictarp-off|kube-system/kube-proxy|"}},
		{Rule: "strictarp-off", Severity: strictarp.SeverityError, Subject: "kube-system/kube-proxy"},
	}
	for _, root := range strictarp.Roots(findings) {
		fmt.Println(root.Severity, root.Causes[0].Rule, root.Causes.Subjects())
		for _, g := range root.Consequences {
			fmt.Println("  from that follows", g[0].Rule, g.Subjects())
		}
	}
	// Output:
	// error strictarp-off [kube-system/kube-proxy]
	//   from that follows multiple-responders [10.0.3.20]
	//   from that follows kernel-answers-vip [w2]
}
