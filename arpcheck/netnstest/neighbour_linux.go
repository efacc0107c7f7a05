package netnstest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func (h *Host) neighbour(addr netip.Addr) (Neighbour, error) {
	var found Neighbour
	err := h.onNeighbour(addr, func(_ *netlink.Handle, n *netlink.Neigh) error {
		found = Neighbour{State: neighbourStates()[n.State]}
		if len(n.HardwareAddr) == len(found.MAC) {
			found.MAC = [6]byte(n.HardwareAddr)
		}
		return nil
	})
	return found, err
}

func (h *Host) forget(addr netip.Addr) error {
	err := h.onNeighbour(addr, (*netlink.Handle).NeighDel)
	if errors.Is(err, errNoEntry) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// onNeighbour calls f with the entry that eth0 has for addr.
func (h *Host) onNeighbour(addr netip.Addr, f func(*netlink.Handle, *netlink.Neigh) error) error {
	return h.plumbing.rt.onLink(NIC, func(nl *netlink.Handle, link netlink.Link) error {
		entries, err := nl.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IP.Equal(net.IP(addr.AsSlice())) {
				return f(nl, &e)
			}
		}
		return errNoEntry
	})
}

// isLocal reports whether the host itself has addr.
func (h *Host) isLocal(addr netip.Addr) (local bool, err error) {
	err = h.plumbing.rt.do(func(nl *netlink.Handle) error {
		routes, err := nl.RouteGet(addr.AsSlice())
		if err != nil {
			return fmt.Errorf("look up route: %w", err)
		}
		local = len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
		return nil
	})
	return local, err
}

func neighbourStates() map[int]NeighbourState {
	return map[int]NeighbourState{
		unix.NUD_INCOMPLETE: NeighbourIncomplete, unix.NUD_REACHABLE: NeighbourReachable, unix.NUD_STALE: NeighbourStale,
		unix.NUD_DELAY: NeighbourDelay, unix.NUD_PROBE: NeighbourProbe, unix.NUD_FAILED: NeighbourFailed,
		unix.NUD_NOARP: NeighbourNoARP, unix.NUD_PERMANENT: NeighbourPermanent,
	}
}
