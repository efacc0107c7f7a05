package arpcheck

import (
	"net/netip"
	"time"
)

// Conn is what a Prober needs of a network segment. Open returns one on a
// packet socket; arpchecktest has one in memory. A Conn is used by one
// goroutine at a time, except for SetReadDeadline and Close, which may be
// called at any time.
type Conn interface {
	// Send transmits Ethernet frames in order and returns how many were handed
	// to the interface. It never waits for a busy queue: if fewer than all were
	// taken and err is nil, the queue is full and the rest may be sent later.
	// The error matches ErrLinkDown if the interface is down and net.ErrClosed
	// after Close.
	Send(frames [][]byte) (int, error)

	// Receive fills in frames and returns how many, at least one. Frames that
	// wait are returned at once, even when the read deadline has passed; only
	// then does it wait. The frames' Data is valid until the next Receive. The
	// error matches os.ErrDeadlineExceeded after the deadline, ErrLinkDown once
	// when the interface went down, and net.ErrClosed after Close.
	//
	// Frames that other programs or the kernel send on this interface are
	// received too, as Outgoing; the Conn's own are not.
	Receive(frames []Frame) (int, error)

	// SetReadDeadline ends a Receive that waits, now or later. The zero time
	// means no deadline.
	SetReadDeadline(t time.Time) error

	// Drops returns how many frames the kernel has dropped, since the Conn was
	// opened, because it was not read fast enough.
	Drops() (uint64, error)

	// Close ends a Receive that waits and frees the socket.
	Close() error
}

// Frame is an Ethernet frame as it was received.
type Frame struct {
	Data   []byte     // from the Ethernet header on, without VLAN tags that the kernel took off
	At     time.Time  // when the kernel received it
	Type   PacketType // to whom it was addressed
	VLAN   uint16     // VLAN ID; 0 if untagged or priority-tagged
	Length int        // length in bytes on the link, which can be more than len(Data)
}

// PacketType says to whom a frame was addressed, as packet(7) does.
type PacketType uint8

// Packet types, with the numbers of linux/if_packet.h.
const (
	ToHost      PacketType = 0 // to this interface's MAC
	ToBroadcast PacketType = 1
	ToMulticast PacketType = 2
	ToOther     PacketType = 3 // to another station, seen because the interface is promiscuous
	Outgoing    PacketType = 4 // sent by this host
)

// Host is what only the host that probes can tell: the state of its interface
// and its routes. Open returns a Prober with one that asks the kernel, in the
// network namespace where Open was called.
type Host interface {
	// Link returns the state of the interface probed through.
	Link() (LinkState, error)
	// Route returns what the host's routes say of target.
	Route(target netip.Addr) (Route, error)
}

// LinkState is the state of a network interface.
type LinkState struct {
	Up    bool         // administratively up and with carrier
	MAC   MAC          // its present MAC, which a bond changes on failover; zero if unknown
	Addrs []netip.Addr // its IPv4 addresses, primary first
}

// Route is what a host's routing table says of a target.
type Route struct {
	// Source is the address that packets to the target are sent from, if they
	// leave by the interface probed through; otherwise it is the zero Addr.
	Source netip.Addr
	// Local is set if the target is one of the host's own addresses. Its own
	// kernel's answer cannot be seen from there.
	Local bool
}
