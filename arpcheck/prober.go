package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Defaults of a Prober.
const (
	// DefaultRounds is how many times each target is asked. Three silent rounds
	// are needed to say that nobody answers.
	DefaultRounds = 3
	// DefaultWait is the window of a round. Linux delays an answer by proxy ARP
	// by a random time of up to 0.8 s (proxy_delay); 0.95 s was measured.
	DefaultWait = 1500 * time.Millisecond
	// DefaultInterval is the time between requests with FastRounds.
	DefaultInterval = 100 * time.Millisecond
	// DefaultMaxResponders is how many MACs are kept for one target: more than
	// any real segment has nodes, few enough that a flood of made-up answers
	// does no harm.
	DefaultMaxResponders = 512
)

// Prober asks who answers ARP for an address. It is meant to be kept: opening
// and closing a packet socket costs the kernel some 10 ms. Only Conn and MAC are
// needed; Open sets them, Host and Link. Its methods may be called from several
// goroutines and take turns; its fields must not be changed during a call.
//
// Replies also reach the kernel of the host that probes. If it has a neighbour
// entry for the target that is older than a second (locktime), it takes the
// MAC of the next reply (arp_process in net/ipv4/arp.c). So probing can heal or
// spoil the cache of its own host: to watch a client, probe from another host.
type Prober struct {
	Conn Conn
	Host Host   // asked for a sender and for the interface's state; nil if unknown
	MAC  MAC    // sender hardware address of requests, unless Host knows a newer one
	Link string // name of the interface, for results

	Vantage string // name of the place that is probed from, for results

	// Sender is the address to ask under. By default it is the source address
	// of the route to the target, else the interface's first IPv4 address, else
	// 0.0.0.0. A sender of 0.0.0.0 is answered differently: without regard to
	// rp_filter and arp_filter, and never by proxy ARP.
	Sender netip.Addr
	// To is the MAC that requests are sent to, by default Broadcast.
	To MAC

	Rounds int           // how often each target is asked; default 3
	Wait   time.Duration // how long replies to one request are awaited; default 1.5 s
	// Interval is the time from one request for a target to the next; by
	// default, and at least, Wait. With FastRounds it defaults to 100 ms and may
	// be shorter than Wait.
	Interval time.Duration
	// FastRounds lets rounds overlap. Since a reply does not say which request
	// it answers, neither double answers nor rounds won are reported then.
	FastRounds bool

	// Control is an address that should answer, such as the gateway. It is
	// asked in the same pass.
	Control netip.Addr

	// MaxResponders is how many MACs are kept for one target; default 512. In one
	// pass over many targets 65,536 are kept in all.
	MaxResponders int

	once sync.Once
	turn chan struct{} // holds a token while a pass runs
	// Guarded by turn:
	closed    bool
	leftover  leftover
	lastDrops uint64 // when the pass before ended
}

// Open returns a Prober on a network interface of the calling thread's network
// namespace. It needs CAP_NET_RAW in the user namespace that owns the network
// namespace, and keeps no other privilege.
//
// A Prober is to be kept: its ring takes 1 MiB of the kernel's memory, and the kernel
// lets Open and Close wait until all processors have taken notice, 10 to 30 ms each.
//
// The error matches fs.ErrPermission without that capability,
// fs.ErrNotExist if there is no such interface, ErrNotEthernet, ErrNoARP, ErrLinkDown, or
// errors.ErrUnsupported on systems other than Linux.
func Open(link string) (*Prober, error) { return open(link) }

