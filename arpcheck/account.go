package arpcheck

import (
	"slices"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// frame decides what a frame is to this pass. Whatever belongs to others is
// counted and neither ends nor changes a probe.
func (s *pass) frame(f *Frame) {
	p, err := arpwire.Parse(f.Data)
	kind := Kind("")
	if err == nil {
		kind = kindOf(p)
	}
	s.parsed(f, p, kind)
}

// parsed takes a frame whose kind is empty if it is no ARP of ours, and reports
// whether it answers the prober.
func (s *pass) parsed(f *Frame, p arpwire.Packet, kind Kind) (answer bool) {
	early := s.started.IsZero() || f.At.Before(s.started)
	tagged := f.VLAN != 0 || p.VLAN != s.vlan
	sound := kind != "" && !tagged
	switch {
	case sound && f.Type == Outgoing:
		s.outgoing(f, p, kind, early)
	case f.Type == Outgoing:
	case early:
		if sound && kind == Reply {
			s.earlyReply(f, p)
		}
	case tagged:
		s.quality.OtherVLANs++
	case !sound:
		s.quality.Malformed++
	case kind == Reply:
		return s.reply(f, p)
	default:
		s.claim(f, p, kind)
	}
	return false
}

// outgoing counts the requests that this host's kernel or another program sends
// under our addresses: replies to them look the same as replies to ours.
func (s *pass) outgoing(f *Frame, p arpwire.Packet, kind Kind, early bool) {
	if !early && kind != Reply {
		s.claim(f, p, kind)
	}
	t := s.byAddr[p.Target]
	if t == nil || p.Op != arpwire.OpRequest || p.Sender != t.sender.Addr || MAC(p.SenderMAC) != s.mac {
		return
	}
	switch age := s.began.Sub(f.At); {
	case !early:
		t.asked.add(p.Dst)
	case age <= s.wait: // it may be answered yet
		t.before.add(p.Dst)
	case age <= 2*s.wait: // its answer may be among those that count as early
		t.long.add(p.Dst)
		return
	default:
		return
	}
	t.otherRequests++
}

// earlyReply counts a reply from before the pass: its request will not be
// answered again.
func (s *pass) earlyReply(f *Frame, p arpwire.Packet) {
	if t := s.byAddr[p.Sender]; t != nil && f.Type == ToHost && p.Target == t.sender.Addr && s.began.Sub(f.At) <= s.wait {
		t.earlyReply(p.SenderMAC)
	}
}

// reply reports whether the reply is an answer to the prober.
func (s *pass) reply(f *Frame, p arpwire.Packet) bool {
	t := s.byAddr[p.Sender]
	forUs := f.Type == ToHost || f.Type != ToOther && MAC(p.TargetMAC) == s.mac
	switch {
	case !forUs && (t == nil || p.Target != t.sender.Addr || f.Type == ToOther):
		s.quality.OtherHosts++
		if t != nil {
			s.claim(f, p, Reply)
		}
	case t == nil:
		s.quality.OtherTargets++
	case p.Target != t.sender.Addr:
		s.quality.OtherSenders++
	default:
		s.answer(t, f, p)
		return true
	}
	return false
}

// answer records a reply to this prober, or to another program of this host
// that asks under the same sender.
func (s *pass) answer(t *track, f *Frame, p arpwire.Packet) {
	i, known := t.index[p.SenderMAC]
	if !known {
		if len(t.responders) >= s.maxResponders || s.records >= maxRecords {
			t.excess++
			return
		}
		i = t.addResponder(p.SenderMAC, f.At)
		s.records++
	}
	t.answer(&t.responders[i], f, p)
	if !t.askedAt.IsZero() && f.At.Sub(t.askedAt) > lateAnswer && len(s.late) < maxLate && !slices.Contains(s.late, p.SenderMAC) {
		s.late = append(s.late, p.SenderMAC)
	}
}

// claim records that a target was used as sender in something other than an
// answer to us.
func (s *pass) claim(f *Frame, p arpwire.Packet, kind Kind) {
	if t := s.byAddr[p.Sender]; t != nil {
		t.claim(p.SenderMAC, kind, f.At)
	}
}
