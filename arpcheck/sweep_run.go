package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	sweepSendBatch    = 64
	sweepReceiveBatch = 128
	maxFlights        = 1 << 13 // requests that wait for replies at once
	// askAgainAfter is the time from one request for a target to the next, so
	// that what loses one frame is over.
	askAgainAfter = 100 * time.Millisecond
	// gathering is how long targets that are due are left to gather: to wake up for
	// each costs more than all else (the runtime's sysmon spins for a while).
	gathering = 20 * time.Millisecond
	// linkStateAge is how old the state of the link may be that a result rests on.
	linkStateAge = 100 * time.Millisecond
)

// sweep is one run of a Sweep, in one goroutine. The embedded pass counts what is
// no answer, and judges. A target goes from order to flights; from there, when
// it has been answered or its time is over, to again, or to lingers, where a
// window passes; and from there to the caller, or once more to again.
type sweep struct {
	pass
	config Sweep
	yield  func(Result, error) bool

	addrs       []uint32 // sorted
	targets     []target // in the order of addrs
	order       []uint32 // targets in the order in which they are asked
	senders     []Sender
	controlAt   int  // target; -1 if there is none
	controlOnly bool // the control address is not among what was asked for
	left        int  // targets whose result is to be yielded

	window   window
	pairs    pairs
	begun    int            // targets of order that were asked
	unsent   []inquiry      // was to be sent, but the queue was full
	again    queue[inquiry] // with the time from which on
	lingers  queue[inquiry] // with the time at which the window is over
	answered queue[inquiry] // by a host that was asked alone, or not
	flights  queue[flight]  // in the order in which they were sent
	most     int            // MACs that answer for one target, the most there are
	drops    uint64         // seen so far, since baseDrops
	batch    []inquiry      // that is about to be sent
	expect   []float64      // replies to each of batch
	arena    []byte         // frames of batch
	capacity int            // frames that the receive buffer holds
	suspects []suspect
	scratch  []responder
	before   leftover
	unknown  bool // requests were not seen that may have been answered
	progress SweepProgress
	told     time.Duration // when Progress was called
	linkSeen time.Duration // when the state of the link was read
	lastSent time.Duration
	clock    time.Duration // when reading began
	pace     pace
}

// target is what is known of a target until it is settled. There may be a million
// of them.
type target struct {
	asked, last time.Duration // first and last request, since the sweep began
	seen        seenBits      // MACs that answer
	head        uint32        // its pair that was seen last; 0 for none
	flight      uint32        // number of its flight plus 1, 0 for none
	drops       uint32        // seen when it was asked last
	excess      uint32
	count       uint16 // MACs that answer
	sender      uint16
	solo        uint16 // bit i: the i-th late host was asked alone
	requests    uint8  // to everybody
	repairs     uint8  // requests because of drops
	news        bool   // a MAC was seen that had not been when it was asked last
	held        bool   // by this host
	notSent     bool
	answered    bool // by anybody
	sampled     bool
	settled     bool
}

// suspect is a MAC that has answered late for a target.
type suspect struct {
	mac    MAC
	target int
}

// inquiry is a target that is to be asked, or has been.
type inquiry struct {
	target uint32
	to     uint8 // 0 for everybody, or 1 + which late host
	at     time.Duration
}

// flight is a request that may be answered yet.
type flight struct {
	inquiry
	expected float64
	heard    time.Duration // when a reply was read; before, when it was sent
	replies  int
	closed   bool
}

// queue is a FIFO. Its elements are numbered from the first that was ever pushed.
type queue[T any] struct {
	items []T
	head  int
	taken int // elements popped before items[0]
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) push(v T) (number int) {
	if q.head > 64 && q.head > len(q.items)/2 {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.taken += q.head
		q.head = 0
	}
	q.items = append(q.items, v)
	return q.taken + len(q.items) - 1
}
func (q *queue[T]) first() *T        { return &q.items[q.head] }
func (q *queue[T]) at(number int) *T { return &q.items[number-q.taken] }
func (q *queue[T]) pop() T {
	v := q.items[q.head]
	q.head++
	return v
}

// pace keeps to a rate: it holds what may be sent at once.
type pace struct {
	every time.Duration // 0 for no limit
	next  time.Duration // when the next request may be sent
}

func newPace(rate int, bandwidth int64) pace {
	var p pace
	if rate > 0 {
		p.every = time.Second / time.Duration(rate)
	}
	if bandwidth > 0 {
		p.every = max(p.every, time.Duration(float64(time.Second)*RequestBits/float64(bandwidth)))
	}
	return p
}

// paceBurst is how long a sweep may make up for what it could not send.
const paceBurst = time.Millisecond

