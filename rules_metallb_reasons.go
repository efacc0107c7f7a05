package strictarp

import (
	"fmt"
	"strings"

	"github.com/strictarp/strictarp/metallb"
)

// reasonFinding turns what package metallb says into a finding about a subject.
func (v *view) reasonFinding(subject Subject, r metallb.Reason) Finding {
	f := v.newFinding(string(r.Rule), subject, "%s", sentence(r.Message))
	f.Node = r.Node
	if r.Role == metallb.RoleAlso {
		f.Severity = min(f.Severity, SeverityWarning)
		f.Message += " It is not the first reason for silence, and would be the next."
	}
	f.Evidence = []Evidence{v.reasonEvidence(r)}
	f.Remedies = reasonRemedies(r)
	if need := v.wants(r); need != "" {
		f.notSure(need)
	}
	return f
}

// notSure makes a finding one that needs more facts.
func (f *Finding) notSure(need Need) {
	f.Severity, f.Remedies = SeverityUnknown, nil
	f.Message += " What could explain it was not observed. Collect: " + need.Collect()
}

// wants returns what was not observed without which a reason is only a guess;
// empty if all was.
func (v *view) wants(r metallb.Reason) Need {
	conflict := r.Rule == metallb.RuleAnnouncerStatusConflict // both have to be live
	switch {
	case v.metallb.Nodes == nil && (conflict || r.Rule == metallb.RuleAdvertisementSelectsNone): // by their labels
		return NeedNodes
	case v.metallb.Speakers == nil && conflict:
		return NeedWorkloads
	case v.metallb.Services == nil && conflict:
		return NeedServices
	}
	return ""
}

// reasonRemedies are what cures a reason, as far as it can be told.
func reasonRemedies(r metallb.Reason) []Remedy {
	by := func(summary, format string, args ...any) []Remedy {
		return []Remedy{NewRemedy(summary, Step{Action: DoByHand, Object: fmt.Sprintf(format, args...)})}
	}
	switch r.Rule {
	case metallb.RuleNodeExcluded:
		if !strings.Contains(r.Field, excludeFromLB) || r.Node == "" {
			return by("Remove the label "+excludeFromLB+".", "remove the label %s from a node that is to announce, or uncordon it", excludeFromLB)
		}
		return []Remedy{NewRemedy("Remove the label "+excludeFromLB+".", Step{Action: SetLabel, Node: r.Node, Object: excludeFromLB, To: Absent})}
	case metallb.RuleNoL2Advertisement:
		return by("Announce the pool.", "create an L2Advertisement for the Service's pool in %s, or name the pool in one", r.Object.Namespace)
	case metallb.RuleNoPoolForAddress:
		return by("Put the address into a pool.", "add the address to an IPAddressPool, or give the Service another one")
	case metallb.RuleServiceWithoutAddress:
		return by("See why the Service has no address.", "read the events of the Service and the log of MetalLB's controller")
	case metallb.RuleNoReadyEndpoint:
		return by("Make an endpoint ready.", "see why no pod of the Service is ready: selector, readiness probes, nodes")
	case metallb.RuleNoLocalEndpoint:
		return by("Bring endpoint and announcer together.", "run a ready pod of the Service on a node that may announce it, widen the L2Advertisement's nodeSelectors to the pods' nodes, or set externalTrafficPolicy to Cluster")
	case metallb.RuleAdvertisementSelectsNone:
		return by("Select a node.", "correct the nodeSelectors of %s, or label nodes to match", r.Object)
	case metallb.RuleNoSpeakerOnNode:
		return by("Run a speaker.", "see why no speaker is ready there: tolerations, nodeSelector, the events of its pod")
	case metallb.RuleSpeakerCannotAnswer:
		return by("Let the speaker answer.", "grant the speaker NET_RAW and hostNetwork, and see its log")
	case metallb.RuleMemberlistDisabled:
		return by("Turn memberlist on.", "set METALLB_ML_BIND_ADDR and METALLB_ML_LABELS in the speaker's DaemonSet")
	case metallb.RuleAnnouncingInterfaceAbsent, metallb.RuleAnnouncingInterfaceSkip:
		return by("Name an interface that can answer.", "let the L2Advertisement name an interface of the segment that the node has, that is up and no port of another (for a port: its bridge or bond), or let its nodeSelectors choose nodes that have it")
	case metallb.RuleSharedIPConflict:
		return by("Let one node announce all that share the address.", "give Services that share an address the same policy and selectors, or each its own address")
	case metallb.RuleNotAnnounced:
		return by("Find out why the speaker is silent.", "read the log of the speaker on %s, with --log-level=debug if need be", r.Node)
	case metallb.RuleSecondAnnouncer:
		return by("Keep one announcer.", "give the Service a loadBalancerClass that only one of them takes, or narrow the other one")
	}
	return nil
}
