package metallb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

func (r *reporter) reasons(st ServiceStatus, svc *Service, believed []Report) []Reason {
	found := r.staleStatuses(st)
	found = append(found, r.conflicts(st, believed)...)
	found = append(found, r.deadInterfaces(st)...)
	if svc == nil || st.Expected == "" {
		return found
	}
	if st.Announcer != "" && st.Announcer != st.Expected {
		found = append(found, Reason{
			Rule: RuleAnnouncerMismatch, Role: RoleNote, Object: r.speakerPod(st.Expected), Node: st.Announcer,
			Message: fmt.Sprintf("%s says that %s announces %s, but the election gives %s", believed[0].said(), st.Announcer, st.Service, st.Expected),
		})
	}
	if missing := r.missingInterface(st); missing != nil {
		return append(found, missing...)
	}
	return append(found, r.notAnnounced(st)...)
}

// said names where a report comes from.
func (rep Report) said() string {
	switch rep.Source {
	case SourceStatus:
		return "the ServiceL2Status " + rep.Object
	case SourceMetrics:
		return "the speaker's metrics"
	case SourceLog:
		return "the speaker's log"
	}
	return "an event"
}

func (r *reporter) staleStatuses(st ServiceStatus) []Reason {
	var found []Reason
	for _, rep := range st.Reports {
		if rep.Source != SourceStatus || rep.Trust != TrustStale {
			continue
		}
		namespace, name, _ := strings.Cut(rep.Object, "/")
		i := slices.IndexFunc(rep.Doubts, func(d Doubt) bool { return d.Code.stale() })
		found = append(found, Reason{
			Rule: RuleAnnouncerStatusStale, Role: RoleNote, Object: Object{Kind: "ServiceL2Status", Namespace: namespace, Name: name}, Node: rep.Node,
			Message: fmt.Sprintf("%s names %s as the announcer of %s, which is no longer so: %s", rep.said(), rep.Node, st.Service, rep.Doubts[i].Message),
		})
	}
	return found
}

func (r *reporter) conflicts(st ServiceStatus, believed []Report) []Reason {
	nodes := nodesOfReports(believed)
	if len(nodes) > 1 && (believed[0].Source == SourceMetrics || believed[0].Source == SourceStatus) {
		return []Reason{r.conflict(st, nodes, "statuses and metrics")}
	}
	var events []Report
	for _, rep := range st.Reports {
		if rep.Source == SourceEvent && !rep.Failed && len(events) < maxNamed { // sorted: the newest first
			events = append(events, rep)
		}
	}
	for i, a := range events {
		for _, b := range events[i+1:] {
			if a.Node != b.Node && overlap(a, b) {
				return []Reason{r.conflict(st, sortedSet([]string{a.Node, b.Node}), "events")}
			}
		}
	}
	return nil
}

func (r *reporter) conflict(st ServiceStatus, nodes []string, by string) Reason {
	return Reason{
		Rule: RuleAnnouncerStatusConflict, Role: RoleNote, Object: r.speakerPod(""), Node: nodes[0],
		Message: fmt.Sprintf("by their %s, %s announce %s at the same time: a speaker that is cut off from the API server or from the others goes on answering until it is restarted",
			by, list(nodes[:min(len(nodes), maxNamed)], len(nodes)), st.Service),
	}
}

func (r *reporter) deadInterfaces(st ServiceStatus) []Reason {
	var found []Reason
	for _, rep := range st.Reports {
		if rep.Trust != TrustStale && slices.ContainsFunc(rep.Doubts, func(d Doubt) bool { return d.Code == DoubtInterface }) {
			found = append(found, Reason{
				Rule: RuleAnnouncingInterfaceSkip, Role: RoleCause, Object: Object{Kind: "L2Advertisement"}, Field: "spec.interfaces", Node: rep.Node,
				Message: fmt.Sprintf("%s names %s as the interface of %s: MetalLB skips it, and no other node takes over", rep.said(), strings.Join(rep.Interfaces, ", "), st.Service),
			})
		}
	}
	return found
}

// missingInterface goes by an announceFailed that the expected node said last.
func (r *reporter) missingInterface(st ServiceStatus) []Reason {
	for _, rep := range st.Reports {
		if !rep.Failed || rep.Node != st.Expected || rep.Trust == TrustStale {
			continue
		}
		return []Reason{{
			Rule: RuleAnnouncingInterfaceAbsent, Role: RoleCause, Object: Object{Kind: "L2Advertisement"}, Field: "spec.interfaces", Node: rep.Node,
			Message: fmt.Sprintf("the elected node %s says that it has none of the interfaces named for %s; no other node takes over", rep.Node, st.Service),
		}}
	}
	return nil
}

