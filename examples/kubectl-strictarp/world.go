package main

import (
	"context"
	"io"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// world is what the program needs of the machine that it runs on.
type world struct {
	in       io.Reader
	out, err io.Writer
	// outTerminal and errTerminal say whether a person reads along.
	outTerminal, errTerminal bool
	width                    int // columns of out
	getenv                   func(string) string
	now                      func() time.Time
	host                     string // the machine's name
	open                     func(link string) (*arpcheck.Prober, error)
	linkTo                   func(netip.Addr) (arpcheck.Hop, error)
	observe                  func(context.Context, strictarp.ObserveOptions) (strictarp.NodeFacts, []strictarp.Missing)
	neighbours               strictarp.NeighbourCache // this machine's
	poll                     time.Duration            // between looks at a rollout; 0: as kubeproxy.Change has it
}

// defaultWidth is that of a terminal, in columns, and of text for nobody in
// particular.
const defaultWidth = 80

func thisWorld() world {
	host, err := os.Hostname()
	if err != nil {
		host = "this-host" // only a label
	}
	w := world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())), errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width: defaultWidth, getenv: os.Getenv, now: time.Now, host: host,
		open: arpcheck.Open, linkTo: arpcheck.LinkTo, observe: strictarp.Observe, neighbours: neighbours{},
	}
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && columns > 0 {
		w.width = columns
	} else if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		w.width = columns
	}
	return w
}
