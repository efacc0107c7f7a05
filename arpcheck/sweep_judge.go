package arpcheck

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxAsked is how often a target is asked at most, be there news each time.
	maxAsked = 16
	// maxRepairs is how often a target is asked again because of drops. After
	// that it is inconclusive.
	maxRepairs = 3
	// Of the targets that have as many responders as any, the first few and then
	// one of every so many are asked again: a responder that was lost for every
	// target would not be missed otherwise.
	sampleFirst = 8
	sampleEvery = 64
)

// land ends a flight.
func (s *sweep) land(fl *flight, expired bool) {
	fl.closed = true
	t := &s.targets[fl.target]
	t.flight = 0
	if fl.to > 0 {
		s.window.endAlone()
	} else {
		s.window.end(fl.expected, min(fl.replies, 2*int(t.count)), expired)
	}
	switch {
	case fl.to > 0:
		s.answered.push(inquiry{target: fl.target})
	case s.askAgain(int(fl.target)):
		q := inquiry{target: fl.target, at: t.last + askAgainAfter}
		if t.count > 1 && int(t.count) >= s.most { // a sample
			s.samples.push(q)
		} else {
			s.again.push(q)
		}
	default:
		s.lingers.push(inquiry{target: fl.target, at: t.last + s.wait})
	}
}

// expire ends the flights whose time is over.
func (s *sweep) expire(now time.Duration) {
	for s.flights.len() > 0 {
		fl := s.flights.first()
		if !fl.closed {
			if now < s.deadline(fl) {
				return
			}
			s.land(fl, true)
		}
		s.flights.pop()
	}
}

// deadline is when a flight is over unless more replies come. Replies that trickle
// in put it off, but not for ever.
func (s *sweep) deadline(fl *flight) time.Duration {
	return min(fl.heard+s.window.timeout(fl.expected, fl.replies), fl.at+lateAnswer)
}

// askAgain reports whether asking everybody once more may bring something new.
func (s *sweep) askAgain(i int) bool {
	t := &s.targets[i]
	switch {
	case t.requests >= maxAsked:
		return false
	case uint32(s.drops) != t.drops && t.repairs < maxRepairs:
		t.repairs++
		return true
	case t.count < 2 && int(t.requests) < s.rounds: // its verdict may change
		return true
	case !t.news || s.rounds == 1:
		return false
	}
	return t.count > 1 && (int(t.count) < s.most || t.sampled)
}

// settle yields the results of targets whose window is over.
func (s *sweep) settle(now time.Duration) error {
	for {
		q, ok := s.waited(now)
		if !ok {
			return nil
		}
		i := int(q.target)
		if s.askAgain(i) {
			s.again.push(inquiry{target: q.target})
			continue
		}
		if host := s.unasked(i); host > 0 {
			s.targets[i].solo |= 1 << (host - 1)
			s.again.push(inquiry{target: q.target, to: uint8(host)})
			continue
		}
		if err := s.checkLink(now); err != nil || s.linkDown {
			return err // what is not settled is yielded at the end
		}
		if err := s.conclude(i); err != nil {
			return err
		}
	}
}

// waited returns the next target whose window is over.
func (s *sweep) waited(now time.Duration) (inquiry, bool) {
	switch {
	case s.answered.len() > 0:
		return s.answered.pop(), true
	case s.lingers.len() > 0 && s.lingers.first().at <= now:
		return s.lingers.pop(), true
	}
	return inquiry{}, false
}

// unasked returns 1 + which late host is to be asked alone for a target, or 0. A
// host that answers by proxy ARP loses what is beyond its queue; asked alone it
// answers at once (arp_process in net/ipv4/arp.c).
func (s *sweep) unasked(i int) int {
	if len(s.addrs) <= proxyQueue {
		return 0
	}
	for host, mac := range s.late {
		if s.targets[i].solo&(1<<host) == 0 && s.pairs.find(&s.targets[i], mac) == 0 {
			return host + 1
		}
	}
	return 0
}

func (s *sweep) checkLink(now time.Duration) error {
	if now-s.linkSeen < linkStateAge {
		return nil
	}
	s.linkSeen = now
	h, ok := s.Host.(upKnower)
	if !ok {
		_, err := s.linkState()
		return err
	}
	up, err := h.up()
	if err != nil {
		return fmt.Errorf("read the state of the interface: %w", err)
	}
	s.linkDown = s.linkDown || !up
	return nil
}

// upKnower is a Host that tells whether the interface is up at less cost than Link.
type upKnower interface{ up() (bool, error) }

// yieldRest yields what is not settled, after the sweep has ended early.
func (s *sweep) yieldRest() error {
	for i := range s.targets {
		if !s.targets[i].settled {
			if err := s.conclude(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude yields the result of a target.
func (s *sweep) conclude(i int) error {
	t := &s.targets[i]
	t.settled = true
	if i == s.controlAt && s.controlOnly {
		return nil
	}
	r := s.resultOf(i)
	s.left--
	s.progress.Settled++
	if !s.yield(r, nil) {
		return errStopped
	}
	return nil
}

// resultOf lets a pass of its own judge a target, and frees what was kept of it.
func (s *sweep) resultOf(i int) Result {
	t := &s.targets[i]
	addr := address(s.addrs[i])
	account := s.byAddr[addr]
	if account == nil {
		account = &track{target: addr, sender: s.senders[t.sender]}
	}
	delete(s.byAddr, addr)
	account.rounds, account.requests = int(t.requests), int(t.requests)
	if s.over() && account.rounds > 0 {
		account.rounds--
	}
	account.held, account.notSent, account.excess = t.held, t.notSent, int(t.excess)
	judge := s.pass
	judge.started, judge.ended = time.Time{}, time.Now()
	if t.requests > 0 {
		judge.started = s.began.Add(t.asked)
	}
	judge.quality.Drops = uint64(uint32(s.drops) - t.drops)
	responders := s.pairs.take(t, s.began)
	for k := range responders {
		r := &responders[k]
		r.DoubleAnswers = s.doubles(t, account, r)
		r.conclude(account.judged(), s.FastRounds, judge.quality.Drops > 0)
	}
	return judge.judge(account, responders)
}

// doubles counts the replies of a MAC beyond the requests that it may have answered.
// Their window is over, so none of them is late.
func (s *sweep) doubles(t *target, account *track, r *Responder) int {
	if s.unknown || r.Replies <= account.requests {
		return 0
	}
	asked := account.requests + account.before.own + account.before.byOthers(r.MAC) + account.asked.byOthers(r.MAC)
	left := s.before.asked[account.target]
	asked += left.own + left.others
	if host := slices.Index(s.late, r.MAC); host >= 0 && t.solo&(1<<host) != 0 {
		asked++
	}
	return max(min(r.Replies-asked, account.rounds), 0)
}
