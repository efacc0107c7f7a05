package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// maxSuspects is how many MACs are kept that have answered late once.
	maxSuspects = 64
	// maxOdd is for how many targets others' requests and claims are kept.
	maxOdd = 1 << 12
)

// breather is how long many replies that are to come are left to gather: behind a
// slow port they come one by one, and to wake up for each keeps a processor busy.
const breather = 300 * time.Microsecond

// sleep waits for frames, until a time or until ctx ends.
func (s *sweep) sleep(ctx context.Context, until time.Duration) error {
	if s.window.busy() {
		time.Sleep(breather)
		return s.drainAll()
	}
	if err := s.setDeadline(s.began.Add(until)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		s.cut = true
		return s.drainAll()
	}
	_, err := s.take()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return err
}

// drainAll accounts for what waits to be read. However many frames come
// meanwhile, all that had come before are among as many as the buffer holds.
func (s *sweep) drainAll() error {
	if err := s.setDeadline(longAgo); err != nil {
		return err
	}
	for seen := 0; seen <= max(s.capacity, maxDrain); {
		n, err := s.take()
		seen += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		case s.linkDown || n < len(s.frames): // no more waited
			return nil
		}
	}
	return nil
}

// take accounts for the frames of one Receive.
func (s *sweep) take() (int, error) {
	n, err := s.Conn.Receive(s.frames)
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	for i := range s.frames[:n] {
		s.hear(&s.frames[i])
	}
	if errors.Is(err, ErrLinkDown) {
		s.linkDown = true
		return n, nil
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("receive: %w", err)
	}
	return n, err
}

// countDrops slows down if frames were dropped; who was asked meanwhile is asked again.
func (s *sweep) countDrops() error {
	drops, err := s.Conn.Drops()
	if err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	if drops -= s.baseDrops; drops > s.drops {
		s.drops = drops
		s.window.dropped()
	}
	return nil
}

// hear decides what a frame is to the sweep.
func (s *sweep) hear(f *Frame) {
	p, err := arpwire.Parse(f.Data)
	kind := Kind("")
	if err == nil {
		kind = kindOf(p)
	}
	if kind == Reply && f.VLAN == 0 && p.VLAN == s.vlan && !s.started.IsZero() && !f.At.Before(s.started) &&
		(f.Type == ToHost || f.Type != ToOther && f.Type != Outgoing && MAC(p.TargetMAC) == s.mac) {
		i := s.find(p.Sender)
		if i >= 0 && p.Target == s.senders[s.targets[i].sender].Addr {
			s.answers(i, f, p)
			return
		}
	}
	if kind != "" && len(s.senders) > 0 {
		s.keep(p.Sender)
		if f.Type == Outgoing {
			s.keep(p.Target)
		}
	}
	s.parsed(f, p, kind)
}

// keep makes an account of what others do with a target.
func (s *sweep) keep(addr netip.Addr) {
	i := s.find(addr)
	if i < 0 || s.byAddr[addr] != nil || s.targets[i].settled {
		return
	}
	if len(s.byAddr) == maxOdd {
		s.unknown = true
		return
	}
	s.byAddr[addr] = &track{target: addr, sender: s.senders[s.targets[i].sender]}
}

// answers records a reply.
func (s *sweep) answers(i int, f *Frame, p arpwire.Packet) {
	t := &s.targets[i]
	if t.settled {
		return
	}
	s.progress.Replies++
	since := f.At.Sub(s.began)
	late := t.requests > 0 && since-t.last > lateAnswer && s.isLate(i, p.SenderMAC)
	at := s.pairs.find(t, p.SenderMAC)
	if at == 0 {
		if !s.newPair(i, p.SenderMAC) {
			t.excess++
			return
		}
		at = t.head
		t.news = t.news || !late // late hosts are asked by themselves
	}
	s.pairs.reply(at, f, p, since)
	r := &s.pairs.all[at]
	if !t.answered && t.requests > 0 {
		t.answered = true
		r.won = t.requests == 1
	}
	if t.requests == 1 && t.solo == 0 && r.replies == 1 && since >= t.asked {
		r.rtt = since - t.asked
		s.window.rtt(r.rtt)
	}
	s.inFlight(t)
}

func (s *sweep) newPair(i int, mac MAC) bool {
	t := &s.targets[i]
	if int(t.count) >= s.maxResponders || !s.pairs.add(t, mac) {
		return false
	}
	s.most = max(s.most, int(t.count))
	if i == s.controlAt && len(s.control.responders) == 0 {
		s.control.responders = make([]responder, 1)
	}
	s.progress.Pairs++
	return true
}

// isLate notes a host that answers later than any but by proxy. It has to do so
// for two targets: a host that loses answers has many in its queue, while a MAC
// that is made up may be seen once.
func (s *sweep) isLate(i int, mac MAC) bool {
	if slices.Contains(s.late, mac) {
		return true
	}
	k := slices.IndexFunc(s.suspects, func(c suspect) bool { return c.mac == mac })
	switch {
	case k < 0 && len(s.suspects) < maxSuspects:
		s.suspects = append(s.suspects, suspect{mac, i})
	case k >= 0 && s.suspects[k].target != i && len(s.late) < maxLate:
		s.late = append(s.late, mac)
		return true
	}
	return false
}

// inFlight notes that a request was answered once more.
func (s *sweep) inFlight(t *target) {
	if t.flight == 0 {
		s.window.atLeast(int(t.count))
		return
	}
	fl := s.flights.at(int(t.flight - 1))
	fl.replies++
	fl.heard = s.clock
	if fl.to == 0 { // no host is known to answer more than twice; a flood does
		s.window.reply(fl.expected, min(fl.replies, 2*int(t.count)))
	}
	if fl.to > 0 || s.window.complete(fl.replies) {
		s.land(fl, false)
	}
}
