package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// Times of RFC 5227, section 1.1, and the most that a check takes by them.
const (
	probeWait    = time.Second // PROBE_WAIT: the first probe is sent after a random part of it
	probeNum     = 3           // PROBE_NUM
	probeMin     = time.Second // PROBE_MIN: from one probe to the next, at least
	probeMax     = 2 * time.Second
	announceWait = 2 * time.Second // ANNOUNCE_WAIT: after the last probe
	// DefaultFreeTime is what a check takes at most by the RFC's times.
	DefaultFreeTime = probeWait + (probeNum-1)*probeMax + announceWait
)

// FreeOptions say how CheckFree takes its time.
type FreeOptions struct {
	// Time is the most that the check takes; default DefaultFreeTime, 7 s. All of
	// RFC 5227's times are scaled by it. A second is enough on a local network
	// without power saving; hosts that are slower than that are missed.
	Time time.Duration
}

// FreeState says whether an address is free. The zero FreeState means that it was
// not checked.
type FreeState string

// States of an address.
const (
	Free FreeState = "free" // nobody uses it
	Used FreeState = "used" // somebody does: Users
	// Contested says that nobody uses it, but another host is probing for it at the
	// same time, to take it: Contenders. The first of the two to send may find it
	// free.
	Contested   FreeState = "contested"
	FreeUnknown FreeState = "unknown" // Reasons says why
)

// FreeResult is what a check for a free address has found.
type FreeResult struct {
	Target    netip.Addr `json:"target"`
	State     FreeState  `json:"state"`
	Reasons   []Reason   `json:"reasons,omitempty"`
	Vantage   string     `json:"vantage,omitempty"` // Prober.Vantage
	Interface string     `json:"interface"`
	MAC       MAC        `json:"mac"` // the prober's own
	Started   time.Time  `json:"started"`
	Ended     time.Time  `json:"ended"`
	Probes    int        `json:"probes"` // sent; fewer than 3 if a conflict came first

	Users      []Claim `json:"users,omitempty"`      // who used it as ARP sender; at most 64
	Contenders []Claim `json:"contenders,omitempty"` // who else probed for it; at most 64
	Excess     int     `json:"excess,omitempty"`     // frames of MACs beyond those
	Drops      uint64  `json:"drops"`                // frames the kernel dropped
}

// CheckFree finds out whether an address is free, as a host does before it uses
// one (RFC 5227, section 2.1.1): it sends three requests from 0.0.0.0 and listens
// for whoever uses the address or probes for it, too. Nothing is claimed. It is
// meant for the upkeep of address pools, and for addresses that somebody may want
// to give out.
//
// Free is what the wire says. Such a probe is never answered by proxy ARP, so an
// address behind a router that answers for it counts as free: Probe with a sender
// sees that. Nor is it answered by nodes that merely hold a VIP and are strict. If
// the prober's own host has the address, it is Used, with HeldHere as reason and the
// prober's MAC as a user by no frames: a host does not hear its own answer.
//
// After a conflict nothing more is sent, and who else answers is listened for as
// long as PROBE_MIN is scaled to. What goes wrong on the segment, and a ctx that
// ends, are in the result, which is then FreeUnknown unless the address is used.
// The error is about the call itself, as that of ProbeAll.
func (p *Prober) CheckFree(ctx context.Context, target netip.Addr, o FreeOptions) (FreeResult, error) {
	fail := func(err error) (FreeResult, error) {
		return FreeResult{}, fmt.Errorf("arpcheck: check whether %s is free on %s: %w", target, p.Link, err)
	}
	target = target.Unmap()
	if err := checkTarget(target); err != nil {
		return fail(err)
	}
	if _, err := p.options(); err != nil {
		return FreeResult{}, err
	}
	if o.Time < 0 {
		return fail(errors.New("negative Time"))
	}
	if o.Time == 0 {
		o.Time = DefaultFreeTime
	}
	if err := p.takeTurn(ctx); err != nil {
		return fail(err)
	}
	defer p.endTurn()
	c := &freeCheck{Prober: p, time: o.Time, result: FreeResult{
		Target: target, Vantage: p.Vantage, Interface: p.Link, MAC: p.MAC, Started: time.Now(),
	}}
	if err := c.run(ctx); err != nil {
		return fail(err)
	}
	return c.result, nil
}

// freeCheck is one run of CheckFree.
type freeCheck struct {
	*Prober
	time   time.Duration
	result FreeResult
	drops  uint64 // before
	users  track  // keeps claims by MAC and kind, boundedly
	others track
	held   bool // by this host
	ended  bool // the link is down, or ctx is done
}

// scaled is one of the RFC's times, or a random one between two.
func (c *freeCheck) scaled(from, to time.Duration) time.Duration {
	d := from
	if to > from {
		d += rand.N(to - from + 1)
	}
	return time.Duration(float64(d) * float64(c.time) / float64(DefaultFreeTime))
}

