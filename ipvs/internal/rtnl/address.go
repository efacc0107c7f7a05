package rtnl

import "fmt"

// Address is an IPv4 address of an interface. It is small and has no pointers:
// a dump of thousands costs little memory, and the garbage collector nothing.
type Address struct {
	Index int32 // the interface's
	Addr  [4]byte
	Peer  [4]byte // of a point-to-point interface, else zero
	Bits  uint8   // of the subnet's prefix, at most 32
	Scope uint8
	Flags uint32
	Label uint32 // for Decoder.Label
}

// Decoder decodes addresses and keeps their labels. There are few: nearly all
// are interfaces' names.
type Decoder struct {
	labels []string
	last   uint32
}

// Label returns the label of an address that this Decoder has decoded.
func (d *Decoder) Label(a Address) string {
	if int(a.Label) >= len(d.labels) {
		return "" // the zero Address of a new Decoder
	}
	return d.labels[a.Label]
}

// Of reports whether the message is about an IPv4 address of the interface, or
// of any interface if index is 0, without decoding it.
func Of(m Message, index int) bool {
	return (m.Type == NewAddr || m.Type == DelAddr) && len(m.Body) >= addrBodyLen && m.Body[0] == familyIPv4 &&
		(index == 0 || native.Uint32(m.Body[4:]) == uint32(index))
}

// Address decodes a message of type NewAddr or DelAddr. The error matches
// ErrMalformed.
func (d *Decoder) Address(m Message) (Address, error) {
	if len(m.Body) < addrBodyLen {
		return Address{}, fmt.Errorf("%w: an address of %d bytes", ErrMalformed, len(m.Body))
	}
	a := Address{Bits: m.Body[1], Flags: uint32(m.Body[2]), Scope: m.Body[3], Index: int32(native.Uint32(m.Body[4:]))}
	if m.Body[0] != familyIPv4 || a.Bits > 32 || a.Index <= 0 {
		return Address{}, fmt.Errorf("%w: an address of family %d, prefix length %d and interface %d", ErrMalformed, m.Body[0], a.Bits, a.Index)
	}
	if err := d.attributes(m.Body[addrBodyLen:], &a); err != nil {
		return Address{}, err
	}
	return a, nil
}

// attributes does without the function attributes, whose closure would be
// allocated for each of thousands of addresses.
func (d *Decoder) attributes(b []byte, a *Address) error {
	var local, address []byte
	var label []byte
	for len(b) >= 4 {
		n := int(native.Uint16(b))
		if n < 4 || n > len(b) {
			return fmt.Errorf("%w: an attribute claims %d bytes, %d are there", ErrMalformed, n, len(b))
		}
		value := b[4:n]
		switch native.Uint16(b[2:]) & 0x3fff {
		case ifaAddress:
			address = value
		case ifaLocal:
			local = value
		case ifaLabel:
			label = text(value)
		case ifaFlags: // has the bits that do not fit into the header's byte
			flags, err := u32(value)
			if err != nil {
				return err
			}
			a.Flags = flags
		}
		b = b[min(align(n), len(b)):]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes after the last attribute", ErrMalformed, len(b))
	}
	a.Label = d.intern(label)
	return a.ends(local, address)
}

// ends sets Addr and Peer. IFA_ADDRESS is the other end's where there is one,
// else the address again.
func (a *Address) ends(local, address []byte) error {
	if local == nil {
		local = address
	}
	if len(local) != 4 || address != nil && len(address) != 4 {
		return fmt.Errorf("%w: an IPv4 address of %d bytes, the other end's of %d", ErrMalformed, len(local), len(address))
	}
	a.Addr = [4]byte(local)
	if address != nil && [4]byte(address) != a.Addr {
		a.Peer = [4]byte(address)
	}
	return nil
}

// intern returns a label's number. The label is nearly always that of the
// address before.
func (d *Decoder) intern(b []byte) uint32 {
	if int(d.last) < len(d.labels) && string(b) == d.labels[d.last] {
		return d.last
	}
	for i, l := range d.labels {
		if string(b) == l {
			d.last = uint32(i)
			return d.last
		}
	}
	d.labels = append(d.labels, string(b))
	d.last = uint32(len(d.labels) - 1)
	return d.last
}
