package arpcheck

import (
	"context"
	"fmt"
	"net/netip"
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
// window passes; and from there to the caller, or once more to again. Samples are
// asked again at the end.
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
	samples  queue[inquiry] // likewise, but after all of order: others' first answers are worth more
	lingers  queue[inquiry] // with the time at which the window is over
	answered queue[inquiry] // by a host that was asked alone, or not
	flights  queue[flight]  // in the order in which they were sent
	most     int            // MACs that answer for one target, the most there are
	drops    uint64         // seen so far, since baseDrops
	batch    []inquiry      // that is about to be sent
	expect   []float64      // replies to each of batch
	arena    []byte         // frames of batch
	capacity int            // replies that wait at most
	suspects []suspect
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

// start learns the state of the interface, chooses senders and makes room.
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
	s.capacity = capacityOf(s.Conn)
	s.window = newWindow(s.capacity)
	s.pace = newPace(s.config.Rate, s.config.Bandwidth)
	s.pairs = newPairs(len(s.addrs))
	s.frames = make([]Frame, sweepReceiveBatch)
	s.arena = make([]byte, sweepSendBatch*arpwire.FrameSize)
	s.progress.Targets = s.left
	s.began = time.Now()
	if s.before = s.leftover; s.began.Sub(s.before.at) > s.wait {
		s.before = leftover{}
	}
	return s.readOld()
}

// readOld reads what waits from before.
func (s *sweep) readOld() (err error) {
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

// capacityOf returns how many replies wait in a Conn at most.
func capacityOf(conn Conn) int {
	if c, ok := conn.(interface{ Capacity() int }); ok {
		return c.Capacity()
	}
	return defaultCapacity
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
	next := now + s.wait
	if s.config.Progress != nil {
		next = s.told + ProgressInterval
	}
	if s.flights.len() > 0 {
		next = min(next, s.deadline(s.flights.first()))
	}
	if s.lingers.len() > 0 {
		next = min(next, max(s.lingers.first().at, now)+gathering)
	}
	if s.again.len() > 0 {
		next = min(next, max(s.again.first().at, now)+gathering)
	}
	if s.samples.len() > 0 && s.begun == len(s.order) {
		next = min(next, max(s.samples.first().at, now)+gathering)
	}
	if s.pace.next > now {
		next = min(next, s.pace.next)
	}
	return max(next, now)
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
