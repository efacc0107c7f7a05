package arpcheck

import (
	"fmt"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// Kind is what an ARP frame is for.
type Kind string

// Kinds. The zero Kind means that the frame is none of them.
const (
	Request         Kind = "request"
	Reply           Kind = "reply"
	ProbeRequest    Kind = "probe"            // a request from 0.0.0.0: is this address free? (RFC 5227, section 1.1)
	Announcement    Kind = "announcement"     // a request whose sender is its target: gratuitous (RFC 5227, section 1.1)
	GratuitousReply Kind = "gratuitous-reply" // a reply whose sender is its target
)

// Classify says what an Ethernet frame is for. The error says why a frame is
// no ARP request or reply for IPv4.
func Classify(frame []byte) (Kind, error) {
	p, err := arpwire.Parse(frame)
	if err != nil {
		return "", fmt.Errorf("arpcheck: classify frame of %d bytes: %w", len(frame), err)
	}
	if k := kindOf(p); k != "" {
		return k, nil
	}
	return "", fmt.Errorf("arpcheck: classify frame of %d bytes: operation %d is neither request nor reply", len(frame), p.Op)
}

func kindOf(p arpwire.Packet) Kind {
	switch {
	case p.Op == arpwire.OpRequest && p.Sender.IsUnspecified():
		return ProbeRequest
	case p.Op == arpwire.OpRequest && p.Sender == p.Target:
		return Announcement
	case p.Op == arpwire.OpRequest:
		return Request
	case p.Op == arpwire.OpReply && p.Sender == p.Target:
		return GratuitousReply
	case p.Op == arpwire.OpReply:
		return Reply
	}
	return ""
}
