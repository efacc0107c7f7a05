package strictarp

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Finding is one conclusion drawn from facts.
type Finding struct {
	Rule     string   `json:"rule"` // the rule's ID in kebab case, such as "multiple-responders"
	Severity Severity `json:"severity"`
	Subject  Subject  `json:"subject"`
	Node     string   `json:"node,omitempty"`    // the node that it is about or that is at fault, if one is
	Vantage  string   `json:"vantage,omitempty"` // where it was seen from, if that matters
	Message  string   `json:"message"`           // one sentence for people

	Evidence []Evidence `json:"evidence,omitempty"` // what it rests on
	Remedies []Remedy   `json:"remedies,omitempty"` // ways to mend it, best first
	Avoid    []Caution  `json:"avoid,omitempty"`    // what looks like a cure and does harm
	Causes   []Key      `json:"causes,omitempty"`   // findings that explain this one
}

// Subject is what a finding is about: a VIP, a node's name, or an object as
// namespace/name.
type Subject string

// Key names a finding: it stays the same as long as the finding is about the
// same thing, whatever its message and evidence become. So one can be followed
// over time and reported once.
type Key string

// Key returns the finding's rule, subject and vantage with "|" between them.
// Within these a "|" is written as %7C and a "%" as %25, so that different
// findings have different keys.
func (f Finding) Key() Key {
	return Key(escapeKey(f.Rule) + "|" + escapeKey(string(f.Subject)) + "|" + escapeKey(f.Vantage))
}

func escapeKey(part string) string {
	if !strings.ContainsAny(part, "%|") {
		return part // nearly always, and keys are made for each pair of findings
	}
	return strings.NewReplacer("%", "%25", "|", "%7C").Replace(part)
}

// Evidence is an observation that a finding rests on.
type Evidence struct {
	Observed string    `json:"observed"` // what was seen
	Source   string    `json:"source"`   // where, such as a vantage's or file's name
	At       time.Time `json:"at,omitzero"`
}

// Caution warns of a step that looks like a cure.
type Caution struct {
	Step string `json:"step"` // as Step.String writes it
	Why  string `json:"why"`
}

// MarshalJSON implements json.Marshaler. It adds the key, so that Causes can be
// followed by programs that do not know how keys are made.
func (f Finding) MarshalJSON() ([]byte, error) {
	type plain Finding // without methods, or this would call itself
	return json.Marshal(struct {
		Key Key `json:"key"`
		plain
	}{f.Key(), plain(f)})
}

// LogValue implements slog.LogValuer: a group of what names the finding and
// its message, without evidence and remedies.
func (f Finding) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("rule", f.Rule),
		slog.String("severity", f.Severity.String()),
		slog.String("subject", string(f.Subject)),
	}
	if f.Node != "" {
		attrs = append(attrs, slog.String("node", f.Node))
	}
	if f.Vantage != "" {
		attrs = append(attrs, slog.String("vantage", f.Vantage))
	}
	return slog.GroupValue(append(attrs, slog.String("message", f.Message))...)
}

// SortFindings puts findings in the one order that the package uses: the most
// severe first, then by rule, subject, node, vantage and message.
func SortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Vantage, b.Vantage),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
