// Whoanswers asks who answers ARP for addresses on a network segment, from a
// host without access to a cluster, such as the load balancer's.
//
//	whoanswers [-i eth0] [--expect MAC] [--control ADDRESS] [-o json] ADDRESS...
//
// An ADDRESS is an IPv4 address, a prefix (10.0.3.0/27) or a range
// (10.0.3.20-10.0.3.29 or 10.0.3.20-29). It needs CAP_NET_RAW, takes 4.5 s, and
// sends three broadcasts for each address, as fast as the interface takes them.
//
// Exit codes: 0 one MAC answers, and it is the expected one; 1 several answer,
// or another than expected; 3 nobody answers; 4 the probe is inconclusive; 2 it
// could not be run. With several addresses the worst counts, in the order 2, 1,
// 4, 3, 0. That nobody answers for an address of a prefix or range is no 3, and
// that this host has it itself is no 4.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/strictarp/strictarp/arpcheck"
)

const exitError = 2

// maxTargets bounds what one call asks for: a /20, 12,288 broadcasts.
const maxTargets = 1 << 12

type settings struct {
	link    string
	expect  arpcheck.MAC
	control netip.Addr
	json    bool
	targets []target
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, arpcheck.Open))
}

// run is the program; open is arpcheck.Open or a test's.
func run(ctx context.Context, args []string, out, errOut io.Writer, open func(string) (*arpcheck.Prober, error)) int {
	set, err := parse(args, errOut)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errOut, "whoanswers:", err)
		return exitError
	}
	results, err := probe(ctx, set, open)
	if err == nil {
		err = set.print(out, results)
	}
	if err != nil {
		fmt.Fprintln(errOut, "whoanswers:", err)
		return exitError
	}
	return set.exitCode(results)
}

func probe(ctx context.Context, set settings, open func(string) (*arpcheck.Prober, error)) ([]arpcheck.Result, error) {
	p, err := open(set.link)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.Control = set.control
	if p.Vantage == "" {
		p.Vantage, _ = os.Hostname() // only a label
	}
	addrs := make([]netip.Addr, 0, len(set.targets))
	for _, t := range set.targets {
		addrs = append(addrs, t.addr)
	}
	return p.ProbeAll(ctx, addrs)
}

func parse(args []string, errOut io.Writer) (settings, error) {
	var set settings
	var expect, control, output string
	flags := pflag.NewFlagSet("whoanswers", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVarP(&set.link, "interface", "i", "", "interface to ask on (default: the one that routes lead to)")
	flags.StringVar(&expect, "expect", "", "MAC that should answer")
	flags.StringVar(&control, "control", "", "address that surely answers, such as the gateway, to show that answers arrive")
	flags.StringVarP(&output, "output", "o", "table", "table or json")
	flags.Usage = func() { fmt.Fprintf(errOut, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	set.json = output == "json"
	if !set.json && output != "table" {
		return set, fmt.Errorf("-o %q: want table or json", output)
	}
	return set.complete(expect, control, flags.Args())
}

const usage = `Ask who answers ARP for addresses.

Usage: whoanswers [flags] ADDRESS...

ADDRESS: 10.0.3.20, 10.0.3.0/27, 10.0.3.20-10.0.3.29 or 10.0.3.20-29

%s
Exit: 0 one MAC, as expected; 1 several or unexpected; 3 none; 4 inconclusive; 2 error
`

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
	if set.targets, err = parseTargets(args); err != nil {
		return set, err
	}
	if set.link == "" {
		set.link, err = linkTo(set.targets)
	}
	return set, err
}
