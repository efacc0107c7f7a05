package arpcheck

import (
	"errors"
	"fmt"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrNotEthernet: ARP is spoken on Ethernet interfaces only.
	ErrNotEthernet = errors.New("not an Ethernet interface")
	// ErrNoARP: the interface is set not to do ARP, as kube-ipvs0 is.
	ErrNoARP = errors.New("the interface does no ARP")
	// ErrLinkDown: the interface is administratively down or gone.
	ErrLinkDown = errors.New("the interface is down")
	// ErrBadTarget: nobody can be asked for this address by ARP.
	ErrBadTarget = errors.New("not an address that ARP can ask for")

	// ErrNoRoute: the host has no route to the address.
	ErrNoRoute = errors.New("no route")

	// ErrNoResponder, ErrMultipleResponders and ErrInconclusive are what a
	// *VerdictError matches.
	ErrNoResponder        = errors.New("nobody answers")
	ErrMultipleResponders = errors.New("more than one MAC answers")
	ErrInconclusive       = errors.New("the probe is inconclusive")
)

// VerdictError is the error of Resolve when there is not the one answer. It
// matches ErrNoResponder, ErrMultipleResponders or ErrInconclusive.
type VerdictError struct {
	Result Result // what was seen
}

// Error says what was seen and by whom.
func (e *VerdictError) Error() string {
	r := e.Result
	text := fmt.Sprintf("arpcheck: resolve %s on %s as %s: %v", r.Target, r.Interface, r.Sender.Addr, e.Unwrap())
	if len(r.Responders) > 0 {
		text += fmt.Sprintf(" (%d responders, first %s)", len(r.Responders), r.Responders[0].MAC)
	}
	for _, reason := range r.Reasons {
		text += "; " + reason.Explain()
	}
	return text
}

// Unwrap returns the sentinel that stands for the verdict.
func (e *VerdictError) Unwrap() error {
	switch e.Result.Verdict {
	case None:
		return ErrNoResponder
	case Multiple:
		return ErrMultipleResponders
	}
	return ErrInconclusive
}
