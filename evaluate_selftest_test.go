package strictarp_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// spellings are other ways to write a forbidden remedy.
func spellings(text string) []string {
	list := []string{text, strings.ToUpper(text), "first " + text + "; then look", strings.ReplaceAll(text, " ", "  ")}
	if strings.HasPrefix(text, "net.") {
		key, value, _ := strings.Cut(text, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		list = append(list, strings.ReplaceAll(key, ".", "/")+"="+value, "sysctl -w "+key+" = "+value)
	}
	if strings.Contains(text, "daemonset/") {
		list = append(list, "kubectl "+strings.Replace(text, "daemonset/", "ds/", 1)+" -n some")
	}
	if strings.Contains(text, " ds/") {
		list = append(list, strings.Replace(text, " ds/", " daemonset/", 1))
	}
	return list
}

// stepsOf are the steps by which a text can be offered: by hand, and as data.
func stepsOf(text string) []strictarp.Step {
	var list []strictarp.Step
	for _, spelling := range spellings(text) {
		list = append(list, strictarp.Step{Action: strictarp.DoByHand, Object: spelling})
	}
	key, value, _ := strings.Cut(text, "=")
	switch {
	case strings.HasPrefix(text, "net.ipv4.") && value != "":
		list = append(list, strictarp.Step{Action: strictarp.SetSysctl, Object: strings.ReplaceAll(strings.TrimSpace(key), ".", "/"), To: strings.TrimSpace(value)})
	case strings.HasPrefix(text, "strictARP: "):
		list = append(list, strictarp.Step{Action: strictarp.SetStrictARP, Object: "configmap/kube-proxy", To: strings.TrimPrefix(text, "strictARP: ")})
	case strings.HasPrefix(text, "ip addr add "):
		list = append(list, strictarp.Step{Action: strictarp.SetAddress, Object: strings.TrimPrefix(text, "ip addr add "), To: strictarp.Present})
	case strings.HasPrefix(text, "ip addr del "):
		list = append(list, strictarp.Step{Action: strictarp.SetAddress, Object: strings.TrimPrefix(text, "ip addr del "), To: strictarp.Absent})
	case strings.HasPrefix(text, "rollout restart "):
		object := strings.Replace(strings.TrimPrefix(text, "rollout restart "), "ds/", "daemonset/", 1)
		list = append(list, strictarp.Step{Action: strictarp.RestartRollout, Namespace: "some", Object: object})
	}
	return list
}

// The runner of the cases catches what it is to catch: every forbidden remedy,
// however it is spelled, a finding that is missing, one that must not be, and an
// error that nobody expects.
func TestCasesAreChecked(t *testing.T) {
	forbidden := 0
	for _, name := range caseNames(t) {
		e := readExpected(t, path.Join(cases, name))
		findings := strictarp.Evaluate(readCase(t, name))
		require.Empty(t, e.faults(findings), name)
		for _, text := range e.RemedyMustNot {
			for _, step := range stepsOf(text) {
				forbidden++
				bad := strictarp.Finding{Rule: "self-test", Subject: "self-test", Remedies: []strictarp.Remedy{
					strictarp.NewRemedy("Harmless.", strictarp.Step{Action: strictarp.DoByHand, Object: "look"}), strictarp.NewRemedy("Worse.", step)}}
				faults := e.faults(append(findings[:len(findings):len(findings)], bad))
				require.NotEmpty(t, faults, "%s: %q offered as %q", name, text, step)
				assert.Contains(t, faults[0], "offers")
			}
			warned := strictarp.Finding{Rule: "self-test", Subject: "self-test", Avoid: []strictarp.Caution{{Step: text, Why: "it harms"}}}
			assert.Empty(t, e.faults(append(findings[:len(findings):len(findings)], warned)), "a warning is no offer")
		}
		for _, must := range e.Must {
			var less []strictarp.Finding
			for _, f := range findings {
				if !matches(f, must) {
					less = append(less, f)
				}
			}
			assert.Contains(t, e.faults(less), "missing: "+must, name)
		}
		for _, not := range e.MustNot {
			rule, subject, _ := strings.Cut(not, "@")
			assert.Contains(t, e.faults([]strictarp.Finding{{Rule: rule, Subject: strictarp.Subject(subject)}}), "must not be: "+not, name)
		}
		unexpected := strictarp.Finding{Rule: "no-such-rule", Subject: "x", Severity: strictarp.SeverityError}
		assert.Len(t, e.faults(append(findings[:len(findings):len(findings)], unexpected)), 1, name)
	}
	assert.Greater(t, forbidden, 300)
}
