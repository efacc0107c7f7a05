package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"text/tabwriter"

	"github.com/strictarp/strictarp/arpcheck"
)

// replayFile judges a capture. Of one that ends too early it prints what stands in it.
func (set settings) replayFile(out io.Writer) (int, error) {
	f, err := os.Open(set.replay)
	if err != nil {
		return exitError, fmt.Errorf("--replay: %w", err)
	}
	defer f.Close()
	c, err := arpcheck.ReplayPCAP(f, arpcheck.ReplayOptions{})
	if errors.Is(err, arpcheck.ErrNotCapture) {
		return exitError, fmt.Errorf("--replay %s: %w", set.replay, err)
	}
	wanted := make(map[netip.Addr]bool, len(set.targets))
	for _, t := range set.targets {
		wanted[t.addr] = t.ofRange
	}
	var answers []answer
	asked := make(map[netip.Addr]bool)
	for _, r := range c.Results {
		if ofRange, named := wanted[r.Target]; named || len(wanted) == 0 {
			answers = append(answers, answer{r, ofRange})
			asked[r.Target] = true
		}
	}
	code := set.exitCode(answers)
	var missing []netip.Addr
	for _, t := range set.targets {
		if !t.ofRange && !asked[t.addr] {
			missing = append(missing, t.addr)
		}
	}
	if (len(answers) == 0 || len(missing) > 0) && worse[code] < worse[exitInconclusive] {
		code = exitInconclusive
	}
	if set.json {
		c.Results = resultsOf(answers)
		return code, errors.Join(err, encode(out, struct {
			arpcheck.Capture
			ExitCode int `json:"exitCode"`
		}{c, code}))
	}
	return code, errors.Join(err, set.printReplay(out, c, answers, missing, code))
}

func (set settings) printReplay(out io.Writer, c arpcheck.Capture, answers []answer, missing []netip.Addr, code int) error {
	if len(answers) > 0 {
		if err := set.printTable(out, answers); err != nil {
			return err
		}
	}
	if err := set.printClaims(out, c.Claims); err != nil {
		return err
	}
	for _, addr := range missing {
		fmt.Fprintf(out, "\nThe capture holds no question for %s by the host it was made on.\n", addr)
	}
	if len(answers) == 0 && len(missing) == 0 {
		fmt.Fprintln(out, "\nThe capture holds no question by the host it was made on, so nobody can be said to answer or not.")
	} else if len(answers) > 0 {
		fmt.Fprintf(out, "\n%s\n", conclusions[code])
	}
	q := c.Quality
	_, err := fmt.Fprintf(out, "Judged from %d ARP frames of %s, %d of them malformed; %d were lost.\n", q.Frames, set.replay, q.Malformed, q.Drops)
	return err
}

// printClaims shows who else used an address that matters.
func (set settings) printClaims(out io.Writer, claims []arpcheck.AddrClaim) error {
	wanted := make(map[netip.Addr]bool, len(set.targets))
	for _, t := range set.targets {
		wanted[t.addr] = true
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	begun := false
	for _, c := range claims {
		if len(wanted) > 0 && !wanted[c.Addr] {
			continue
		}
		if !begun {
			fmt.Fprintln(w, "\nALSO CLAIMED\tBY\tIN\tFRAMES\tFOR\t")
			begun = true
		}
		var note string
		if !c.FrameSource.IsZero() {
			note = "sent by " + c.FrameSource.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", c.Addr, c.MAC, c.Kind, c.Frames, c.Target, note)
	}
	return w.Flush()
}
