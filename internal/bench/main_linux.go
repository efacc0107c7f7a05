package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// maxTargets is how many addresses are in the block that nodes hold.
const maxTargets = 65534

type config struct {
	targets, nodes, runs   int
	answered               int // of targets; 0 for all
	slow, ask, defaultScan bool
	buffer                 int    // bytes; 0 for what Open makes it
	only                   string // a regular expression of names of contenders
}

func main() {
	var c config
	flag.IntVar(&c.targets, "targets", 306, "`number` of addresses")
	flag.IntVar(&c.nodes, "nodes", 3, "`number` of nodes that answer for each")
	flag.IntVar(&c.answered, "answered", 0, "`number` of addresses that nodes hold, spread over all; default all")
	flag.IntVar(&c.runs, "runs", 10, "`number` of turns")
	flag.BoolVar(&c.slow, "slow", false, "put the client behind a port of 5 Mbit/s")
	flag.BoolVar(&c.defaultScan, "default-scan", false, "also run arp-scan with its defaults, 500 requests a second")
	flag.IntVar(&c.buffer, "buffer", 0, "the sweep's receive buffer in `bytes`, default as Open makes it")
	flag.BoolVar(&c.ask, "ask", false, "ask one node by unicast; nodes answer by proxy ARP, with its delay")
	flag.StringVar(&c.only, "only", "", "run only the floor and contenders whose name matches a regular `expression`")
	flag.Parse()
	if err := netnstest.Enter(); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, os.Stdout); err != nil {
		stop()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// held is how many of the targets the nodes hold.
func (c config) held(targets int) int {
	if c.answered > 0 {
		return min(c.answered, targets)
	}
	return targets
}

// spread returns n of the targets, as far from each other as can be.
func spread(targets []netip.Addr, n int) []netip.Addr {
	some := make([]netip.Addr, 0, n)
	for i := range n {
		some = append(some, targets[i*len(targets)/n])
	}
	return some
}

func run(ctx context.Context, c config, to io.Writer) error {
	if c.targets < 1 || c.targets > maxTargets || c.nodes < 1 || c.nodes > 500 || c.runs < 1 {
		return fmt.Errorf("%d targets, %d nodes, %d turns: want at least one of each, and at most %d targets and 500 nodes", c.targets, c.nodes, c.runs, maxTargets)
	}
	targets := make([]netip.Addr, c.targets)
	addr := netip.MustParseAddr("10.1.0.1")
	for i := range targets {
		targets[i], addr = addr, addr.Next()
	}
	only, err := regexp.Compile(c.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	begun := time.Now()
	l, err := build(c, targets)
	if err != nil {
		return err
	}
	defer l.segment.Close()
	fmt.Fprintf(to, "%d targets, %d nodes; the lab took %s to make\n", c.targets, c.nodes, time.Since(begun).Round(time.Millisecond))
	floor, closeFloor, err := floorOf(l)
	if err != nil {
		return err
	}
	defer closeFloor()
	contenders := []contender{floor}
	for _, other := range l.contenders() {
		if only.MatchString(other.name) {
			contenders = append(contenders, other)
		}
	}
	for turn := range c.runs + 1 {
		for i := range contenders {
			if err := ctx.Err(); err != nil {
				return err
			}
			debug.FreeOSMemory()              // what others have left, or it is freed meanwhile
			time.Sleep(20 * time.Millisecond) // for what is still under way
			m, err := contenders[i].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", contenders[i].name, err)
			}
			if turn > 0 { // the first warms neighbour caches and memory
				contenders[i].measured = append(contenders[i].measured, m)
			}
		}
	}
	report(to, contenders, l.pairs)
	return nil
}

// median of what a measurement says.
func median(all []measurement, of func(measurement) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, m := range all {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
