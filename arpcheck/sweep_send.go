package arpcheck

import (
	"errors"
	"fmt"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// peek returns the next to be asked, and what it is taken from: first what was
// asked before, so that targets are settled early.
func (s *sweep) peek(now time.Duration) (inquiry, func()) {
	switch {
	case len(s.unsent) > 0:
		return s.unsent[0], func() { s.unsent = s.unsent[1:] }
	case s.again.len() > 0 && s.again.first().at <= now:
		return *s.again.first(), func() { s.again.pop() }
	case s.begun < len(s.order):
		return inquiry{target: s.order[s.begun]}, func() { s.begun++ }
	case s.samples.len() > 0 && s.samples.first().at <= now:
		return *s.samples.first(), func() { s.samples.pop() }
	}
	return inquiry{}, nil
}

// expectation is how many replies a request is expected to draw.
func (s *sweep) expectation(q inquiry) float64 {
	if q.to > 0 {
		return 1
	}
	return max(s.window.mean, float64(s.targets[q.target].count))
}

// send sends as many requests as there is room for. It reports if the
// interface's queue was full.
func (s *sweep) send(now time.Duration) (sent int, full bool, err error) {
	s.batch, s.expect, s.outbox = s.batch[:0], s.expect[:0], s.outbox[:0]
	s.fill(now)
	if len(s.batch) == 0 {
		return 0, false, nil
	}
	at := s.now()
	n, err := s.Conn.Send(s.outbox)
	for i, q := range s.batch[:n] {
		s.begin(q, s.expect[i], at)
	}
	s.pace.sent(n)
	if n < len(s.batch) {
		s.unsent = append(append([]inquiry(nil), s.batch[n:]...), s.unsent...)
	}
	switch {
	case errors.Is(err, ErrLinkDown):
		s.linkDown = true
		return n, false, nil
	case err != nil:
		return n, false, fmt.Errorf("send requests: %w", err)
	case n == len(s.batch):
		return n, false, nil
	}
	s.progress.QueueFull++
	if at-s.lastSent > s.wait {
		s.giveUpSending()
	}
	return n, true, nil
}

// fill fills a batch with as many requests as there is room for.
func (s *sweep) fill(now time.Duration) {
	var ofBatch float64
	toAll := 0
	most := min(sweepSendBatch, s.pace.allowed(now), maxFlights-s.flights.len())
	for len(s.batch) < most {
		q, take := s.peek(now)
		if take == nil {
			return
		}
		expected := s.expectation(q)
		switch {
		case q.to > 0 && !s.window.roomAlone(expected, ofBatch), q.to == 0 && !s.window.room(toAll, expected, ofBatch):
			return
		case q.to == 0:
			toAll++
		}
		take()
		ofBatch += expected
		s.outbox = append(s.outbox, s.request(len(s.batch), q))
		s.batch, s.expect = append(s.batch, q), append(s.expect, expected)
	}
}

// giveUpSending ends a sweep on an interface that takes no frames.
func (s *sweep) giveUpSending() {
	for i := range s.targets {
		s.targets[i].notSent = true // of the others all were yielded
	}
	s.cut = true
}

// request writes a frame into the arena.
func (s *sweep) request(slot int, q inquiry) []byte {
	t := &s.targets[q.target]
	p := arpwire.Request(s.mac, s.senders[t.sender].Addr, address(s.addrs[q.target]))
	p.Dst = s.to
	if q.to > 0 {
		p.Dst = s.late[q.to-1]
	}
	return p.Append(s.arena[slot*arpwire.FrameSize:][:0:arpwire.FrameSize], 0)
}

// begin notes that a request was sent.
func (s *sweep) begin(q inquiry, expected float64, at time.Duration) {
	t := &s.targets[q.target]
	q.at = at
	t.last, t.drops = at, uint32(s.drops)
	if q.to == 0 {
		t.requests++
		t.news = false
	}
	if t.requests == 1 && q.to == 0 {
		t.asked = at
		t.sampled = s.progress.Asked < sampleFirst || s.progress.Asked%sampleEvery == 0
		s.progress.Asked++
	}
	t.flight = uint32(s.flights.push(flight{inquiry: q, expected: expected, heard: at})) + 1
	if q.to > 0 {
		s.window.beginAlone()
	} else {
		s.window.begin(expected)
	}
	s.progress.Requests++
	s.lastSent = at
}
