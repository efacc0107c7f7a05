package arpcheck

import (
	"encoding/binary"
	"io"
	"time"
)

// Options of pcapng blocks that are only written (draft-ietf-opsawg-pcapng, sections
// 3.5, 4.1, 4.2, 4.3 and 4.6).
const (
	optComment     = 1
	optStart       = 2 // of a statistics block
	optApplication = 4
	optMAC         = 6

	nanoseconds = 9 // of if_tsresol
)

// evidenceFlags are a frame's flags: its direction and how it was addressed.
func evidenceFlags(as PacketType) uint32 {
	const inbound, outbound = 1, 2
	const unicast, multicast, broadcast, promiscuous = 1 << 2, 2 << 2, 3 << 2, 4 << 2
	switch as {
	case ToHost:
		return inbound | unicast
	case ToBroadcast:
		return inbound | broadcast
	case ToMulticast:
		return inbound | multicast
	case ToOther:
		return inbound | promiscuous
	case Outgoing:
		return outbound
	}
	return inbound
}

// evidenceFile writes a pcapng file of one section with one interface.
type evidenceFile struct {
	out     io.Writer
	buf     []byte // not written yet
	written int64  // what went before
	started time.Time
	block   int // where in buf the block begins that is being made
}

func (e *evidenceFile) begin(link string, mac MAC, at time.Time) {
	e.started = at
	e.open(blockSection)
	e.u32(byteOrder)
	e.u32(1)                                                    // version 1.0
	e.buf = binary.LittleEndian.AppendUint64(e.buf, ^uint64(0)) // how long the section is, is not told
	e.option(optApplication, []byte("github.com/strictarp/strictarp/arpcheck"))
	e.close()
	e.open(blockInterface)
	e.u32(linkEthernet)
	e.u32(0) // frames are not cut
	e.option(optName, []byte(link[:min(len(link), maxName)]))
	if !mac.IsZero() {
		e.option(optMAC, mac[:])
	}
	e.option(optResolution, []byte{nanoseconds})
	e.close()
}

func (e *evidenceFile) frame(f *evidenceFrame, data []byte, note string) {
	e.open(blockEnhanced)
	e.u32(0) // the interface
	e.time(f.at)
	e.u32(uint32(len(data)))
	e.u32(uint32(f.length))
	e.pad(data)
	e.option(optFlags, binary.LittleEndian.AppendUint32(nil, f.flags))
	e.option(optComment, []byte(note))
	e.close()
}

// sum tells until when the record goes and how many frames it lacks. Of several
// the last counts.
func (e *evidenceFile) sum(now time.Time, dropped uint64, note string) {
	e.open(blockStatistics)
	e.u32(0) // the interface
	e.time(now)
	e.option(optComment, []byte(note))
	e.timeOption(optStart, e.started)
	e.timeOption(optEnd, now)
	e.option(optOSDrop, binary.LittleEndian.AppendUint64(nil, dropped))
	e.close()
}

// size is how long the file is, with what is not written yet.
func (e *evidenceFile) size() int64 { return e.written + int64(len(e.buf)) }

// flush writes what was made.
func (e *evidenceFile) flush() error {
	if len(e.buf) == 0 {
		return nil
	}
	_, err := e.out.Write(e.buf)
	e.written += int64(len(e.buf))
	e.buf = e.buf[:0]
	return err
}

func (e *evidenceFile) open(kind uint32) {
	e.block = len(e.buf)
	e.u32(kind)
	e.u32(0) // the length, which close fills in
}

// close ends the options and the block.
func (e *evidenceFile) close() {
	e.u32(0) // opt_endofopt
	size := uint32(len(e.buf) - e.block + 4)
	e.u32(size)
	binary.LittleEndian.PutUint32(e.buf[e.block+4:], size)
}

func (e *evidenceFile) u32(v uint32) { e.buf = binary.LittleEndian.AppendUint32(e.buf, v) }

func (e *evidenceFile) time(t time.Time) {
	ns := uint64(t.UnixNano())
	e.u32(uint32(ns >> 32))
	e.u32(uint32(ns))
}

// option leaves out what is empty.
func (e *evidenceFile) option(code uint16, value []byte) {
	if len(value) > 0 {
		e.u32(uint32(code) | uint32(len(value))<<16)
		e.pad(value)
	}
}

func (e *evidenceFile) timeOption(code uint16, t time.Time) {
	const size = 8
	e.u32(uint32(code) | size<<16)
	e.time(t)
}

func (e *evidenceFile) pad(data []byte) {
	e.buf = append(e.buf, data...)
	e.buf = append(e.buf, make([]byte, aligned(len(data))-len(data))...)
}
