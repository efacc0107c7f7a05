package arpcheck

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// The engine asks some Conns for more than a Conn has to do. A Recorder does what the
// Conn does that it records.

// ReadBuffer returns how many bytes of kernel memory received frames may take until
// they are read, as a Sweep takes it for if the Conn does not tell.
func (r *Recorder) ReadBuffer() (int, error) {
	if c, ok := r.conn.(interface{ ReadBuffer() (int, error) }); ok {
		return c.ReadBuffer()
	}
	return defaultReadBuffer, nil
}

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

// gather implements gatherer.
func (r *Recorder) gather() (Conn, func(), error) {
	g, ok := r.conn.(gatherer)
	if !ok {
		return nil, nil, fmt.Errorf("arpcheck: gather frames of a %T: %w", r.conn, errors.ErrUnsupported)
	}
	conn, scatter, err := g.gather()
	if err != nil {
		return nil, nil, err
	}
	return gathered{r, conn}, scatter, nil
}

// gathered is a Recorder that receives from elsewhere.
type gathered struct {
	*Recorder
	from Conn
}

// Receive implements Conn.
func (g gathered) Receive(frames []Frame) (int, error) { return g.receive(g.from, frames) }

// SetReadDeadline implements Conn.
func (g gathered) SetReadDeadline(t time.Time) error { return g.from.SetReadDeadline(t) }

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
