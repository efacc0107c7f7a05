package arpcheck

import (
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// What is kept of a sweep, so that made-up replies cannot make it grow without
// bound. Beyond, replies are in excess and their targets inconclusive.
const (
	maxPairs      = 1 << 20
	maxSweepMACs  = 1 << 14
	maxVariations = 1 << 12
)

// pair is a target and a MAC that answers for it. There may be a million of them.
type pair struct {
	first, last time.Duration // since the sweep began
	rtt         time.Duration // -1 if it was not measured
	next        uint32        // pair of the same target that was seen before; 0 for none
	replies     uint32
	length      uint16 // of all its frames, unless it is varied
	mac         uint16
	won         bool
	varied      bool // its variation has what differs
}

// pairs are all pairs of the targets that are not settled. Index 0 is unused.
type pairs struct {
	all    []pair
	free   uint32 // first of those of settled targets, linked by next
	kept   int
	macs   []MAC
	ids    map[MAC]uint16
	last   int                   // MAC that was looked up last
	varied map[uint32]*responder // pairs with frames of several lengths, or of other sources
}

func newPairs(targets int) pairs {
	return pairs{
		all: make([]pair, 1, targets+1), ids: make(map[MAC]uint16), varied: make(map[uint32]*responder),
	}
}

// id returns the number of a MAC. Hosts mostly answer in the same order each time.
func (s *pairs) id(mac MAC) (id uint16, known bool) {
	if next := s.last + 1; next < len(s.macs) && s.macs[next] == mac {
		s.last = next
		return uint16(next), true
	}
	if id, known = s.ids[mac]; known {
		s.last = int(id)
	}
	return id, known
}

// find returns the pair of a target and a MAC, or 0.
func (s *pairs) find(t *target, mac MAC) uint32 {
	id, known := s.id(mac)
	if !known || !t.seen.has(id) {
		return 0
	}
	at := t.head
	for at != 0 && s.all[at].mac != id {
		at = s.all[at].next
	}
	return at
}

// add adds a pair. It reports whether there was room.
func (s *pairs) add(t *target, mac MAC) bool {
	id, known := s.id(mac)
	if s.kept == maxPairs || !known && len(s.macs) == maxSweepMACs {
		return false
	}
	if !known {
		id = uint16(len(s.macs))
		s.ids[mac] = id
		s.macs = append(s.macs, mac)
		s.last = int(id)
	}
	at := s.free
	if at != 0 {
		s.free = s.all[at].next
	} else {
		at = uint32(len(s.all))
		s.all = append(s.all, pair{})
	}
	s.all[at] = pair{mac: id, next: t.head, rtt: -1}
	t.head = at
	t.seen.add(id)
	t.count++
	s.kept++
	return true
}

// seenBits is a set of MACs by number, modulo its size: it is exact on a segment of
// as many hosts. So a new responder is known for one without a look-up.
type seenBits [4]uint64

func (b *seenBits) add(id uint16)      { b[id>>6&3] |= 1 << (id & 63) }
func (b *seenBits) has(id uint16) bool { return b[id>>6&3]&(1<<(id&63)) != 0 }

// reply brings a pair up to date.
func (s *pairs) reply(at uint32, f *Frame, p arpwire.Packet, since time.Duration) {
	r := &s.all[at]
	r.replies++
	r.last = since
	if r.replies == 1 {
		r.first, r.length = since, uint16(f.Length)
		if p.Src == p.SenderMAC {
			return
		}
	}
	if r.varied || p.Src != p.SenderMAC || r.length != uint16(f.Length) {
		s.vary(at, f, p)
	}
}

func (s *pairs) vary(at uint32, f *Frame, p arpwire.Packet) {
	r := &s.all[at]
	v := s.varied[at]
	if v == nil {
		if len(s.varied) == maxVariations {
			return
		}
		v = &responder{Responder: Responder{MAC: s.macs[r.mac]}}
		if r.replies > 1 {
			v.Lengths = []LengthCount{{Length: int(r.length), Frames: int(r.replies) - 1}}
		}
		s.varied[at], r.varied = v, true
	}
	v.addSource(p.Src)
	v.addLength(f.Length)
}

// take removes a target's pairs, from the one seen last on, and returns them in
// the order in which they were seen.
func (s *pairs) take(t *target, began time.Time) []Responder {
	list, lengths := make([]Responder, t.count), make([]LengthCount, t.count)
	n := int(t.count)
	for at := t.head; at != 0; {
		n--
		s.responder(&list[n], at, began, lengths[n:n+1:n+1])
		p := &s.all[at]
		if p.varied {
			delete(s.varied, at)
		}
		at, p.next, s.free = p.next, s.free, at
		s.kept--
	}
	return list
}

func (s *pairs) responder(r *Responder, at uint32, began time.Time, lengths []LengthCount) {
	p := &s.all[at]
	lengths[0] = LengthCount{Length: int(p.length), Frames: int(p.replies)}
	r.MAC, r.Replies, r.Lengths = s.macs[p.mac], int(p.replies), lengths
	r.First, r.Last = began.Add(p.first), began.Add(p.last)
	if p.varied {
		v := s.varied[at]
		r.Lengths, r.FrameSources = v.Lengths, v.FrameSources
	}
	if p.rtt >= 0 {
		r.RTT = RTT{Min: p.rtt, Mean: p.rtt, Max: p.rtt}
	}
	if p.won {
		r.WonRounds = 1
	}
}
