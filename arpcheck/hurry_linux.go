package arpcheck

import (
	"errors"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// inStep is how late a frame may be read for the time of reading to stand for the
	// time when it came. A sweep's requests are timed no better: many leave in one call.
	inStep = time.Millisecond
	// someVLAN stands for any VLAN; IEEE 802.1Q reserves it.
	someVLAN = vlanMask
)

// hurry is how a packetConn reads for a sweep: what the kernel says of each frame is
// a fifth of what it costs to read it.
type hurry struct {
	on      bool
	stamped bool      // the kernel tells when frames came
	ended   time.Time // a call, after or in which what is read now came
}

// hurryUp implements hurrier.
func (c *packetConn) hurryUp() (restore func(), err error) {
	program, err := bpf.Assemble(arpwire.FilterSweep())
	if err != nil {
		return nil, err
	}
	if err := c.option(func(fd int) error { return setFilter(fd, program) }); err != nil {
		return nil, err
	}
	c.hurry = hurry{on: true, stamped: true}
	auxiliary := func(on int) error {
		return c.option(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, on) })
	}
	restore = func() { // fails only if the socket is closed
		_ = c.option(func(fd int) error { return c.hurry.stamp(fd, true) })
		_ = auxiliary(1)
		c.hurry = hurry{}
		c.filterAll()
	}
	if err := auxiliary(0); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}

// option sets an option of the socket.
func (c *packetConn) option(set func(fd int) error) error {
	var err error
	controlErr := c.raw.Control(func(fd uintptr) { err = set(int(fd)) })
	return errors.Join(controlErr, err)
}

// before lets the kernel stamp what is read at a time only if it may have waited.
func (h *hurry) before(fd int, now time.Time) error {
	if !h.on {
		return nil
	}
	return h.stamp(fd, now.Sub(h.ended) > inStep)
}

// stamp switches time stamps on or off. The kernel takes them all the same, so they
// can also be had of what waits already.
func (h *hurry) stamp(fd int, on bool) error {
	if on == h.stamped {
		return nil
	}
	value := 0
	if on {
		value = 1
	}
	h.stamped = on
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, value)
}

// sent notes a Send, which is no reason to trust what had waited when it began.
func (h *hurry) sent(began time.Time) {
	if h.on && began.Sub(h.ended) <= inStep {
		h.ended = time.Now()
	}
}

// received notes a Receive. If more waits, that is as old as what was read.
func (h *hurry) received(all bool) {
	if h.on && (all || !h.stamped) {
		h.ended = time.Now()
	}
}

// describe tells frames with a tag by what arpwire.FilterSweep has left of them, which
// is no ARP packet either way.
func (h *hurry) describe(f *Frame) {
	if h.on && f.Length == arpwire.TaggedRest {
		f.VLAN = someVLAN
	}
}
