package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// Limits of a findings object. What is beyond is counted, not kept.
const (
	maxFindings = 128       // of one owner, the most severe ones
	maxUntold   = 128       // events that could not be written yet
	maxTelling  = 512       // bytes of an event's message
	maxRecord   = 256 << 10 // bytes of JSON: a quarter of what a ConfigMap may have
	maxMessage  = 1024      // bytes of a message, as of an event's
	maxParts    = 16        // causes and evidence of a finding: where 200 nodes are the cause, a few say it
	// textEvery is how often an object is written for nothing but other words, such
	// as a count in a message that moves.
	textEvery = 10 * time.Minute
)

const recordVersion = 1

// record is what a findings object holds: what was found of its owner, and what is
// still to be told. It is all the state that there is, so that a program that is
// restarted, or takes over, goes on where the one before ended.
type record struct {
	Version   int       `json:"version"`
	Kind      ownerKind `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       string    `json:"uid,omitempty"` // a Service that is made anew is another one
	Written   time.Time `json:"written"`
	Findings  []entry   `json:"findings"`
	Omitted   int       `json:"omitted,omitempty"` // findings beyond the limit
	Seq       uint64    `json:"seq"`               // of the last telling
	Untold    []telling `json:"untold,omitempty"`  // events that are to be written
}

type entry struct {
	Since time.Time `json:"since"`
	// Undecided says that what shows it is not observed any more: it is neither there
	// nor gone.
	Undecided bool              `json:"undecided,omitempty"`
	Finding   strictarp.Finding `json:"finding"`
}

// telling is an event to be written. Its name is made of Seq and Key: to write it
// again makes no second one.
type telling struct {
	Seq     uint64        `json:"seq"`
	Key     strictarp.Key `json:"key"`
	What    what          `json:"what"`
	Rule    string        `json:"rule"`
	Message string        `json:"message"`
	At      time.Time     `json:"at"`
}

type what string

const (
	appeared what = "appeared"
	altered  what = "altered" // its severity is another one
	resolved what = "resolved"
)

// loud reports whether a finding is told of by events.
func loud(f strictarp.Finding) bool { return f.Severity >= strictarp.SeverityWarning }

// doubt decides whether a finding that is not there any more is gone, or only not
// seen.
type doubt func(strictarp.Finding) bool

// next returns the record after a judgement, and whether it has to be written.
func (r record) next(uid string, findings []strictarp.Finding, unseen doubt, now time.Time) (record, bool) {
	if r.Version == 0 || uid != "" && r.UID != "" && r.UID != uid {
		r = record{Version: recordVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Seq: r.Seq}
	}
	n := r
	n.UID, n.Findings, n.Omitted, n.Untold = cmp.Or(uid, r.UID), nil, 0, slices.Clone(r.Untold)
	old := map[strictarp.Key]entry{}
	for _, e := range r.Findings {
		old[e.Finding.Key()] = e
	}
	for _, f := range findings {
		key := f.Key()
		e, known := old[key]
		delete(old, key)
		if known && f.Severity == strictarp.SeverityUnknown && loud(e.Finding) {
			e.Undecided = true
			n.Findings = append(n.Findings, e)
			continue
		}
		n.meet(e, known, f, now)
	}
	for _, e := range r.Findings { // in their order, for equal records
		if _, left := old[e.Finding.Key()]; left {
			n.part(e, unseen, now)
		}
	}
	slices.SortStableFunc(n.Findings, func(a, b entry) int { return cmp.Compare(b.Finding.Severity, a.Finding.Severity) })
	n.bound()
	return n, n.differs(r, now)
}

// meet keeps a finding that is there.
func (r *record) meet(old entry, known bool, f strictarp.Finding, now time.Time) {
	e := entry{Since: now, Finding: f}
	if known {
		e.Since = old.Since
	}
	if len(r.Findings) >= maxFindings && !known {
		r.Omitted++
		return
	}
	switch was := known && loud(old.Finding); {
	case !was && loud(f):
		r.tell(appeared, f, now)
	case was && !loud(f):
		r.tell(resolved, old.Finding, now)
	case was && old.Finding.Severity != f.Severity:
		r.tell(altered, f, now)
	}
	r.Findings = append(r.Findings, e)
}

// part lets go of a finding that is gone.
func (r *record) part(e entry, unseen doubt, now time.Time) {
	if unseen(e.Finding) && e.Finding.Severity != strictarp.SeverityUnknown {
		e.Undecided = true
		r.Findings = append(r.Findings, e)
		return
	}
	if loud(e.Finding) {
		r.tell(resolved, e.Finding, now)
	}
}

// tell notes an event. One that waits is not taken back when things change: it may
// have been written by somebody who did not come to note that.
func (r *record) tell(w what, f strictarp.Finding, now time.Time) {
	r.Seq++
	message := map[what]string{altered: "Now of severity " + f.Severity.String() + ": ", resolved: "Resolved: "}[w] + f.Message
	r.Untold = append(r.Untold, telling{Seq: r.Seq, Key: strictarp.Key(exchange.Printable(string(f.Key()), maxTelling)), What: w, Rule: f.Rule, Message: exchange.Printable(message, maxTelling), At: now})
	if len(r.Untold) > maxUntold {
		r.Untold = slices.Delete(r.Untold, 0, len(r.Untold)-maxUntold)
	}
}

// differs reports whether what matters is another than in old, or words are and it
// is time for these.
func (r *record) differs(old record, now time.Time) bool {
	if r.gist(false) != old.gist(false) {
		return true
	}
	return now.Sub(old.Written) >= textEvery && r.gist(true) != old.gist(true)
}

// gist is what is compared. Evidence is no part of it: its times always move.
func (r *record) gist(words bool) string {
	type part struct {
		Key       strictarp.Key
		Severity  strictarp.Severity
		Undecided bool
		Node      string
		Message   string
		Causes    []strictarp.Key
		Remedies  string
	}
	parts := make([]part, len(r.Findings))
	for i, e := range r.Findings {
		f := e.Finding
		parts[i] = part{Key: f.Key(), Severity: f.Severity, Undecided: e.Undecided, Node: f.Node}
		if words {
			parts[i].Message, parts[i].Causes = f.Message, f.Causes
			for _, m := range f.Remedies {
				parts[i].Remedies += m.String() + "\n"
			}
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Key, b.Key) })
	return fmt.Sprintf("%s %d %d %v", r.UID, r.Omitted, r.Seq, parts)
}

// bound keeps within the limits what may be kept.
func (r *record) bound() {
	if over := len(r.Findings) - maxFindings; over > 0 {
		r.Findings = r.Findings[:maxFindings]
		r.Omitted += over
	}
	for i := range r.Findings {
		f := &r.Findings[i].Finding
		f.Message, f.Causes, f.Evidence = clip(f.Message), f.Causes[:min(len(f.Causes), maxParts)], f.Evidence[:min(len(f.Evidence), maxParts)]
	}
}

// encode returns the JSON of the record. Of what is too long the least necessary
// is left out first.
func (r record) encode() ([]byte, error) {
	r.Findings = slices.Clone(r.Findings)
	if r.Findings == nil {
		r.Findings = []entry{}
	}
	for _, drop := range []func(*strictarp.Finding){
		func(*strictarp.Finding) {},
		func(f *strictarp.Finding) { f.Evidence = f.Evidence[:min(len(f.Evidence), 4)] },
		func(f *strictarp.Finding) { f.Evidence = nil },
		func(f *strictarp.Finding) { f.Avoid = nil },
		func(f *strictarp.Finding) { f.Remedies = f.Remedies[:min(len(f.Remedies), 1)] },
		func(f *strictarp.Finding) { f.Remedies, f.Causes = nil, nil },
	} {
		for i := range r.Findings {
			drop(&r.Findings[i].Finding)
		}
		data, err := r.json()
		if err != nil || len(data) <= maxRecord {
			return data, err
		}
	}
	// The words of what is left are bounded, and so it fits with few findings.
	for len(r.Findings) > 1 {
		r.Omitted += len(r.Findings) - len(r.Findings)/2
		r.Findings = r.Findings[:len(r.Findings)/2]
		data, err := r.json()
		if err != nil || len(data) <= maxRecord {
			return data, err
		}
	}
	return nil, fmt.Errorf("write the findings of %s %s/%s: %w", r.Kind, r.Namespace, r.Name, strictarp.ErrLimit)
}

func (r record) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // people read it
	e.SetIndent("", " ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// decode reads a record that was written before. Others may have written to it:
// what is no record of that owner counts as none.
func decode(text string, o owner) record {
	var r record
	none := record{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	if len(text) > 2*maxRecord || json.Unmarshal([]byte(text), &r) != nil || r.Version != recordVersion {
		return none
	}
	if (owner{r.Kind, r.Namespace, r.Name}) != o || len(r.Findings) > 2*maxFindings || len(r.Untold) > maxUntold {
		return none
	}
	return r
}
