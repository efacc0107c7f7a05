package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

// known tells whose a MAC is, and whether that node is to answer.
func (v *verifying) known(mac arpcheck.MAC) timeline.Known {
	k := timeline.Known{Node: v.owners.Of(mac).Node()}
	for _, e := range v.expected {
		switch {
		case k.Node == "" || e.Node == "" || k.Right == timeline.Expected:
		case k.Node == e.Node:
			k.Right = timeline.Expected
		default:
			k.Right = timeline.Unexpected
		}
	}
	return k
}

// show adds a look to the timeline, and tells a person who waits.
func (v *verifying) show(l timeline.Look) {
	l.N = v.seen.Summary().Samples
	v.seen.Add(l)
	if v.errTerminal {
		fmt.Fprintln(v.err, v.seen.Line(v.colored(v.errTerminal)))
	}
}

// looked is a look as its findings judge it.
func (v *verifying) looked(r arpcheck.Result) timeline.Look {
	l := timeline.Look{Sample: arpcheck.Sample{At: r.Started, Began: r.Started, ARP: r}, Judged: timeline.Good}
	if len(r.Responders) > 0 {
		l.Winner = r.Responders[0].MAC
	}
	v.addCached(&l.Sample)
	for _, f := range v.last {
		switch f.Severity {
		case strictarp.SeverityError:
			l.Judged = timeline.Bad
		case strictarp.SeverityUnknown:
			l.Judged = max(l.Judged, timeline.Undecided)
		default:
			continue
		}
		l.Notes = append(l.Notes, f.Rule+": "+f.Message)
	}
	return l
}

// addCached adds what this machine has in its neighbour cache, which asking does not
// change.
func (v *verifying) addCached(s *arpcheck.Sample) {
	if v.neighbours == nil {
		return
	}
	entry, err := v.neighbours.Get(s.ARP.Interface, v.vip)
	switch {
	case err == nil:
		s.Cached = &entry
	case errors.Is(err, fs.ErrNotExist):
		s.Cached = &arpcheck.Neighbour{Addr: v.vip, Link: s.ARP.Interface}
	case !errors.Is(err, errors.ErrUnsupported):
		s.CacheError = err.Error()
	}
}

// unasked is a look that could not ask.
func unasked(vip netip.Addr, at time.Time, err error) timeline.Look {
	return timeline.Look{
		Sample: arpcheck.Sample{At: at, Began: at, ARP: arpcheck.Result{Target: vip, Reasons: []arpcheck.Reason{arpcheck.Reason(err.Error())}}},
		Judged: timeline.Undecided,
	}
}

// report is what the page says beside the timeline.
func (v *verifying) report() timeline.Page {
	p := timeline.Page{
		Program: "kubectl strictarp verify", Target: v.vip, Verdict: timeline.Undecided, Text: "Not verified.", Made: v.now(),
		Plan: fmt.Sprintf("until it was good for %s, a look %s after the one before", timeline.Brief(v.soak), timeline.Brief(v.every)),
	}
	switch {
	case v.verdict.Passed:
		p.Verdict = timeline.Good
	case v.failed != nil && !v.judgedBad():
		p.Ended = fmt.Sprintf("It ended after %s: %v", plural(v.verdict.Looks, "look"), v.failed)
	case len(v.verdict.New) > 0:
		p.Verdict = timeline.Bad
	}
	if p.Ended == "" {
		p.Text = verdict(v.verdict, v.vip.String(), v.looking)
	}
	for _, e := range v.expected {
		node := e.Node
		if node == "" {
			node = "nobody"
		}
		p.Expected = strings.TrimPrefix(fmt.Sprintf("%s; %s, by %s for %s: %s", p.Expected, node, e.Announcer, e.Service, e.Why), "; ")
	}
	for _, f := range v.last {
		p.Findings = append(p.Findings, timeline.Finding{Severity: f.Severity.String(), Rule: f.Rule, Message: f.Message})
	}
	return p
}

// withReport adds to a run's error that its report could not be written. That there
// are findings is no error beside that.
func withReport(err, reportErr error) error {
	if reportErr != nil && errors.Is(err, errFound) {
		return reportErr
	}
	return errors.Join(err, reportErr)
}
