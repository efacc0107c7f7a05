package rtnl

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// eventBuffer is the size that is asked for the socket's queue, in bytes. An
// event takes about 1 KiB of it: so thousands fit, as when a service proxy
// starts, where the default has room for some 200. Memory is taken only for
// events that wait.
const eventBuffer = 8 << 20

// Events is a socket for changes of links and IPv4 addresses. It belongs to the
// network namespace of the thread that opened it. It gets events only between
// Subscribe and Unsubscribe: the kernel has no work with it otherwise.
type Events struct {
	file *os.File
	raw  syscall.RawConn
	buf  []byte
}

// OpenEvents opens an Events. The caller must close it.
func OpenEvents() (*Events, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// Without CAP_NET_ADMIN the second is refused, and the first gives what
	// net.core.rmem_max allows. An overrun is noticed, so less is no fault.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, eventBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, eventBuffer)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	e := &Events{file: os.NewFile(uintptr(fd), "netlink events"), buf: make([]byte, bufferSize)}
	if e.raw, err = e.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, e.file.Close())
	}
	return e, nil
}

// Close closes the socket. Read then returns os.ErrClosed.
func (e *Events) Close() error { return e.file.Close() }

// Subscribe makes events come.
func (e *Events) Subscribe() error { return e.membership(unix.NETLINK_ADD_MEMBERSHIP) }

// Unsubscribe makes no more events come, and forgets those that wait.
func (e *Events) Unsubscribe() error {
	err := e.membership(unix.NETLINK_DROP_MEMBERSHIP)
	_, pendingErr := e.Pending(func(Message) error { return nil })
	return errors.Join(err, pendingErr)
}

func (e *Events) membership(option int) error {
	var err error
	controlErr := e.raw.Control(func(fd uintptr) {
		for _, group := range []int{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR} {
			err = errors.Join(err, os.NewSyscallError("setsockopt membership", unix.SetsockoptInt(int(fd), unix.SOL_NETLINK, option, group)))
		}
	})
	return errors.Join(controlErr, err)
}

// SetDeadline makes Read return os.ErrDeadlineExceeded at a time, or never if
// it is zero.
func (e *Events) SetDeadline(t time.Time) error { return e.file.SetReadDeadline(t) }

// Read waits for events and calls each for every one until that returns false.
// If events were lost, Overrun of the error is true.
func (e *Events) Read(each func(Message) bool) error {
	n, err := e.file.Read(e.buf)
	if err != nil {
		return err
	}
	for b := e.buf[:n]; len(b) > 0; {
		var m Message
		if m, b, err = Next(b); err != nil || !each(m) {
			return err
		}
	}
	return nil
}

// Pending calls each for every event that has come, and does not wait. The
// first result reports whether events were lost.
func (e *Events) Pending(each func(Message) error) (overrun bool, err error) {
	for {
		err := e.poll(each)
		if !Overrun(err) {
			return overrun, err
		}
		overrun = true
	}
}

func (e *Events) poll(each func(Message) error) error {
	for {
		n, err := e.tryRead()
		if err != nil || n == 0 {
			return err
		}
		for b := e.buf[:n]; len(b) > 0; {
			var m Message
			if m, b, err = Next(b); err != nil {
				return err
			}
			if err := each(m); err != nil {
				return err
			}
		}
	}
}

// tryRead returns 0 bytes if there is nothing to read.
func (e *Events) tryRead() (n int, err error) {
	controlErr := e.raw.Control(func(fd uintptr) {
		for {
			n, err = unix.Read(int(fd), e.buf)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if controlErr != nil {
		return 0, controlErr
	}
	if errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), os.NewSyscallError("read", err)
}
