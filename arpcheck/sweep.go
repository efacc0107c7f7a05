package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"time"
)

// Limits of a sweep, besides those of its Prober.
const (
	// MaxSweep is how many different targets one sweep takes: a /12. Each takes
	// some 130 bytes until it is settled, and 40 more for each MAC that answers.
	MaxSweep = 1 << 20
	// RequestBits is what a request takes of the bandwidth of an Ethernet link:
	// a frame of 64 bytes, the shortest there is, with preamble and gap.
	RequestBits = (64 + 8 + 12) * 8
	// ProgressInterval is how often Sweep.Progress is called.
	ProgressInterval = 100 * time.Millisecond
)

// Sweep asks who answers for many targets, thousands of them, with one socket
// and one goroutine. It finds all responders of each, as ProbeAll does, but does
// not wait for a window after each request and does not lose replies that a
// receive buffer cannot hold: it counts how many replies are still to come and
// asks no more than the buffer, or a queue on the way, has room for.
//
// Each target that fewer than two MACs answer for is asked Prober.Rounds times, as
// ProbeAll does. Others are asked again if some target has more responders, until
// that brings nothing new. Where as many MACs answer as anywhere, and more than
// one, the verdict cannot change: one request is enough, but for a sample, which
// is asked again lest a responder be missed that was lost every time. The last
// request of each target is followed by a window of Prober.Wait, since proxy ARP
// answers late. A host that did so is also asked alone for what it has not
// answered.
//
// How many replies can wait, it learns from the Conn if that has a method Capacity()
// int, as that of Open has, where they are 4,096; otherwise it takes them for 256.
//
// On one processor that also bore the nodes, it took 1.3 times as long to find all
// pairs as to send the requests and read no reply, and 1.3 to 1.5 times the processor
// time, with 3 to 200 nodes and up to 65,534 targets. A silent target costs three
// requests. Internal/bench has the figures and measures them again.
//
// The zero value of each field but Prober is a good choice.
type Sweep struct {
	Prober *Prober // asks; its Interval does not matter

	// Seed sets a random order in which targets are asked: equal seeds, equal
	// orders. With 0 they are asked in the order of their addresses, which is
	// faster where hosts look up neighbouring addresses from a cache.
	Seed uint64
	// Exclude are addresses that are not asked even if they are among the targets.
	Exclude []netip.Prefix
	// Rate is how many requests a second are sent at most; by default as many as
	// replies can be received for.
	Rate int
	// Bandwidth is how many bits a second requests take at most, RequestBits each;
	// by default there is no limit.
	Bandwidth int64
	// Progress, if set, is called every ProgressInterval while the sweep runs and
	// once when it ends, by the goroutine that ranges over the sweep.
	Progress func(SweepProgress)
}

// SweepProgress is how far a sweep is, and what it has cost. The counters only
// grow.
type SweepProgress struct {
	Targets   int           `json:"targets"` // different ones, without excluded ones and the control address
	Asked     int           `json:"asked"`   // targets asked at least once
	Settled   int           `json:"settled"` // targets whose result was yielded
	Requests  int           `json:"requests"`
	Replies   int           `json:"replies"`   // to this sweep
	Pairs     int           `json:"pairs"`     // of a target and a MAC that answers for it
	QueueFull int           `json:"queueFull"` // times the interface's queue was full
	Drops     uint64        `json:"drops"`     // frames the kernel dropped, which is why targets are asked again
	Elapsed   time.Duration `json:"elapsed"`   // nanoseconds in JSON
}

// Sweep is Sweep.Run with the defaults.
func (p *Prober) Sweep(ctx context.Context, targets iter.Seq[netip.Addr]) iter.Seq2[Result, error] {
	return Sweep{Prober: p}.Run(ctx, targets)
}

// Run asks who answers for each of the targets and yields a Result for each as
// soon as it is settled, in no particular order. A target that is given several
// times is asked as if it were given once. All responders of a target were seen if
// its Result has no Reasons.
//
// What a Result says it says in the same sense as one of ProbeAll, but for this.
// Counters of frames are of the sweep so far, Drops of the time since the target
// was asked last. RTT and WonRounds are of the first request only, as a later
// reply may be a late one to an earlier request (RFC 6298, section 3).
// DoubleAnswers counts all replies beyond all requests. Rounds differ between
// targets.
//
// If ctx ends or the link goes down, the targets that are not settled are
// yielded all the same, with a Reason. The error is about the call itself, comes
// once and last, and is one of those of ProbeAll; ErrBadTarget also if there are
// more than MaxSweep targets. Nothing is sent then if a target is to blame.
//
// The Prober is taken until the loop over the sweep ends: a method of the same
// Prober must not be called in it.
func (c Sweep) Run(ctx context.Context, targets iter.Seq[netip.Addr]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		if err := c.run(ctx, targets, yield); err != nil && !errors.Is(err, errStopped) {
			yield(Result{}, err)
		}
	}
}

// errStopped says that the caller has left the loop.
var errStopped = errors.New("the caller has left the loop")

func (c Sweep) run(ctx context.Context, targets iter.Seq[netip.Addr], yield func(Result, error) bool) error {
	if c.Prober == nil {
		return errors.New("arpcheck: sweep without a Prober: get one from Open")
	}
	p := c.Prober
	o, err := p.options()
	if err != nil {
		return err
	}
	if c.Rate < 0 || c.Bandwidth < 0 {
		return fmt.Errorf("arpcheck: sweep on %s: negative Rate or Bandwidth", p.Link)
	}
	o.maxResponders = min(o.maxResponders, maxSweepMACs)
	if err := p.takeTurn(ctx); err != nil {
		return fmt.Errorf("arpcheck: sweep on %s: %w", p.Link, err)
	}
	defer p.endTurn()
	s := &sweep{pass: pass{options: o, mac: o.MAC, byAddr: map[netip.Addr]*track{}}, config: c, yield: yield}
	if err := s.gather(ctx, targets); err != nil {
		return fmt.Errorf("arpcheck: sweep on %s: %w", p.Link, err)
	}
	if s.left == 0 {
		return nil
	}
	if err := s.runAll(ctx); err != nil {
		return fmt.Errorf("arpcheck: sweep on %s: %w", p.Link, err)
	}
	return nil
}
