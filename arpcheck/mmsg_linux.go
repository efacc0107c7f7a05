package arpcheck

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// mmsghdr is struct mmsghdr of recvmmsg(2) and sendmmsg(2), which x/sys/unix
// does not wrap. Go pads it as C does.
type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

// messages are the buffers of a batch, made once and used for every call.
type messages struct {
	headers []mmsghdr
	iovecs  []unix.Iovec
	names   []unix.RawSockaddrLinklayer
	data    []byte // size bytes for each message
	control []byte // controlSize bytes for each message
	size    int
}

// controlSize holds a timestamp and the packet's auxiliary data.
var controlSize = unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))) +
	unix.CmsgSpace(int(unsafe.Sizeof(unix.TpacketAuxdata{})))

func (m *messages) init(count, size int) {
	m.headers = make([]mmsghdr, count)
	m.iovecs = make([]unix.Iovec, count)
	m.names = make([]unix.RawSockaddrLinklayer, count)
	m.data = make([]byte, count*size)
	m.control = make([]byte, count*controlSize)
	m.size = size
	for i := range m.headers {
		m.iovecs[i].Base = &m.data[i*size]
		m.iovecs[i].SetLen(size)
		h := &m.headers[i].header
		h.Iov = &m.iovecs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&m.names[i]))
		h.Control = &m.control[i*controlSize]
	}
}

// initSend prepares for ARP frames that leave by one interface.
func (m *messages) initSend(count, ifindex int) {
	m.headers = make([]mmsghdr, count)
	m.iovecs = make([]unix.Iovec, count)
	m.names = []unix.RawSockaddrLinklayer{{
		Family: unix.AF_PACKET, Protocol: networkOrder(arpwire.TypeARP), Ifindex: int32(ifindex),
	}}
	for i := range m.headers {
		h := &m.headers[i].header
		h.Iov = &m.iovecs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&m.names[0]))
		h.Namelen = unix.SizeofSockaddrLinklayer
	}
}

func (m *messages) load(frames [][]byte) {
	for i := range min(len(frames), len(m.headers)) {
		m.iovecs[i].Base = unsafe.SliceData(frames[i])
		m.iovecs[i].SetLen(len(frames[i]))
	}
}

func (m *messages) send(fd, count int) (int, error) {
	return m.call(unix.SYS_SENDMMSG, fd, count, unix.MSG_DONTWAIT)
}

// receive tells of each frame how long it was, though not all of it may be copied.
func (m *messages) receive(fd, count int) (int, error) {
	for i := range count {
		h := &m.headers[i].header
		h.Namelen = unix.SizeofSockaddrLinklayer
		h.SetControllen(controlSize)
		h.Flags = 0
	}
	return m.call(unix.SYS_RECVMMSG, fd, count, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
}

// call does not tell the scheduler, since these calls never wait: it would take
// a call that sends many frames for one that does, and move the goroutine to
// another thread. That doubled what a sweep costs.
func (m *messages) call(trap uintptr, fd, count, flags int) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(&m.headers[0])),
			uintptr(count), uintptr(flags), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// frame describes the i-th received message, which arrived between since and now.
func (m *messages) frame(i int, since, now time.Time, f *Frame) {
	h := &m.headers[i]
	f.Data = m.data[i*m.size : i*m.size+min(int(h.length), m.size)]
	f.Length = int(h.length)
	f.Type = PacketType(m.names[i].Pkttype)
	f.At = now
	f.VLAN = 0
	control := m.control[i*controlSize:][:h.header.Controllen]
	for len(control) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		if c.Len < unix.SizeofCmsghdr || int(c.Len) > len(control) {
			return
		}
		f.describe(c, control[unix.CmsgLen(0):c.Len], since, now)
		control = control[min(unix.CmsgSpace(int(c.Len)-unix.CmsgLen(0)), len(control)):]
	}
}

func (f *Frame) describe(c *unix.Cmsghdr, data []byte, since, now time.Time) {
	switch {
	case c.Level == unix.SOL_SOCKET && c.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
		stamp := (*unix.Timespec)(unsafe.Pointer(&data[0]))
		f.At = stamped(time.Unix(stamp.Unix()), since, now)
	case c.Level == unix.SOL_PACKET && c.Type == unix.PACKET_AUXDATA && len(data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
		aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&data[0]))
		f.Length = int(aux.Len)
		if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 {
			f.VLAN = aux.Vlan_tci & vlanMask
		}
	}
}

const vlanMask = 0x0fff
