package netnstest

import (
	"fmt"
	"net"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rtnetlink changes the links, addresses and routes of one namespace.
//
// It exists because a netlink.Handle that was closed goes on with sockets of
// the calling thread's namespace: late calls would change the machine itself.
type rtnetlink struct {
	mu     sync.RWMutex    // held for reading while handle is in use
	handle *netlink.Handle // nil before open and after close
}

// open must be called in the namespace.
func (r *rtnetlink) open() error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink socket: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
	return nil
}

func (r *rtnetlink) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handle != nil {
		r.handle.Close()
		r.handle = nil
	}
}

// do calls f, which must not call methods of r.
func (r *rtnetlink) do(f func(*netlink.Handle) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.handle == nil {
		return fmt.Errorf("the segment is closed: %w", net.ErrClosed)
	}
	return f(r.handle)
}

// onLink calls f as do does, with the link of that name.
func (r *rtnetlink) onLink(name string, f func(*netlink.Handle, netlink.Link) error) error {
	return r.do(func(nl *netlink.Handle) error {
		link, err := nl.LinkByName(name)
		if err != nil {
			return fmt.Errorf("look up %s: %w", name, err)
		}
		return f(nl, link)
	})
}

func (r *rtnetlink) up(name string) error {
	err := r.onLink(name, (*netlink.Handle).LinkSetUp)
	if err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}
