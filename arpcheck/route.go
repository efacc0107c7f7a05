package arpcheck

import (
	"fmt"
	"net/netip"
)

// Hop is where a host sends packets for an address first.
type Hop struct {
	Link    string     // name of the interface
	Gateway netip.Addr // router; the zero Addr if the address is on the link itself
	Local   bool       // the address is the host's own
}

// LinkTo returns where the calling thread's network namespace sends packets for
// target, to find the interface to probe on. Behind a gateway ARP asks for the
// gateway, so a target there is on the same segment only if somebody knows so.
//
// The error matches ErrNoRoute if there is no route, ErrBadTarget, or
// errors.ErrUnsupported on systems other than Linux.
func LinkTo(target netip.Addr) (Hop, error) {
	addr := target.Unmap()
	if err := checkTarget(addr); err != nil {
		return Hop{}, fmt.Errorf("arpcheck: look up the route to %s: %w", target, err)
	}
	return linkTo(addr)
}
