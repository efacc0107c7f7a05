package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Neighbour is an entry of a host's neighbour cache: the MAC to which the host
// sends what is for an address.
type Neighbour struct {
	Addr  netip.Addr     `json:"addr"`
	MAC   MAC            `json:"mac,omitzero"` // zero while the address is unresolved
	Link  string         `json:"link"`         // the interface's name
	State NeighbourState `json:"state,omitempty"`
}

// NeighbourState says how far an entry can be trusted. The zero NeighbourState
// means that it was not observed.
type NeighbourState string

// Neighbour states, as ip-neighbour(8) names them, in lower case.
const (
	NeighbourReachable  NeighbourState = "reachable"  // confirmed lately
	NeighbourStale      NeighbourState = "stale"      // used until it is found wrong
	NeighbourDelay      NeighbourState = "delay"      // in use, about to be checked
	NeighbourProbe      NeighbourState = "probe"      // being checked by unicast requests
	NeighbourIncomplete NeighbourState = "incomplete" // asked for, not answered yet
	NeighbourFailed     NeighbourState = "failed"     // asked for in vain
	NeighbourPermanent  NeighbourState = "permanent"  // set by hand
	NeighbourNoARP      NeighbourState = "noarp"      // needs no resolution
)

// NeighbourMatch says what an entry is worth to somebody who knows which MACs
// are right. The zero NeighbourMatch means that it cannot be told.
type NeighbourMatch string

// Neighbour matches.
const (
	NeighbourFresh      NeighbourMatch = "fresh"       // holds an expected MAC
	NeighbourStaleWrong NeighbourMatch = "stale-wrong" // holds another one: what is sent goes to the wrong host
	NeighbourMissing    NeighbourMatch = "missing"     // there is no entry, or it has no MAC: the next packet makes the kernel ask
	// NeighbourByHand is a permanent entry, with whatever MAC: no announcement and
	// no fail-over changes it.
	NeighbourByHand NeighbourMatch = "permanent"
)

// Match compares an entry with the MACs that are right, all of the announcer's
// host. The zero Neighbour is Missing; without an expected MAC an entry is the
// zero NeighbourMatch unless it is Missing or permanent.
func (n Neighbour) Match(expected ...MAC) NeighbourMatch {
	switch {
	case n.MAC.IsZero() || n.State == NeighbourIncomplete || n.State == NeighbourFailed:
		return NeighbourMissing
	case n.State == NeighbourPermanent:
		return NeighbourByHand
	case len(expected) == 0:
		return ""
	case slices.Contains(expected, n.MAC):
		return NeighbourFresh
	}
	return NeighbourStaleWrong
}

// NeighbourEvent is a change of a neighbour cache.
type NeighbourEvent struct {
	Type NeighbourEventType `json:"type"`
	At   time.Time          `json:"at"`
	// Entries are all there are; of NeighboursRead alone. Empty is none.
	Entries []Neighbour `json:"entries,omitzero"`
	// Neighbour is the entry as it is now, or was last.
	Neighbour Neighbour `json:"neighbour,omitzero"`
	Before    MAC       `json:"before,omitzero"` // the entry's MAC before, if it was another
}

// NeighbourEventType says what happened to a neighbour cache.
type NeighbourEventType string

// Neighbour events.
const (
	// NeighboursRead comes first, and again when changes came faster than they
	// were taken.
	NeighboursRead   NeighbourEventType = "read"
	NeighbourChanged NeighbourEventType = "changed" // an entry is new or has another MAC or state
	NeighbourGone    NeighbourEventType = "gone"    // an entry was removed
)

// ErrBusy is the error of a second Watch of a Neighbours.
var ErrBusy = errors.New("a Watch is running on it: open another one")

// Neighbours is the IPv4 neighbour cache of the network namespace of the thread
// that opened it, wherever it is used. Only Forget changes anything.
//
// Its methods may be called from several goroutines. One Watch can run at a time,
// beside which the other methods go on working.
type Neighbours struct {
	impl neighbours

	mu       sync.Mutex // guards what follows, and is held while the kernel is asked
	watching bool
	closed   bool
}

