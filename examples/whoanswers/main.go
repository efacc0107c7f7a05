// Whoanswers asks who answers ARP for addresses on a network segment, from a
// host without access to a cluster, such as the load balancer's.
//
//	whoanswers [-i eth0] [--expect MAC] [--control ADDRESS] [-o json] ADDRESS...
//	whoanswers --sweep [--rate N] ADDRESS...
//	whoanswers --soak DURATION [--every DURATION] [--connect PORT] [--report FILE] ADDRESS
//	whoanswers --watch ADDRESS...
//	whoanswers --replay FILE [ADDRESS...]
//
// An ADDRESS is an IPv4 address, a prefix (10.0.3.0/27) or a range
// (10.0.3.20-10.0.3.29 or 10.0.3.20-29). It needs CAP_NET_RAW, takes 4.5 s, and
// sends three broadcasts for each address, as fast as the interface takes them.
//
// A sweep is for thousands of addresses: it takes as many replies as come. A soak
// asks every second for as long as it is told, with --connect also by TCP. It prints
// what changes, and on a terminal a line for each second, in which each MAC has a
// letter and a color. With --report FILE it writes a page of HTML with a timeline, also
// when it is interrupted or fails: one file, that needs no network. A watch listens and sends nothing, until it is interrupted. With
// --pcap FILE the frames that all this rests on are kept as a pcapng file, which
// --replay judges, as it does captures by tcpdump: anywhere, and without privileges.
// Of a capture an ADDRESS that its host has not asked for is inconclusive.
//
// Exit codes: 0 one MAC answers, and it is the expected one; 1 several answer,
// or another than expected; 3 nobody answers; 4 the probe is inconclusive; 5 only
// connects failed; 2 it could not be run. Of several the worst counts, in the order
// 2, 1, 5, 4, 3, 0. That nobody answers for an address of a prefix or range is no 3,
// and that this host has it itself is no 4. For a soak 1 is also that the first to
// answer changed more than once, which is more than a fail-over; for a watch, that
// there was a conflict or the like.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/strictarp/strictarp/arpcheck"
)

// system is what the program needs of the host that it runs on.
type system struct {
	open func(link string) (*arpcheck.Prober, error)
	// dial and cache are for soaks that connect; a nil dial is that of a net.Dialer.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	cache func() (neighbours, error)
	// terminal says that a person reads along, colored that colors help.
	terminal, colored bool
}

// neighbours is a neighbour cache.
type neighbours interface {
	arpcheck.NeighbourReader
	io.Closer
}

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup; else it is that the connection to a host is lost
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, system{
		open:     arpcheck.Open,
		cache:    func() (neighbours, error) { return arpcheck.OpenNeighbours() },
		terminal: terminal,
		colored:  terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}))
}

func run(ctx context.Context, args []string, out, errOut io.Writer, sys system) int {
	set, err := parse(args, errOut)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	code := exitError
	if err == nil {
		code, err = set.run(ctx, out, sys)
	}
	if err != nil {
		fmt.Fprintln(errOut, "whoanswers:", err)
		return exitError
	}
	return code
}

// run returns the exit code.
func (set settings) run(ctx context.Context, out io.Writer, sys system) (int, error) {
	if set.replay != "" {
		return set.replayFile(out)
	}
	s, err := set.begin(sys)
	if err != nil {
		return exitError, err
	}
	var code int
	switch {
	case set.soak > 0:
		code, err = set.runSoak(ctx, out, s, sys)
	case set.watch:
		code, err = set.runWatch(ctx, out, s)
	default:
		code, err = set.ask(ctx, out, s)
	}
	return code, errors.Join(err, s.Close())
}
