package metallb

import (
	"fmt"
	"slices"
)

// notes are what is worth knowing whether or not somebody answers, and was not
// said.
func (e *Elector) notes(r *round, said []Reason) []Reason {
	return slices.Concat(e.networkNotes(r, said), e.memberlistNote(r), e.overlaps(r))
}

// networkNotes name the nodes that an advertisement selects and their network
// condition takes out.
func (e *Elector) networkNotes(r *round, said []Reason) []Reason {
	if slices.ContainsFunc(said, func(r Reason) bool { return r.Rule == RuleNodeNetworkUnavailable }) {
		return nil
	}
	var found []Reason
	for i, c := range e.nodes {
		closed := e.closed(i, r)
		if !closed.has(GateNetwork) || closed.has(GateAdvertisement) {
			continue
		}
		reason := e.nodeReason(GateNetwork, []int{i}, r)
		reason.Role = RoleNote
		reason.Message = c.name + " is no candidate: its condition NetworkUnavailable is True"
		found = append(found, reason)
	}
	return found
}

func (e *Elector) memberlistNote(r *round) []Reason {
	if e.memberlist != MemberlistOff || r.none || !e.rules.memberlist {
		return nil
	}
	reason := Reason{Rule: RuleMemberlistDisabled, Role: RoleNote, Object: e.speakerObject(), Field: "spec.template.spec.containers[].env"}
	reason.Message = "memberlist is off: MetalLB " + e.state.Version + " does not know which speakers run"
	if e.rules.everyNode {
		reason.Message += ", takes every node for one with a speaker and may elect one without"
	} else {
		reason.Message += " and elects among all nodes with an endpoint"
	}
	return []Reason{reason}
}

// overlaps finds advertisements that seem to restrict the Service to some nodes
// or interfaces while another one does not.
func (e *Elector) overlaps(r *round) []Reason {
	var found []Reason
	for _, narrow := range r.ads {
		for _, wide := range r.ads {
			if narrow == wide {
				continue
			}
			what, field := "", ""
			switch {
			case len(narrow.ad.NodeSelectors) > 0 && len(wide.ad.NodeSelectors) == 0 && !slices.Equal(narrow.nodes, wide.nodes):
				what, field = "nodes", "spec.nodeSelectors"
			case len(narrow.ad.Interfaces) > 0 && len(wide.ad.Interfaces) == 0 && intersect(narrow.nodes, wide.nodes):
				what, field = "interfaces", "spec.interfaces"
			default:
				continue
			}
			found = append(found, Reason{
				Rule: RuleAdvertisementOverlap, Role: RoleNote, Object: wide.ad.object(), Field: field,
				Message: fmt.Sprintf("%s restricts the %s of the pool %s and has no effect: %s covers it with all", narrow.ad.object(), what, r.pool.pool.Name, wide.ad.object()),
			})
		}
	}
	return found
}

func intersect(a, b []bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}

// cannotAnswer finds what stops an elected node's speaker from answering, as far
// as its pod shows it.
func (e *Elector) cannotAnswer(node string) []Reason {
	c := e.nodes[e.index[node]]
	reason := Reason{Role: RoleCause, Node: node, Object: e.speakerObject()}
	switch {
	case e.speakersKnown() && !e.hasSpeaker(c):
		// Only without memberlist: with it such a node is not elected.
		reason.Rule = RuleNoSpeakerOnNode
		reason.Message = fmt.Sprintf("%s is elected without memberlist, and %s; no other node takes over", node, e.speakerText(c))
	case c.speaker == nil:
		return nil
	case c.speaker.RawSocket == ConditionFalse:
		reason.Rule, reason.Field = RuleSpeakerCannotAnswer, "spec.template.spec.containers[].securityContext.capabilities"
		reason.Message = fmt.Sprintf("the speaker %s is denied NET_RAW and cannot open the socket it answers by", c.speaker.Name)
	case !c.speaker.HostNetwork && c.speaker.Options.Memberlist != "":
		// A pod without options is one whose spec was cut short.
		reason.Rule, reason.Field = RuleSpeakerCannotAnswer, "spec.template.spec.hostNetwork"
		reason.Message = fmt.Sprintf("the speaker %s is not on the host's network: it answers where nobody asks", c.speaker.Name)
	default:
		return nil
	}
	return []Reason{reason}
}

// disagreements finds Services that share an address and have another announcer.
func (e *Elector) disagreements(svc *Service, announcer string) []Reason {
	var found []Reason
	for _, addr := range svc.Addresses {
		for _, i := range e.byAddress[addr] {
			other := &e.state.Services[i]
			if other == svc || other.Namespace == svc.Namespace && other.Name == svc.Name {
				continue
			}
			node := e.Announcer(other)
			if node == "" || node == announcer {
				continue
			}
			found = append(found, Reason{
				Rule: RuleSharedIPConflict, Role: RoleNote, Object: other.object(), Field: "spec.externalTrafficPolicy",
				Message: fmt.Sprintf("%s is announced by %s for this Service and by %s for %s: give both the Cluster policy and the same advertisements", addr, announcer, node, other.object()),
			})
		}
	}
	return found
}
