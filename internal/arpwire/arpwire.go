// Package arpwire encodes and decodes ARP packets in Ethernet frames and holds
// the socket filters for them. Decoding does not allocate, because one probe
// may have to look at every ARP frame of a busy segment.
//
// Only IPv4 over Ethernet is spoken (RFC 826 with hardware type 1, protocol
// type 0x0800); everything else is an error that callers count.
package arpwire

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Sizes in bytes, without the frame check sequence.
const (
	EthernetHeader = 14
	VLANTag        = 4
	PacketSize     = 28                          // an ARP packet for IPv4 over Ethernet
	FrameSize      = EthernetHeader + PacketSize // what a Linux kernel hands to a driver
	MinFrame       = 60                          // the shortest frame on an Ethernet wire; MetalLB pads to it
)

// EtherTypes that matter here.
const (
	TypeIPv4 = 0x0800
	TypeARP  = 0x0806
	TypeVLAN = 0x8100 // IEEE 802.1Q
	TypeQinQ = 0x88a8 // IEEE 802.1ad
)

// Operations of RFC 826.
const (
	OpRequest = 1
	OpReply   = 2
)

const (
	hardwareEthernet = 1
	maxTags          = 2 // QinQ; more tags than that are not ARP for anybody
	vlanMask         = 0x0fff
)

// What Parse may say of a frame. The values are fixed so that decoding does not
// allocate.
var (
	ErrNotARP    = errors.New("arpwire: not an ARP frame")
	ErrTruncated = errors.New("arpwire: frame shorter than its ARP packet")
	ErrForeign   = errors.New("arpwire: ARP for something other than IPv4 over Ethernet")
)

// Broadcast is the Ethernet broadcast address.
var Broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Packet is an ARP packet together with the Ethernet header it came in.
type Packet struct {
	Dst, Src [6]byte // Ethernet destination and source
	VLAN     uint16  // outermost VLAN ID found in the frame's bytes; 0 for none and for a priority tag
	Op       uint16  // OpRequest, OpReply or whatever was sent

	SenderMAC [6]byte
	Sender    netip.Addr
	TargetMAC [6]byte
	Target    netip.Addr
}

// Parse decodes an Ethernet frame, with or without VLAN tags in its bytes.
// Padding is ignored. The error is one of ErrNotARP, ErrTruncated, ErrForeign;
// with the latter two the Ethernet part of the packet is filled in.
func Parse(frame []byte) (Packet, error) {
	var p Packet
	if len(frame) < EthernetHeader {
		return p, ErrNotARP
	}
	copy(p.Dst[:], frame)
	copy(p.Src[:], frame[6:])
	kind, rest := binary.BigEndian.Uint16(frame[12:]), frame[EthernetHeader:]
	for tags := 0; kind == TypeVLAN || kind == TypeQinQ; tags++ {
		if tags == maxTags || len(rest) < VLANTag {
			return p, ErrNotARP
		}
		if p.VLAN == 0 {
			p.VLAN = binary.BigEndian.Uint16(rest) & vlanMask
		}
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[VLANTag:]
	}
	if kind != TypeARP {
		return p, ErrNotARP
	}
	if len(rest) < 8 {
		return p, ErrTruncated
	}
	if binary.BigEndian.Uint16(rest) != hardwareEthernet || binary.BigEndian.Uint16(rest[2:]) != TypeIPv4 ||
		rest[4] != 6 || rest[5] != 4 {
		return p, ErrForeign
	}
	if len(rest) < PacketSize {
		return p, ErrTruncated
	}
	p.Op = binary.BigEndian.Uint16(rest[6:])
	copy(p.SenderMAC[:], rest[8:])
	p.Sender = netip.AddrFrom4([4]byte(rest[14:18]))
	copy(p.TargetMAC[:], rest[18:])
	p.Target = netip.AddrFrom4([4]byte(rest[24:28]))
	return p, nil
}

// Append adds the frame for p to b, with an 802.1Q tag of priority 0 where
// p.VLAN is set, zero padded to at least size bytes. Sender and Target must be
// IPv4: it panics otherwise, as netip.Addr.As4 does.
func (p Packet) Append(b []byte, size int) []byte {
	start := len(b)
	b = append(b, p.Dst[:]...)
	b = append(b, p.Src[:]...)
	if p.VLAN != 0 {
		b = binary.BigEndian.AppendUint16(b, TypeVLAN)
		b = binary.BigEndian.AppendUint16(b, p.VLAN&vlanMask)
	}
	b = binary.BigEndian.AppendUint16(b, TypeARP)
	b = binary.BigEndian.AppendUint16(b, hardwareEthernet)
	b = binary.BigEndian.AppendUint16(b, TypeIPv4)
	b = append(b, 6, 4)
	b = binary.BigEndian.AppendUint16(b, p.Op)
	b = append(b, p.SenderMAC[:]...)
	sender, target := p.Sender.As4(), p.Target.As4()
	b = append(b, sender[:]...)
	b = append(b, p.TargetMAC[:]...)
	b = append(b, target[:]...)
	for len(b)-start < size {
		b = append(b, 0)
	}
	return b
}

// Request returns the broadcast question "who has target?" from a host with
// the given MAC, asked under the sender address.
func Request(mac [6]byte, sender, target netip.Addr) Packet {
	return Packet{Dst: Broadcast, Src: mac, Op: OpRequest, SenderMAC: mac, Sender: sender, Target: target}
}

// Reply returns the answer to the request p from a host with the given MAC: it
// goes to p's sender alone and holds the same addresses the other way round.
func (p Packet) Reply(mac [6]byte) Packet {
	return Packet{
		Dst: p.SenderMAC, Src: mac, VLAN: p.VLAN, Op: OpReply,
		SenderMAC: mac, Sender: p.Target, TargetMAC: p.SenderMAC, Target: p.Sender,
	}
}
