package strictarp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
)

// errGone is what reading a file of a process returns that has ended meanwhile.
const errGone = unix.ESRCH

// retries is how often a list is read again that changed while it was read.
const retries = 3

// again calls read until its list did not change meanwhile.
func again(read func() error) error {
	var err error
	for range 1 + retries {
		if err = read(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
	}
	return fmt.Errorf("changed each of the %d times that it was read: %w", 1+retries, err)
}

func (ob *observer) neighbours() error {
	return errors.Join(again(ob.entries), again(ob.proxies))
}

func (ob *observer) entries() error {
	list, err := netlink.NeighList(0, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list neighbours: %w", err)
	}
	found := []arpcheck.Neighbour{}
	for _, e := range list {
		addr, ok := netip.AddrFromSlice(e.IP)
		if addr = addr.Unmap(); !ok || ob.o.VIPs != nil && !slices.Contains(ob.o.VIPs, addr) {
			continue
		}
		if len(found) == ob.o.MaxNeighbours {
			return fmt.Errorf("list neighbours: %w of %d: raise MaxNeighbours, or name VIPs", ErrLimit, ob.o.MaxNeighbours)
		}
		n := arpcheck.Neighbour{Addr: addr, Link: ob.name(e.LinkIndex), State: neighbourStates()[e.State]}
		if len(e.HardwareAddr) == len(n.MAC) {
			n.MAC = [6]byte(e.HardwareAddr)
		}
		found = append(found, n)
	}
	ob.facts.Neighbours = found
	return nil
}

func (ob *observer) proxies() error {
	list, err := netlink.NeighProxyList(0, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list proxy neighbours: %w", err)
	}
	found := []ProxyNeighbour{}
	for _, e := range list {
		addr, ok := netip.AddrFromSlice(e.IP)
		if !ok || e.Flags&netlink.NTF_PROXY == 0 {
			continue
		}
		p := ProxyNeighbour{Addr: addr.Unmap()}
		if e.LinkIndex != 0 {
			p.Link = ob.name(e.LinkIndex)
		}
		found = append(found, p)
	}
	ob.facts.ProxyNeighbours = found
	return nil
}

func neighbourStates() map[int]arpcheck.NeighbourState {
	return map[int]arpcheck.NeighbourState{
		unix.NUD_REACHABLE: arpcheck.NeighbourReachable, unix.NUD_STALE: arpcheck.NeighbourStale, unix.NUD_DELAY: arpcheck.NeighbourDelay,
		unix.NUD_PROBE: arpcheck.NeighbourProbe, unix.NUD_INCOMPLETE: arpcheck.NeighbourIncomplete, unix.NUD_FAILED: arpcheck.NeighbourFailed,
		unix.NUD_PERMANENT: arpcheck.NeighbourPermanent, unix.NUD_NOARP: arpcheck.NeighbourNoARP,
	}
}
