package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// maxRecords bounds the responders kept in one pass, over all its targets.
const maxRecords = 1 << 16

// pass is one run of the engine: every target is asked in each round, and all
// that is received meanwhile is accounted for. It runs in one goroutine.
type pass struct {
	options
	mac     MAC      // the prober's own
	vlan    uint16   // of frames that are of the segment; 0 if they are untagged
	tracks  []*track // in the order in which they are asked
	byAddr  map[netip.Addr]*track
	control *track // also in tracks
	records int    // responders kept, over all tracks
	late    []MAC  // hosts that answered late
	frames  []Frame
	outbox  [][]byte

	began          time.Time // when the pass began: earlier frames answer nothing of it
	started, ended time.Time // first request, end of the last window
	baseDrops      uint64
	quality        Quality // what is counted for the whole pass
	cut            bool    // ctx ended it
	linkDown       bool
}

func newPass(o options, targets []netip.Addr) (*pass, error) {
	s := &pass{options: o, mac: o.MAC, byAddr: make(map[netip.Addr]*track), frames: make([]Frame, receiveBatch)}
	for _, target := range targets {
		if s.byAddr[target.Unmap()] != nil {
			return nil, fmt.Errorf("arpcheck: probe %s on %s: %w: it is given twice", target, o.Link, ErrBadTarget)
		}
		if err := s.add(target); err != nil {
			return nil, err
		}
	}
	if o.Control.IsValid() {
		if s.byAddr[o.Control.Unmap()] == nil {
			if err := s.add(o.Control); err != nil {
				return nil, fmt.Errorf("%w (it is the control address)", err)
			}
		}
		s.control = s.byAddr[o.Control.Unmap()]
	}
	return s, nil
}

func (s *pass) add(target netip.Addr) error {
	addr := target.Unmap()
	if err := checkTarget(addr); err != nil {
		return fmt.Errorf("arpcheck: probe %s on %s: %w", target, s.Link, err)
	}
	t := &track{target: addr}
	s.tracks = append(s.tracks, t)
	s.byAddr[addr] = t
	return nil
}

func checkTarget(addr netip.Addr) error {
	switch {
	case addr.Is6():
		return fmt.Errorf("%w: ARP is for IPv4; IPv6 neighbours are found by NDP, in which strictARP has no part", ErrBadTarget)
	case !addr.Is4():
		return fmt.Errorf("%w: no address was given", ErrBadTarget)
	case addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%w: it is not the address of one host on a link", ErrBadTarget)
	}
	return nil
}

// run runs the pass. Its error is about the Conn or the Host.
func (s *pass) run(ctx context.Context) error {
	defer s.wakeWhenDone(ctx)()
	err := s.prepare(ctx)
	if err == nil {
		err = s.runRounds(ctx)
	}
	s.leaveBehind(err != nil)
	if err != nil {
		return err
	}
	_, err = s.linkState()
	return err
}

func (s *pass) runRounds(ctx context.Context) error {
	for round := 1; round <= s.rounds && !s.over(); round++ {
		first, last, err := s.ask(ctx)
		if err != nil {
			return err
		}
		until := later(first.Add(s.interval), last.Add(s.wait))
		if s.FastRounds && round < s.rounds {
			until = first.Add(s.interval)
		}
		if !s.linkDown {
			err = s.listen(ctx, until)
		}
		if err != nil {
			return err
		}
		s.endRound()
	}
	s.ended = time.Now()
	drops, err := s.Conn.Drops()
	if err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	s.quality.Drops = drops - s.baseDrops
	s.lastDrops = drops
	return nil
}

func (s *pass) over() bool { return s.cut || s.linkDown }

