package netnstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
)

// NeighbourState is the state of an entry of the kernel's neighbour cache.
type NeighbourState string

// States, as arp(7) and ip-neighbour(8) explain them.
const (
	NeighbourIncomplete NeighbourState = "incomplete"
	NeighbourReachable  NeighbourState = "reachable"
	NeighbourStale      NeighbourState = "stale"
	NeighbourDelay      NeighbourState = "delay"
	NeighbourProbe      NeighbourState = "probe"
	NeighbourFailed     NeighbourState = "failed"
	NeighbourNoARP      NeighbourState = "noarp"
	NeighbourPermanent  NeighbourState = "permanent"
)

// Neighbour is an entry of the kernel's neighbour cache.
type Neighbour struct {
	MAC   arpcheck.MAC // zero if it is not known
	State NeighbourState
}

// usable reports whether the kernel sends packets to the MAC.
func (n Neighbour) usable() bool {
	return n.State != NeighbourIncomplete && n.State != NeighbourFailed && n.State != NeighbourNoARP
}

var errNoEntry = fmt.Errorf("there is no entry: %w", fs.ErrNotExist)

// Neighbour returns the entry that eth0 has for an address. The error matches
// fs.ErrNotExist if there is none.
func (h *Host) Neighbour(addr netip.Addr) (Neighbour, error) {
	n, err := h.neighbour(addr)
	return n, h.failed(fmt.Sprintf("look up neighbour %s", addr), err)
}

// Forget removes the entry that eth0 has for an address, if there is one, as
// ageing does. The next packet to it makes the kernel ask again.
func (h *Host) Forget(addr netip.Addr) error {
	return h.failed(fmt.Sprintf("forget neighbour %s", addr), h.forget(addr))
}

// Resolve has the host's kernel find out the MAC of an address, as it does for
// every connection: unless the neighbour cache knows it, it asks and takes the
// answer that comes first. If nobody answers, the kernel gives up after 3 s and
// the error matches fs.ErrNotExist.
func (h *Host) Resolve(ctx context.Context, addr netip.Addr) (arpcheck.MAC, error) {
	mac, err := h.resolve(ctx, addr)
	return mac, h.failed(fmt.Sprintf("resolve %s", addr), err)
}

func (h *Host) resolve(ctx context.Context, addr netip.Addr) (arpcheck.MAC, error) {
	local, err := h.isLocal(addr)
	if err == nil && local {
		err = errors.New("it is the host's own address: nobody is asked")
	}
	if err != nil {
		return arpcheck.MAC{}, err
	}
	// A failed entry stays for a while and would be taken for this call's failure.
	if n, err := h.neighbour(addr); err == nil && n.State == NeighbourFailed {
		if err := h.forget(addr); err != nil {
			return arpcheck.MAC{}, err
		}
	}
	if err := h.SendFrom(netip.Addr{}, addr); err != nil {
		return arpcheck.MAC{}, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		n, err := h.neighbour(addr)
		switch {
		case err == nil && n.usable():
			return n.MAC, nil
		case err == nil && n.State == NeighbourFailed:
			return arpcheck.MAC{}, fmt.Errorf("nobody answered: %w", fs.ErrNotExist)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return arpcheck.MAC{}, err
		}
		select {
		case <-ctx.Done():
			return arpcheck.MAC{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// SendFrom sends a datagram from one of the host's addresses to another host and
// does not wait; the zero source stands for the one that the kernel chooses. If
// the neighbour is not known, the kernel asks for it first: under the source, even
// if that is a VIP, unless arp_announce forbids it.
func (h *Host) SendFrom(source, to netip.Addr) error {
	const discard = 9 // RFC 863; nobody listens
	err := h.Do(func() error {
		d := net.Dialer{}
		if source.IsValid() {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
		}
		c, err := d.Dial("udp4", netip.AddrPortFrom(to, discard).String())
		if err != nil {
			return err
		}
		_, werr := c.Write([]byte{0})
		return errors.Join(werr, c.Close())
	})
	return h.failed(fmt.Sprintf("send datagram to %s", to), err)
}
