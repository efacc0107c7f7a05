package metallb

import (
	"cmp"
	"slices"
	"time"
)

// SpeakerFacts are what speakers say outside the API server. What is nil was not
// observed.
type SpeakerFacts struct {
	Logs    []SpeakerLog
	Metrics []SpeakerMetrics
}

// ServiceStatus is who says that it announces a Service, and what that is worth.
type ServiceStatus struct {
	Service string `json:"service"` // namespace/name
	// Expected is the node that the election gives; empty: none.
	Expected string `json:"expected,omitempty"`
	// Announcer is the node that the reports worth believing agree on; empty if
	// they do not or if there are none. It does not prove that anything answers.
	Announcer string   `json:"announcer,omitempty"`
	Reports   []Report `json:"reports,omitempty"` // the most trustworthy first
	Reasons   []Reason `json:"reasons,omitempty"`
}

// Report is one sign that a node announces a Service, or that it failed to.
type Report struct {
	Source     ReportSource  `json:"source"`
	Object     string        `json:"object,omitempty"` // the status object as namespace/name, or the log's or the metrics' source
	Node       string        `json:"node"`
	Failed     bool          `json:"failed,omitempty"`     // it was elected, and gave up for want of an interface
	Interfaces []string      `json:"interfaces,omitempty"` // that it announces on; none: all
	At         time.Time     `json:"at,omitzero"`          // when it was said last; of a status, when it was made
	Age        time.Duration `json:"age,omitempty"`        // nanoseconds from At to the State's At; 0 if either is not known
	Trust      Trust         `json:"trust"`
	Doubts     []Doubt       `json:"doubts,omitempty"`
	Message    string        `json:"message,omitempty"` // as it was written, of an event
	First      time.Time     `json:"first,omitzero"`    // of an event
	Count      int32         `json:"count,omitempty"`   // of an event

	owner string // UID of a status's owner
}

// ReportSource is where a Report comes from.
type ReportSource string

// Sources of reports, the most trustworthy first.
const (
	SourceMetrics ReportSource = "metrics" // what the speaker wants now
	SourceStatus  ReportSource = "status"  // a ServiceL2Status: a killed speaker leaves it behind
	SourceLog     ReportSource = "log"     // what it did when the log was taken
	SourceEvent   ReportSource = "event"   // what it did once: events outlive the assignment
)

// Trust is what a Report is worth. The zero Trust is not used.
type Trust string

// Degrees of trust.
const (
	TrustLive     Trust = "live"     // nothing speaks against it
	TrustDoubtful Trust = "doubtful" // it may be old, or of no use
	TrustStale    Trust = "stale"    // something else shows that it is no longer so
)

// Doubt is a reason not to believe a Report.
type Doubt struct {
	Code    DoubtCode `json:"code"`
	Message string    `json:"message"` // a clause for people
}

// DoubtCode says what kind of doubt a Doubt is.
type DoubtCode string

// Codes of doubts. The first ones make a report stale, the last ones doubtful.
const (
	DoubtServiceGone DoubtCode = "service-gone"
	DoubtNodeGone    DoubtCode = "node-gone"
	DoubtSpeakerGone DoubtCode = "speaker-gone"
	DoubtNotTaken    DoubtCode = "not-taken"    // MetalLB does not take the Service
	DoubtNotEligible DoubtCode = "not-eligible" // the node is not in the election
	DoubtSuperseded  DoubtCode = "superseded"   // a later event names another node
	DoubtRestarted   DoubtCode = "restarted"    // the speaker began anew after this log
	DoubtNotWritten  DoubtCode = "not-written"  // a speaker tried to change the status object and failed

	DoubtNodeNotReady    DoubtCode = "node-not-ready" // it may be cut off and go on answering
	DoubtSpeakerNotReady DoubtCode = "speaker-not-ready"
	DoubtInterface       DoubtCode = "interface-never-answers"
	DoubtOnlyEvent       DoubtCode = "only-an-event"
)

func (c DoubtCode) stale() bool {
	switch c {
	case DoubtNodeNotReady, DoubtSpeakerNotReady, DoubtInterface, DoubtOnlyEvent:
		return false
	}
	return true
}

