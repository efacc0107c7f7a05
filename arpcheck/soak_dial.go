package arpcheck

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/strictarp/strictarp/internal/netns"
)

// Dialer makes connections from the network namespace of the thread that opened it,
// wherever it is used. Its methods may be called from several goroutines.
type Dialer struct {
	ns *netns.NS
}

// OpenDialer returns a Dialer of the calling thread's network namespace. The caller
// must close it. On systems other than Linux the error matches
// errors.ErrUnsupported.
func OpenDialer() (*Dialer, error) {
	ns, err := netns.Current()
	if err != nil {
		return nil, fmt.Errorf("arpcheck: open a dialer: %w", err)
	}
	return &Dialer{ns: ns}, nil
}

// DialContext connects, as that of a net.Dialer does. The address must be an IP
// address and a port, since names are looked up by other threads. It needs
// CAP_SYS_ADMIN: in the process's own namespace a net.Dialer does without.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("arpcheck: connect to %q: it takes an IP address and a port: %w", address, err)
	}
	var conn net.Conn
	// Given an address and no name, the dialer makes the socket on this thread.
	err := d.ns.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("arpcheck: connect: %w", err)
	}
	return conn, nil
}

// Close gives up the namespace. Connections stay open. Closing again does nothing.
func (d *Dialer) Close() error { return d.ns.Close() }
