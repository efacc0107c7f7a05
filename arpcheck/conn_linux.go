package arpcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// receiveBuffer is the size in bytes asked for where there is no ring: a reply takes
// 832 of them, so the usual default holds 256 and this some 5,000. Without
// CAP_NET_ADMIN the kernel grants at most net.core.rmem_max.
const receiveBuffer = 4 << 20

// packetConn is a Conn on an AF_PACKET socket. It listens to all protocols with
// a filter for ARP: a socket for ARP alone would neither see other programs'
// requests nor the VLAN tag of a frame.
//
// Frames are read from a ring. Where there can be none, such as under a security
// policy that forbids to map a socket, they are read from the socket's queue.
//
// The socket is in an epoll instance of its own, and there only while a Receive
// waits. If the runtime polled the socket, each frame would wake up a thread, also
// while frames are read as fast as they come: 5 to 12 % of what a sweep costs.
type packetConn struct {
	socket *os.File // which the runtime does not poll
	poll   *os.File // the epoll instance, which it does
	raw    syscall.RawConn
	waiter syscall.RawConn
	closed atomic.Bool
	drops  uint64
	empty  time.Time // when nothing was last known to wait: later frames are younger

	ring *ring // nil: frames are read from the queue
	in   messages
	out  messages
}

// openPacketConn opens a packetConn, on request without a ring.
func openPacketConn(link net.Interface, ringed bool) (*packetConn, error) {
	fd, ring, err := listenARP(link.Index, ringed)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("a packet socket needs CAP_NET_RAW: run as root, grant it to the program "+
			"(setcap cap_net_raw+ep PROGRAM), or in Kubernetes add NET_RAW to securityContext.capabilities: %w", fs.ErrPermission)
	}
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	c := &packetConn{socket: os.NewFile(uintptr(fd), "packet socket"), ring: ring, empty: time.Now()}
	if err := c.openPoll(); err != nil {
		return nil, errors.Join(fmt.Errorf("make an epoll instance: %w", err), c.socket.Close(), c.unmap())
	}
	c.in.init(sweepReceiveBatch, arpwire.MinFrame+2*arpwire.VLANTag)
	c.out.initSend(sweepSendBatch, link.Index)
	return c, nil
}

// listenARP returns a packet socket of an interface, and its ring if there can be one.
// The filter is attached before the socket is bound: no frame gets in unfiltered.
func listenARP(ifindex int, ringed bool) (fd int, ring *ring, err error) {
	filter, err := arpwire.RawFilterARP()
	if err != nil {
		return 0, nil, fmt.Errorf("assemble the filter: %w", err)
	}
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	if ringed {
		ring, err = mapRing(fd)
	}
	if ring == nil {
		err = setUpQueue(fd)
	}
	if err == nil {
		err = setFilter(fd, filter)
	}
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: ifindex}))
	}
	if err != nil {
		err = errors.Join(err, unix.Close(fd))
		if ring != nil {
			err = errors.Join(err, ring.unmap())
		}
		return 0, nil, err
	}
	return fd, ring, nil
}

// setUpQueue lets the kernel say of each frame in the queue what a ring says anyway.
func setUpQueue(fd int) error {
	err := errors.Join(setReadBuffer(fd, receiveBuffer),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	return os.NewSyscallError("set up the queue", err)
}

func setReadBuffer(fd, bytes int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
}

func setFilter(fd int, filter []bpf.RawInstruction) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	return os.NewSyscallError("attach a filter", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program))
}

func (c *packetConn) openPoll() (err error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not poll it
		return errors.Join(err, unix.Close(fd))
	}
	c.poll = os.NewFile(uintptr(fd), "epoll instance")
	if c.raw, err = c.socket.SyscallConn(); err == nil {
		c.waiter, err = c.poll.SyscallConn()
	}
	if err != nil {
		err = errors.Join(err, c.poll.Close())
	}
	return err
}

// option sets an option of the socket.
func (c *packetConn) option(set func(fd int) error) error {
	var err error
	controlErr := c.raw.Control(func(fd uintptr) { err = set(int(fd)) })
	return errors.Join(controlErr, err)
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

// Receive implements Conn. What waits is taken whatever the deadline says, at which
// the runtime's poller would look first.
func (c *packetConn) Receive(frames []Frame) (int, error) {
	receive := c.dequeue
	if c.ring != nil {
		receive = c.takeFromRing
	}
	now := time.Now()
	n, err := receive(frames)
	if n == 0 && err == nil {
		c.empty = now
		waitErr := c.wait(func() bool {
			n, err = receive(frames)
			return n > 0 || err != nil
		})
		err = errors.Join(err, waitErr)
	}
	if err != nil {
		return 0, c.explain(err)
	}
	return n, nil
}

// takeFromRing returns 0 frames if none waits.
func (c *packetConn) takeFromRing(frames []Frame) (int, error) {
	n := c.ring.take(frames[:min(len(frames), len(c.in.headers))], c.in.data, c.in.size, c.empty)
	if n > 0 {
		return n, nil
	}
	return 0, c.option(func(fd int) error { // a ring does not tell that the interface went down
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		return err
	})
}

// dequeue returns 0 frames if none waits.
func (c *packetConn) dequeue(frames []Frame) (n int, err error) {
	err = c.option(func(fd int) (err error) {
		n, err = c.in.receive(fd, min(len(frames), len(c.in.headers)))
		return err
	})
	if errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	now := time.Now()
	for i := range n {
		c.in.frame(i, c.empty, now, &frames[i])
	}
	return n, err
}

// wait calls ready, now and whenever there is something to be read, until it
// reports that it is done or the deadline has passed, which it looks at first.
func (c *packetConn) wait(ready func() bool) error {
	added := false
	var pollErr error
	err := c.waiter.Read(func(epoll uintptr) bool {
		controlErr := c.raw.Control(func(fd uintptr) {
			if !added {
				pollErr = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN})
				added = pollErr == nil
			}
		})
		pollErr = errors.Join(pollErr, controlErr)
		return pollErr != nil || ready()
	})
	if added {
		_ = c.waiter.Control(func(epoll uintptr) {
			_ = c.raw.Control(func(fd uintptr) {
				_ = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_DEL, int(fd), nil)
			})
		})
	}
	return errors.Join(err, pollErr)
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
	if err := c.poll.SetReadDeadline(t); err != nil {
		return c.explain(err)
	}
	return nil
}

// Drops implements Conn. The kernel's counter starts again each time it is read.
func (c *packetConn) Drops() (uint64, error) {
	var stats *unix.TpacketStats
	err := c.option(func(fd int) (err error) {
		stats, err = unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		return err
	})
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
	return errors.Join(c.poll.Close(), c.socket.Close(), c.unmap())
}

func (c *packetConn) unmap() error {
	if c.ring == nil {
		return nil
	}
	return c.ring.unmap()
}

// Capacity returns how many ARP replies wait at most until they are read. A Sweep goes
// by it.
func (c *packetConn) Capacity() int {
	if c.ring != nil {
		return ringFrames
	}
	capacity := defaultCapacity
	_ = c.option(func(fd int) error { // fails only if the socket is closed, which others tell
		bytes, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		if err == nil {
			capacity = bytes / frameMemory
		}
		return err
	})
	return capacity
}

// networkOrder turns a number into the byte order of sockaddr_ll's protocol.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
