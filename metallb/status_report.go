package metallb

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// reporter is a State prepared for the status of many Services.
type reporter struct {
	state   State
	facts   SpeakerFacts
	elector *Elector

	service  map[string]*Service
	node     map[string]*Node
	speakers map[string][]*Speaker // by node
	bySvc    map[string][]Report   // by namespace/name
	byIP     map[netip.Addr][]Report
}

func (s State) reporter(facts SpeakerFacts) *reporter {
	r := &reporter{state: s, facts: facts, elector: s.Elector(), service: map[string]*Service{}, node: map[string]*Node{},
		speakers: map[string][]*Speaker{}, bySvc: map[string][]Report{}, byIP: map[netip.Addr][]Report{}}
	for i := range s.Services {
		svc := &s.Services[i]
		r.service[svc.Namespace+"/"+svc.Name] = svc
	}
	for i := range s.Nodes {
		r.node[s.Nodes[i].Name] = &s.Nodes[i]
	}
	for i := range s.Speakers {
		sp := &s.Speakers[i]
		r.speakers[sp.Node] = append(r.speakers[sp.Node], sp)
	}
	r.addStatuses()
	r.addEvents()
	r.addMetrics()
	r.addLogs()
	return r
}

// services returns all Services that MetalLB takes or that are reported of.
func (r *reporter) services() []string {
	var keys []string
	for key := range r.bySvc {
		keys = append(keys, key)
	}
	for key, svc := range r.service {
		if r.elector.notMine(svc) == "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (r *reporter) addStatuses() {
	for _, st := range r.state.Statuses {
		r.bySvc[st.Service] = append(r.bySvc[st.Service], Report{Source: SourceStatus, Object: st.Namespace + "/" + st.Name,
			Node: st.Node, Interfaces: st.Interfaces, At: st.Created, owner: st.OwnerUID})
	}
}

// MetalLB's messages (speaker/main.go and speaker/layer2_controller.go); the
// protocol is named since 0.13.
var (
	assignedMessage = regexp.MustCompile(`^announcing from node "([^"]+)"(?: with protocol "([^"]+)")?$`)
	failedMessage   = regexp.MustCompile(`^the interfaces specified by LB IP "[^"]*" doesn't exist in assigned node "([^"]+)"`)
)

func (r *reporter) addEvents() {
	for _, e := range r.state.Events {
		if e.Kind != "Service" || e.Component != "" && !strings.Contains(e.Component, "speaker") {
			continue
		}
		rep := Report{Source: SourceEvent, At: e.Last, First: e.First, Count: e.Count, Message: clip(e.Message)}
		switch e.Reason {
		case "nodeAssigned":
			m := assignedMessage.FindStringSubmatch(e.Message)
			if m == nil || m[2] != "" && m[2] != "layer2" {
				continue
			}
			rep.Node = m[1]
			rep.doubt(DoubtOnlyEvent, "events outlive what they tell of")
		case "announceFailed":
			m := failedMessage.FindStringSubmatch(e.Message)
			if m == nil {
				continue
			}
			rep.Node, rep.Failed = m[1], true
		default:
			continue
		}
		r.bySvc[e.Object] = append(r.bySvc[e.Object], rep)
	}
}

func (r *reporter) addMetrics() {
	for _, m := range r.facts.Metrics {
		for _, a := range m.Announced {
			node := a.Node
			if node == "" {
				node = m.Node
			}
			rep := Report{Source: SourceMetrics, Object: m.Source, Node: node, At: m.At}
			if !slices.ContainsFunc(r.bySvc[a.Service], func(o Report) bool { return o.Source == SourceMetrics && o.Node == node }) {
				r.bySvc[a.Service] = append(r.bySvc[a.Service], rep)
			}
		}
	}
}

func (r *reporter) addLogs() {
	for _, l := range r.facts.Logs {
		for _, a := range l.Announced {
			rep := Report{Source: SourceLog, Object: l.Source, Node: l.Node, At: a.At}
			if r.restarted(l) {
				rep.doubt(DoubtRestarted, "the speaker was started again after this log")
			}
			if a.Service != "" {
				r.bySvc[a.Service] = append(r.bySvc[a.Service], rep)
				continue
			}
			for _, ip := range a.IPs {
				r.byIP[ip] = append(r.byIP[ip], rep)
			}
		}
		for _, f := range l.Interfaces {
			r.bySvc[f.Service] = append(r.bySvc[f.Service], Report{Source: SourceLog, Object: l.Source, Node: l.Node, Failed: true, At: f.Last, Message: f.Err})
		}
	}
	delete(r.bySvc, "")
}

// restarted returns whether the node's speakers began after the log's end.
func (r *reporter) restarted(l SpeakerLog) bool {
	all := r.speakers[l.Node]
	return len(all) > 0 && !l.Last.IsZero() && !slices.ContainsFunc(all, func(sp *Speaker) bool { return !sp.Started.After(l.Last) })
}

// reports returns what is said of the Service, without trust.
func (r *reporter) reports(key string, svc *Service) []Report {
	reports := slices.Clone(r.bySvc[key])
	if svc == nil {
		return reports
	}
	for _, ip := range svc.Addresses {
		for _, rep := range r.byIP[ip] {
			if !slices.ContainsFunc(reports, func(o Report) bool { return o.Source == SourceLog && o.Node == rep.Node && o.At.Equal(rep.At) }) {
				rep.Doubts = slices.Clone(rep.Doubts)
				reports = append(reports, rep)
			}
		}
	}
	return reports
}

// doubts returns what speaks against a report.
func (r *reporter) doubts(rep Report, svc *Service, expected string) []Doubt {
	doubts := r.nodeDoubts(rep)
	switch {
	case svc == nil && r.state.Services != nil:
		doubts = append(doubts, Doubt{DoubtServiceGone, "the Service is gone"})
	case svc != nil && rep.Node != expected:
		doubts = append(doubts, r.electionDoubts(rep.Node, svc, expected)...)
	}
	if rep.Source == SourceStatus {
		doubts = append(doubts, r.statusDoubts(rep)...)
	}
	return doubts
}

// electionDoubts says why the node is not in the election. It does not rank all
// nodes, which takes too long for thousands of Services.
func (r *reporter) electionDoubts(node string, svc *Service, expected string) []Doubt {
	e := r.elector
	if why := e.notMine(svc); why != "" {
		return []Doubt{{DoubtNotTaken, why}}
	}
	in := e.round(svc)
	if i, ok := e.index[node]; ok {
		if closed := e.closed(i, &in); closed != 0 {
			return []Doubt{{DoubtNotEligible, e.whyOut(closed.list(), e.nodes[i], &in)}}
		}
	}
	if expected == "" && len(e.unknown(svc)) == 0 {
		return []Doubt{{DoubtNotEligible, "no node is to announce the Service"}}
	}
	return nil
}

func (r *reporter) nodeDoubts(rep Report) []Doubt {
	var doubts []Doubt
	node := r.node[rep.Node]
	switch {
	case node == nil && r.state.Nodes != nil:
		doubts = append(doubts, Doubt{DoubtNodeGone, "there is no node " + rep.Node})
	case node != nil && (node.Ready == ConditionFalse || node.Ready == ConditionUnknown):
		doubts = append(doubts, Doubt{DoubtNodeNotReady, "the node is not ready; cut off from the API server, its speaker goes on answering"})
	}
	if r.state.Speakers == nil {
		return doubts
	}
	here := r.speakers[rep.Node]
	if rep.owner != "" && slices.ContainsFunc(here, func(sp *Speaker) bool { return sp.UID != "" }) {
		here = slices.DeleteFunc(slices.Clone(here), func(sp *Speaker) bool { return sp.UID != rep.owner })
	}
	switch {
	case len(here) == 0:
		doubts = append(doubts, Doubt{DoubtSpeakerGone, "the speaker that said so is gone"})
	case !slices.ContainsFunc(here, func(sp *Speaker) bool { return sp.Ready && !sp.Terminating }):
		doubts = append(doubts, Doubt{DoubtSpeakerNotReady, "the node's speaker is not ready"})
	}
	return doubts
}

func (r *reporter) statusDoubts(rep Report) []Doubt {
	var doubts []Doubt
	if len(rep.Interfaces) > 0 && !slices.ContainsFunc(rep.Interfaces, func(name string) bool { return !neverAnswers(name) }) {
		doubts = append(doubts, Doubt{DoubtInterface, "nothing is ever answered on " + strings.Join(rep.Interfaces, ", ")})
	}
	_, name, _ := strings.Cut(rep.Object, "/")
	for _, l := range r.facts.Logs {
		for _, f := range l.Statuses {
			if l.Node != rep.Node && strings.Contains(f.Err, `"`+name+`"`) {
				doubts = append(doubts, Doubt{DoubtNotWritten, "the speaker of " + l.Node + " tried to change it and failed"})
			}
		}
	}
	return doubts
}

// neverAnswers returns whether the device is one that takes no ARP: MetalLB names
// it in a status all the same if an L2Advertisement does.
func neverAnswers(device string) bool {
	return device == "lo" || strings.HasPrefix(device, "kube-ipvs") || device == "nodelocaldns" || device == "kube-dummy-if"
}

// overlap returns whether two events tell of announcements at the same time: each
// was repeated after the other had begun, and both lately.
func overlap(a, b Report) bool {
	gap := a.At.Sub(b.At).Abs()
	return a.Count > 1 && b.Count > 1 && a.At.After(b.First) && b.At.After(a.First) && gap < time.Minute
}
