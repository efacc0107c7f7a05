package arpcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// neighbourRetries is how often a read is repeated during which entries changed.
	neighbourRetries = 3
	// neighbourEvents is the size in bytes asked for the queue of changes: an event
	// takes about 1 KiB, so that it holds one of each entry of the cache's default
	// limit (gc_thresh3, 1,024) twice over. An overrun is noticed.
	neighbourEvents = 2 << 20
	// netlinkBuffer is the most that the kernel puts into one message to user space
	// (netlink_dump in net/netlink/af_netlink.c).
	netlinkBuffer = 32 << 10
)

// neighbours are two sockets of one network namespace.
type neighbours struct {
	netlink *netlink.Handle
	events  *os.File
	raw     syscall.RawConn
}

// indexedNeighbour is a Neighbour with the number of its interface.
type indexedNeighbour struct {
	Neighbour
	index int
}

func openNeighbours() (neighbours, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return neighbours{}, fmt.Errorf("open a netlink socket: %w", err)
	}
	n := neighbours{netlink: handle}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, neighbourEvents) // less does, too
		n.events = os.NewFile(uintptr(fd), "netlink events")
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err == nil {
		n.raw, err = n.events.SyscallConn()
	}
	if err != nil {
		return neighbours{}, errors.Join(fmt.Errorf("open a netlink socket for events: %w", err), n.close())
	}
	return n, nil
}

func (n neighbours) close() error {
	n.netlink.Close()
	if n.events == nil {
		return nil
	}
	return n.events.Close()
}

func (n neighbours) list(link string) ([]Neighbour, error) {
	indexed, err := n.listIndexed(link)
	list := make([]Neighbour, 0, len(indexed))
	for _, entry := range indexed {
		list = append(list, entry.Neighbour)
	}
	return list, err
}

func (n neighbours) listIndexed(link string) ([]indexedNeighbour, error) {
	index := 0
	if link != "" {
		var err error
		if index, err = n.linkIndex(link); err != nil {
			return nil, err
		}
	}
	var entries []netlink.Neigh
	var err error
	for range 1 + neighbourRetries {
		entries, err = n.netlink.NeighList(index, netlink.FAMILY_V4)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	list, nameErr := n.named(entries)
	if nameErr != nil {
		return nil, nameErr
	}
	if err != nil {
		err = fmt.Errorf("entries changed during each of %d reads, some may be missing: %w", 1+neighbourRetries, err)
	}
	return list, err
}

// named turns entries into ours, without those of interfaces that are gone.
func (n neighbours) named(entries []netlink.Neigh) ([]indexedNeighbour, error) {
	names := map[int]string{}
	list := make([]indexedNeighbour, 0, len(entries))
	for _, e := range entries {
		addr, ok := netip.AddrFromSlice(e.IP)
		if !ok {
			continue
		}
		name, known := names[e.LinkIndex]
		if !known {
			var err error
			if name, err = n.linkName(e.LinkIndex); err != nil {
				return nil, err
			}
			names[e.LinkIndex] = name
		}
		if name == "" {
			continue
		}
		entry := indexedNeighbour{Neighbour{Addr: addr.Unmap(), Link: name, State: neighbourStates[uint16(e.State)]}, e.LinkIndex}
		if len(e.HardwareAddr) == len(entry.MAC) {
			entry.MAC = MAC(e.HardwareAddr)
		}
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b indexedNeighbour) int {
		if c := a.Addr.Compare(b.Addr); c != 0 {
			return c
		}
		return a.index - b.index
	})
	return list, nil
}

// linkName is empty if the interface is gone.
func (n neighbours) linkName(index int) (string, error) {
	link, err := n.netlink.LinkByIndex(index)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look up interface %d: %w", index, err)
	}
	return link.Attrs().Name, nil
}

func (n neighbours) linkIndex(name string) (int, error) {
	link, err := n.netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing), errors.Is(err, unix.ERANGE): // of a name that is too long
		return 0, fmt.Errorf("there is no such interface in this network namespace: %w", fs.ErrNotExist)
	case err != nil:
		return 0, fmt.Errorf("look up the interface: %w", err)
	}
	return link.Attrs().Index, nil
}

func (n neighbours) forget(link string, addr netip.Addr) error {
	index, err := n.linkIndex(link)
	if err != nil {
		return err
	}
	err = n.netlink.NeighDel(&netlink.Neigh{LinkIndex: index, Family: netlink.FAMILY_V4, IP: net.IP(addr.AsSlice())})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("it needs CAP_NET_ADMIN in the namespace: %w", err)
	}
	return err
}

func (n neighbours) subscribe() error { return n.membership(unix.NETLINK_ADD_MEMBERSHIP) }

// unsubscribe fails only if the socket is closed.
func (n neighbours) unsubscribe() { _ = n.membership(unix.NETLINK_DROP_MEMBERSHIP) }

func (n neighbours) membership(option int) error {
	var err error
	controlErr := n.raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt membership", unix.SetsockoptInt(int(fd), unix.SOL_NETLINK, option, unix.RTNLGRP_NEIGH))
	})
	return errors.Join(controlErr, err)
}

// setDeadline fails only if the socket is closed.
func (n neighbours) setDeadline(t time.Time) { _ = n.events.SetReadDeadline(t) }

// changes waits for changes. Lost says that there were more than fit.
func (n neighbours) changes() (changes []neighbourChange, lost bool, err error) {
	buf := make([]byte, netlinkBuffer)
	size, err := n.events.Read(buf)
	if errors.Is(err, unix.ENOBUFS) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	changes, lost = parseNeighbourChanges(buf[:size])
	return changes, lost, nil
}
