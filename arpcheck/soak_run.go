package arpcheck

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// soaker is one run of Soak.
type soaker struct {
	*Prober
	plan    SoakPlan
	listen  listener
	between track // keeps claims, boundedly
	wait    time.Duration
}

// soak returns nil if the loop was left or the time is over.
func (p *Prober) soak(ctx context.Context, plan SoakPlan, yield func(Sample, error) bool) error {
	o, err := p.options()
	if err != nil {
		return err
	}
	if err := plan.fill(o); err != nil {
		return err
	}
	if err := p.takeTurn(ctx); err != nil {
		return err
	}
	defer p.endTurn()
	s := &soaker{Prober: p, plan: plan, listen: listener{conn: p.Conn}, wait: plan.Wait}
	defer s.listen.wakeWhenDone(ctx)()
	restore, err := p.filterAddrs(plan.Target, p.Control)
	if err != nil {
		return err
	}
	defer restore()
	if err := s.listen.drain(func(*Frame) {}); err != nil && !errors.Is(err, ErrLinkDown) {
		return err
	}
	err = s.run(ctx, yield)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

func (s *soaker) run(ctx context.Context, yield func(Sample, error) bool) error {
	start, every := time.Now(), s.plan.Every
	for n, skipped := 0, 0; s.plan.For == 0 || time.Duration(n)*every < s.plan.For; {
		due := start.Add(time.Duration(n) * every)
		if err := s.idle(ctx, due); err != nil {
			return err
		}
		sample, err := s.sample(ctx, Sample{N: n, At: due, Skipped: skipped})
		if err != nil {
			return err
		}
		if !yield(sample, nil) {
			return nil
		}
		// Counted from the start, so that being late once does not make it late for good.
		begun := n + 1
		n = max(begun, int((time.Since(start)+every-1)/every))
		skipped = n - begun
	}
	return nil
}

// idle listens until a sample is due.
func (s *soaker) idle(ctx context.Context, due time.Time) error {
	for {
		err := s.listen.receive(ctx, due, s.frame)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil && !errors.Is(err, ErrLinkDown):
			return err
		case !time.Now().Before(due):
			return s.listen.drain(s.frame)
		}
	}
}

// frame takes in what is said of the target between probes.
func (s *soaker) frame(f *Frame) {
	p, err := arpwire.Parse(f.Data)
	if err != nil || f.VLAN != 0 || p.VLAN != 0 {
		return
	}
	kind := kindOf(p)
	switch {
	case kind == "":
	case p.Sender == s.plan.Target && (kind != Reply || f.Type != ToHost):
		s.between.claim(p.SenderMAC, kind, f.At)
	case p.Target == s.plan.Target && f.Type == Outgoing && kind == Request:
		s.asked(p.Sender, f.At)
	}
}

// asked notes a request of another program of this host just before a probe, in
// which it may be answered: that is no double answer.
func (s *soaker) asked(sender netip.Addr, at time.Time) {
	left := s.leftover.asked[s.plan.Target]
	if left.sender != sender || at.Sub(s.leftover.at) > s.wait {
		left = unanswered{sender: sender}
	}
	left.others++
	s.leftover = leftover{at: at, asked: map[netip.Addr]unanswered{s.plan.Target: left}}
}

// sample asks, checks and looks into the cache at the same time.
func (s *soaker) sample(ctx context.Context, sample Sample) (Sample, error) {
	sample.Began = time.Now()
	sample.Between, s.between = s.between.claims, track{}
	s.cached(&sample, &sample.CachedBefore)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		sample.Check = s.check(ctx)
		s.cached(&sample, &sample.Cached)
	}()
	result, err := s.probeInTurn(ctx, s.plan.Target, func(q *Prober) {
		q.Rounds, q.Wait, q.Interval, q.FastRounds = s.plan.Rounds, s.plan.Wait, 0, false
	})
	<-checked
	if err == nil {
		err = ctx.Err() // what was cut short says nothing of the target
	}
	sample.ARP = result
	if len(result.Responders) > 0 {
		sample.Winner = result.Responders[0].MAC
	}
	sample.Match = matchOf(sample, s.plan.Expected)
	return sample, err
}

func (s *soaker) check(ctx context.Context) (r CheckResult) {
	if s.plan.Check == nil {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, s.plan.Timeout)
	defer cancel()
	r.Ran, r.Began = true, time.Now()
	err := s.plan.Check(ctx)
	r.Latency, r.OK = time.Since(r.Began), err == nil
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

func (s *soaker) cached(sample *Sample, to **Neighbour) {
	if s.plan.Neighbours == nil {
		return
	}
	entry, err := s.plan.Neighbours.Get(s.Link, s.plan.Target)
	switch {
	case err == nil:
		*to = &entry
	case errors.Is(err, fs.ErrNotExist):
		*to = &Neighbour{Addr: s.plan.Target, Link: s.Link}
	default:
		sample.CacheError = err.Error()
	}
}

func matchOf(s Sample, expected []MAC) (match NeighbourMatch) {
	for _, n := range []*Neighbour{s.CachedBefore, s.Cached} {
		if n != nil && match != NeighbourStaleWrong {
			match = n.Match(expected...)
		}
	}
	return match
}
