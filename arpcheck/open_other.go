//go:build !linux

package arpcheck

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
)

func open(link string) (*Prober, error) {
	return nil, fmt.Errorf("arpcheck: open %s: packet sockets are Linux's, this is %s: probe from a Linux host: %w",
		link, runtime.GOOS, errors.ErrUnsupported)
}

func linkTo(target netip.Addr) (Hop, error) {
	return Hop{}, fmt.Errorf("arpcheck: look up the route to %s: only on Linux, this is %s: name the interface: %w",
		target, runtime.GOOS, errors.ErrUnsupported)
}
