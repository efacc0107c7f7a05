package arpcheck

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// ErrNotCapture means that bytes are neither a pcap nor a pcapng file.
var ErrNotCapture = errors.New("neither a pcap nor a pcapng file")

// SenderCaptured is the source of a sender that was found in a capture.
const SenderCaptured SenderSource = "capture"

// Limits of what is kept of a capture.
const (
	// maxCaptureFrames is how many ARP frames are looked at, some 50 MB: an hour of
	// a segment with 70 of them a second.
	maxCaptureFrames = 1 << 18
	// maxCaptureClaims is how many different claims are kept.
	maxCaptureClaims = 4096
	// maxCaptureTargets is how many questions get a Result: the largest sweep
	// that a subnet's pool needs.
	maxCaptureTargets = 1 << 14
)

// ReplayOptions say what is known of the host on which a capture was made. The
// zero ReplayOptions find out from the capture.
type ReplayOptions struct {
	Vantage string // name of the place, for results
	// Link is the name of the interface, for results; by default what a pcapng
	// file says.
	Link string
	// MACs are those of the host's interfaces: what they asked are the questions,
	// what they were answered the results. If there are none, it is taken for the
	// host whose frames the capture says are outgoing, or else for the one that
	// asks and has most to do with what is sent to one host alone.
	MACs []MAC
	// Addrs are the host's own addresses. Its own kernel's answers for these
	// cannot be seen on the wire.
	Addrs []netip.Addr
	Wait  time.Duration // how long an answer may take; default DefaultWait
	// MaxResponders is how many MACs are kept for one target; default
	// DefaultMaxResponders.
	MaxResponders int
}

// Capture is what the ARP frames of a capture tell.
type Capture struct {
	Started time.Time `json:"started,omitzero"` // first ARP frame
	Ended   time.Time `json:"ended,omitzero"`   // last frame of any kind, or the end that the file tells
	MACs    []MAC     `json:"macs,omitempty"`   // the prober's: given, or found

	// Results are those of the prober's broadcast requests, one for each target and,
	// if there are several, each sender address, VLAN and interface it was asked
	// with, in the order of the first requests. A request is a round, which is
	// complete if the capture goes on for as long as an answer may take. Where
	// requests follow each other faster, an answer counts for the last one, and as
	// double only if it cannot be a late one to another.
	//
	// If another asked address answered, a silent Result has it as Control.
	Results []Result `json:"results"`
	// Claims are all other uses of an address, in the order in which they were
	// first seen: gratuitous frames, requests of others, replies to others than the
	// prober, and the prober's own requests under an address that it also asks
	// for. At most 4096.
	Claims []AddrClaim `json:"claims"`

	Quality CaptureQuality `json:"quality"`
}

// AddrClaim is a Claim with the address that is claimed and what else the frame
// says. Frames that differ in any of it are counted apart.
type AddrClaim struct {
	Addr netip.Addr `json:"addr"` // the ARP sender; 0.0.0.0 in a ProbeRequest
	Claim
	Target netip.Addr `json:"target"` // what a request asks for, or whom a reply is for
	To     MAC        `json:"to"`     // Ethernet destination; of a cooked capture, what it must have been
	// FrameSource is the Ethernet source, if it differs from MAC.
	FrameSource MAC    `json:"frameSource,omitzero"`
	VLAN        uint16 `json:"vlan,omitempty"` // VLAN ID; 0 if untagged or priority-tagged
}

// CaptureQuality counts what a capture's results rest on.
type CaptureQuality struct {
	Frames    int `json:"frames"`    // ARP frames
	Malformed int `json:"malformed"` // frames that are cut short, or no ARP for IPv4 over Ethernet
	NotARP    int `json:"notARP"`    // frames of other protocols
	// Unreadable counts frames that could not be looked at: of a link type other
	// than Ethernet and Linux cooked, or without a time.
	Unreadable int `json:"unreadable"`
	Excess     int `json:"excess"` // frames with claims beyond 4096, and requests beyond 16,384 different ones
	// Cut says that there are more than 262,144 ARP frames: the capture is taken to
	// end there.
	Cut   bool   `json:"cut"`
	Drops uint64 `json:"drops"` // frames that the capture says it has lost; only pcapng can
}

// ReplayPCAP judges the ARP frames of a capture, such as tcpdump's, as a Prober
// does those that it receives: pcap and pcapng, of Ethernet (also with VLAN tags)
// and Linux cooked captures (SLL and SLL2). The capture has to hold the
// requests.
//
// Cut frames and such as are not understood are counted. The error matches
// ErrNotCapture if r is no capture; if it ends within a frame, as after a crash,
// or is damaged, the error says so and comes with the Capture of all that stands
// before. However long the capture is, 200 MB of memory are enough for it.
func ReplayPCAP(r io.Reader, o ReplayOptions) (Capture, error) {
	if o.Wait < 0 || o.MaxResponders < 0 {
		return Capture{}, errors.New("arpcheck: replay a capture: negative Wait or MaxResponders")
	}
	if o.Wait == 0 {
		o.Wait = DefaultWait
	}
	if o.MaxResponders == 0 {
		o.MaxResponders = DefaultMaxResponders
	}
	var p replay
	err := p.read(r)
	if err != nil {
		err = fmt.Errorf("arpcheck: replay a capture: %w", err)
	}
	if errors.Is(err, ErrNotCapture) {
		return Capture{}, err
	}
	return p.judge(o), err
}
