package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// sendBatch is small because replies are read between batches: a receive
	// buffer of the default size holds 256 of them. More than 8 frames per system
	// call hardly save time.
	sendBatch = 8
	// receiveBatch is how many frames one Receive is asked for.
	receiveBatch = 64
	// queueFullPause is how long replies are read before a full send queue is
	// tried again.
	queueFullPause = time.Millisecond
	// maxDrain bounds the frames read in one go without waiting, so that a flood
	// cannot keep a pass from going on: several times what a default socket
	// buffer holds.
	maxDrain = 4096
	// proxyQueue is how many answers by proxy ARP wait at most in a Linux host
	// (proxy_qlen in arp(7)).
	proxyQueue = 64
	// lateAnswer is what no answer takes that is not by proxy, by far.
	lateAnswer = 50 * time.Millisecond
	// maxLate bounds the hosts that are asked alone.
	maxLate = 16
)

// wakeWhenDone ends a Receive that waits when ctx ends. The function it returns
// undoes that and leaves the Conn without a deadline.
func (s *pass) wakeWhenDone(ctx context.Context) func() {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = s.Conn.SetReadDeadline(longAgo) // fails only if closed, and Receive tells that
		close(woken)
	})
	return func() {
		if !stop() {
			<-woken
		}
		_ = s.Conn.SetReadDeadline(time.Time{})
	}
}

var longAgo = time.Unix(1, 0)

// question is a request that is to be sent.
type question struct {
	*track
	to MAC
}

// questions are those of a round. A host that answers by proxy ARP does so late
// and loses what is beyond its queue, the same targets in each round. Asked alone
// it answers at once (arp_process in net/ipv4/arp.c), so from the second round on
// hosts that were late are asked also one by one for what they have not answered.
func (s *pass) questions() []question {
	var list []question
	for _, t := range s.tracks {
		list = append(list, question{t, s.to})
	}
	if len(s.tracks) <= proxyQueue {
		return list
	}
	for _, mac := range s.late {
		for _, t := range s.tracks {
			if _, answered := t.index[mac]; !answered {
				list = append(list, question{t, mac})
			}
		}
	}
	return list
}

// ask sends this round's requests and reads replies in between. It returns when
// the first and the last request were sent.
func (s *pass) ask(ctx context.Context) (first, last time.Time, err error) {
	first = time.Now()
	last = first
	for rest := s.questions(); len(rest) > 0; {
		batch := rest[:min(sendBatch, len(rest))]
		at := time.Now()
		n, err := s.Conn.Send(s.frameBatch(batch))
		for _, q := range batch[:n] {
			q.begin(at, q.to, q.to == s.to)
			last = at
		}
		rest = rest[n:]
		switch {
		case errors.Is(err, ErrLinkDown):
			s.linkDown = true
			return first, last, nil
		case err != nil:
			return first, last, fmt.Errorf("send requests: %w", err)
		case ctx.Err() != nil:
			s.cut = true
			return first, last, nil
		case n == len(batch):
			err = s.drain()
		case at.Sub(last) > s.wait:
			for _, q := range rest {
				q.notSent = true
			}
			return first, last, nil
		default:
			err = s.listen(ctx, at.Add(queueFullPause))
		}
		if err != nil || s.over() {
			return first, last, err
		}
	}
	return first, last, nil
}

func (s *pass) frameBatch(batch []question) [][]byte {
	s.outbox = s.outbox[:0]
	for _, q := range batch {
		frame := q.frame
		if q.to != s.to {
			frame = slices.Concat(q.to[:], frame[len(q.to):])
		}
		s.outbox = append(s.outbox, frame)
	}
	if s.started.IsZero() {
		s.started = time.Now()
	}
	return s.outbox
}

// listen accounts for all that arrives until then, or until ctx ends.
func (s *pass) listen(ctx context.Context, until time.Time) error {
	for {
		if err := s.setDeadline(until); err != nil {
			return err
		}
		if ctx.Err() != nil {
			s.cut = true
			return s.drain()
		}
		_, err := s.receive()
		switch {
		case errors.Is(err, ErrLinkDown):
			s.linkDown = true
			return nil
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case ctx.Err() == nil && !time.Now().Before(until):
			return s.drain() // more may have arrived in time than one Receive returns
		}
	}
}

// drain accounts for what waits to be read, without waiting for more.
func (s *pass) drain() error {
	if err := s.setDeadline(longAgo); err != nil {
		return err
	}
	for seen := 0; seen < maxDrain; {
		n, err := s.receive()
		seen += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case errors.Is(err, ErrLinkDown):
			s.linkDown = true
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// receive accounts for the frames of one Receive.
func (s *pass) receive() (int, error) {
	n, err := s.Conn.Receive(s.frames)
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	for i := range s.frames[:n] {
		s.frame(&s.frames[i])
	}
	if err != nil {
		err = fmt.Errorf("receive: %w", err)
	}
	return n, err
}

func (s *pass) setDeadline(t time.Time) error {
	if err := s.Conn.SetReadDeadline(t); err != nil {
		return fmt.Errorf("set the read deadline: %w", err)
	}
	return nil
}