// prepare learns the state of the interface, chooses senders, and reads what
// waits from before the pass.
func (s *pass) prepare(ctx context.Context) error {
	link, err := s.linkState()
	if err != nil {
		return err
	}
	if !link.MAC.IsZero() {
		s.mac = link.MAC
	}
	for _, t := range s.tracks {
		if ctx.Err() != nil {
			s.cut = true
		}
		if s.cut {
			break
		}
		if err := s.chooseSender(t, link.Addrs); err != nil {
			return err
		}
		request := arpwire.Request(s.mac, t.sender.Addr, t.target)
		request.Dst = s.to
		t.frame = request.Append(nil, 0)
	}
	if s.control != nil && s.control.held {
		return fmt.Errorf("%w: the control address %s is this host's own, whose answers it cannot hear: choose another", ErrBadTarget, s.control.target)
	}
	s.began = time.Now()
	s.recall()
	down := s.linkDown
	if err := s.drain(); err != nil {
		return err
	}
	s.linkDown = down // that it was down before is old news
	if s.baseDrops, err = s.Conn.Drops(); err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	if s.baseDrops > s.lastDrops {
		for _, t := range s.tracks {
			t.before.others += unknownRequests
		}
	}
	return nil
}

// unknownRequests stands for requests of others that were not seen, such as those
// among frames that were dropped before the pass: more than will be answered.
const unknownRequests = 1 << 20

// recall takes over what the pass before has left.
func (s *pass) recall() {
	if s.began.Sub(s.leftover.at) > s.wait {
		return
	}
	for _, t := range s.tracks {
		if left := s.leftover.asked[t.target]; left.sender == t.sender.Addr {
			t.recalled = left.own
			t.before.own += left.own
			t.before.others += left.others
		}
	}
}

// linkState notes if the interface is down. Without a Host it is not known.
func (s *pass) linkState() (LinkState, error) {
	if s.Host == nil {
		return LinkState{Up: true}, nil
	}
	link, err := s.Host.Link()
	if err != nil && !errors.Is(err, ErrLinkDown) {
		return link, fmt.Errorf("read the state of the interface: %w", err)
	}
	if err != nil || !link.Up {
		s.linkDown = true
	}
	return link, nil
}

// chooseSender takes the address that the kernel would use, because a node may
// answer it differently from others (rp_filter, arp_filter, proxy ARP).
func (s *pass) chooseSender(t *track, ofLink []netip.Addr) error {
	var route Route
	if s.Host != nil {
		var err error
		if route, err = s.Host.Route(t.target); err != nil {
			return fmt.Errorf("look up the route to %s: %w", t.target, err)
		}
	}
	t.held = route.Local
	switch {
	case s.Sender.IsValid() && s.Sender.Unmap() == t.target:
		return fmt.Errorf("%w: to ask for %s under itself would announce it: choose another Sender", ErrBadTarget, t.target)
	case s.Sender.IsValid():
		t.sender = Sender{s.Sender.Unmap(), SenderGiven}
		return nil
	case route.Source.Is4() && route.Source != t.target:
		t.sender = Sender{route.Source, SenderRoute}
		return nil
	}
	for _, addr := range ofLink {
		// Asking under the target's own address would be an announcement.
		if addr.Is4() && addr != t.target {
			t.sender = Sender{addr, SenderInterface}
			return nil
		}
	}
	t.sender = Sender{netip.IPv4Unspecified(), SenderUnspecified}
	return nil
}

func (s *pass) endRound() {
	for _, t := range s.tracks {
		t.endRound(!s.over(), time.Time{})
	}
}

// leaveBehind notes what the next pass has to know.
func (s *pass) leaveBehind(failed bool) {
	now := time.Now()
	s.leftover = leftover{at: now, asked: make(map[netip.Addr]unanswered)}
	for _, t := range s.tracks {
		left := unanswered{sender: t.sender.Addr, others: t.othersUnanswered()}
		if s.over() || failed {
			left.own = max(t.before.own, t.asked.own)
			if now.Sub(s.began) <= s.wait {
				left.own += t.recalled
			}
		}
		if left.own > 0 || left.others > 0 {
			s.leftover.asked[t.target] = left
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
