package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/strictarp/strictarp/arpcheck"
)

// Exit codes.
const (
	exitSingle       = 0
	exitWrong        = 1
	exitError        = 2
	exitNone         = 3
	exitInconclusive = 4
	exitFailed       = 5
)

var worse = map[int]int{exitSingle: 0, exitNone: 1, exitInconclusive: 2, exitFailed: 3, exitWrong: 4}

// answer is what was found out of a target.
type answer struct {
	arpcheck.Result
	ofRange bool
}

func (set settings) exitCode(answers []answer) int {
	worst := exitSingle
	for _, a := range answers {
		if code := set.exitOf(a.Result, a.ofRange); worse[code] > worse[worst] {
			worst = code
		}
	}
	return worst
}

func (set settings) exitOf(r arpcheck.Result, ofRange bool) int {
	switch {
	case r.Verdict == arpcheck.Multiple || len(set.unexpected(r)) > 0:
		return exitWrong
	case r.Verdict == arpcheck.Single, ofRange && dull(r):
		return exitSingle
	case r.Verdict == arpcheck.None:
		return exitNone
	}
	return exitInconclusive
}

// dull reports whether a result is what one expects of most addresses of a
// range: nobody answers, or the address is this host's.
func dull(r arpcheck.Result) bool {
	own := len(r.Reasons) == 1 && r.Reasons[0] == arpcheck.HeldHere
	return r.Verdict == arpcheck.None || r.Verdict == arpcheck.Inconclusive && own
}

// unexpected returns the MACs that answer though another is expected.
func (set settings) unexpected(r arpcheck.Result) []arpcheck.MAC {
	var macs []arpcheck.MAC
	for _, responder := range r.Responders {
		if !set.expect.IsZero() && responder.MAC != set.expect {
			macs = append(macs, responder.MAC)
		}
	}
	return macs
}

func resultsOf(answers []answer) []arpcheck.Result {
	results := make([]arpcheck.Result, 0, len(answers))
	for _, a := range answers {
		results = append(results, a.Result)
	}
	return results
}

func encode(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (set settings) print(out io.Writer, answers []answer) error {
	code := set.exitCode(answers)
	if set.json {
		return encode(out, struct {
			Results  []arpcheck.Result `json:"results"`
			ExitCode int               `json:"exitCode"`
		}{resultsOf(answers), code})
	}
	if err := set.printTable(out, answers); err != nil {
		return err
	}
	r := answers[0]
	fmt.Fprintf(out, "\n%s\n", conclusions[code])
	times := fmt.Sprintf("%d times", r.Rounds)
	if set.sweep {
		times = "as often as it took"
	}
	fmt.Fprintf(out, "Asked on %s as %s (%s), %s. FIRST is how often a MAC was the first to answer.\n",
		r.Interface, r.Sender.Addr, senderNotes[r.Sender.From], times)
	if r.Control != nil && r.Control.Answered {
		fmt.Fprintf(out, "The control address %s answers.\n", r.Control.Target)
	}
	return nil
}

// printTable shows all but the addresses of ranges that nobody answers for.
func (set settings) printTable(out io.Writer, answers []answer) error {
	silent := 0
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ADDRESS\tVERDICT\tMAC\tREPLIES\tFIRST\tMEAN RTT\tNOTES")
	for _, a := range answers {
		if a.Verdict == arpcheck.None && a.ofRange {
			silent++
			continue
		}
		set.printResult(w, a.Result)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if silent > 0 {
		fmt.Fprintf(out, "\n%d of %d addresses: nobody answers.\n", silent, len(answers))
	}
	return nil
}

// conclusions are in the words of exit codes.
var conclusions = map[int]string{
	exitSingle:       "Fine: no address is answered for by more than one MAC.",
	exitNone:         "Nobody answers for an address: what announces it does not run, or not on this segment.",
	exitInconclusive: "This probe cannot tell; the notes say why.",
	exitFailed:       "Answers are as they should be, but connects fail: look at what serves the address.",
	exitWrong: "Wrong: an address is answered for by several MACs or by an unexpected one. Clients keep\n" +
		"whichever is first. With kube-proxy in ipvs mode, see whether strictARP is on.",
}

var senderNotes = map[arpcheck.SenderSource]string{
	arpcheck.SenderRoute:       "the source address of the route",
	arpcheck.SenderInterface:   "an address of the interface",
	arpcheck.SenderUnspecified: "no address of the interface can be used: proxies do not answer, filters do not apply",
}

func (set settings) printResult(w io.Writer, r arpcheck.Result) {
	notes := reasonNotes(r.Reasons)
	if len(r.Responders) == 0 {
		fmt.Fprintf(w, "%s\t%s\t-\t0\t-\t-\t%s\n", r.Target, r.Verdict, notes)
		return
	}
	for _, responder := range r.Responders {
		own := notes
		if responder.DoubleAnswer {
			own = join(own, "answers twice: kernel and announcer on one node?")
		}
		if !set.expect.IsZero() && responder.MAC != set.expect {
			own = join(own, "not the expected MAC")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", r.Target, r.Verdict, responder.MAC,
			responder.Replies, responder.WonRounds, responder.RTT.Mean.Round(1000), own)
	}
}

func reasonNotes(reasons []arpcheck.Reason) string {
	var notes string
	for _, reason := range reasons {
		notes = join(notes, reason.Explain())
	}
	return notes
}

func join(a, b string) string { return strings.TrimPrefix(a+"; "+b, "; ") }
