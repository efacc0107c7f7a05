package arpcheck

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ring holds 4,096 frames in 1 MiB, whatever net.core.rmem_max allows a queue.
const (
	ringBlock  = 64 << 10 // bytes that the kernel allocates in one piece
	ringFrame  = 256      // bytes of a frame, with some 66 that describe it
	ringFrames = 4096
	// Of struct sockaddr_ll, which follows struct tpacket2_hdr.
	ringPacketType = unix.SizeofTpacket2Hdr + 10
)

// ring is a TPACKET_V2 receive ring (Documentation/networking/packet_mmap.rst). To
// read a frame from it takes no system call, and the kernel neither clones it nor
// wakes anybody: a sweep costs an eighth less than with a queue.
//
// Frames are copied out of it, so that Close may take it away at any time.
type ring struct {
	mu     sync.Mutex // guards memory, which is nil after unmap
	memory []byte
	next   int // frame
}

// mapRing gives a socket a ring. What had come before is lost: the socket should
// not be bound yet. After an error the socket has a queue, as before.
func mapRing(fd int) (*ring, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return nil, fmt.Errorf("choose TPACKET_V2: %w", err)
	}
	request := unix.TpacketReq{
		Block_size: ringBlock, Block_nr: ringFrames * ringFrame / ringBlock, Frame_size: ringFrame, Frame_nr: ringFrames,
	}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return nil, fmt.Errorf("make a receive ring: %w", err)
	}
	memory, err := unix.Mmap(fd, 0, ringFrames*ringFrame, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{}) // fails only while it is mapped
		return nil, fmt.Errorf("map a receive ring: %w", err)
	}
	return &ring{memory: memory}, nil
}

func (r *ring) unmap() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory := r.memory
	r.memory = nil
	if memory == nil {
		return nil
	}
	return unix.Munmap(memory)
}

// take copies frames that wait into slots of data, and returns how many. They came
// since the time given.
func (r *ring) take(frames []Frame, data []byte, size int, since time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return 0
	}
	now := time.Now()
	for n < len(frames) {
		b := r.memory[r.next*ringFrame:][:ringFrame]
		h := (*unix.Tpacket2Hdr)(unsafe.Pointer(&b[0]))
		if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
			break
		}
		f := &frames[n]
		f.Data = data[n*size:][:copy(data[n*size:][:size], b[h.Mac:min(uint32(h.Mac)+h.Snaplen, ringFrame)])]
		f.Length, f.Type, f.VLAN = int(h.Len), PacketType(b[ringPacketType]), 0
		if h.Status&unix.TP_STATUS_VLAN_VALID != 0 {
			f.VLAN = h.Vlan_tci & vlanMask
		}
		f.At = stamped(time.Unix(int64(h.Sec), int64(h.Nsec)), since, now)
		atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
		r.next = (r.next + 1) % ringFrames
		n++
	}
	return n
}

// stamped is when a frame came that arrived between since and now. The kernel's time
// stamp is wall time; counting back from now keeps the monotonic reading, and since
// bounds what a step of the clock can do.
func stamped(stamp, since, now time.Time) time.Time {
	if ago := now.Round(0).Sub(stamp); ago > 0 {
		return later(now.Add(-ago), since)
	}
	return now
}
