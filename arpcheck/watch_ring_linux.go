package arpcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ring of a Watch: 1 MiB, which holds some 5,000 ARP frames. The kernel hands over
// a block when it is full or ringRetire after its first frame, so that a Watch wakes
// up 16 times a second at most, however many frames pass; a socket's queue wakes
// the runtime's poller for each frame.
const (
	ringBlock  = 64 << 10
	ringBlocks = 16
	ringRetire = 60 * time.Millisecond
	// ringFrame is only what the kernel checks sizes with; in a block frames take as
	// much as they need.
	ringFrame = 2048
	// Of struct sockaddr_ll, which follows struct tpacket3_hdr.
	ringPacketType = unix.SizeofTpacket3Hdr + 10
)

// ringConn is a packetConn whose frames come in a TPACKET_V3 ring
// (Documentation/networking/packet_mmap.rst).
type ringConn struct {
	*packetConn
	memory []byte
	opened time.Time
	block  int    // the next to be read, or the one that is being read
	left   uint32 // frames in it that were not read yet
	offset uint32 // of the next one in the block
	held   bool   // the block is ours until the next Receive
}

// gather implements gatherer. An error leaves the Conn as it was.
func (c *packetConn) gather() (Conn, func(), error) {
	r := &ringConn{packetConn: c, opened: time.Now()}
	var err error
	controlErr := c.raw.Control(func(fd uintptr) { err = r.mapRing(int(fd)) })
	if err = errors.Join(controlErr, err); err != nil {
		r.unmap()
		return nil, nil, fmt.Errorf("set up a receive ring: %w", err)
	}
	return r, r.unmap, nil
}

func (r *ringConn) mapRing(fd int) (err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	err = unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
		Block_size: ringBlock, Block_nr: ringBlocks, Frame_size: ringFrame, Frame_nr: ringBlock / ringFrame * ringBlocks,
		Retire_blk_tov: uint32(ringRetire.Milliseconds()),
	})
	if err != nil {
		return err
	}
	r.memory, err = unix.Mmap(fd, 0, ringBlock*ringBlocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// unmap makes the Conn a plain one again. What it does fails only if the socket is
// closed, which then has no ring either.
func (r *ringConn) unmap() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
		r.memory = nil
	}
	_ = r.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptTpacketReq3(int(fd), unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{})
		_ = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V1)
	})
}

// Receive implements Conn.
func (r *ringConn) Receive(frames []Frame) (int, error) {
	if r.held && r.left == 0 {
		r.release()
	}
	if !r.take() {
		var socketErr error
		err := r.wait(func(fd int) bool {
			if r.take() {
				return true
			}
			// The ring does not tell that the interface went down.
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = unix.Errno(code)
			}
			socketErr = err
			return err != nil
		})
		if err = errors.Join(err, socketErr); err != nil {
			return 0, r.explain(err)
		}
	}
	n, now := 0, time.Now()
	for ; n < len(frames) && r.left > 0; n++ {
		if !r.frame(&frames[n], now) {
			r.left = 0 // the rest of the block makes no sense
			break
		}
	}
	return n, nil
}

// status is who owns the block: the kernel or we.
func (r *ringConn) status() *uint32 {
	return (*uint32)(unsafe.Pointer(&r.current()[8])) // after version and offset_to_priv
}

func (r *ringConn) current() []byte { return r.memory[r.block*ringBlock:][:ringBlock] }

// take reports whether there is a block with frames.
func (r *ringConn) take() bool {
	for !r.held {
		if atomic.LoadUint32(r.status())&unix.TP_STATUS_USER == 0 {
			return false
		}
		b := r.current()
		r.held = true
		r.left, r.offset = binary.NativeEndian.Uint32(b[12:]), binary.NativeEndian.Uint32(b[16:])
		if r.left == 0 {
			r.release()
		}
	}
	return true
}

func (r *ringConn) release() {
	atomic.StoreUint32(r.status(), unix.TP_STATUS_KERNEL)
	r.block = (r.block + 1) % ringBlocks
	r.held = false
}

// frame describes the next frame of the block, a struct tpacket3_hdr.
func (r *ringConn) frame(f *Frame, now time.Time) bool {
	b := r.current()
	if int(r.offset)+ringPacketType >= len(b) {
		return false
	}
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[r.offset]))
	begin, end := int(r.offset)+int(h.Mac), int(r.offset)+int(h.Mac)+int(h.Snaplen)
	if end > len(b) {
		return false
	}
	f.Data, f.Length = b[begin:end:end], int(h.Len)
	f.Type = PacketType(b[r.offset+ringPacketType])
	f.At, f.VLAN = now, 0
	if h.Status&unix.TP_STATUS_VLAN_VALID != 0 {
		f.VLAN = uint16(h.Hv1.Vlan_tci) & vlanMask
	}
	// As in a queue, counting back from now keeps the monotonic reading.
	if ago := now.Round(0).Sub(time.Unix(int64(h.Sec), int64(h.Nsec))); ago > 0 {
		f.At = later(now.Add(-ago), r.opened)
	}
	r.left--
	r.offset += h.Next_offset
	return true
}