func (c *freeCheck) run(ctx context.Context) error {
	l := listener{conn: c.Conn}
	defer l.wakeWhenDone(ctx)()
	err := c.prepare(&l)
	if err == nil && !c.ended {
		err = c.probe(ctx, &l)
	}
	if err == nil {
		err = c.conclude()
	}
	return err
}

// prepare looks at the host, and forgets what waits.
func (c *freeCheck) prepare(l *listener) (err error) {
	if c.Host != nil {
		link, err := c.Host.Link()
		switch {
		case err != nil && !errors.Is(err, ErrLinkDown):
			return fmt.Errorf("read the state of the interface: %w", err)
		case err != nil || !link.Up:
			c.end(LinkDown)
			return nil
		case !link.MAC.IsZero():
			c.result.MAC = link.MAC
		}
		route, err := c.Host.Route(c.result.Target)
		if err != nil {
			return fmt.Errorf("look up the route: %w", err)
		}
		c.held = route.Local
	}
	if err := l.drain(func(*Frame) {}); err != nil && !errors.Is(err, ErrLinkDown) {
		return err
	}
	if c.drops, err = c.Conn.Drops(); err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	return nil
}

func (c *freeCheck) end(why Reason) {
	c.ended = true
	c.result.Reasons = append(c.result.Reasons, why)
}

// probe is section 2.1.1's procedure.
func (c *freeCheck) probe(ctx context.Context, l *listener) error {
	frame := arpwire.Request(c.result.MAC, netip.IPv4Unspecified(), c.result.Target).Append(nil, 0)
	if err := c.listen(ctx, l, c.scaled(0, probeWait), c.conflict); err != nil {
		return err
	}
	for n := 1; n <= probeNum && !c.ended && !c.conflict(); n++ {
		if err := c.send(frame); err != nil {
			return err
		}
		d := c.scaled(probeMin, probeMax)
		if n == probeNum {
			d = c.scaled(announceWait, announceWait)
		}
		if err := c.listen(ctx, l, d, c.conflict); err != nil {
			return err
		}
	}
	if !c.conflict() {
		return nil
	}
	return c.listen(ctx, l, c.scaled(probeMin, probeMin), func() bool { return false }) // who else?
}

func (c *freeCheck) conflict() bool { return len(c.users.claims) > 0 || len(c.others.claims) > 0 }

func (c *freeCheck) send(frame []byte) error {
	n, err := c.Conn.Send([][]byte{frame})
	switch {
	case errors.Is(err, ErrLinkDown):
		c.end(LinkDown)
		return nil
	case err != nil:
		return fmt.Errorf("send a probe: %w", err)
	case n == 0:
		c.end(NotSent)
	}
	c.result.Probes += n
	return nil
}

// listen ends early if it is enough.
func (c *freeCheck) listen(ctx context.Context, l *listener, d time.Duration, enough func() bool) error {
	if c.ended {
		return nil
	}
	for until := time.Now().Add(d); !enough(); {
		err := l.receive(ctx, until, c.frame)
		switch {
		case errors.Is(err, ErrLinkDown):
			c.end(LinkDown)
			return nil
		case ctx.Err() != nil:
			c.end(CutShort)
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// frame looks for a conflict. Frames of our own MAC are this host's, which may be
// reflected.
func (c *freeCheck) frame(f *Frame) {
	p, err := arpwire.Parse(f.Data)
	if err != nil || f.VLAN != 0 || p.VLAN != 0 || MAC(p.SenderMAC) == c.result.MAC {
		return
	}
	switch kind := kindOf(p); {
	case kind == "":
	case p.Sender == c.result.Target:
		c.users.claim(p.SenderMAC, kind, f.At)
	case kind == ProbeRequest && p.Target == c.result.Target:
		c.others.claim(p.SenderMAC, kind, f.At)
	}
}

func (c *freeCheck) conclude() error {
	drops, err := c.Conn.Drops()
	if err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	r := &c.result
	r.Ended = time.Now()
	if r.Drops = drops - c.drops; r.Drops > 0 {
		r.Reasons = append(r.Reasons, KernelDrops)
	}
	c.lastDrops = drops
	if c.held {
		r.Reasons = append(r.Reasons, HeldHere)
		c.users.claims = append([]Claim{{MAC: r.MAC, First: r.Started, Last: r.Ended}}, c.users.claims...)
	}
	r.Users, r.Contenders, r.Excess = c.users.claims, c.others.claims, c.users.excessClaims+c.others.excessClaims
	switch {
	case len(r.Users) > 0:
		r.State = Used
	case len(r.Contenders) > 0:
		r.State = Contested
	case len(r.Reasons) > 0:
		r.State = FreeUnknown
	default:
		r.State = Free
	}
	return nil
}
