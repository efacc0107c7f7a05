package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"time"
)

// Defaults of WatchOptions.
const (
	// DefaultWatchEvery lets MetalLB's ten gratuitous frames, sent within 5 s, be
	// two events.
	DefaultWatchEvery = 10 * time.Second
	// DefaultFlipWindow is as long as a client's entry may take to be checked, once
	// in 30 to 60 s, so that a client that is torn between two hosts is seen.
	DefaultFlipWindow = time.Minute
	// DefaultConflictWindow is more than two answers to one question are apart: 0.95
	// s of proxy ARP were measured.
	DefaultConflictWindow = time.Second
	// DefaultMaxEvents is more than one VIP's fail-over gives, of some 300 VIPs.
	DefaultMaxEvents = 1000
)

// ClaimEventKind says what a Watch has seen.
type ClaimEventKind string

// Kinds of events. One frame can be several: an announcement by another host is
// ClaimGratuitous and ClaimChanged.
const (
	ClaimNew     ClaimEventKind = "new"     // a MAC claims an address that nobody had claimed, or that was lost
	ClaimChanged ClaimEventKind = "changed" // another MAC claims it, as at a fail-over
	// ClaimFlipFlop: a MAC claims it again after another one has, within FlipWindow.
	ClaimFlipFlop ClaimEventKind = "flip-flop"
	// ClaimConflict: another MAC claims it, not by an announcement as at a fail-over,
	// within ConflictWindow of a claim by the MAC before: both answer.
	ClaimConflict   ClaimEventKind = "conflict"
	ClaimGratuitous ClaimEventKind = "gratuitous" // an announcement or a gratuitous reply
	// ClaimInRequest: the address is the sender of a question for another one. With
	// arp_announce below 2 a kernel does so with a VIP it merely holds.
	ClaimInRequest ClaimEventKind = "vip-in-request-sender"
	// ClaimBogon: the MAC that is claimed is zero, broadcast or multicast, which is no
	// station's. It is not taken for a claim otherwise.
	ClaimBogon ClaimEventKind = "bogon"
	// ClaimLost: this host has asked for it three times without anybody's claiming it,
	// or nobody has claimed it for LostAfter.
	ClaimLost ClaimEventKind = "lost"

	// WatchLinkDown, WatchLinkUp and WatchDropped say when a Watch was blind. They
	// have no Addr.
	WatchLinkDown ClaimEventKind = "link-down"
	WatchLinkUp   ClaimEventKind = "link-up"
	WatchDropped  ClaimEventKind = "dropped" // Count frames, by the kernel
)

// WatchOptions say what a Watch looks for.
type WatchOptions struct {
	// Addrs are the addresses of interest, such as VIPs: at least 1 and at most 65,536.
	Addrs []netip.Addr
	// Every is the time in which an event is told once: the first of its kind,
	// address and MAC at once, and those that follow within Every together at its end.
	// Default DefaultWatchEvery, 10 s; at least a second.
	Every time.Duration
	// MaxEvents is how many events of one kind are told within Every; the rest is
	// counted in ClaimEvent.Suppressed. Default DefaultMaxEvents, 1,000.
	MaxEvents int
	// FlipWindow is how long a MAC is remembered for ClaimFlipFlop; default
	// DefaultFlipWindow, 1 min.
	FlipWindow time.Duration
	// ConflictWindow is how close two claims are that are a ClaimConflict; default
	// DefaultConflictWindow, 1 s.
	ConflictWindow time.Duration
	// LostAfter is how long nobody claims an address that then is ClaimLost. By
	// default 0: never for that reason, since on a quiet segment nobody needs to.
	LostAfter time.Duration
}

// ClaimEvent is what a Watch has seen.
type ClaimEvent struct {
	Kind      ClaimEventKind `json:"kind"`
	At        time.Time      `json:"at"`                // of the frame, or the last of them
	Vantage   string         `json:"vantage,omitempty"` // Prober.Vantage
	Interface string         `json:"interface"`         // its name now
	Addr      netip.Addr     `json:"addr,omitzero"`     // the address claimed
	MAC       MAC            `json:"mac,omitzero"`      // by whom; of ClaimLost zero
	Before    MAC            `json:"before,omitzero"`   // who claimed it before, if another did
	Frame     Kind           `json:"frame,omitempty"`   // what kind of frame the claim was
	Source    MAC            `json:"source,omitzero"`   // the Ethernet source, if it is not MAC
	Target    netip.Addr     `json:"target,omitzero"`   // the frame's ARP target
	VLAN      uint16         `json:"vlan,omitempty"`    // the frame's VLAN ID; 0 if untagged
	Outgoing  bool           `json:"outgoing,omitempty"`
	// Count is how many occurrences this event stands for; of WatchDropped, frames.
	Count int `json:"count"`
	// Suppressed counts the events of this kind that were not told for MaxEvents
	// since the last one that was.
	Suppressed int `json:"suppressed,omitempty"`
}

