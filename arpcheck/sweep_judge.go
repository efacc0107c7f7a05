package arpcheck

import (
	"net/netip"
	"slices"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// maxAsked is how often a target is asked at most, be there news each time.
	maxAsked = 16
	// maxRepairs is how often a target is asked again because of drops. After
	// that it is inconclusive.
	maxRepairs = 3
	// maxSuspects is how many MACs are kept that have answered late once.
	maxSuspects = 64
	// maxOdd is for how many targets others' requests and claims are kept.
	maxOdd = 1 << 12
	// Of the targets that have as many responders as any, the first few and then
	// one of every so many are asked again: a responder that was lost for every
	// target would not be missed otherwise.
	sampleFirst = 8
	sampleEvery = 64
)

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
		s.again.push(inquiry{target: fl.target, at: t.last + askAgainAfter})
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
	_, err := s.linkState()
	return err
}

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
	s.scratch = s.pairs.take(t, s.began, s.scratch)
	account.responders = s.scratch
	account.rounds, account.requests = int(t.requests), int(t.requests)
	if s.over() && account.rounds > 0 {
		account.rounds--
	}
	account.held, account.notSent, account.excess = t.held, t.notSent, int(t.excess)
	s.countDoubles(t, account)
	judge := s.pass
	judge.started, judge.ended = time.Time{}, time.Now()
	if t.requests > 0 {
		judge.started = s.began.Add(t.asked)
	}
	judge.quality.Drops = s.drops - uint64(t.drops)
	return judge.result(account)
}

// countDoubles counts the replies of each MAC beyond the requests that it may
// have answered. Their window is over, so none of them is late.
func (s *sweep) countDoubles(t *target, account *track) {
	if s.unknown {
		return
	}
	before := s.before.asked[account.target].own + s.before.asked[account.target].others + account.before.own
	for k := range account.responders {
		r := &account.responders[k]
		asked := account.requests + before + account.before.byOthers(r.MAC) + account.asked.byOthers(r.MAC)
		if host := slices.Index(s.late, r.MAC); host >= 0 && t.solo&(1<<host) != 0 {
			asked++
		}
		r.DoubleAnswers = max(min(r.Replies-asked, account.rounds), 0)
	}
}
