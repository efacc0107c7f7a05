package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"time"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

type config struct {
	what                 string // is measured: a key of subjects, or "goals"
	targets, nodes, runs int    // of a sweep; turns
	answered             int    // of targets; 0 for all
	slow, ask            bool
	peers                bool // also those that lose replies or see one responder only
	listen               time.Duration
	only                 string // a regular expression of names of contenders
}

const defaultListen = 5 * time.Second

// subjects are what can be measured.
var subjects = map[string]func(config) (*subject, error){
	"sweep":    sweeps,
	"sysctls":  sysctls,
	"device":   devices,
	"election": elections,
	"watch":    watches,
}

func main() {
	babbleIfAsked()
	var c config
	flag.IntVar(&c.targets, "targets", 306, "sweep: `number` of addresses")
	flag.IntVar(&c.nodes, "nodes", 3, "sweep: `number` of nodes that answer for each")
	flag.IntVar(&c.answered, "answered", 0, "sweep: `number` of addresses that nodes hold, spread over all; default all")
	flag.BoolVar(&c.slow, "slow", false, "sweep: put the client behind a port of 5 Mbit/s")
	flag.BoolVar(&c.ask, "ask", false, "sweep: ask one node by unicast; nodes answer by proxy ARP, with its delay")
	flag.BoolVar(&c.peers, "peers", false, "sweep: also run what loses replies or sees one responder: nmap, both arpings, mdlayher/arp, gopacket, arp-scan with its defaults")
	flag.DurationVar(&c.listen, "listen", defaultListen, "watch: how long to listen, in `time` such as 5s")
	flag.IntVar(&c.runs, "runs", 10, "`number` of turns")
	flag.StringVar(&c.only, "only", "", "run only the first contender and those whose name matches a regular `expression`")
	flag.Parse()
	if c.what = flag.Arg(0); c.what == "" {
		c.what = "sweep"
	}
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

func run(ctx context.Context, c config, to io.Writer) error {
	if c.what == "goals" {
		return runGoals(ctx, c.runs, goals, to)
	}
	s, err := measure(ctx, c)
	if err != nil {
		return err
	}
	s.report(to)
	return nil
}

// measure makes a subject, lets its contenders run and removes what it made.
func measure(ctx context.Context, c config) (s *subject, err error) {
	only, err := regexp.Compile(c.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	if c.runs < 1 {
		return nil, fmt.Errorf("%d turns: want at least one", c.runs)
	}
	build := subjects[c.what]
	if build == nil {
		return nil, fmt.Errorf("%q is nothing that is measured: want sweep, sysctls, device, election, watch or goals", c.what)
	}
	if s, err = build(c); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	contenders := s.contenders[:1:1]
	for _, other := range s.contenders[1:] {
		if only.MatchString(other.name) {
			contenders = append(contenders, other)
		}
	}
	s.contenders = contenders
	return s, s.turns(ctx, c.runs)
}

// hint says on standard error that a contender is left out.
func hint(name, why string) {
	fmt.Fprintf(os.Stderr, "bench: %s is left out: %s\n", name, strings.TrimSpace(why))
}
