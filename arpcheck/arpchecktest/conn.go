package arpchecktest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// DefaultReceiveQueue is how many frames wait in a Conn before further ones are
// dropped: as many ARP frames, of 832 bytes of kernel memory each, as fit into a
// Linux socket's default receive buffer of 212992 bytes.
const DefaultReceiveQueue = 256

// stale is what a Conn writes over data that is no longer valid, so that a
// reader that keeps it too long is found out.
const stale = 0xdb

// Conn is an arpcheck.Conn on an interface of a Host, as a packet socket with a
// filter for ARP is. It may be used by several goroutines, except that calls of
// Receive must not overlap.
type Conn struct {
	iface *iface
	done  chan struct{} // closed by Close
	wake  chan struct{} // holds a token when Receive should look again
	once  sync.Once

	// The segment's mutex guards these.
	queue    []arpcheck.Frame
	limit    int
	drops    uint64
	deadline time.Time
	wentDown bool // ErrLinkDown is owed to Receive
	closed   bool
	sending  sendQueue

	// Receive alone uses these.
	timer *time.Timer
	arena []byte
}

var _ arpcheck.Conn = (*Conn)(nil)

// sendQueue is an interface's transmit queue: it holds up to capacity frames and
// lets one go every perFrame.
type sendQueue struct {
	bounded  bool
	capacity int
	perFrame time.Duration
	waiting  int
}

// SetReceiveQueue sets how many frames wait before further ones are dropped. It
// starts as DefaultReceiveQueue.
func (c *Conn) SetReceiveQueue(frames int) {
	defer c.iface.host.seg.enter()()
	c.limit = frames
}

// SetSendQueue bounds the transmit queue: it holds that many frames and lets
// one go every perFrame; Send accepts fewer frames than it is given when the
// queue is full. With 0 frames nothing can be sent. Without this call Send takes
// everything at once.
func (c *Conn) SetSendQueue(frames int, perFrame time.Duration) {
	defer c.iface.host.seg.enter()()
	c.sending.bounded, c.sending.capacity, c.sending.perFrame = true, frames, perFrame
}

// Send implements arpcheck.Conn.
func (c *Conn) Send(frames [][]byte) (int, error) {
	defer c.iface.host.seg.enter()()
	for i, frame := range frames {
		switch {
		case c.closed:
			return i, c.fail("send on", net.ErrClosed)
		case !c.iface.up():
			return i, c.fail("send on", arpcheck.ErrLinkDown)
		case len(frame) < arpwire.EthernetHeader:
			return i, c.fail("send on", fmt.Errorf("frame %d has %d bytes, fewer than an Ethernet header's %d: %w",
				i, len(frame), arpwire.EthernetHeader, os.ErrInvalid))
		}
		if !c.send(append([]byte(nil), frame...)) {
			return i, nil
		}
	}
	return len(frames), nil
}

// send puts a frame on the wire or into the transmit queue; false says that
// the queue is full.
func (c *Conn) send(frame []byte) bool {
	s, q := c.iface.host.seg, &c.sending
	if !q.bounded {
		s.transmit(c.iface, c, frame)
		return true
	}
	if q.waiting >= q.capacity {
		return false
	}
	q.waiting++
	s.schedule.after(time.Duration(q.waiting)*q.perFrame, func() {
		q.waiting--
		s.transmit(c.iface, c, frame)
	})
	return true
}

// Receive implements arpcheck.Conn.
func (c *Conn) Receive(frames []arpcheck.Frame) (int, error) {
	if len(frames) == 0 {
		return 0, c.fail("receive on", fmt.Errorf("no room for a frame was given: %w", os.ErrInvalid))
	}
	for i := range c.arena {
		c.arena[i] = stale
	}
	for {
		n, deadline, err := c.take(frames)
		if n > 0 || err != nil {
			return n, err
		}
		c.wait(deadline)
	}
}

