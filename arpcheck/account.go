package arpcheck

import (
	"github.com/strictarp/strictarp/internal/arpwire"
)

// account accounts for the first n received frames.
func (s *pass) account(n int) {
	for i := range s.frames[:n] {
		s.frame(&s.frames[i])
	}
}

// frame decides what a frame is to this pass. Whatever belongs to others is
// counted and neither ends nor changes a probe.
func (s *pass) frame(f *Frame) {
	early := s.started.IsZero()
	p, err := arpwire.Parse(f.Data)
	kind := kindOf(p)
	switch {
	case f.Type == Outgoing:
		if err == nil && p.Op == arpwire.OpRequest {
			s.otherRequest(f, p, early)
		}
	case early: // it is older than the first request
	case f.VLAN != 0 || p.VLAN != 0:
		s.quality.OtherVLANs++
	case err != nil || kind == "":
		s.quality.Malformed++
	case kind == Reply:
		s.reply(f, p)
	default:
		s.claim(f, p, kind)
	}
}

// otherRequest counts a request that this host's kernel or another program
// sends: replies to it look the same as replies to ours.
func (s *pass) otherRequest(f *Frame, p arpwire.Packet, early bool) {
	if !early {
		s.claim(f, p, kindOf(p))
	}
	t := s.byAddr[p.Target]
	if t == nil || p.Sender != t.sender.Addr {
		return
	}
	if early && s.began.Sub(f.At) > s.wait {
		return // whoever answers has done so before the pass
	}
	t.otherRequests++
	t.asked.add(p.Dst)
}

func (s *pass) reply(f *Frame, p arpwire.Packet) {
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
	}
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
}

// claim records that a target was used as sender in something other than an
// answer to us.
func (s *pass) claim(f *Frame, p arpwire.Packet, kind Kind) {
	if t := s.byAddr[p.Sender]; t != nil {
		t.claim(p.SenderMAC, kind, f.At)
	}
}
