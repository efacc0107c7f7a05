// Package linkdump reads the IPv4 settings of all interfaces from one dump of
// rtnetlink's links. The parser is pure and takes any bytes.
package linkdump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
)

// Numbers of include/uapi/linux/netlink.h, rtnetlink.h, if_link.h and ip.h.
const (
	msgNoop, msgError, msgDone, msgOverrun = 1, 2, 3, 4
	msgNewLink, msgGetLink                 = 16, 18
	flagRequest, flagDumpIntr, flagDump    = 0x1, 0x10, 0x300
	attrIfName, attrAFSpec, attrExtMask    = 3, 26, 29
	attrInetConf                           = 1
	familyInet                             = 2
	skipStats                              = 8      // RTEXT_FILTER_SKIP_STATS: a quarter less to copy
	attrTypeMask                           = 0x3fff // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	headerLen, linkLen                     = 16, 16
)

var (
	// ErrInterrupted means that interfaces came or went during the dump, so
	// that some may be missing.
	ErrInterrupted = errors.New("the dump was interrupted by a change of interfaces")
	errMalformed   = errors.New("malformed netlink message")
)

// Request returns the message that asks for the dump.
func Request(seq uint32) []byte {
	b := make([]byte, headerLen+linkLen+8)
	e := binary.NativeEndian
	e.PutUint32(b, uint32(len(b)))
	e.PutUint16(b[4:], msgGetLink)
	e.PutUint16(b[6:], flagRequest|flagDump)
	e.PutUint32(b[8:], seq)
	attr := b[headerLen+linkLen:]
	e.PutUint16(attr, 8)
	e.PutUint16(attr[2:], attrExtMask)
	e.PutUint32(attr[4:], skipStats)
	return b
}

// Link is an interface with IPv4. Name and Conf are parts of the buffer that
// was parsed, valid until the function that got them returns.
type Link struct {
	Name []byte
	Conf Conf
}

// Conf are the kernel's values of IPV4_DEVCONF_1 and following, in its byte order.
type Conf []byte

// Value returns the value at an index as in IPV4_DEVCONF_x, which counts from
// 1. It is false if the kernel does not have it.
func (c Conf) Value(index int) (int32, bool) {
	if index < 1 || index > len(c)/4 {
		return 0, false
	}
	return int32(binary.NativeEndian.Uint32(c[(index-1)*4:])), true
}

// Status is how far a dump is.
type Status struct {
	Done        bool
	Interrupted bool // see ErrInterrupted
}

// Parse reads the messages of one datagram and calls link for each interface
// that has IPv4 settings. Messages of other requests are skipped. The error is
// the kernel's, which may come in the message that ends the dump, or says what
// is malformed.
func Parse(b []byte, seq uint32, link func(Link)) (Status, error) {
	var s Status
	e := binary.NativeEndian
	for len(b) >= headerLen {
		length := int(e.Uint32(b))
		if length < headerLen || length > len(b) {
			return s, fmt.Errorf("%w: its length is %d where %d bytes are left", errMalformed, length, len(b))
		}
		msg, typ, flags := b[:length], e.Uint16(b[4:]), e.Uint16(b[6:])
		b = b[min(align(length), len(b)):]
		if e.Uint32(msg[8:]) != seq {
			continue
		}
		s.Interrupted = s.Interrupted || flags&flagDumpIntr != 0
		switch typ {
		case msgDone, msgError:
			s.Done = true
			return s, status(typ, msg[headerLen:])
		case msgOverrun:
			return s, fmt.Errorf("%w: overrun", errMalformed)
		case msgNewLink:
			if err := parseLink(msg[headerLen:], link); err != nil {
				return s, err
			}
		}
	}
	if len(b) > 0 {
		return s, fmt.Errorf("%w: %d bytes are left", errMalformed, len(b))
	}
	return s, nil
}

// status returns the error in the payload of a message that ends a dump.
func status(typ uint16, payload []byte) error {
	if len(payload) < 4 {
		if typ == msgDone {
			return nil // the number was not always there
		}
		return fmt.Errorf("%w: an error message of %d bytes", errMalformed, len(payload))
	}
	n := int32(binary.NativeEndian.Uint32(payload))
	switch {
	case n < 0 && n >= -4095: // MAX_ERRNO
		return syscall.Errno(-n)
	case n != 0 && typ == msgError:
		return fmt.Errorf("%w: error number %d", errMalformed, n)
	}
	return nil
}

func parseLink(b []byte, link func(Link)) error {
	if len(b) < linkLen {
		return fmt.Errorf("%w: a link of %d bytes", errMalformed, len(b))
	}
	var l Link
	err := attributes(b[linkLen:], func(typ uint16, value []byte) error {
		switch typ {
		case attrIfName:
			l.Name = value
			for i, c := range value {
				if c == 0 {
					l.Name = value[:i]
					break
				}
			}
		case attrAFSpec:
			return attributes(value, func(family uint16, value []byte) error {
				if family != familyInet {
					return nil
				}
				return attributes(value, func(typ uint16, value []byte) error {
					if typ == attrInetConf {
						l.Conf = value
					}
					return nil
				})
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(l.Name) > 0 && l.Conf != nil {
		link(l)
	}
	return nil
}

func attributes(b []byte, attr func(typ uint16, value []byte) error) error {
	e := binary.NativeEndian
	for len(b) >= 4 {
		length := int(e.Uint16(b))
		if length < 4 || length > len(b) {
			return fmt.Errorf("%w: an attribute's length is %d where %d bytes are left", errMalformed, length, len(b))
		}
		if err := attr(e.Uint16(b[2:])&attrTypeMask, b[4:length]); err != nil {
			return err
		}
		b = b[min(align(length), len(b)):]
	}
	return nil
}

func align(n int) int { return (n + 3) &^ 3 }
