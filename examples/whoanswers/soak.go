package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

const timeFormat = "2006-01-02T15:04:05.000Z"

// soaking is a soak as it is printed.
type soaking struct {
	settings
	out        io.Writer
	seen       *timeline.Timeline
	live       bool   // print every sample, for a person
	colored    bool   // and in color
	last       string // what was printed of the sample before
	unexpected int    // samples
	err        error  // of writing
}

func (set settings) runSoak(ctx context.Context, out io.Writer, s *session, sys system) (int, error) {
	plan := arpcheck.SoakPlan{Target: set.targets[0].addr, Every: set.every, For: set.soak, Port: set.port, Dial: sys.dial}
	if !set.expect.IsZero() {
		plan.Expected = []arpcheck.MAC{set.expect}
	}
	if set.port != 0 {
		cache, err := sys.cache()
		if err != nil {
			return exitError, err
		}
		defer cache.Close()
		plan.Neighbours = cache
	}
	k := &soaking{
		settings: set, out: out, seen: timeline.New(set.every, set.known, plan.Expected...),
		live: sys.terminal, colored: set.color == "always" || set.color == "auto" && sys.colored,
	}
	if set.report == "" {
		return k.run(ctx, s, plan)
	}
	file, err := timeline.NewFile(set.report)
	if err != nil {
		return exitError, fmt.Errorf("--report: %w", err)
	}
	// A reader of out that has gone must not cost the page.
	signal.Ignore(syscall.SIGPIPE)
	began := time.Now()
	code, err := k.run(ctx, s, plan)
	return code, errors.Join(err, file.Write(k.seen, k.page(ctx, err, time.Since(began))))
}

func (k *soaking) run(ctx context.Context, s *session, plan arpcheck.SoakPlan) (int, error) {
	for sample, err := range s.Soak(ctx, plan) {
		if err != nil && ctx.Err() != nil {
			break // interrupted, which is how one ends it early
		}
		if err != nil {
			return exitError, err
		}
		s.conclude(sample.ARP)
		if k.add(sample); k.err != nil {
			return exitError, k.err
		}
	}
	return k.exitCode(), k.end()
}

func (k *soaking) add(s arpcheck.Sample) {
	k.seen.Add(timeline.Look{Sample: s})
	if len(k.settings.unexpected(s.ARP)) > 0 {
		k.unexpected++
	}
	switch line := k.line(s); {
	case k.json:
		k.err = json.NewEncoder(k.out).Encode(s)
	case k.live:
		_, k.err = fmt.Fprintln(k.out, k.seen.Line(k.colored))
	case line != k.last:
		k.last = line
		_, k.err = fmt.Fprintf(k.out, "%s  %s\n", s.At.UTC().Format(timeFormat), line)
	}
}

// known is what the flags tell of a MAC.
func (set settings) known(mac arpcheck.MAC) (k timeline.Known) {
	switch {
	case set.expect.IsZero():
	case mac == set.expect:
		k.Right = timeline.Expected
	default:
		k.Right = timeline.Unexpected
	}
	return k
}

// page is what the report says beside the timeline.
func (k *soaking) page(ctx context.Context, err error, lasted time.Duration) timeline.Page {
	code := k.exitCode()
	p := timeline.Page{
		Program: "whoanswers", Target: k.targets[0].addr, Verdict: judgements[code], Text: strings.ReplaceAll(conclusions[code], "\n", " "),
		Plan: fmt.Sprintf("every %s for %s", timeline.Brief(k.every), timeline.Brief(k.soak)), Made: time.Now(),
	}
	if k.port != 0 {
		p.Plan += fmt.Sprintf(", with a connect to TCP port %d", k.port)
	}
	if !k.expect.IsZero() {
		p.Expected = k.expect.String() + ", as --expect says"
	}
	lasted = lasted.Round(time.Second)
	switch {
	case err != nil:
		if p.Verdict == timeline.Good {
			p.Verdict, p.Text = timeline.Undecided, "What was seen was as it should be, and is not all that was to be seen."
		}
		p.Ended = fmt.Sprintf("It ended after %s by an error: %v", lasted, err)
	case ctx.Err() != nil:
		p.Ended = fmt.Sprintf("It was interrupted after %s; what would have come is not known.", lasted)
	}
	return p
}

// judgements are what exit codes mean.
var judgements = map[int]timeline.Judgement{
	exitSingle: timeline.Good, exitInconclusive: timeline.Undecided, exitWrong: timeline.Bad, exitNone: timeline.Bad, exitFailed: timeline.Bad,
}

func (k *soaking) line(s arpcheck.Sample) string {
	line := "nobody answers"
	var others []string
	for i, r := range s.ARP.Responders {
		who := r.MAC.String()
		if r.DoubleAnswers > 0 {
			who += " twice"
		}
		if i == 0 {
			line = "answered by " + who
		} else {
			others = append(others, who)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		line += ", then " + strings.Join(others, " and ")
	}
	if len(k.settings.unexpected(s.ARP)) > 0 {
		line = join(line, "not the expected MAC")
	}
	for _, reason := range s.ARP.Reasons {
		if reason != arpcheck.TooFewRounds { // of which there are as many as samples
			line = join(line, reason.Explain())
		}
	}
	switch {
	case s.Check.Ran && s.Check.OK:
		line = join(line, "connect ok")
	case s.Check.Ran:
		line = join(line, "connect failed: "+s.Check.Err)
	}
	if s.Cached != nil && !s.Cached.MAC.IsZero() {
		line = join(line, "cached "+s.Cached.MAC.String())
	}
	return line
}

func (k *soaking) exitCode() int {
	s := k.seen.Summary()
	switch {
	case s.Several > 0 || k.unexpected > 0 || s.Flips > 1 || s.FailuresWrongMAC > 0:
		return exitWrong
	case s.Failures > 0:
		return exitFailed
	case s.Unknown > 0 || s.Samples == 0:
		return exitInconclusive
	case s.Silent > 0:
		return exitNone
	}
	return exitSingle
}

func (k *soaking) end() error {
	if k.json {
		return json.NewEncoder(k.out).Encode(struct {
			Summary  arpcheck.SoakSummary `json:"summary"`
			ExitCode int                  `json:"exitCode"`
		}{*k.seen.Summary(), k.exitCode()})
	}
	s := k.seen.Summary()
	fmt.Fprintf(k.out, "\nSamples: %d, one every %s, %d left out. Answered: %d, by several MACs: %d.\n"+
		"Silent: %d, for %s at most. Not known: %d. Changes of the first to answer: %d. Gratuitous frames: %d.\n",
		s.Samples, k.every, s.Skipped, s.Answered, s.Several, s.Silent, s.LongestSilence, s.Unknown, s.Flips, s.Gratuitous)
	if s.Checks > 0 {
		fmt.Fprintf(k.out, "Connects: %d. Failed: %d, with a wrong MAC cached: %d, with the expected one: %d. Others took %s, and %s at most.\n",
			s.Checks, s.Failures, s.FailuresWrongMAC, s.FailuresRightMAC, s.MeanLatency().Round(time.Microsecond), s.MaxLatency.Round(time.Microsecond))
	}
	if len(s.MACs) > 0 {
		w := tabwriter.NewWriter(k.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "\nMAC\tANSWERED\tFIRST")
		for _, m := range s.MACs {
			fmt.Fprintf(w, "%s\t%d\t%.0f%%\n", m.MAC, m.Answered, 100*s.Share(m.MAC))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(k.out, "\n%s\n", conclusions[k.exitCode()])
	return err
}
