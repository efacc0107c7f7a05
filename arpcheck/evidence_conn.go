package arpcheck

import (
	"fmt"
	"net/netip"
	"strings"
)

// The engine asks some Conns for more than a Conn has to do. A Recorder does what the
// Conn does that it records.

// Capacity returns how many replies wait in the Conn at most, as a Sweep takes it.
func (r *Recorder) Capacity() int { return capacityOf(r.conn) }

// filterAddrs implements addrFilter.
func (r *Recorder) filterAddrs(addrs []netip.Addr) error {
	if f, ok := r.conn.(addrFilter); ok {
		return f.filterAddrs(addrs)
	}
	return nil
}

// filterAll implements addrFilter.
func (r *Recorder) filterAll() {
	if f, ok := r.conn.(addrFilter); ok {
		f.filterAll()
	}
}

// describe says what a probe has concluded, in at most maxNote bytes.
func describe(r *Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s in %d rounds", r.Target, r.Interface, r.Verdict, r.Rounds)
	for i, responder := range r.Responders {
		if i == maxNoteMACs {
			fmt.Fprintf(&b, "; and %d more", len(r.Responders)-i)
			break
		}
		fmt.Fprintf(&b, "; %s: %d replies", responder.MAC, responder.Replies)
		if responder.DoubleAnswer {
			b.WriteString(", doubly")
		}
	}
	for _, reason := range r.Reasons {
		b.WriteString("; " + string(reason))
	}
	return b.String()
}
