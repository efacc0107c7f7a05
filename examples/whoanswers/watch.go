package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
)

// runWatch prints events until it is interrupted.
func (set settings) runWatch(ctx context.Context, out io.Writer, s *session) (int, error) {
	var o arpcheck.WatchOptions
	for _, t := range set.targets {
		o.Addrs = append(o.Addrs, t.addr)
	}
	worst := exitSingle
	for e, err := range s.Watch(ctx, o) {
		if err != nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			return exitError, err
		}
		if s.record != nil && e.Addr.IsValid() {
			s.record.Note(e.Addr, fmt.Sprintf("%s: %s by %s", e.Addr, e.Kind, e.MAC))
		}
		s.conclude()
		if code := set.exitOfEvent(e); worse[code] > worse[worst] {
			worst = code
		}
		if err := set.printEvent(out, e); err != nil {
			return exitError, err
		}
	}
	if set.json {
		return worst, json.NewEncoder(out).Encode(struct {
			ExitCode int `json:"exitCode"`
		}{worst})
	}
	_, err := fmt.Fprintf(out, "\n%s\n", watchConclusions[worst])
	return worst, err
}

// watchConclusions are of what was seen, which is not all that happens.
var watchConclusions = map[int]string{
	exitSingle:       "Nothing wrong was seen. To know who answers, ask.",
	exitNone:         "An address was lost: nobody claims it any more.",
	exitInconclusive: "This host could not hear all the time.",
	exitWrong:        "Wrong: the events above show an address that more than one MAC claims, or another than expected.",
}

func (set settings) exitOfEvent(e arpcheck.ClaimEvent) int {
	expected := !set.expect.IsZero() && e.MAC == set.expect
	switch e.Kind {
	case arpcheck.ClaimConflict, arpcheck.ClaimFlipFlop, arpcheck.ClaimBogon:
		return exitWrong
	case arpcheck.ClaimInRequest:
		if !expected {
			return exitWrong
		}
	case arpcheck.ClaimNew, arpcheck.ClaimChanged, arpcheck.ClaimGratuitous:
		if !set.expect.IsZero() && !expected {
			return exitWrong
		}
	case arpcheck.ClaimLost:
		return exitNone
	case arpcheck.WatchLinkDown, arpcheck.WatchDropped:
		return exitInconclusive
	}
	return exitSingle
}

func (set settings) printEvent(out io.Writer, e arpcheck.ClaimEvent) error {
	if set.json {
		return json.NewEncoder(out).Encode(e)
	}
	line := fmt.Sprintf("%s  %-21s", e.At.UTC().Format(timeFormat), e.Kind)
	if e.Addr.IsValid() {
		line += "  " + e.Addr.String()
	}
	if !e.MAC.IsZero() {
		line += "  " + e.MAC.String()
	}
	var notes string
	for _, note := range []struct {
		holds bool
		text  string
	}{
		{e.Frame != "", string(e.Frame)},
		{!e.Before.IsZero(), "before: " + e.Before.String()},
		{!e.Source.IsZero(), "sent by " + e.Source.String()},
		{e.Kind == arpcheck.ClaimInRequest, "asks for " + e.Target.String()},
		{e.VLAN != 0, fmt.Sprintf("VLAN %d", e.VLAN)},
		{e.Kind == arpcheck.WatchDropped, fmt.Sprintf("%d frames", e.Count)},
		{e.Kind != arpcheck.WatchDropped && e.Count > 1, fmt.Sprintf("%d times", e.Count)},
		{e.Suppressed > 0, fmt.Sprintf("%d more like it", e.Suppressed)},
	} {
		if note.holds {
			notes = join(notes, note.text)
		}
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(line+"  "+notes, " "))
	return err
}