// notAnnounced is sure only if the expected node itself, or the status objects,
// were asked: events expire after an hour.
func (r *reporter) notAnnounced(st ServiceStatus) []Reason {
	if slices.ContainsFunc(st.Reports, func(rep Report) bool { return rep.Trust != TrustStale }) {
		return nil
	}
	var asked []string
	if r.state.Statuses != nil {
		asked = append(asked, "status object")
	}
	if slices.ContainsFunc(r.facts.Metrics, func(m SpeakerMetrics) bool { return m.Node == st.Expected }) {
		asked = append(asked, "metric")
	}
	if slices.ContainsFunc(r.facts.Logs, func(l SpeakerLog) bool { return l.Node == st.Expected && !l.Started.IsZero() }) {
		asked = append(asked, "log line")
	}
	if len(asked) == 0 {
		return nil
	}
	return []Reason{{
		Rule: RuleNotAnnounced, Role: RoleCause, Object: r.speakerPod(st.Expected), Node: st.Expected,
		Message: fmt.Sprintf("%s is to announce %s, and no %s shows that it does: %s", st.Expected, st.Service, strings.Join(asked, " and no "), r.lookNext(st)),
	}}
}

// lookNext says what the log of the expected node tells, or that it should be
// read.
func (r *reporter) lookNext(st ServiceStatus) string {
	svc := r.service[st.Service]
	for _, l := range r.facts.Logs {
		if l.Node != st.Expected {
			continue
		}
		for _, w := range l.Withdrawn {
			if w.Service == st.Service || w.Service == "" && slices.ContainsFunc(svc.Addresses, func(a netip.Addr) bool { return slices.Contains(w.IPs, a) }) {
				return fmt.Sprintf("its speaker withdrew it at %s for %q", w.At.Format(time.RFC3339), w.Reason)
			}
		}
	}
	return "its speaker's log says why, with --log-level=debug if need be"
}

// speakerPod returns the speaker on the node, or what runs speakers.
func (r *reporter) speakerPod(node string) Object {
	if here := r.speakers[node]; node != "" && len(here) > 0 {
		return Object{Kind: "Pod", Namespace: here[0].Namespace, Name: here[0].Name}
	}
	return r.elector.speakerObject()
}

// Reasons returns what keeps the speaker from answering, as its log shows it at
// its end: RuleSpeakerCannotAnswer where a raw socket cannot be opened, and
// RuleAnnouncingInterfaceSkip where the scan stops at an interface. Object is the
// node. Where the node's interfaces are known, CheckInterfaces with ScanStopped
// says whether an address depends on it.
func (l SpeakerLog) Reasons() []Reason {
	var found []Reason
	for _, f := range l.Sockets {
		message := fmt.Sprintf("the speaker on %s cannot open a raw socket on %s: %s", l.Node, f.Interface, f.Err)
		if f.Permission {
			message += "; it needs the capability NET_RAW"
		}
		found = append(found, Reason{Rule: RuleSpeakerCannotAnswer, Role: RoleCause, Object: Object{Kind: "Node", Name: l.Node}, Node: l.Node, Message: message})
	}
	if f, stopped := l.lastScan(); stopped {
		found = append(found, Reason{
			Rule: RuleAnnouncingInterfaceSkip, Role: RoleCause, Object: Object{Kind: "Node", Name: l.Node}, Node: l.Node,
			Message: fmt.Sprintf("the speaker on %s stops its scan at %s (%s) and sees no interface after it; it has a responder on %s",
				l.Node, cmp.Or(f.Interface, "the list of interfaces"), f.Err, cmp.Or(strings.Join(l.Responders, ", "), "no interface")),
		})
	}
	return sortReasons(found)
}

// ScanStopped returns the interface at which the speaker's scan for interfaces
// stops at the end of the log, for Host.ScanStopped; empty if it does not. One
// failure among scans is left out: interfaces that go away during a scan cause it.
func (l SpeakerLog) ScanStopped() string {
	f, _ := l.lastScan()
	return f.Interface
}

// scanEvery is how often MetalLB scans interfaces (internal/layer2/announcer.go).
const scanEvery = 10 * time.Second

// lastScan returns the failure that goes on: it was repeated, and the log ends
// before two more scans without it.
func (l SpeakerLog) lastScan() (LogFailure, bool) {
	for _, f := range l.Scans {
		if f.Count > 1 && l.Last.Sub(f.Last) <= 2*scanEvery {
			return f, true
		}
	}
	return LogFailure{}, false
}
