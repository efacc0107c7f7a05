package arpcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const ethernetEncap = "ether" // how netlink names ARPHRD_ETHER

func open(name string) (*Prober, error) { return openWith(name, true) }

// openWith opens a Prober, on request without a receive ring.
func openWith(name string, ringed bool) (*Prober, error) {
	host, err := newKernelHost(name)
	if err != nil {
		return nil, fmt.Errorf("arpcheck: open %s: %w", name, err)
	}
	conn, err := openPacketConn(host.link, ringed)
	if err != nil {
		return nil, fmt.Errorf("arpcheck: open %s: %w", name, errors.Join(err, host.Close()))
	}
	return &Prober{Conn: conn, Host: host, MAC: MAC(host.link.HardwareAddr), Link: host.link.Name}, nil
}

// kernelHost asks the kernel over a netlink socket of the namespace in which it
// was made.
type kernelHost struct {
	netlink *netlink.Handle
	socket  *os.File // for ioctls
	link    net.Interface
}

func newKernelHost(name string) (*kernelHost, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	link, err := usableLink(h, name)
	if err != nil {
		h.Close()
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("open a socket for ioctls: %w", err)
	}
	a := link.Attrs()
	return &kernelHost{netlink: h, socket: os.NewFile(uintptr(fd), "ioctl socket"), link: net.Interface{
		Index: a.Index, Name: a.Name, MTU: a.MTU, HardwareAddr: a.HardwareAddr, Flags: a.Flags,
	}}, nil
}

func usableLink(h *netlink.Handle, name string) (netlink.Link, error) {
	link, err := h.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	// netlink ends a name at a NUL, and says ERANGE of one that is too long.
	case errors.As(err, &missing), errors.Is(err, unix.ERANGE), strings.ContainsRune(name, 0):
		return nil, fmt.Errorf("there is no such interface in this network namespace: %w", fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("look up the interface: %w", err)
	}
	a := link.Attrs()
	switch {
	case a.EncapType != ethernetEncap || len(a.HardwareAddr) != len(MAC{}):
		return nil, fmt.Errorf("%w: it is of type %q, where there is no ARP", ErrNotEthernet, a.EncapType)
	case a.RawFlags&unix.IFF_NOARP != 0:
		return nil, fmt.Errorf("%w (NOARP), so nobody answers there: probe on the interface of the segment", ErrNoARP)
	case a.Flags&net.FlagUp == 0:
		return nil, fmt.Errorf("%w: set it up first (ip link set %s up)", ErrLinkDown, a.Name)
	}
	return link, nil
}

// Link implements Host.
func (k *kernelHost) Link() (LinkState, error) {
	link, err := k.now()
	if err != nil {
		return LinkState{}, err
	}
	state := LinkState{Up: isUp(link.Attrs().RawFlags)}
	if hw := link.Attrs().HardwareAddr; len(hw) == len(state.MAC) {
		state.MAC = MAC(hw)
	}
	addrs, err := k.netlink.AddrList(link, netlink.FAMILY_V4)
	// An interrupted dump still holds addresses to ask under.
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return LinkState{}, err
	}
	for _, a := range addrs {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			state.Addrs = append(state.Addrs, addr.Unmap())
		}
	}
	return state, nil
}

// now returns the interface as it is now.
func (k *kernelHost) now() (netlink.Link, error) {
	link, err := k.netlink.LinkByIndex(k.link.Index)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("%w: it is gone", ErrLinkDown)
	}
	return link, err
}

func isUp(flags uint32) bool {
	const upAndRunning = unix.IFF_UP | unix.IFF_RUNNING
	return flags&upAndRunning == upAndRunning
}

// up implements upKnower, without netlink, which takes fifty times as long. An
// interface may have been renamed, so its name is asked for first.
func (k *kernelHost) up() (up bool, err error) {
	raw, err := k.socket.SyscallConn()
	if err != nil {
		return false, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		var request *unix.Ifreq
		if request, err = unix.NewIfreq(k.link.Name); err != nil {
			return
		}
		request.SetUint32(uint32(k.link.Index))
		if err = unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, request); err != nil {
			return
		}
		if err = unix.IoctlIfreq(int(fd), unix.SIOCGIFFLAGS, request); err == nil {
			up = isUp(uint32(request.Uint16()))
		}
	})
	if err = errors.Join(controlErr, err); errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return false, nil // it is gone
	}
	return up, err
}

// Route implements Host. If the interface is in a VRF, the VRF's routes are asked.
func (k *kernelHost) Route(target netip.Addr) (Route, error) {
	o, err := k.inVRF()
	if err != nil {
		return Route{}, err
	}
	route, err := routeTo(k.netlink, target, o)
	if err != nil || route == nil {
		return Route{}, err
	}
	r := Route{Local: route.Type == unix.RTN_LOCAL}
	if src, ok := netip.AddrFromSlice(route.Src); ok && route.LinkIndex == k.link.Index {
		r.Source = src.Unmap()
	}
	return r, nil
}

// inVRF returns what makes a lookup of a route one of the interface's VRF; nil if it
// is in none.
func (k *kernelHost) inVRF() (*netlink.RouteGetOptions, error) {
	link, err := k.netlink.LinkByIndex(k.link.Index)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) || err == nil && link.Attrs().MasterIndex == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	master, err := k.netlink.LinkByIndex(link.Attrs().MasterIndex)
	if errors.As(err, &missing) || err == nil && master.Type() != "vrf" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// With a VRF as the outgoing interface the kernel looks in its table
	// (Documentation/networking/vrf.rst).
	return &netlink.RouteGetOptions{OifIndex: master.Attrs().Index}, nil
}

// Close closes the sockets.
func (k *kernelHost) Close() error {
	k.netlink.Close()
	return k.socket.Close()
}

// routeTo returns the route that the kernel would use, or nil if there is none.
func routeTo(h *netlink.Handle, target netip.Addr, o *netlink.RouteGetOptions) (*netlink.Route, error) {
	routes, err := h.RouteGetWithOptions(target.AsSlice(), o)
	switch {
	case errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EINVAL): // none, unreachable, prohibit, blackhole: fib_props in net/ipv4/fib_semantics.c
		return nil, nil
	case err != nil:
		return nil, err
	case len(routes) == 0:
		return nil, nil
	}
	return &routes[0], nil
}

func linkTo(target netip.Addr) (Hop, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return Hop{}, fmt.Errorf("arpcheck: open a netlink socket: %w", err)
	}
	defer h.Close()
	route, err := routeTo(h, target, nil)
	if err != nil {
		return Hop{}, fmt.Errorf("arpcheck: look up the route to %s: %w", target, err)
	}
	if route == nil {
		return Hop{}, fmt.Errorf("arpcheck: look up the route to %s: %w", target, ErrNoRoute)
	}
	link, err := h.LinkByIndex(route.LinkIndex)
	if err != nil {
		return Hop{}, fmt.Errorf("arpcheck: look up interface %d of the route to %s: %w", route.LinkIndex, target, err)
	}
	hop := Hop{Link: link.Attrs().Name, Local: route.Type == unix.RTN_LOCAL}
	if gateway, ok := netip.AddrFromSlice(route.Gw); ok {
		hop.Gateway = gateway.Unmap()
	}
	return hop, nil
}