func (p *pace) allowed(now time.Duration) int {
	if p.every == 0 {
		return sweepSendBatch
	}
	p.next = max(p.next, now-paceBurst)
	if now < p.next {
		return 0
	}
	return int((now-p.next)/p.every) + 1
}

func (p *pace) sent(n int) { p.next += time.Duration(n) * p.every }

func (s *sweep) now() time.Duration { return time.Since(s.began) }

// runAll runs the sweep. Its error is about the Conn or the Host, or errStopped.
func (s *sweep) runAll(ctx context.Context) error {
	defer s.wakeWhenDone(ctx)()
	err := s.start(ctx)
	if err == nil {
		err = s.loop(ctx)
	}
	s.leave(err != nil)
	if err == nil {
		err = s.yieldRest()
	}
	s.tell(true)
	return err
}

// start learns the state of the interface, chooses senders, and reads what waits
// from before.
func (s *sweep) start(ctx context.Context) error {
	link, err := s.linkState()
	if err != nil {
		return err
	}
	if !link.MAC.IsZero() {
		s.mac = link.MAC
	}
	if err := s.chooseSenders(ctx, link.Addrs); err != nil {
		return err
	}
	if len(s.senders) == 0 { // ctx has ended
		s.senders = []Sender{{}}
	}
	readBuffer := defaultReadBuffer
	if c, ok := s.Conn.(interface{ ReadBuffer() (int, error) }); ok {
		if readBuffer, err = c.ReadBuffer(); err != nil {
			return fmt.Errorf("read the size of the receive buffer: %w", err)
		}
	}
	s.capacity = readBuffer / frameMemory
	s.window = newWindow(readBuffer)
	s.pace = newPace(s.config.Rate, s.config.Bandwidth)
	s.pairs = newPairs(len(s.addrs))
	s.frames = make([]Frame, sweepReceiveBatch)
	s.arena = make([]byte, sweepSendBatch*arpwire.FrameSize)
	s.progress.Targets = s.left
	s.began = time.Now()
	if s.before = s.leftover; s.began.Sub(s.before.at) > s.wait {
		s.before = leftover{}
	}
	down := s.linkDown
	if err := s.drainAll(); err != nil {
		return err
	}
	s.linkDown = down // that it was down before is old news
	if s.baseDrops, err = s.Conn.Drops(); err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	s.unknown = s.baseDrops > s.lastDrops
	s.started = s.began
	return nil
}

// loop asks until all targets are settled, ctx ends or the link is down.
func (s *sweep) loop(ctx context.Context) error {
	for !s.over() && s.left > 0 {
		now := s.now()
		s.clock = now
		if err := s.drainAll(); err != nil {
			return err
		}
		if err := s.countDrops(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			s.cut = true
			return nil
		}
		s.expire(now)
		if err := s.settle(now); err != nil {
			return err
		}
		s.tell(false)
		if s.left == 0 {
			return nil
		}
		sent, full, err := s.send(now)
		switch {
		case err != nil:
			return err
		case full:
			err = s.sleep(ctx, now+queueFullPause)
		case sent == 0:
			err = s.sleep(ctx, s.nextEvent(now))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextEvent is when there is something to do, if no frame comes before.
func (s *sweep) nextEvent(now time.Duration) time.Duration {
	next := now + ProgressInterval
	if s.flights.len() > 0 {
		next = min(next, s.deadline(s.flights.first()))
	}
	if s.lingers.len() > 0 {
		next = min(next, max(s.lingers.first().at, now)+gathering)
	}
	if s.again.len() > 0 {
		next = min(next, max(s.again.first().at, now)+gathering)
	}
	if s.pace.next > now {
		next = min(next, s.pace.next)
	}
	return max(next, now)
}

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

// sleep waits for frames, until a time or until ctx ends.
func (s *sweep) sleep(ctx context.Context, until time.Duration) error {
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
	if err != nil {
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

// tell calls Progress if it is time.
func (s *sweep) tell(last bool) {
	if s.config.Progress == nil {
		return
	}
	now := s.now()
	if !last && now-s.told < ProgressInterval {
		return
	}
	s.told = now
	s.progress.Elapsed, s.progress.Drops = now, s.drops
	s.config.Progress(s.progress)
}

// leave notes what the next pass has to know: requests that may be answered yet.
func (s *sweep) leave(failed bool) {
	now := s.now()
	s.leftover = leftover{at: time.Now(), asked: make(map[netip.Addr]unanswered)}
	s.lastDrops = s.baseDrops + s.drops
	if !s.over() && !failed {
		return
	}
	for i := range s.targets {
		if t := &s.targets[i]; t.requests > 0 && now-t.last < s.wait {
			s.leftover.asked[address(s.addrs[i])] = unanswered{sender: s.senders[t.sender].Addr, own: int(t.requests)}
		}
	}
}
