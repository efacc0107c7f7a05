package arpchecktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/internal/arprule"
)

// tcp_syn_retries and the time after which the first is sent; each further one
// takes twice as long.
const (
	synRetries = 6
	synTimeout = time.Second
)

// errRetry says that a SYN was not answered.
var errRetry = errors.New("not answered")

// Serve makes the host accept TCP connections to an address, as the node with
// the endpoint of a Service does.
func (h *Host) Serve(at netip.AddrPort) error {
	defer h.seg.enter()()
	if h.services[at] {
		return fmt.Errorf("arpchecktest: serve %s on %s: it is served there: %w", at, h.name, os.ErrExist)
	}
	h.services[at] = true
	return nil
}

// Visit opens a TCP connection, closes it again and returns the name of the host
// that serves: which host does a client reach? It succeeds when the neighbour
// that the host's cache holds for the address is a host that serves it. Any other
// drops it or, as a node does with a VIP whose endpoint is elsewhere, forwards it
// in vain: SYNs are repeated after 1, 3, 7, ... 63 s, to whatever the cache holds
// by then, and given up after 127 s.
//
// The error matches, as a real one does, syscall.ETIMEDOUT if it was given up,
// syscall.ECONNREFUSED if the host there holds the address but serves nothing,
// syscall.EHOSTUNREACH, ctx's error, and net.ErrClosed.
func (h *Host) Visit(ctx context.Context, to netip.AddrPort) (string, error) {
	name, err := h.syn(ctx, to)
	for n := 0; errors.Is(err, errRetry); n++ {
		if why := h.sleep(ctx, synTimeout<<n); why != nil {
			err = fmt.Errorf("%d SYN not answered: %w", n+1, why)
		} else if n == synRetries {
			err = fmt.Errorf("%d SYN not answered: %w", n+1, syscall.ETIMEDOUT)
		} else {
			name, err = h.syn(ctx, to)
		}
	}
	if err != nil {
		return "", fmt.Errorf("arpchecktest: connect to %s from %s: %w", to, h.name, err)
	}
	return name, nil
}

// syn sends one SYN and returns the name of the host that takes it.
func (h *Host) syn(ctx context.Context, to netip.AddrPort) (string, error) {
	if own, err := h.acceptOwn(to); own {
		return h.name, err
	}
	mac, err := h.neighbourFor(ctx, netip.Addr{}, to.Addr())
	if err != nil {
		return "", err
	}
	defer h.seg.enter()()
	if port := h.seg.port(mac); port != nil && port.up() {
		return port.host.name, port.host.accept(to)
	}
	return "", errRetry
}

// acceptOwn is what becomes of a SYN to an address of the host itself; false
// says that it is not one.
func (h *Host) acceptOwn(to netip.AddrPort) (bool, error) {
	defer h.seg.enter()()
	if !h.owns(to.Addr()) {
		return false, nil
	}
	return true, h.accept(to)
}

// accept is what becomes of a SYN that arrives at the host.
func (h *Host) accept(to netip.AddrPort) error {
	switch {
	case h.services[to]:
		return nil
	case slices.ContainsFunc(h.kernel.Addresses, func(a arprule.Address) bool {
		return a.Prefix.Addr() == to.Addr() && a.Interface != kubeIPVS0
	}):
		return syscall.ECONNREFUSED
	}
	return errRetry
}

// sleep returns an error if ctx or the segment ended first.
func (h *Host) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.done:
		return net.ErrClosed
	}
}
