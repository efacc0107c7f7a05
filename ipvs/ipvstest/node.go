package ipvstest

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"sync"

	"github.com/strictarp/strictarp/ipvs"
)

// Node is a node's devices and IPVS table. The zero Node has no device and no
// IPVS, as a kernel without the module. Its methods may be called from several
// goroutines.
type Node struct {
	mu       sync.Mutex // guards all below, and the fields of watchers
	devices  []ipvs.Device
	indexes  int // how many were given
	table    *ipvs.Table
	partial  bool
	err      error
	watchers map[*watcher]bool
}

// HoldVIP adds VIPs to kube-ipvs0 as kube-proxy does, and makes the device if it
// is not there: a dummy that is down and does no ARP. A VIP that is there
// already stays.
func (n *Node) HoldVIP(vips ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	dev := n.device(ipvs.DefaultDevice)
	if dev == nil {
		dev = n.add(ipvs.Device{
			Name: ipvs.DefaultDevice, Kind: "dummy", NoARP: true, State: ipvs.StateDown,
			Flags: 0x82, // IFF_BROADCAST and IFF_NOARP
		})
	}
	for _, vip := range vips {
		n.put(dev, address(dev.Name, netip.PrefixFrom(vip.Unmap(), 32)))
	}
}

// AddDevice adds a device with its addresses. It gets an Index if it has none,
// and addresses get what the kernel gives them where it is missing: a scope, a
// label and, with neither, the flag of one without a lifetime. The error matches
// fs.ErrExist if there is a device of that name.
func (n *Node) AddDevice(dev ipvs.Device) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.device(dev.Name) != nil {
		return fmt.Errorf("ipvstest: add device %q: %w", dev.Name, fs.ErrExist)
	}
	n.add(dev)
	return nil
}

// SetLink replaces all that a device is but its name, index and addresses. The
// error matches fs.ErrNotExist if there is no such device.
func (n *Node) SetLink(dev ipvs.Device) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.device(dev.Name)
	if old == nil {
		return missing("set", dev.Name)
	}
	dev.Index, dev.Addresses = old.Index, old.Addresses
	*old = dev
	dev.Addresses = nil
	n.tell(ipvs.Event{Type: ipvs.Changed, Device: dev})
	return nil
}

// RemoveDevice removes a device with its addresses. The error matches
// fs.ErrNotExist if there is none.
func (n *Node) RemoveDevice(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	dev := n.device(name)
	if dev == nil {
		return missing("remove", name)
	}
	for _, a := range dev.Addresses {
		n.tell(ipvs.Event{Type: ipvs.Removed, Device: ipvs.Device{Name: name}, Address: a})
	}
	n.devices = slices.DeleteFunc(n.devices, func(d ipvs.Device) bool { return d.Name == name })
	n.tell(ipvs.Event{Type: ipvs.Gone, Device: ipvs.Device{Name: name}})
	return nil
}

// AddAddress adds an address to a device, of global scope, or of host scope if
// it is a loopback address. The error matches fs.ErrNotExist if there is no such
// device, fs.ErrExist if it has the address, or fs.ErrInvalid if it is not IPv4.
func (n *Node) AddAddress(device string, prefix netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	dev := n.device(device)
	switch {
	case dev == nil:
		return missing("add an address to", device)
	case !prefix.IsValid() || !prefix.Addr().Is4():
		return fmt.Errorf("ipvstest: add %s to %q: it is not IPv4: %w", prefix, device, fs.ErrInvalid)
	case !n.put(dev, address(device, prefix)):
		return fmt.Errorf("ipvstest: add %s to %q: %w", prefix, device, fs.ErrExist)
	}
	return nil
}

// RemoveAddress removes an address from a device. The error matches
// fs.ErrNotExist if there is no such device or it does not have the address.
func (n *Node) RemoveAddress(device string, prefix netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	dev := n.device(device)
	if dev == nil {
		return missing("remove an address from", device)
	}
	i := slices.IndexFunc(dev.Addresses, func(a ipvs.Address) bool { return a.Prefix == prefix })
	if i < 0 {
		return fmt.Errorf("ipvstest: remove %s from %q: %w", prefix, device, fs.ErrNotExist)
	}
	a := dev.Addresses[i]
	dev.Addresses = slices.Delete(dev.Addresses, i, i+1)
	n.tell(ipvs.Event{Type: ipvs.Removed, Device: ipvs.Device{Name: device}, Address: a})
	return nil
}

// SetPartial makes what is read from now on Partial, or not.
func (n *Node) SetPartial(partial bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.partial = partial
}

// Fail makes all reads fail with an error, which also ends every Watch, until
// it is called with nil.
func (n *Node) Fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
	for w := range n.watchers {
		w.wake()
	}
}

// Overrun makes every Watch lose the events that wait, as when they come faster
// than they are read.
func (n *Node) Overrun() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		w.queue, w.again, w.lost = nil, true, true
		w.wake()
	}
}

// device returns the device of that name, or nil. It is called with mu held,
// and so are the methods below.
func (n *Node) device(name string) *ipvs.Device {
	for i := range n.devices {
		if n.devices[i].Name == name {
			return &n.devices[i]
		}
	}
	return nil
}

func (n *Node) add(dev ipvs.Device) *ipvs.Device {
	n.indexes = max(n.indexes+1, dev.Index)
	if dev.Index == 0 {
		dev.Index = n.indexes
	}
	dev.Partial = false
	given := dev.Addresses
	dev.Addresses = make([]ipvs.Address, 0, len(given))
	for _, a := range given {
		if a.Scope == "" && a.Label == "" && a.Flags == 0 {
			a.Flags = ipvs.Permanent
		}
		if a.Scope == "" {
			a.Scope = scope(a.Prefix)
		}
		if a.Label == "" {
			a.Label = dev.Name
		}
		dev.Addresses = append(dev.Addresses, a)
	}
	n.devices = append(n.devices, dev)
	slices.SortFunc(n.devices, func(a, b ipvs.Device) int { return a.Index - b.Index })
	for w := range n.watchers {
		if w.name == dev.Name {
			w.again = true
			w.wake()
		}
	}
	return n.device(dev.Name)
}

// put reports whether the device did not have the address.
func (n *Node) put(dev *ipvs.Device, a ipvs.Address) bool {
	if slices.ContainsFunc(dev.Addresses, func(b ipvs.Address) bool { return b.Prefix == a.Prefix }) {
		return false
	}
	dev.Addresses = append(dev.Addresses, a)
	n.tell(ipvs.Event{Type: ipvs.Added, Device: ipvs.Device{Name: dev.Name}, Address: a})
	return true
}

// copy returns what a reader gets of a device.
func (n *Node) copy(dev ipvs.Device) ipvs.Device {
	dev.Addresses = append([]ipvs.Address{}, dev.Addresses...)
	dev.Partial = n.partial
	return dev
}

func (n *Node) tell(e ipvs.Event) {
	for w := range n.watchers {
		// What happens before all is told is in it.
		if w.name == e.Device.Name && !w.again {
			w.queue = append(w.queue, e)
			w.wake()
		}
	}
}

func address(label string, prefix netip.Prefix) ipvs.Address {
	return ipvs.Address{Prefix: prefix, Scope: scope(prefix), Flags: ipvs.Permanent, Label: label}
}

func scope(prefix netip.Prefix) ipvs.Scope {
	if prefix.Addr().IsLoopback() {
		return ipvs.ScopeHost
	}
	return ipvs.ScopeGlobal
}

func missing(what, device string) error {
	return fmt.Errorf("ipvstest: %s %q: %w", what, device, fs.ErrNotExist)
}