// take moves frames out of the queue. No frame and no error means that there is
// nothing to do before the deadline.
func (c *Conn) take(frames []arpcheck.Frame) (int, time.Time, error) {
	defer c.iface.host.seg.enter()()
	switch {
	case c.closed:
		return 0, time.Time{}, c.fail("receive on", net.ErrClosed)
	case c.wentDown:
		// Before what waits, as sock_error in __skb_try_recv_datagram is.
		c.wentDown = false
		return 0, time.Time{}, c.fail("receive on", arpcheck.ErrLinkDown)
	}
	n := copy(frames, c.queue)
	if n == 0 && !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return 0, time.Time{}, c.fail("receive on", os.ErrDeadlineExceeded)
	}
	c.arena = c.arena[:0]
	for _, f := range frames[:n] {
		c.arena = append(c.arena, f.Data...)
	}
	rest := c.arena
	for i := range frames[:n] {
		size := len(frames[i].Data)
		frames[i].Data, rest = rest[:size:size], rest[size:]
	}
	c.queue = c.queue[n:]
	return n, c.deadline, nil
}

// wait returns when Receive should look again.
func (c *Conn) wait(deadline time.Time) {
	var expired <-chan time.Time
	if !deadline.IsZero() {
		if c.timer == nil {
			c.timer = time.NewTimer(time.Until(deadline))
		} else {
			c.timer.Reset(time.Until(deadline))
		}
		defer c.timer.Stop()
		expired = c.timer.C
	}
	select {
	case <-c.wake:
	case <-c.done:
	case <-expired:
	}
}

// SetReadDeadline implements arpcheck.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	defer c.iface.host.seg.enter()()
	if c.closed {
		return c.fail("set the read deadline on", net.ErrClosed)
	}
	c.deadline = t
	c.poke()
	return nil
}

// Drops implements arpcheck.Conn: it counts the frames that did not fit into
// the receive queue.
func (c *Conn) Drops() (uint64, error) {
	defer c.iface.host.seg.enter()()
	if c.closed {
		return c.drops, c.fail("read the drop counter of", net.ErrClosed)
	}
	return c.drops, nil
}

// Close implements arpcheck.Conn. Closing again does nothing.
func (c *Conn) Close() error {
	defer c.iface.host.seg.enter()()
	c.close()
	return nil
}

func (c *Conn) close() {
	c.closed = true
	c.iface.forget(c)
	c.once.Do(func() { close(c.done) })
}

func (c *Conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// deliver queues a frame that the interface has received or sent. As the
// kernel does, it takes the outer VLAN tag off received frames, while frames
// sent from a raw socket keep theirs.
func (c *Conn) deliver(frame []byte, kind arpcheck.PacketType, at time.Time) {
	if len(c.queue) >= c.limit {
		c.drops++
		return
	}
	f := arpcheck.Frame{Data: frame, At: at, Type: kind}
	if kind != arpcheck.Outgoing {
		f.Data, f.VLAN = untag(frame)
	}
	f.Length = len(f.Data)
	c.queue = append(c.queue, f)
	c.poke()
}

// untag takes the outer 802.1Q or 802.1ad tag off a frame.
func untag(frame []byte) ([]byte, uint16) {
	const addresses, tagged = 12, arpwire.EthernetHeader + arpwire.VLANTag
	kind := binary.BigEndian.Uint16(frame[addresses:])
	if kind != arpwire.TypeVLAN && kind != arpwire.TypeQinQ || len(frame) < tagged {
		return frame, 0
	}
	id := binary.BigEndian.Uint16(frame[arpwire.EthernetHeader:]) & 0x0fff
	return append(frame[:addresses:addresses], frame[addresses+arpwire.VLANTag:]...), id
}

func (c *Conn) fail(what string, err error) error {
	return fmt.Errorf("arpchecktest: %s %s of %s: %w", what, c.iface.name, c.iface.host.name, err)
}
