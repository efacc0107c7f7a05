package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/strictarp/strictarp/arpcheck"
)

const width = 78

// report is what is printed with -o json.
type report struct {
	Simulated bool   `json:"simulated"`
	Why       string `json:"why,omitempty"` // it is simulated
	Acts      []act  `json:"acts"`
	Verdict   string `json:"verdict"`
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`
}

type act struct {
	Title        string            `json:"title"`
	Text         []string          `json:"text,omitempty"`
	Changes      []string          `json:"changes,omitempty"`
	Probes       []arpcheck.Result `json:"probes,omitempty"`
	Expectations []expectation     `json:"expectations,omitempty"`
	Samples      []sample          `json:"samples,omitempty"`
}

type expectation struct {
	What string `json:"what"`
	Held bool   `json:"held"`
}

type sample struct {
	Second  int    `json:"second"`
	Answers string `json:"answers"`
	TCP     bool   `json:"tcp"`
}

// narrator tells what happens as it happens, unless JSON is wanted, and keeps
// it for the report.
type narrator struct {
	out      io.Writer // discards if JSON is wanted
	terminal bool
	report   report
}

// legend explains the marks before anything is marked.
const legend = "Lines marked ok went as expected, also where what is expected is a fault; lines marked FAIL did not. " +
	"Lines marked > say what was changed."

func (n *narrator) current() *act { return &n.report.Acts[len(n.report.Acts)-1] }

func (n *narrator) act(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	n.report.Acts = append(n.report.Acts, act{Title: title})
	mark := ""
	if n.report.Simulated {
		mark = " [SIMULATED]"
	}
	fmt.Fprintf(n.out, "\n%d. %s%s\n", len(n.report.Acts), title, mark)
}

func (n *narrator) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.current().Text = append(n.current().Text, text)
	fmt.Fprint(n.out, wrap(text, "   ", width))
}

func (n *narrator) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.current().Changes = append(n.current().Changes, text)
	fmt.Fprintf(n.out, "   > %s\n", text)
}

func (n *narrator) expect(held bool, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	n.current().Expectations = append(n.current().Expectations, expectation{what, held})
	mark := "ok  "
	if !held {
		mark = "FAIL"
	}
	fmt.Fprint(n.out, wrap(what, "   "+mark+" ", width))
}

func (n *narrator) sample(second int, answers string, tcp bool) {
	n.current().Samples = append(n.current().Samples, sample{second, answers, tcp})
	outcome := "connected"
	if !tcp {
		outcome = "FAILED"
	}
	fmt.Fprintf(n.out, "   %3d  answers: %-24s TCP: %s\n", second, answers, outcome)
}

// busy shows on a terminal what is being waited for, until the function it
// returns is called.
func (n *narrator) busy(format string, args ...any) (done func()) {
	if !n.terminal {
		return func() {}
	}
	text := "   ... " + fmt.Sprintf(format, args...)
	fmt.Fprint(n.out, text)
	return func() { fmt.Fprint(n.out, "\r"+strings.Repeat(" ", len(text))+"\r") }
}

// table shows who answers.
func (t *story) table(r arpcheck.Result) {
	t.current().Probes = append(t.current().Probes, r)
	w := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\n     NODE\tMAC\tASKED\tREPLIED\tFIRST\tWHO ANSWERS\n")
	for _, responder := range r.Responders {
		fmt.Fprintf(w, "     %s\t%s\t%d\t%d\t%d\t%s\n", t.name(responder.MAC), responder.MAC,
			r.Quality.Requests, responder.Replies, responder.WonRounds, t.role(responder))
	}
	if len(r.Responders) == 0 {
		fmt.Fprintf(w, "     -\t-\t%d\t0\t-\tnobody\n", r.Quality.Requests)
	}
	_ = w.Flush()
	fmt.Fprintln(t.out)
}

func (t *story) role(r arpcheck.Responder) string {
	switch {
	case r.DoubleAnswer:
		return "kernel and announcer"
	case r.MAC != t.announcer().MAC():
		return "kernel: WRONG"
	case t.stop == nil:
		return "kernel"
	}
	return "announcer: right"
}

func (t *story) name(mac arpcheck.MAC) string {
	if name, ok := t.names[mac]; ok {
		return name
	}
	return "unknown"
}

// who names those that answer.
func (t *story) who(r arpcheck.Result) string {
	var names []string
	for _, responder := range r.Responders {
		names = append(names, t.name(responder.MAC))
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// doubles names those that answer twice.
func (t *story) doubles(r arpcheck.Result) string {
	var names []string
	for _, responder := range r.Responders {
		if responder.DoubleAnswer {
			names = append(names, t.name(responder.MAC))
		}
	}
	return strings.Join(names, ", ")
}

// conclude ends the report. err is what ended the story early, if anything.
func (n *narrator) conclude(err error) {
	held, all := 0, 0
	for _, a := range n.report.Acts {
		for _, e := range a.Expectations {
			all++
			if e.Held {
				held++
			}
		}
	}
	n.report.OK = err == nil && held == all && all > 0
	n.report.Verdict = fmt.Sprintf("%d of %d expectations held", held, all)
	if err != nil {
		n.report.Verdict = fmt.Sprintf("not finished (%d of %d expectations held so far)", held, all)
	}
	if n.report.Simulated {
		n.report.Verdict += " (SIMULATED: no kernel answered)"
	}
	if err != nil {
		n.report.Error = err.Error()
	}
	fmt.Fprintf(n.out, "\nVerdict: %s.\n", n.report.Verdict)
	if n.report.OK {
		fmt.Fprint(n.out, wrap("Every node's kernel answered for the VIP until strictARP stopped it; a client that "+
			"learned a wrong MAC timed out until it forgot it. When nobody answers, the announcer is missing: "+
			"leave arp_ignore alone.", "", width))
	}
}

func (n *narrator) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(n.report)
}

// wrap breaks text into lines of at most max characters that begin with indent,
// the first with the whole of it and later ones with as many spaces.
func wrap(text, indent string, max int) string {
	var b strings.Builder
	line := indent
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > max {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", len(indent)), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(line + "\n")
	return b.String()
}
