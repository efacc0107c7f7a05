package ipvs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/strictarp/strictarp/ipvs/internal/rtnl"
)

// retries is how often a read is repeated that was disturbed in a way that
// cannot be made good. Each costs another dump, and where changes come so fast
// that four dumps in a row are spoilt the next will be, too.
const retries = 3

// conn is two sockets: events tell what changed while queries were answered.
type conn struct {
	queries *rtnl.Queries
	events  *rtnl.Events
	decoder *rtnl.Decoder      // of a read
	scratch *[2][]rtnl.Address // of the last two dumps, reused
}

func open() (conn, error) {
	queries, err := rtnl.OpenQueries()
	if err != nil {
		return conn{}, fmt.Errorf("ipvs: open netlink: %w", err)
	}
	events, err := rtnl.OpenEvents()
	if err != nil {
		return conn{}, errors.Join(fmt.Errorf("ipvs: open netlink for events: %w", err), queries.Close())
	}
	return conn{queries: queries, events: events, decoder: new(rtnl.Decoder), scratch: new([2][]rtnl.Address)}, nil
}

// interrupt makes a Watch end.
func (c conn) interrupt() error { return c.events.Close() }

func (c conn) close() error {
	err := c.events.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil // by interrupt
	}
	return errors.Join(err, c.queries.Close())
}

func (c conn) device(name string) (Device, error) {
	if err := c.events.Subscribe(); err != nil {
		return Device{}, fmt.Errorf("ipvs: read %s: subscribe to events: %w", name, err)
	}
	dev, err := c.readDevice(name)
	if unsubscribeErr := c.events.Unsubscribe(); err == nil && unsubscribeErr != nil {
		err = fmt.Errorf("ipvs: read %s: unsubscribe from events: %w", name, unsubscribeErr)
	}
	return dev, err
}

// readDevice reads a device while events are subscribed to. Events that wait
// are forgotten: they are older than what is read.
func (c conn) readDevice(name string) (Device, error) {
	var link rtnl.Link
	find := func() (err error) {
		link, err = c.link(name)
		return err
	}
	if err := find(); err != nil {
		return Device{}, err
	}
	list, partial, err := c.stable(func() int { return link.Index }, find)
	if err != nil {
		return Device{}, fail("read the addresses of "+name, err)
	}
	dev := device(link)
	dev.Addresses, dev.Partial = addresses(c.decoder, list), partial
	return dev, nil
}

func (c conn) devices() (Devices, error) {
	if err := c.events.Subscribe(); err != nil {
		return Devices{}, fmt.Errorf("ipvs: read all interfaces: subscribe to events: %w", err)
	}
	all, err := c.readDevices()
	if unsubscribeErr := c.events.Unsubscribe(); err == nil && unsubscribeErr != nil {
		err = fmt.Errorf("ipvs: read all interfaces: unsubscribe from events: %w", unsubscribeErr)
	}
	return all, err
}

func (c conn) readDevices() (Devices, error) {
	var links []rtnl.Link
	var linksPartial bool
	// The links after the addresses: those of links that are gone are, too.
	list, partial, err := c.stable(func() int { return 0 }, func() (err error) {
		links, linksPartial, err = c.links()
		return err
	})
	if err != nil {
		return Devices{}, fail("read all interfaces", err)
	}
	all := Devices{Devices: make([]Device, len(links)), Partial: partial || linksPartial}
	slices.SortFunc(links, func(a, b rtnl.Link) int { return a.Index - b.Index })
	at := make(map[int]*Device, len(links))
	for i, link := range links {
		all.Devices[i] = device(link)
		all.Devices[i].Addresses = []Address{}
		all.Devices[i].Partial = partial
		at[link.Index] = &all.Devices[i]
	}
	for _, a := range list {
		if dev := at[int(a.Index)]; dev != nil {
			dev.Addresses = append(dev.Addresses, address(c.decoder, a))
		}
	}
	return all, nil
}

// links reads all links, again if they changed meanwhile.
func (c conn) links() (links []rtnl.Link, partial bool, err error) {
	for range 1 + retries {
		if links, partial, err = c.queries.Links(); err != nil || !partial {
			break
		}
	}
	return links, partial, err
}

func (c conn) link(name string) (rtnl.Link, error) {
	link, err := c.queries.Link(name)
	if errors.Is(err, syscall.ENODEV) {
		return link, absent(name)
	}
	if err != nil {
		return link, fmt.Errorf("ipvs: read interface %q: %w", name, err)
	}
	return link, nil
}

// fail says what was attempted, unless the error does.
func fail(what string, err error) error {
	if errors.Is(err, rtnl.ErrMalformed) {
		return fmt.Errorf("ipvs: %s: the kernel sent what this program does not understand: %w", what, err)
	}
	return fmt.Errorf("ipvs: %s: %w", what, err)
}

func device(l rtnl.Link) Device {
	return Device{
		Name: l.Name, Index: l.Index, Kind: l.Kind, MAC: MAC(l.MAC), PermanentMAC: permanent(l),
		Up: l.Flags&rtnl.FlagUp != 0, NoARP: l.Flags&rtnl.FlagNoARP != 0,
		State: operState(l.OperState), Flags: l.Flags, Master: l.Master,
	}
}

func permanent(l rtnl.Link) MAC {
	if l.Permanent == l.MAC {
		return MAC{}
	}
	return MAC(l.Permanent)
}

func addresses(d *rtnl.Decoder, list []rtnl.Address) []Address {
	out := make([]Address, len(list))
	for i := range list {
		out[i] = address(d, list[i])
	}
	return out
}

func address(d *rtnl.Decoder, a rtnl.Address) Address {
	out := Address{
		Prefix: netip.PrefixFrom(netip.AddrFrom4(a.Addr), int(a.Bits)),
		Scope:  scope(a.Scope), Flags: AddressFlags(a.Flags), Label: d.Label(a),
	}
	if a.Peer != [4]byte{} {
		out.Peer = netip.AddrFrom4(a.Peer)
	}
	return out
}
