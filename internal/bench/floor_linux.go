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

// floor sends frames on an interface and reads nothing, or counts what comes back.
type floor struct {
	fd   int
	name unix.RawSockaddrLinklayer
	out  [floorBatch]mmsghdr
	in   [floorBatch * 2]mmsghdr
	vecs [floorBatch * 3]unix.Iovec
	data [floorBatch * 2][64]byte
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
	for i := range f.out {
		h := &f.out[i].header
		h.Iov, h.Name, h.Namelen = &f.vecs[i], (*byte)(unsafe.Pointer(&f.name)), unix.SizeofSockaddrLinklayer
		h.SetIovlen(1)
	}
	for i := range f.in {
		vec := &f.vecs[floorBatch+i]
		vec.Base = &f.data[i][0]
		vec.SetLen(len(f.data[i]))
		f.in[i].header.Iov = vec
		f.in[i].header.SetIovlen(1)
	}
	return f, nil
}

// listen lets ARP frames come back, and returns how many replies the socket holds.
func (f *floor) listen() (replies int, err error) {
	const (
		buffer   = 4 << 20 // as arpcheck.Open asks for
		truesize = 832     // of a reply, by which the kernel counts
	)
	if unix.SetsockoptInt(f.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil { // CAP_NET_ADMIN of the machine
		if err := unix.SetsockoptInt(f.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return 0, fmt.Errorf("set the receive buffer: %w", err)
		}
	}
	size, err := unix.GetsockoptInt(f.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0, fmt.Errorf("read the receive buffer's size: %w", err)
	}
	if err := unix.Bind(f.fd, &unix.SockaddrLinklayer{Protocol: f.name.Protocol, Ifindex: int(f.name.Ifindex)}); err != nil {
		return 0, fmt.Errorf("bind a packet socket: %w", err)
	}
	return size / truesize, nil
}

// send sends all frames. A full queue is waited for, as a sweep does. If it is told
// to read, it does so after each batch, and returns how many frames it has read.
func (f *floor) send(frames [][]byte, most int, read bool) (replies int, err error) {
	for len(frames) > 0 {
		batch := min(len(frames), most, floorBatch)
		for i, frame := range frames[:batch] {
			f.vecs[i].Base = unsafe.SliceData(frame)
			f.vecs[i].SetLen(len(frame))
		}
		n, errno := f.call(unix.SYS_SENDMMSG, f.out[:batch])
		switch {
		case errno == 0:
			frames = frames[n:]
		case errors.Is(errno, unix.ENOBUFS):
			time.Sleep(time.Millisecond)
		case !errors.Is(errno, unix.EINTR):
			return replies, fmt.Errorf("sendmmsg: %w", errno)
		}
		for read {
			n, errno := f.call(unix.SYS_RECVMMSG, f.in[:])
			if errno != 0 && !errors.Is(errno, unix.EAGAIN) {
				return replies, fmt.Errorf("recvmmsg: %w", errno)
			}
			replies += n
			if n < len(f.in) {
				break
			}
		}
	}
	return replies, nil
}

func (f *floor) call(trap uintptr, messages []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(trap, uintptr(f.fd), uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
