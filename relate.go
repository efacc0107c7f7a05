package strictarp

import (
	"net/netip"
	"slices"
)

// relate names the causes of findings, drops those that another one explains
// away, and drops remedies that do harm.
func relate(v *view, found []Finding) []Finding {
	found = dedupe(found)
	byRule := map[string][]*Finding{}
	for i := range found {
		byRule[found[i].Rule] = append(byRule[found[i].Rule], &found[i])
	}
	r := relation{v, byRule}
	for i := range found {
		f := &found[i]
		for _, rule := range causesOf(f.Rule) {
			for _, cause := range byRule[rule] {
				if cause != f && cause.Severity != SeverityUnknown && r.bears(cause, f) {
					f.Causes = append(f.Causes, cause.Key())
				}
			}
		}
		slices.Sort(f.Causes)
		f.Causes = slices.Compact(f.Causes)
		f.Remedies = slices.DeleteFunc(f.Remedies, func(remedy Remedy) bool {
			return len(remedy.Steps) == 0 || slices.ContainsFunc(remedy.Steps, func(s Step) bool { _, bad := harmful(s); return bad })
		})
	}
	return found
}

// causesOf returns the rules whose findings can be the cause of one of a rule,
// along the way from what is told to what is seen.
func causesOf(rule string) []string {
	switch rule {
	case "multiple-responders", "double-answer", "responder-flapping":
		return []string{"kernel-answers-vip", "split-brain", "vip-on-real-interface", "second-announcer", "foreign-responder", "shared-ip-conflict", "proxy-arp-responder"}
	case "wrong-responder":
		return []string{"kernel-answers-vip", "vip-on-real-interface", "announcing-interface-missing", "announcing-interface-skipped", "not-announced", "second-announcer"}
	case "stale-neighbour", "local-policy-drop":
		return []string{"multiple-responders", "wrong-responder", "foreign-responder", "proxy-arp-responder", "vip-in-request-sender", "kernel-answers-vip"}
	case "split-brain":
		return []string{"second-announcer", "shared-ip-conflict", "announcer-status-conflict"}
	case "no-responder":
		return append(silenceRuleIDs(), "needs-kernel-answer", "underlay-drops-arp")
	case "not-announced":
		return []string{"speaker-cannot-answer"}
	case "kernel-answers-vip", "arp-announce-off":
		return []string{"strictarp-off", "strictarp-pending", "strictarp-overridden", "leftover-kube-ipvs0", "kubeproxy-config-invalid", "arp-ignore-side-effects"}
	case "strictarp-overridden":
		return []string{"persisted-sysctl-loosens", "arp-ignore-side-effects"}
	case "vip-in-request-sender":
		return []string{"arp-announce-off"}
	case "foreign-responder":
		return []string{"pool-overlaps-node"}
	case "proxy-arp-responder":
		return []string{"proxy-arp-on-node"}
	case "strictarp-off":
		return []string{"strictarp-ignored", "kubeproxy-config-ambiguous"}
	case "announcer-status-stale", "announcer-mismatch":
		return []string{"no-ready-endpoint", "no-local-endpoint", "node-network-unavailable", "node-excluded-from-lb"}
	}
	return nil
}

// silenceRuleIDs are the reasons for which MetalLB does not announce.
func silenceRuleIDs() []string {
	return []string{
		"no-l2-advertisement", "no-pool-for-address", "no-ready-endpoint", "no-local-endpoint", "advertisement-selects-no-node",
		"node-excluded-from-lb", "node-network-unavailable", "not-announced", "no-speaker-on-node", "speaker-cannot-answer", "memberlist-disabled",
		"announcing-interface-missing", "announcing-interface-skipped", "shared-ip-conflict", "metallb-config-invalid",
	}
}

// relation tells which findings have to do with one another.
type relation struct {
	v      *view
	byRule map[string][]*Finding
}

// bears reports whether a cause is about the same VIP, Service or node as what
// it is to explain. What is told to all nodes bears on all of them.
func (r relation) bears(cause, of *Finding) bool {
	switch {
	case cause.Subject == of.Subject || cause.Node != "" && cause.Node == of.Node:
		return true
	case cause.Node != "" && of.Node != "":
		return false // it is about another node
	}
	switch cause.Rule {
	case "strictarp-off", "strictarp-ignored", "kubeproxy-config-invalid", "kubeproxy-config-ambiguous":
		return true
	}
	p := r.vipOf(of)
	if p == nil {
		return false
	}
	if other := r.vipOf(cause); other != nil {
		return other == p
	}
	if n := r.v.byNode[string(cause.Subject)]; n != nil {
		return n.holds(p)
	}
	for _, s := range p.services {
		if serviceSubject(s) == cause.Subject {
			return true
		}
	}
	pool := r.v.poolOf(p.addr)
	return pool != nil && cause.Subject == Subject(pool.Namespace+"/"+pool.Name)
}

func (r relation) vipOf(f *Finding) *vip {
	addr, err := netip.ParseAddr(string(f.Subject))
	if err != nil {
		return nil
	}
	return r.v.byVIP[addr]
}
