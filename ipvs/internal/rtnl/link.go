package rtnl

import "fmt"

// Flags of a Link, see netdevice(7).
const (
	FlagUp    = 0x1  // IFF_UP
	FlagNoARP = 0x80 // IFF_NOARP
)

// Link is a network interface.
type Link struct {
	Index     int
	Name      string
	Kind      string // such as "dummy"; empty for hardware and loopback
	MAC       [6]byte
	Permanent [6]byte // the hardware's own MAC; zero if it has none
	Flags     uint32
	OperState uint8 // RFC 2863, see linux/if.h
	Master    int   // index of the bridge or bond it is a port of, or 0
}

// ParseLink decodes a message of type NewLink or DelLink. The error matches
// ErrMalformed.
func ParseLink(m Message) (Link, error) {
	if len(m.Body) < linkBodyLen {
		return Link{}, fmt.Errorf("%w: a link of %d bytes", ErrMalformed, len(m.Body))
	}
	l := Link{Index: int(int32(native.Uint32(m.Body[4:]))), Flags: native.Uint32(m.Body[8:])}
	err := attributes(m.Body[linkBodyLen:], func(typ uint16, value []byte) error {
		return l.set(typ, value)
	})
	if err != nil {
		return Link{}, err
	}
	if l.Index <= 0 || l.Name == "" {
		return Link{}, fmt.Errorf("%w: a link without index or name", ErrMalformed)
	}
	return l, nil
}

func (l *Link) set(typ uint16, value []byte) error {
	switch typ {
	case iflaName:
		l.Name = string(text(value))
	case iflaAddress:
		if len(value) == len(l.MAC) { // others, as of tunnels, are no MAC
			l.MAC = [6]byte(value)
		}
	case iflaPermAddress:
		if len(value) == len(l.Permanent) {
			l.Permanent = [6]byte(value)
		}
	case iflaOperState:
		if len(value) == 1 {
			l.OperState = value[0]
		}
	case iflaMaster:
		n, err := u32(value)
		l.Master = int(int32(n))
		return err
	case iflaLinkInfo:
		return attributes(value, func(typ uint16, value []byte) error {
			if typ == infoKind {
				l.Kind = string(text(value))
			}
			return nil
		})
	}
	return nil
}
