package strictarp

import (
	"fmt"
	"slices"
)

// Evaluate draws the conclusions that facts allow: all of them, or only those
// about the subjects that are named, which are VIPs, nodes, and Services as
// namespace/name. Findings about what is told to all nodes, such as kube-proxy's
// configuration, come with every subject. Of a subject that is not among the facts
// a finding says so, of the rule subject-not-found and SeverityUnknown: silence
// means that it was judged.
//
// It is a pure function: equal facts give equal findings, in the order of
// SortFindings, wherever and whenever it runs. A rule that lacks facts gives a
// finding of SeverityUnknown that says what to collect. A finding that follows
// from others names them in Causes: Roots tells what to read first.
func Evaluate(f Facts, subjects ...Subject) []Finding {
	v := newView(&f, subjects)
	var found []Finding
	for _, check := range checks() {
		found = append(found, check(v)...)
	}
	found = append(found, checkSubjects(v, found)...)
	found = relate(v, found)
	SortFindings(found)
	return found
}

// checks are the rules, each for one or several IDs of the catalogue.
func checks() []func(*view) []Finding {
	return slices.Concat(wireChecks(), nodeChecks(), kubeProxyChecks(), metalLBChecks())
}

// newFinding begins a finding of a rule. Its severity is the rule's.
func (v *view) newFinding(rule string, subject Subject, format string, args ...any) Finding {
	return Finding{Rule: rule, Severity: v.severities[rule], Subject: subject, Message: fmt.Sprintf(format, args...)}
}

// unknown begins a finding that a rule cannot be decided for want of facts.
func (v *view) unknown(rule string, subject Subject, need Need, format string, args ...any) Finding {
	f := v.newFinding(rule, subject, format, args...)
	f.Severity = SeverityUnknown
	f.Message += " Collect: " + need.Collect()
	return f
}