// Rules about what is reported.
const (
	RuleAnnouncerMismatch       Rule = "announcer-mismatch"
	RuleAnnouncerStatusConflict Rule = "announcer-status-conflict"
	RuleAnnouncerStatusStale    Rule = "announcer-status-stale"
	RuleNotAnnounced            Rule = "not-announced"
)

// Status returns what is reported about Services in layer-2 mode, with Reasons of
// RuleAnnouncerMismatch, RuleAnnouncerStatusConflict, RuleAnnouncerStatusStale,
// RuleNotAnnounced, RuleAnnouncingInterfaceAbsent and
// RuleAnnouncingInterfaceSkip. It is about the named Services, as namespace/name, or about all that MetalLB
// takes and all that anything is reported of. The result is sorted by Service.
//
// RuleNotAnnounced tells of a fault only where nobody answers for the Service, which
// this package cannot know.
func (s State) Status(facts SpeakerFacts, services ...string) []ServiceStatus {
	r := s.reporter(facts)
	if len(services) == 0 {
		services = r.services()
	}
	var all []ServiceStatus
	for _, key := range sortedSet(slices.Clone(services)) {
		all = append(all, r.status(key))
	}
	return all
}

// status puts together what is reported of one Service.
func (r *reporter) status(key string) ServiceStatus {
	svc := r.service[key]
	st := ServiceStatus{Service: key}
	if svc != nil {
		st.Expected = r.elector.Announcer(svc)
	}
	st.Reports = r.reports(key, svc)
	r.judge(&st, svc)
	believed := st.believed()
	if nodes := nodesOfReports(believed); len(nodes) == 1 {
		st.Announcer = nodes[0]
	}
	st.Reasons = sortReasons(r.reasons(st, svc, believed))
	return st
}

// believed returns the announcements that are not stale of the best sources: all
// metrics and statuses, or else the logs, or else the newest event.
func (st ServiceStatus) believed() []Report {
	for _, sources := range [][]ReportSource{{SourceMetrics, SourceStatus}, {SourceLog}, {SourceEvent}} {
		var found []Report
		for _, rep := range st.Reports {
			if slices.Contains(sources, rep.Source) && rep.Trust != TrustStale && !rep.Failed {
				found = append(found, rep)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func nodesOfReports(reports []Report) []string {
	var nodes []string
	for _, rep := range reports {
		nodes = append(nodes, rep.Node)
	}
	return sortedSet(nodes)
}

// judge sets ages, doubts and trust, and sorts by trust.
func (r *reporter) judge(st *ServiceStatus, svc *Service) {
	newest := newestEvent(st.Reports)
	for i := range st.Reports {
		rep := &st.Reports[i]
		if !rep.At.IsZero() && !r.state.At.IsZero() {
			rep.Age = r.state.At.Sub(rep.At)
		}
		rep.Doubts = append(rep.Doubts, r.doubts(*rep, svc, st.Expected)...)
		if rep.Source == SourceEvent && newest != nil && rep.Node != newest.Node {
			rep.doubt(DoubtSuperseded, "a later event names the node "+newest.Node)
		}
		rep.Trust = TrustLive
		for _, d := range rep.Doubts {
			if rep.Trust = TrustDoubtful; d.Code.stale() {
				rep.Trust = TrustStale
				break
			}
		}
	}
	slices.SortStableFunc(st.Reports, func(a, b Report) int {
		return cmp.Or(a.Trust.rank()-b.Trust.rank(), a.Source.rank()-b.Source.rank(), b.At.Compare(a.At),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
}

func (rep *Report) doubt(code DoubtCode, message string) {
	rep.Doubts = append(rep.Doubts, Doubt{code, message})
}

// newestEvent returns a copy of the last announcement or failure among events
// with a time.
func newestEvent(reports []Report) *Report {
	var newest *Report
	for _, rep := range reports {
		if rep.Source == SourceEvent && !rep.At.IsZero() && (newest == nil || rep.At.After(newest.At)) {
			newest = &rep
		}
	}
	return newest
}

func (t Trust) rank() int {
	return slices.Index([]Trust{TrustLive, TrustDoubtful, TrustStale}, t)
}

func (s ReportSource) rank() int {
	return slices.Index([]ReportSource{SourceMetrics, SourceStatus, SourceLog, SourceEvent}, s)
}
