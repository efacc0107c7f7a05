// Nodefacts prints what decides on a node whether its kernel answers ARP for
// LoadBalancer IPs: per interface what it would answer, and why, or all facts as
// JSON.
//
//	nodefacts [--sender ADDRESS] [--root DIR] [--proc DIR] [-o json] [VIP...]
//
// Without VIPs it takes those on kube-ipvs0. It runs on the node, in the host's
// network namespace, and changes nothing; it needs no privilege, but sees more as
// root. It sends nothing: ask the wire with whoanswers.
//
// Exit codes: 0 it could say; 4 something that matters is not known; 2 usage or
// output error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/strictarp/strictarp"
)

const (
	exitError   = 2
	exitUnknown = 4
)

type settings struct {
	options strictarp.ObserveOptions
	sender  netip.Addr // invalid: one for each interface
	vips    []netip.Addr
	json    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	set, err := parse(args, errOut)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errOut, "nodefacts:", err)
		return exitError
	}
	facts, missing := strictarp.Observe(ctx, set.options)
	if set.json {
		err = writeJSON(out, set.options.Node, facts, missing)
		if err == nil {
			return 0
		}
	} else {
		var known bool
		if known, err = set.summarize(out, facts, missing); err == nil && !known {
			return exitUnknown
		}
	}
	if err != nil {
		fmt.Fprintln(errOut, "nodefacts:", err)
		return exitError
	}
	return 0
}

// writeJSON writes facts of a cluster with one node, which can be merged with
// those of others.
func writeJSON(out io.Writer, node string, facts strictarp.NodeFacts, missing []strictarp.Missing) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(strictarp.Facts{At: facts.At, Nodes: map[string]strictarp.NodeFacts{node: facts}, Missing: missing})
}

const usage = `Print what a node's kernel answers to ARP requests, and why.

Usage: nodefacts [flags] [VIP...]

VIP: an IPv4 address; default: those on kube-ipvs0

%s
Exit: 0 it could say; 4 something that matters is not known; 2 error
`

func parse(args []string, errOut io.Writer) (settings, error) {
	var set settings
	var sender, output string
	flags := pflag.NewFlagSet("nodefacts", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&set.options.Node, "node", "", "the node's name (default: the host's)")
	flags.StringVar(&sender, "sender", "", "address that asks (default: one of each interface's subnet)")
	flags.StringVar(&set.options.Root, "root", "", "where the node's root file system is mounted (default: /)")
	flags.StringVar(&set.options.Proc, "proc", "", "where the node's proc is mounted (default: /proc)")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	flags.Usage = func() { fmt.Fprintf(errOut, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if set.json = output == "json"; !set.json && output != "text" {
		return set, fmt.Errorf("-o %q: want text or json", output)
	}
	if set.options.Node == "" {
		set.options.Node, _ = os.Hostname() // only a label
	}
	return set.addresses(sender, flags.Args())
}

func (set settings) addresses(sender string, vips []string) (settings, error) {
	var err error
	if sender != "" {
		if set.sender, err = parseAddr(sender); err != nil {
			return set, fmt.Errorf("--sender: %w", err)
		}
	}
	for _, text := range vips {
		vip, err := parseAddr(text)
		if err != nil {
			return set, err
		}
		set.vips = append(set.vips, vip)
	}
	return set, nil
}

func parseAddr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%q is not an address: %w", text, err)
	}
	if a = a.Unmap(); !a.Is4() {
		return a, fmt.Errorf("%s is not an IPv4 address: ARP is for IPv4 only", a)
	}
	return a, nil
}