// Watch listens to who claims addresses on the segment, and sends nothing. A claim
// is any ARP frame with the address as sender. On a switch a host sees what is
// sent to it or to everybody, and what it sends itself: claims in announcements,
// in requests, and in answers to this host.
//
// It goes on while the interface is down and up again or is renamed. What it keeps
// is bounded, whatever the segment sends. Where the Conn is a socket, a filter lets
// only frames pass that name one of the addresses. Events come up to 80 ms late,
// since frames are read together.
//
// The error comes once and last: ctx's when it is done, one that matches
// ErrBadTarget for Addrs that cannot be watched, ErrLinkDown if the interface is
// gone, so that another Prober must be opened, net.ErrClosed after Close, or the
// Conn's. Probes on the same Prober wait until the Watch ends, and so does Close:
// leave the loop rather than call them in its body, or use a second Prober.
func (p *Prober) Watch(ctx context.Context, o WatchOptions) iter.Seq2[ClaimEvent, error] {
	return func(yield func(ClaimEvent, error) bool) {
		if err := p.watch(ctx, o, yield); err != nil {
			yield(ClaimEvent{}, fmt.Errorf("arpcheck: watch on %s: %w", p.Link, err))
		}
	}
}

// watch returns nil if the loop was left.
func (p *Prober) watch(ctx context.Context, o WatchOptions, yield func(ClaimEvent, error) bool) error {
	if err := o.fill(); err != nil {
		return err
	}
	if _, err := p.options(); err != nil {
		return err
	}
	if err := p.takeTurn(ctx); err != nil {
		return err
	}
	defer p.endTurn()
	restore, err := p.filterAddrs(o.Addrs...)
	if err != nil {
		return err
	}
	defer restore()
	w := newWatcher(p, o, yield)
	defer w.listen.wakeWhenDone(ctx)()
	err = w.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

// addrFilter is a Conn that can keep frames from its queue. Others are read in full.
type addrFilter interface {
	// filterAddrs lets only ARP frames pass that name one of the addresses, and
	// perhaps some others.
	filterAddrs(addrs []netip.Addr) error
	// filterAll lets all ARP frames pass. It fails only if the Conn is closed.
	filterAll()
}

// filterAddrs keeps from the queue what does not name one of the addresses, where
// the Conn can do that, until the function that it returns is called.
func (p *Prober) filterAddrs(addrs ...netip.Addr) (restore func(), err error) {
	f, ok := p.Conn.(addrFilter)
	if !ok {
		return func() {}, nil
	}
	if err := f.filterAddrs(addrs); err != nil {
		return nil, fmt.Errorf("attach the socket filter: %w", err)
	}
	return f.filterAll, nil
}

// linkNamer is a Host that knows the interface's name of now.
type linkNamer interface{ linkName() (string, error) }

const maxWatched = 1 << 16

// fill checks the options and fills in their defaults.
func (o *WatchOptions) fill() error {
	switch {
	case len(o.Addrs) == 0:
		return fmt.Errorf("%w: no address was given", ErrBadTarget)
	case len(o.Addrs) > maxWatched:
		return fmt.Errorf("%w: %d addresses were given, and at most %d can be watched", ErrBadTarget, len(o.Addrs), maxWatched)
	case o.Every < 0 || o.MaxEvents < 0 || o.FlipWindow < 0 || o.ConflictWindow < 0 || o.LostAfter < 0:
		return errors.New("negative Every, MaxEvents, FlipWindow, ConflictWindow or LostAfter")
	}
	for _, a := range o.Addrs {
		if err := checkTarget(a.Unmap()); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	o.Every = max(orDefault(o.Every, DefaultWatchEvery), time.Second)
	o.MaxEvents = orDefault(o.MaxEvents, DefaultMaxEvents)
	o.FlipWindow = orDefault(o.FlipWindow, DefaultFlipWindow)
	o.ConflictWindow = orDefault(o.ConflictWindow, DefaultConflictWindow)
	return nil
}

func orDefault[T comparable](value, def T) T {
	var zero T
	if value == zero {
		return def
	}
	return value
}
