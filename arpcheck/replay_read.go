package arpcheck

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// capturedFrame is an ARP frame of a capture.
type capturedFrame struct {
	Frame
	packet arpwire.Packet
	kind   Kind // empty if there is nothing more to learn from it than that it was there
	link   int  // which interface of the capture
	// typed says that the capture itself knows the frame's Type, which is else
	// found from its addresses.
	typed bool
}

// replay holds a capture's frames.
type replay struct {
	frames  []capturedFrame
	names   map[int]string // of interfaces
	ended   time.Time
	quality CaptureQuality
}

// link types, from the tcpdump group's registry.
const (
	linkEthernet = 1
	linkSLL      = 113
	linkSLL2     = 276
)

// read takes in the frames of a pcap or pcapng file.
func (p *replay) read(r io.Reader) error {
	p.names = map[int]string{}
	err := readCapture(r, p)
	if errors.Is(err, errEnough) {
		err = nil
	}
	// Interfaces are read in turn, so that a file need not be in order.
	slices.SortStableFunc(p.frames, func(a, b capturedFrame) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.link, b.link)) })
	return err
}

// errEnough ends reading.
var errEnough = errors.New("more frames than are looked at")

// captured is a frame as a file holds it.
type captured struct {
	data     []byte // valid until the next one
	at       time.Time
	length   int // on the link
	linkType int
	link     int
	outgoing bool // the file says so
}

func (p *replay) add(c captured) error {
	if c.at.IsZero() {
		p.quality.Unreadable++
		return nil
	}
	p.reach(c.at)
	f := capturedFrame{Frame: Frame{At: c.at, Length: c.length}, link: c.link}
	switch {
	case c.linkType == linkEthernet:
		f.Data = c.data
		if c.outgoing {
			f.Type, f.typed = Outgoing, true
		}
	case c.linkType == linkSLL && len(c.data) >= sllSize:
		f.uncook(PacketType(c.data[1]), c.data[6:12], c.data[14:16], c.data[sllSize:])
		f.Length -= sllSize - arpwire.EthernetHeader
	case c.linkType == linkSLL2 && len(c.data) >= sll2Size:
		f.uncook(PacketType(c.data[10]), c.data[12:18], c.data[:2], c.data[sll2Size:])
		f.Length -= sll2Size - arpwire.EthernetHeader
		f.link = int(binary.BigEndian.Uint32(c.data[4:]))
	case c.linkType == linkSLL || c.linkType == linkSLL2:
		p.quality.Malformed++
		return nil
	default:
		p.quality.Unreadable++
		return nil
	}
	return p.keep(f)
}

// reach notes that the capture goes on until then.
func (p *replay) reach(at time.Time) {
	if at.After(p.ended) {
		p.ended = at
	}
}

// keep parses a frame and copies what ARP is of it.
func (p *replay) keep(f capturedFrame) error {
	packet, err := arpwire.Parse(f.Data)
	if errors.Is(err, arpwire.ErrNotARP) && len(f.Data) >= arpwire.EthernetHeader {
		p.quality.NotARP++
		return nil
	}
	if len(p.frames) == maxCaptureFrames {
		p.quality.Cut = true
		return errEnough
	}
	p.quality.Frames++
	f.packet = packet
	if err == nil {
		f.kind = kindOf(packet)
	}
	if f.kind == "" {
		p.quality.Malformed++
	}
	f.Data = nil // it is parsed
	p.frames = append(p.frames, f)
	return nil
}

const (
	sllSize  = 16
	sll2Size = 20
)

// uncook makes an Ethernet frame of a Linux cooked one, which has no
// destination: that of a frame to this host is the ARP target, whoever else it
// may have been for.
func (f *capturedFrame) uncook(as PacketType, source, protocol, payload []byte) {
	f.Type, f.typed = as, true
	data := make([]byte, 12, arpwire.EthernetHeader+len(payload))
	copy(data[6:], source)
	data = append(append(data, protocol...), payload...)
	packet, err := arpwire.Parse(data)
	switch {
	case f.Type == ToBroadcast, err == nil && packet.TargetMAC == [6]byte{}:
		copy(data, arpwire.Broadcast[:])
	case err == nil:
		copy(data, packet.TargetMAC[:])
	}
	f.Data = data
}
