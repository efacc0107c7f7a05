package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/strictarp/strictarp/arpcheck"
)

// What one call asks for at most: without --sweep a /20, which is 12,288 broadcasts.
const (
	maxTargets = 1 << 12
	maxSweep   = 1 << 16
)

type settings struct {
	link    string
	expect  arpcheck.MAC
	control netip.Addr
	json    bool
	targets []target

	sweep  bool
	rate   int
	soak   time.Duration
	every  time.Duration
	port   uint16
	report string
	color  string
	watch  bool
	pcap   string
	replay string
}

const usage = `Ask who answers ARP for addresses.

Usage:
  whoanswers [flags] ADDRESS...            ask three times, in 4.5 s
  whoanswers --sweep [flags] ADDRESS...    ask for thousands of addresses
  whoanswers --soak 10m [flags] ADDRESS    ask every second; show what changes, or on a
                                           terminal every answer
  whoanswers --watch [flags] ADDRESS...    only listen, until interrupted
  whoanswers --replay FILE [ADDRESS...]    judge a capture, without privileges

ADDRESS: 10.0.3.20, 10.0.3.0/27, 10.0.3.20-10.0.3.29 or 10.0.3.20-29

Flags:
%s
Exit: 0 one MAC, as expected; 1 several or unexpected; 3 none; 4 inconclusive;
      5 only connects failed; 2 error
`

func parse(args []string, errOut io.Writer) (settings, error) {
	var set settings
	var expect, control, output string
	flags := pflag.NewFlagSet("whoanswers", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.SortFlags = false
	flags.StringVarP(&set.link, "interface", "i", "", "interface to ask on (default: the one that routes lead to)")
	flags.StringVar(&expect, "expect", "", "`MAC` that should answer")
	flags.StringVar(&control, "control", "", "`ADDRESS` that surely answers, such as the gateway, to show that answers arrive")
	flags.StringVarP(&output, "output", "o", "table", "table or json")
	flags.StringVar(&set.pcap, "pcap", "", "write the frames to this pcapng `FILE`")
	flags.BoolVar(&set.sweep, "sweep", false, "ask for up to 65,536 addresses")
	flags.IntVar(&set.rate, "rate", 0, "requests a second of a sweep at most (default: as many as replies can be received for)")
	flags.DurationVar(&set.soak, "soak", 0, "ask again and again for this long")
	flags.DurationVar(&set.every, "every", arpcheck.DefaultSoakEvery, "how often a soak asks")
	flags.Uint16Var(&set.port, "connect", 0, "TCP `PORT` that a soak also connects to; that fills this host's neighbour cache")
	flags.StringVar(&set.report, "report", "", "write what a soak saw to this `FILE`, as a page of HTML; also when it is interrupted")
	flags.StringVar(&set.color, "color", "auto", "color the lines of a soak: auto (on a terminal, without NO_COLOR), always or never")
	flags.BoolVar(&set.watch, "watch", false, "listen to who claims the addresses; sends nothing")
	flags.StringVar(&set.replay, "replay", "", "judge this pcap or pcapng `FILE`, on any system")
	flags.Usage = func() { fmt.Fprintf(errOut, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	set.json = output == "json"
	if !set.json && output != "table" {
		return set, fmt.Errorf("-o %q: want table or json", output)
	}
	if err := set.check(flags); err != nil {
		return set, err
	}
	return set.complete(expect, control, flags.Args())
}

// check finds flags that do not go together.
func (set settings) check(flags *pflag.FlagSet) error {
	modes := []string{"sweep", "soak", "watch", "replay"}
	mode := ""
	for _, m := range modes {
		switch {
		case !flags.Changed(m):
		case mode != "":
			return fmt.Errorf("--%s and --%s do not go together", mode, m)
		default:
			mode = m
		}
	}
	for flag, with := range map[string]string{"rate": "sweep", "every": "soak", "connect": "soak", "report": "soak", "color": "soak"} {
		if flags.Changed(flag) && mode != with {
			return fmt.Errorf("--%s goes with --%s only", flag, with)
		}
	}
	for flag, without := range map[string][]string{
		"control": {"watch", "replay"}, "interface": {"replay"}, "pcap": {"replay"},
	} {
		for _, m := range without {
			if flags.Changed(flag) && mode == m {
				return fmt.Errorf("--%s does not go with --%s", flag, m)
			}
		}
	}
	switch {
	case mode == "soak" && (set.soak <= 0 || set.every <= 0):
		return errors.New("--soak and --every take a time such as 10m or 1s")
	case set.rate < 0:
		return errors.New("--rate is negative")
	case !slices.Contains([]string{"auto", "always", "never"}, set.color):
		return fmt.Errorf("--color %q: want auto, always or never", set.color)
	case flags.Changed("report") && set.report == "":
		return errors.New("--report takes a file")
	case set.report != "" && set.report == set.pcap:
		return errors.New("--report and --pcap name the same file")
	}
	return nil
}

// complete reads what is given as text.
func (set settings) complete(expect, control string, args []string) (settings, error) {
	var err error
	if expect != "" {
		if set.expect, err = arpcheck.ParseMAC(expect); err != nil {
			return set, fmt.Errorf("--expect: %w", err)
		}
	}
	if control != "" {
		if set.control, err = netip.ParseAddr(control); err != nil {
			return set, fmt.Errorf("--control: %w", err)
		}
	}
	limit := maxTargets
	if set.sweep || set.watch || set.replay != "" {
		limit = maxSweep
	}
	if set.targets, err = parseTargets(args, limit); err != nil {
		return set, err
	}
	switch {
	case set.replay != "":
		return set, nil
	case len(set.targets) == 0:
		return set, errors.New("no address given: try whoanswers --help")
	case set.soak > 0 && len(set.targets) > 1:
		return set, fmt.Errorf("--soak takes one address, and %d are given", len(set.targets))
	}
	if set.link == "" {
		set.link, err = linkTo(set.targets)
	}
	return set, err
}