// OpenNeighbours returns the neighbour cache of the calling thread's network
// namespace. The caller must close it. No privilege is needed. On systems other
// than Linux the error matches errors.ErrUnsupported.
func OpenNeighbours() (*Neighbours, error) {
	impl, err := openNeighbours()
	if err != nil {
		return nil, fmt.Errorf("arpcheck: open the neighbour cache: %w", err)
	}
	return &Neighbours{impl: impl}, nil
}

// Close frees the sockets and ends a Watch. Closing again does nothing.
func (n *Neighbours) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	return n.impl.close()
}

// List returns the entries of an interface, or of all if link is empty, sorted by
// address. It is never nil without an error. The error matches fs.ErrNotExist
// if there is no such interface, and fs.ErrClosed after Close. If entries kept
// changing while they were read, the error comes with those that were seen.
func (n *Neighbours) List(link string) ([]Neighbour, error) {
	var list []Neighbour
	err := n.use("list the neighbours of "+linkOrAll(link), func() (err error) {
		list, err = n.impl.list(link)
		return err
	})
	return list, err
}

// Get returns the entry that an interface has for an address. The error matches
// fs.ErrNotExist if there is none or no such interface, ErrBadTarget for what is
// no IPv4 address, and fs.ErrClosed after Close.
func (n *Neighbours) Get(link string, addr netip.Addr) (Neighbour, error) {
	addr = addr.Unmap()
	var found Neighbour
	err := n.use(fmt.Sprintf("look up neighbour %s on %s", addr, link), func() (err error) {
		found, err = n.entry(link, addr)
		return err
	})
	return found, err
}

// Forget removes the entry that an interface has for an address, of whatever
// state, as ageing does: the next packet makes the kernel ask again. It needs
// CAP_NET_ADMIN. The error matches fs.ErrNotExist if there is no entry or no such
// interface, fs.ErrPermission, ErrBadTarget, and fs.ErrClosed after Close.
func (n *Neighbours) Forget(link string, addr netip.Addr) error {
	addr = addr.Unmap()
	return n.use(fmt.Sprintf("forget neighbour %s on %s", addr, link), func() error {
		if _, err := n.entry(link, addr); err != nil {
			return err
		}
		return n.impl.forget(link, addr)
	})
}

// entry is called with mu held.
func (n *Neighbours) entry(link string, addr netip.Addr) (Neighbour, error) {
	if !addr.Is4() {
		return Neighbour{}, fmt.Errorf("%w: the cache is that of ARP, which is for IPv4", ErrBadTarget)
	}
	if link == "" {
		return Neighbour{}, fmt.Errorf("an entry is an interface's, and none was named: %w", fs.ErrInvalid)
	}
	list, err := n.impl.list(link)
	for _, entry := range list {
		if entry.Addr == addr {
			return entry, nil
		}
	}
	if err != nil {
		return Neighbour{}, err
	}
	return Neighbour{}, fmt.Errorf("there is no entry: %w", fs.ErrNotExist)
}

// Watch returns the entries of an interface, or of all if link is empty, and then
// what becomes of them. The interface need not be there yet.
//
// The error comes once and last: ctx's when it is done, ErrBusy during another
// Watch, one that matches fs.ErrClosed after Close, or the kernel's. If the
// loop's body is slow, changes are lost and NeighboursRead follows.
func (n *Neighbours) Watch(ctx context.Context, link string) iter.Seq2[NeighbourEvent, error] {
	return func(yield func(NeighbourEvent, error) bool) {
		err := n.begin()
		if err == nil {
			defer n.end()
			w := neighbourWatch{cache: n, link: link, yield: yield}
			err = w.run(ctx)
			if err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		yield(NeighbourEvent{}, fmt.Errorf("arpcheck: watch the neighbours of %s: %w", linkOrAll(link), err))
	}
}

func (n *Neighbours) begin() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return fs.ErrClosed
	case n.watching:
		return ErrBusy
	}
	n.watching = true
	return nil
}

func (n *Neighbours) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watching = false
}

// use calls f unless the sockets are closed: netlink would open new ones, in
// whatever namespace the calling thread happens to be.
func (n *Neighbours) use(what string, f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := fs.ErrClosed
	if !n.closed {
		err = f()
	}
	if err != nil {
		return fmt.Errorf("arpcheck: %s: %w", what, err)
	}
	return nil
}

func linkOrAll(link string) string {
	if link == "" {
		return "all interfaces"
	}
	return link
}