// Probe asks who answers for target and returns all who do: it is ProbeAll
// with one target.
func (p *Prober) Probe(ctx context.Context, target netip.Addr) (Result, error) {
	results, err := p.ProbeAll(ctx, []netip.Addr{target})
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// ProbeAll asks who answers for each of the targets, in one pass that shares
// its windows among them. Results are in the order of targets.
//
// What goes wrong on the segment is in the results, as is a ctx that ends during
// the pass: what was seen until then is kept, and Inconclusive unless several
// MACs have answered. The error is about the call itself: it matches
// ErrBadTarget for a target that is not a unicast IPv4 address or stands there
// twice, net.ErrClosed after Close, and ctx's error if ctx ended before the pass
// began.
func (p *Prober) ProbeAll(ctx context.Context, targets []netip.Addr) ([]Result, error) {
	opts, err := p.options()
	if err != nil {
		return nil, err
	}
	if err := p.takeTurn(ctx); err != nil {
		return nil, fmt.Errorf("arpcheck: probe on %s: %w", p.Link, err)
	}
	defer p.endTurn()
	if len(targets) == 0 {
		return []Result{}, nil
	}
	s, err := newPass(opts, targets)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("arpcheck: probe on %s: %w", p.Link, err)
	}
	return s.results(targets), nil
}

// Resolve returns the one MAC that answers for target. If there is not the one,
// the error is a *VerdictError, which holds the Result and matches
// ErrNoResponder, ErrMultipleResponders or ErrInconclusive. Other errors are
// those of ProbeAll.
func (p *Prober) Resolve(ctx context.Context, target netip.Addr) (MAC, error) {
	r, err := p.Probe(ctx, target)
	if err != nil {
		return MAC{}, err
	}
	if r.Verdict != Single {
		return MAC{}, &VerdictError{Result: r}
	}
	return r.Responders[0].MAC, nil
}

// Close closes the Conn, and the Host if it is an io.Closer. A pass that runs
// ends with an error that matches net.ErrClosed; so do later calls.
func (p *Prober) Close() error {
	err := p.Conn.Close()
	p.init()
	p.turn <- struct{}{}
	defer p.endTurn()
	if c, ok := p.Host.(io.Closer); ok && !p.closed {
		err = errors.Join(err, c.Close())
	}
	p.closed = true
	return err
}

func (p *Prober) init() { p.once.Do(func() { p.turn = make(chan struct{}, 1) }) }

func (p *Prober) takeTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not begun: %w", err)
	}
	p.init()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("while another probe ran on it: %w", ctx.Err())
	}
	if p.closed {
		p.endTurn()
		return net.ErrClosed
	}
	return nil
}

func (p *Prober) endTurn() { <-p.turn }

// leftover is what a pass leaves to the next: requests that may be answered yet.
type leftover struct {
	at    time.Time // when the pass ended; zero if there was none
	asked map[netip.Addr]unanswered
}

type unanswered struct {
	sender      netip.Addr
	own, others int
}

// options are a Prober's settings with its defaults filled in.
type options struct {
	*Prober
	to             MAC
	rounds         int
	wait, interval time.Duration
	maxResponders  int
}

func (p *Prober) options() (options, error) {
	o := options{
		Prober: p, to: p.To, rounds: p.Rounds, wait: p.Wait,
		interval: p.Interval, maxResponders: p.MaxResponders,
	}
	switch {
	case p.Conn == nil:
		return o, errors.New("arpcheck: probe without a Conn: get the Prober from Open, or set its Conn")
	case p.Rounds < 0 || p.Wait < 0 || p.Interval < 0 || p.MaxResponders < 0:
		return o, fmt.Errorf("arpcheck: probe on %s: negative Rounds, Wait, Interval or MaxResponders", p.Link)
	case p.Sender.IsValid() && !p.Sender.Unmap().Is4():
		return o, fmt.Errorf("arpcheck: probe on %s: sender %s is not an IPv4 address", p.Link, p.Sender)
	}
	if o.to.IsZero() {
		o.to = Broadcast
	}
	if o.rounds == 0 {
		o.rounds = DefaultRounds
	}
	if o.wait == 0 {
		o.wait = DefaultWait
	}
	if o.maxResponders == 0 {
		o.maxResponders = DefaultMaxResponders
	}
	switch {
	case p.FastRounds && o.interval == 0:
		o.interval = DefaultInterval
	case !p.FastRounds:
		o.interval = max(o.interval, o.wait)
	}
	return o, nil
}
