package arpcheck

import (
	"net/netip"
	"time"
)

// Verdict is what a probe concludes about a target.
type Verdict string

// Verdicts. The zero Verdict means that nothing was probed.
const (
	None         Verdict = "none"         // nobody answers
	Single       Verdict = "single"       // one MAC answers
	Multiple     Verdict = "multiple"     // more than one MAC answers; they may still be one node's
	Inconclusive Verdict = "inconclusive" // the probe cannot tell; Result.Reasons says why
)

// SenderSource says how the sender address of a probe was chosen. It matters
// because the kernel answers different senders differently.
type SenderSource string

// Sender sources.
const (
	SenderGiven SenderSource = "given" // Prober.Sender
	SenderRoute SenderSource = "route" // the source address of the route to the target
	// SenderInterface: no route to the target leaves by this interface, or the
	// target is the host's own: the interface's first other IPv4 address.
	SenderInterface SenderSource = "interface"
	// SenderUnspecified is 0.0.0.0: the interface has no other IPv4 address, or
	// there is no Host to tell.
	SenderUnspecified SenderSource = "unspecified"
)

// Sender is the address a probe asks under.
type Sender struct {
	Addr netip.Addr   `json:"addr"`
	From SenderSource `json:"from"`
}

// Result is what one pass has seen of one target.
type Result struct {
	Target    netip.Addr `json:"target"`
	Verdict   Verdict    `json:"verdict"`
	Reasons   []Reason   `json:"reasons,omitempty"`
	Vantage   string     `json:"vantage,omitempty"` // Prober.Vantage
	Interface string     `json:"interface"`
	MAC       MAC        `json:"mac"` // the prober's own
	Sender    Sender     `json:"sender"`
	Started   time.Time  `json:"started"` // first request
	Ended     time.Time  `json:"ended"`   // end of the last window
	Rounds    int        `json:"rounds"`  // rounds whose window was completed

	Responders []Responder `json:"responders"`       // in the order in which they were first seen
	Claims     []Claim     `json:"claims,omitempty"` // who used the target as sender without answering us; at most 64
	Control    *Control    `json:"control,omitempty"`
	Quality    Quality     `json:"quality"`
}

// Responder is a MAC that answers for a target.
type Responder struct {
	MAC     MAC       `json:"mac"`
	Replies int       `json:"replies"`
	First   time.Time `json:"first"` // first reply
	Last    time.Time `json:"last"`  // last reply
	// RTT is taken from a round's request to this MAC's first reply in it.
	RTT RTT `json:"rtt"`
	// WonRounds counts the rounds in which this MAC answered first; not with FastRounds.
	WonRounds int `json:"wonRounds"`
	// DoubleAnswers counts the rounds in which this MAC sent more replies than
	// requests that it may have answered had gone out, by whomever; not with
	// FastRounds.
	DoubleAnswers int `json:"doubleAnswers"`
	// DoubleAnswer is set if that was so in at least half of the rounds, and no
	// frames were dropped: the kernel and an announcer both answer on that node,
	// or a driver duplicates frames.
	DoubleAnswer bool `json:"doubleAnswer"`
	// FrameSources are Ethernet source addresses that differ from the ARP
	// sender's, at most 8.
	FrameSources []MAC `json:"frameSources,omitempty"`
	// Lengths counts replies by frame length, at most 8 lengths. On virtual
	// links a kernel's are 42 bytes and MetalLB's 60: a hint, not proof.
	Lengths []LengthCount `json:"lengths"`
}

// RTT sums up round-trip times, in nanoseconds in JSON. All are zero if none was
// measured.
type RTT struct {
	Min    time.Duration `json:"min"`
	Mean   time.Duration `json:"mean"`
	Max    time.Duration `json:"max"`
	StdDev time.Duration `json:"stdDev"` // of the population
}

// LengthCount counts frames of one length.
type LengthCount struct {
	Length int `json:"length"` // bytes
	Frames int `json:"frames"`
}

// Claim is the use of a target as ARP sender in frames other than replies to
// the prober. A request with it teaches every listener that MAC: with
// arp_announce below 2 a kernel does so with a VIP it merely holds.
type Claim struct {
	MAC    MAC       `json:"mac"`
	Kind   Kind      `json:"kind"`
	Frames int       `json:"frames"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// Control is what a control address said in the same pass: an answer shows that
// requests and replies pass.
type Control struct {
	Target   netip.Addr `json:"target"`
	Answered bool       `json:"answered"`
}

// Quality counts what a verdict rests on, and what was set aside. Counters of
// frames are of the whole pass, which several targets may share.
type Quality struct {
	Requests      int    `json:"requests"`      // sent by the prober for this target
	OtherRequests int    `json:"otherRequests"` // sent for this target from this interface under the same sender by others
	Drops         uint64 `json:"drops"`         // frames the kernel dropped
	ExcessReplies int    `json:"excessReplies"` // replies by MACs beyond Prober.MaxResponders
	ExcessClaims  int    `json:"excessClaims"`  // frames that claim the target beyond 64 kinds of claim
	OtherTargets  int    `json:"otherTargets"`  // replies for addresses that were not asked for
	OtherSenders  int    `json:"otherSenders"`  // replies to this host under another sender address
	OtherHosts    int    `json:"otherHosts"`    // replies to other hosts
	OtherVLANs    int    `json:"otherVLANs"`    // frames of other VLANs
	Malformed     int    `json:"malformed"`     // frames that are no ARP for IPv4 over Ethernet
}
