package arpcheck

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sort"
)

// maxGiven is how many targets may be given, with all that are given more than
// once: without a limit a sequence without end would fill the memory or never
// end.
const maxGiven = 4 * MaxSweep

// gather reads the targets into a sorted list, which takes four bytes for each
// and is looked up without a map, and chooses the order in which they are asked.
func (s *sweep) gather(ctx context.Context, targets iter.Seq[netip.Addr]) error {
	for addr := range targets {
		if err := s.give(addr); err != nil {
			return err
		}
		if len(s.addrs)%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("not begun: %w", ctx.Err())
		}
	}
	slices.Sort(s.addrs)
	s.addrs = slices.Compact(s.addrs)
	if len(s.addrs) > MaxSweep {
		return fmt.Errorf("%w: %d targets are more than %d: sweep in parts", ErrBadTarget, len(s.addrs), MaxSweep)
	}
	s.left = len(s.addrs)
	s.controlAt = -1
	if s.Control.IsValid() && s.left > 0 {
		if err := s.addControl(); err != nil {
			return err
		}
	}
	s.targets = make([]target, len(s.addrs))
	s.order = make([]uint32, len(s.addrs))
	for i := range s.order {
		s.order[i] = uint32(i)
	}
	if s.config.Seed != 0 {
		rand.New(rand.NewPCG(s.config.Seed, 0)).Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	}
	if s.controlAt >= 0 { // first, so that it is settled before all others
		at := slices.Index(s.order, uint32(s.controlAt))
		copy(s.order[1:at+1], s.order[:at])
		s.order[0] = uint32(s.controlAt)
	}
	return nil
}

func (s *sweep) give(given netip.Addr) error {
	addr := given.Unmap()
	if err := checkTarget(addr); err != nil {
		return fmt.Errorf("target %s: %w", given, err)
	}
	if len(s.addrs) == maxGiven {
		return fmt.Errorf("%w: more than %d targets are given: sweep in parts", ErrBadTarget, maxGiven)
	}
	for _, p := range s.config.Exclude {
		if p.Contains(addr) {
			return nil
		}
	}
	s.addrs = append(s.addrs, number(addr))
	return nil
}

// addControl adds the control address to what is asked. It has a result only if
// it is a target too.
func (s *sweep) addControl() error {
	addr := s.Control.Unmap()
	if err := checkTarget(addr); err != nil {
		return fmt.Errorf("control address %s: %w", s.Control, err)
	}
	at, found := slices.BinarySearch(s.addrs, number(addr))
	if !found {
		s.addrs = slices.Insert(s.addrs, at, number(addr))
		s.controlOnly = true
	}
	s.controlAt = at
	s.control = &track{target: addr}
	return nil
}

func number(addr netip.Addr) uint32 {
	b := addr.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// find returns where an address is in the list, or -1. Mostly the targets are
// one range.
func (s *sweep) find(addr netip.Addr) int {
	n := number(addr)
	if i := int(n) - int(s.addrs[0]); i >= 0 && i < len(s.addrs) && s.addrs[i] == n {
		return i
	}
	if i, found := slices.BinarySearch(s.addrs, n); found {
		return i
	}
	return -1
}

// divider is a Host that knows the prefixes by which its routes differ, so that
// it need not be asked for the route to every single target.
type divider interface {
	// Divisions returns prefixes such as to make the routes to two addresses the
	// same unless a prefix holds one of them only.
	Divisions() ([]netip.Prefix, error)
}

// chooseSenders chooses the sender of each target as a probe does.
func (s *sweep) chooseSenders(ctx context.Context, ofLink []netip.Addr) error {
	if s.Sender.IsValid() && s.Sender.Unmap().Is4() {
		if i := s.find(s.Sender.Unmap()); i >= 0 {
			return s.chooseSender(&track{target: address(s.addrs[i])}, ofLink)
		}
	}
	next, err := s.cells()
	if err != nil {
		return err
	}
	for from := 0; from < len(s.addrs); {
		if ctx.Err() != nil {
			s.cut = true
			return nil
		}
		to := next(from)
		t := &track{target: address(s.addrs[from])}
		if err := s.chooseSender(t, ofLink); err != nil {
			return err
		}
		sender := s.senderIndex(t.sender)
		for i := from; i < to; i++ {
			s.targets[i].sender, s.targets[i].held = sender, t.held
		}
		from = to
	}
	if s.controlAt >= 0 && s.targets[s.controlAt].held {
		return fmt.Errorf("%w: the control address %s is this host's own, whose answers it cannot hear: choose another", ErrBadTarget, s.Control)
	}
	return nil
}

func (s *sweep) senderIndex(sender Sender) uint16 {
	if i := slices.Index(s.senders, sender); i >= 0 {
		return uint16(i)
	}
	s.senders = append(s.senders, sender)
	return uint16(len(s.senders) - 1)
}

// cells returns a function that, for the first target of a run that shares a
// route, returns the end of the run.
func (s *sweep) cells() (func(from int) int, error) {
	if s.Host == nil {
		return func(int) int { return len(s.addrs) }, nil
	}
	d, ok := s.Host.(divider)
	if !ok {
		return func(from int) int { return from + 1 }, nil
	}
	prefixes, err := d.Divisions()
	if err != nil {
		return nil, fmt.Errorf("read the routes: %w", err)
	}
	var edges []uint32 // where another run begins
	for _, p := range prefixes {
		if !p.Addr().Is4() {
			continue
		}
		first := number(p.Masked().Addr())
		edges = append(edges, first)
		if end := uint64(first) + 1<<(32-p.Bits()); end < 1<<32 {
			edges = append(edges, uint32(end))
		}
	}
	slices.Sort(edges)
	return func(from int) int {
		i := sort.Search(len(edges), func(i int) bool { return edges[i] > s.addrs[from] })
		if i == len(edges) {
			return len(s.addrs)
		}
		to, _ := slices.BinarySearch(s.addrs, edges[i])
		return to
	}, nil
}
