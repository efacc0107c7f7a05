package arpcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// receiveBuffer is the size in bytes asked for: a reply takes 832 of them, so
// the usual default holds 256 and this some 5,000. Without CAP_NET_ADMIN the
// kernel grants at most net.core.rmem_max.
const receiveBuffer = 4 << 20

// packetConn is a Conn on an AF_PACKET socket. It listens to all protocols with
// a filter for ARP: a socket for ARP alone would neither see other programs'
// requests nor the VLAN tag of a frame.
type packetConn struct {
	packet *packet.Conn
	raw    syscall.RawConn
	closed atomic.Bool
	drops  uint64
	empty  time.Time // when nothing was last known to wait: later frames are younger

	in  messages
	out messages
}

func openPacketConn(link net.Interface) (*packetConn, error) {
	filter, err := arpwire.RawFilterARP()
	if err != nil {
		return nil, fmt.Errorf("assemble the socket filter: %w", err)
	}
	pc, err := packet.Listen(&link, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: filter})
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("a packet socket needs CAP_NET_RAW: run as root, grant it to the program "+
			"(setcap cap_net_raw+ep PROGRAM), or in Kubernetes add NET_RAW to securityContext.capabilities: %w", fs.ErrPermission)
	}
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	raw, err := pc.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	c := &packetConn{packet: pc, raw: raw, empty: time.Now()}
	c.in.init(sweepReceiveBatch, arpwire.MinFrame+2*arpwire.VLANTag)
	c.out.initSend(sweepSendBatch, link.Index)
	if err := c.configure(); err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	return c, nil
}

func (c *packetConn) configure() error {
	var errs error
	err := c.raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
			errs = errors.Join(errs, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer))
		}
		errs = errors.Join(errs,
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	})
	if err = errors.Join(err, errs); err != nil {
		return fmt.Errorf("set up the packet socket: %w", err)
	}
	return nil
}

// Send implements Conn.
func (c *packetConn) Send(frames [][]byte) (int, error) {
	for sent := 0; sent < len(frames); {
		n, err := c.sendSome(frames[sent:])
		sent += n
		switch {
		case errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN):
			return sent, nil // the queue is full
		case err != nil:
			return sent, c.explain(err)
		}
	}
	return len(frames), nil
}

func (c *packetConn) sendSome(frames [][]byte) (n int, err error) {
	c.out.load(frames)
	controlErr := c.raw.Control(func(fd uintptr) {
		n, err = c.out.send(int(fd), min(len(frames), len(c.out.headers)))
	})
	return n, errors.Join(controlErr, err)
}

// Receive implements Conn.
func (c *packetConn) Receive(frames []Frame) (int, error) {
	want := min(len(frames), len(c.in.headers))
	var n int
	var err error
	now := time.Now()
	// What waits is taken whatever the deadline says; the runtime's poller
	// would look at the deadline first.
	controlErr := c.raw.Control(func(fd uintptr) { n, err = c.in.receive(int(fd), want) })
	if controlErr != nil {
		return 0, c.explain(controlErr)
	}
	if errors.Is(err, unix.EAGAIN) {
		c.empty = now
		waitErr := c.raw.Read(func(fd uintptr) bool {
			n, err = c.in.receive(int(fd), want)
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			return 0, c.explain(waitErr)
		}
	}
	if err != nil {
		return 0, c.explain(err)
	}
	now = time.Now()
	for i := range n {
		c.in.frame(i, c.empty, now, &frames[i])
	}
	return n, nil
}

// explain makes an error match what Conn promises.
func (c *packetConn) explain(err error) error {
	switch {
	case c.closed.Load():
		return net.ErrClosed
	case errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: %w", ErrLinkDown, err)
	}
	return err
}

// SetReadDeadline implements Conn.
func (c *packetConn) SetReadDeadline(t time.Time) error {
	if err := c.packet.SetReadDeadline(t); err != nil {
		return c.explain(err)
	}
	return nil
}

// Drops implements Conn. The kernel's counter starts again each time it is read.
func (c *packetConn) Drops() (uint64, error) {
	stats, err := c.packet.Stats()
	if err != nil {
		return 0, c.explain(err)
	}
	c.drops += uint64(stats.Drops)
	return c.drops, nil
}

// Close implements Conn.
func (c *packetConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.packet.Close()
}

// networkOrder turns a number into the byte order of sockaddr_ll's protocol.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
