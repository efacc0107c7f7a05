// Incident plays the outage that strictARP prevents, on real sockets and real
// kernels' answers, and its cure. It needs no cluster and no root: it builds its
// segment from network namespaces.
//
//	go run ./examples/incident [--soak 60s] [-o json] [--simulate]
//
// Where network namespaces are refused it says why and what helps, and plays
// the same script on a segment in memory, marked SIMULATED.
//
// Exit codes: 0 every expectation held; 1 one did not; 2 it could not be
// played; 3 it was simulated without --simulate.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

const (
	exitOK        = 0
	exitFailed    = 1
	exitError     = 2
	exitSimulated = 3
)

const defaultSoak = 10 * time.Second

type settings struct {
	soak     time.Duration
	simulate bool
	json     bool
}

func main() {
	// Before all else, because it may run this program once more. What it says
	// is said again by newLab.
	_ = netnstest.Enter()
	set, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "incident:", err)
		os.Exit(exitError)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, set, os.Stdout, os.Stderr, newLab)
	stop()
	os.Exit(code)
}

func parse(args []string, errOut io.Writer) (settings, error) {
	var set settings
	var output string
	flags := pflag.NewFlagSet("incident", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.DurationVar(&set.soak, "soak", defaultSoak, "how long the cure is watched")
	flags.BoolVar(&set.simulate, "simulate", false, "play on a segment in memory")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	flags.Usage = func() { fmt.Fprintf(errOut, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	set.json = output == "json"
	switch {
	case flags.NArg() > 0:
		return set, fmt.Errorf("unexpected argument %q: try --help", flags.Arg(0))
	case output != "text" && output != "json":
		return set, fmt.Errorf("-o %q: want text or json", output)
	case set.soak < 0 || set.soak > 24*time.Hour:
		return set, fmt.Errorf("--soak %s: want 0s to 24h", set.soak)
	}
	return set, nil
}

const usage = `Play the outage that strictARP prevents, and its cure, on this machine's kernel.

Usage: incident [flags]

%s
Exit: 0 all went as expected; 1 something did not; 2 it could not be played;
3 it was simulated without --simulate, because network namespaces are refused
`

// run is the program; lab is newLab or a test's.
func run(ctx context.Context, set settings, out, errOut io.Writer, lab func() (*stage, error)) int {
	n := &narrator{out: out, terminal: !set.json && isTerminal(out)}
	if set.json {
		n.out = io.Discard
	}
	s, err := build(set, n, errOut, lab)
	if err != nil {
		fmt.Fprintln(errOut, "incident:", err)
		return exitError
	}
	err = tell(ctx, s, n, set.soak)
	err = errors.Join(err, s.close())
	n.conclude(err)
	if set.json {
		err = errors.Join(err, n.writeJSON(out))
	}
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "incident:", err)
		return exitError
	case !n.report.OK:
		return exitFailed
	case n.report.Simulated && !set.simulate:
		return exitSimulated
	}
	return exitOK
}

// build builds the lab, or the simulation if that is wanted or the lab cannot
// be had.
func build(set settings, n *narrator, errOut io.Writer, lab func() (*stage, error)) (*stage, error) {
	if set.simulate {
		n.report.Simulated, n.report.Why = true, "--simulate was given"
		return newSimulation()
	}
	s, err := lab()
	if !errors.Is(err, errors.ErrUnsupported) {
		return s, err
	}
	fmt.Fprintf(errOut, "incident: %v\nincident: playing on a segment in memory instead: all that follows is SIMULATED\n", err)
	n.report.Simulated, n.report.Why = true, err.Error()
	return newSimulation()
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
