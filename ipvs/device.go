package ipvs

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// DefaultDevice is the interface to which kube-proxy in ipvs mode binds the
// addresses of Services.
const DefaultDevice = "kube-ipvs0"

// Device is a network interface and its IPv4 addresses.
type Device struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Kind is the driver's kind of interface, such as "dummy", which kube-ipvs0
	// is, "bridge" or "veth". It is empty for hardware and for lo.
	Kind string `json:"kind,omitempty"`
	MAC  MAC    `json:"mac,omitzero"` // zero if it has none
	// PermanentMAC is the hardware's own, where it differs: of a bond's ports,
	// which share one MAC.
	PermanentMAC MAC `json:"permanentMAC,omitzero"`
	// Up is the administrative state. kube-ipvs0 is down: the kernel answers for
	// its addresses all the same.
	Up    bool   `json:"up"`
	NoARP bool   `json:"noARP"` // it neither asks nor answers itself, as kube-ipvs0
	State State  `json:"state,omitempty"`
	Flags uint32 `json:"flags"` // as netdevice(7) lists them, IFF_UP and others
	// Master is the index of the bridge or bond of which this is a port, or 0.
	Master int `json:"master,omitempty"`

	// Addresses are the IPv4 addresses, in the kernel's order. Nil means that
	// they were not observed; empty that there are none.
	Addresses []Address `json:"addresses,omitzero"`
	// Partial means that addresses changed so fast while they were read that one
	// may be missing that was there all the time.
	Partial bool `json:"partial,omitempty"`
}

// Holds reports whether the device has the address, whatever its prefix.
func (d Device) Holds(addr netip.Addr) bool {
	return slices.ContainsFunc(d.Addresses, func(a Address) bool { return a.Prefix.Addr() == addr })
}

// Address is an IPv4 address of a Device.
type Address struct {
	Prefix netip.Prefix `json:"prefix"`          // the address with its subnet's length, /32 on kube-ipvs0
	Peer   netip.Addr   `json:"peer,omitzero"`   // the other end of a point-to-point link
	Scope  Scope        `json:"scope"`           // how far it is valid
	Flags  AddressFlags `json:"flags"`           // as the kernel gives them
	Label  string       `json:"label,omitempty"` // the device's name, or an old alias such as "eth0:1"
}

// key is what makes it the same address for the kernel.
func (a Address) key() addressKey { return addressKey{a.Prefix, a.Peer} }

type addressKey struct {
	prefix netip.Prefix
	peer   netip.Addr
}

// Scope says how far an address is valid. It matters to arp_ignore 3. The zero
// Scope means that it was not observed. Scopes without a name are numbers, as
// /etc/iproute2/rt_scopes has them.
type Scope string

// Scopes, as ip-address(8) prints them.
const (
	ScopeGlobal  Scope = "global"
	ScopeSite    Scope = "site"
	ScopeLink    Scope = "link"
	ScopeHost    Scope = "host"
	ScopeNowhere Scope = "nowhere"
)

func scope(n uint8) Scope {
	switch n { // RT_SCOPE_*, see rtnetlink(7)
	case 0:
		return ScopeGlobal
	case 200:
		return ScopeSite
	case 253:
		return ScopeLink
	case 254:
		return ScopeHost
	case 255:
		return ScopeNowhere
	}
	return Scope(strconv.Itoa(int(n)))
}

// AddressFlags are the kernel's flags of an address, IFA_F_* in
// include/uapi/linux/if_addr.h. Those without a constant here are kept.
type AddressFlags uint32

// Flags that IPv4 addresses have.
const (
	Secondary     AddressFlags = 0x01  // not the first of its subnet on the device
	Permanent     AddressFlags = 0x80  // without a lifetime
	NoPrefixRoute AddressFlags = 0x200 // without a route to its subnet
)

// String names the flags as ip-address(8) does, and gives the rest as a number.
func (f AddressFlags) String() string {
	var names []string
	for _, known := range []struct {
		flag AddressFlags
		name string
	}{{Secondary, "secondary"}, {Permanent, "permanent"}, {NoPrefixRoute, "noprefixroute"}} {
		if f&known.flag != 0 {
			names = append(names, known.name)
			f &^= known.flag
		}
	}
	if f != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(f)))
	}
	return strings.Join(names, ",")
}

// State is a device's operational state, as ip-link(8) prints it in lower case.
// The zero State means that it was not observed.
type State string

// States of RFC 2863. A dummy is unknown while it is up.
const (
	StateUnknown        State = "unknown"
	StateNotPresent     State = "notpresent"
	StateDown           State = "down"
	StateLowerLayerDown State = "lowerlayerdown"
	StateTesting        State = "testing"
	StateDormant        State = "dormant"
	StateUp             State = "up"
)

func operState(n uint8) State {
	// IF_OPER_* of include/uapi/linux/if.h, from 0.
	names := [...]State{StateUnknown, StateNotPresent, StateDown, StateLowerLayerDown, StateTesting, StateDormant, StateUp}
	if int(n) < len(names) {
		return names[n]
	}
	return State(strconv.Itoa(int(n)))
}

// Devices are all network interfaces of a network namespace.
type Devices struct {
	Devices []Device `json:"devices"` // by index
	// Partial means that links or addresses changed so fast while they were read
	// that one may be missing that was there all the time.
	Partial bool `json:"partial,omitempty"`
}

// Named returns the device of that name; an empty name stands for
// DefaultDevice. The error matches fs.ErrNotExist if there is none.
func (d Devices) Named(name string) (Device, error) {
	name = deviceName(name)
	for _, dev := range d.Devices {
		if dev.Name == name {
			return dev, nil
		}
	}
	return Device{}, absent(name)
}

// Holder is a device that has a VIP.
type Holder struct {
	VIP     netip.Addr `json:"vip"`
	Device  string     `json:"device"`
	Index   int        `json:"index"`
	Kind    string     `json:"kind,omitempty"` // as in Device
	Address Address    `json:"address"`        // as it has it
}

// Holders returns every device that has one of the VIPs, except those named, by
// VIP and then by index. Give DefaultDevice as an exception to see where VIPs
// are besides where kube-proxy puts them.
func (d Devices) Holders(vips []netip.Addr, except ...string) []Holder {
	wanted := make(map[netip.Addr]bool, len(vips))
	for _, vip := range vips {
		wanted[vip.Unmap()] = true
	}
	var holders []Holder
	for _, dev := range d.Devices {
		if slices.Contains(except, dev.Name) {
			continue
		}
		for _, a := range dev.Addresses {
			if vip := a.Prefix.Addr(); wanted[vip] {
				holders = append(holders, Holder{VIP: vip, Device: dev.Name, Index: dev.Index, Kind: dev.Kind, Address: a})
			}
		}
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return a.VIP.Compare(b.VIP) })
	return holders
}

func deviceName(name string) string {
	if name == "" {
		return DefaultDevice
	}
	return name
}

func absent(name string) error {
	hint := "is it another one's name, or another network namespace?"
	if name == DefaultDevice {
		hint = "kube-proxy makes it in ipvs mode only"
	}
	return fmt.Errorf("ipvs: no interface %q (%s): %w", name, hint, fs.ErrNotExist)
}
