package main

import (
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const floorBatch = 64 // more frames in one system call save nothing

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	_      uint32
}

// floor sends frames on an interface and reads nothing.
type floor struct {
	fd      int
	name    unix.RawSockaddrLinklayer
	headers [floorBatch]mmsghdr
	iovecs  [floorBatch]unix.Iovec
}

func newFloor(link string) (*floor, error) {
	nic, err := net.InterfaceByName(link)
	if err != nil {
		return nil, err
	}
	f := &floor{name: unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Protocol: 0x0608, Ifindex: int32(nic.Index)}}
	if f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	for i := range f.headers {
		h := &f.headers[i].header
		h.Iov, h.Name, h.Namelen = &f.iovecs[i], (*byte)(unsafe.Pointer(&f.name)), unix.SizeofSockaddrLinklayer
		h.SetIovlen(1)
	}
	return f, nil
}

// send sends all frames. A full queue is waited for, as a sweep does.
func (f *floor) send(frames [][]byte) error {
	for len(frames) > 0 {
		batch := min(len(frames), floorBatch)
		for i, frame := range frames[:batch] {
			f.iovecs[i].Base = unsafe.SliceData(frame)
			f.iovecs[i].SetLen(len(frame))
		}
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(f.fd), uintptr(unsafe.Pointer(&f.headers[0])), uintptr(batch), 0, 0, 0)
		switch {
		case errno == 0:
			frames = frames[n:]
		case errors.Is(errno, unix.ENOBUFS):
			time.Sleep(time.Millisecond)
		case !errors.Is(errno, unix.EINTR):
			return fmt.Errorf("sendmmsg: %w", errno)
		}
	}
	return nil
}
