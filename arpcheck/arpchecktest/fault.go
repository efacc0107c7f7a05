package arpchecktest

import (
	"math/rand/v2"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// Fault is what goes wrong with ARP replies, be they a kernel's or an
// announcer's: those of one host (Host.SetFault) or those of all
// (Segment.SetFault). The zero Fault is a sound network. Fields add up.
type Fault struct {
	// Silent loses every reply.
	Silent bool
	// Turns and Turn let hosts take turns: of Turns replies only the Turn-th,
	// counted from 0, is sent. Two hosts with {Turns: 2, Turn: 0} and {Turns: 2,
	// Turn: 1} flap. 0 and 1 Turns send every reply.
	Turns, Turn int
	// LoseFirst loses that many replies before the first that is sent.
	LoseFirst int
	// Loss is the probability, from 0 to 1, that a reply is lost.
	Loss float64
	// Delay is added to the time a reply takes.
	Delay time.Duration
	// Jitter adds a random time of less than Jitter, so that the order of
	// answers becomes a lottery.
	Jitter time.Duration
	// Copies is how many further times each reply arrives, as with a driver or
	// a loop that duplicates frames.
	Copies int
	// SenderMAC is the ARP sender hardware address of replies, if not zero: the
	// Ethernet source stays the interface's.
	SenderMAC arpcheck.MAC
	// FrameSource is the Ethernet source of replies, if not zero, as behind a
	// relay or a Wi-Fi bridge: the ARP sender stays the interface's.
	FrameSource arpcheck.MAC
	// VLAN is the tag that replies carry, if not zero, as from a port that leaks
	// another VLAN.
	VLAN uint16
	// Malformed is how many hostile frames precede each reply; MalformedReplies
	// are sent in turn.
	Malformed int
}

// faults is a Fault with what it remembers.
type faults struct {
	Fault
	replies   int // seen since it was set
	malformed int // sent since it was set
	rand      *rand.Rand
}

// shape applies the fault to a reply that would leave after a time; false says
// that it is lost.
func (f *faults) shape(p arpwire.Packet, after time.Duration) (arpwire.Packet, time.Duration, bool) {
	n := f.replies
	f.replies++
	switch {
	case f.Silent,
		f.Turns > 1 && n%f.Turns != f.Turn,
		n < f.LoseFirst,
		f.Loss > 0 && f.rand.Float64() < f.Loss:
		return p, 0, false
	}
	after += f.Delay
	if f.Jitter > 0 {
		after += time.Duration(f.rand.Int64N(int64(f.Jitter)))
	}
	if !f.SenderMAC.IsZero() {
		p.SenderMAC = f.SenderMAC
	}
	if !f.FrameSource.IsZero() {
		p.Src = f.FrameSource
	}
	if f.VLAN != 0 {
		p.VLAN = f.VLAN
	}
	return p, after, true
}

// frames returns what leaves for a reply that was not lost: hostile frames, the
// reply of at least size bytes, and its copies.
func frames(p arpwire.Packet, size int, fs ...*faults) [][]byte {
	var out [][]byte
	copies := 1
	for _, f := range fs {
		copies += f.Copies
		for range f.Malformed {
			hostile := MalformedReplies(p.TargetMAC, p.SenderMAC, p.Target, p.Sender)
			out = append(out, hostile[f.malformed%len(hostile)])
			f.malformed++
		}
	}
	for range copies {
		out = append(out, p.Append(nil, size))
	}
	return out
}
