package arpchecktest

import (
	"container/heap"
	"time"
)

// event is something that happens on the segment at a time.
type event struct {
	at  time.Time
	seq uint64 // the order in which events of one time were planned
	do  func()
}

// events is a heap of events, the next one first.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].seq < e[j].seq
}

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// schedule runs events one after another, in the order of their times. Timers
// of their own would not do: those that are due at the same time run in any
// order, and a trace could not be repeated. The segment's mutex guards it.
type schedule struct {
	pending events
	seq     uint64
	now     time.Time // of the event that runs, else of the last look at the clock
	timer   *time.Timer
	armed   time.Time // what the timer is set to; zero if it is not
	closed  bool
}

// after plans do for d from now.
func (s *schedule) after(d time.Duration, do func()) {
	if s.closed {
		return
	}
	s.seq++
	heap.Push(&s.pending, event{at: s.now.Add(max(d, 0)), seq: s.seq, do: do})
}

// advance runs all that is due. Everybody who takes the segment's mutex calls it
// first, so that what they see does not depend on whether the timer's goroutine
// or theirs was faster.
func (s *schedule) advance() {
	now := time.Now()
	for !s.closed && len(s.pending) > 0 && !s.pending[0].at.After(now) {
		e := heap.Pop(&s.pending).(event)
		s.now = e.at
		e.do()
	}
	if now.After(s.now) {
		s.now = now
	}
}

// arm sets the timer to the next event; tick is what the timer runs.
func (s *schedule) arm(tick func()) {
	if s.closed || len(s.pending) == 0 {
		return // a timer that is set finds nothing to do
	}
	next := s.pending[0].at
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(next), tick)
	case !s.armed.Equal(next):
		s.timer.Reset(time.Until(next))
	}
	s.armed = next
}

func (s *schedule) close() {
	s.closed = true
	s.pending = nil
	if s.timer != nil {
		s.timer.Stop()
	}
}
