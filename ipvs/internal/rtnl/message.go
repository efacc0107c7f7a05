package rtnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
)

// ErrMalformed means that bytes are not what the kernel sends.
var ErrMalformed = errors.New("malformed netlink message")

var native = binary.NativeEndian

// Message is a netlink message. Body is a part of the bytes it was read from.
type Message struct {
	Type  uint16
	Flags uint16
	Seq   uint32
	Body  []byte
}

// Next cuts the first message off b, which must not be empty. The error
// matches ErrMalformed.
func Next(b []byte) (m Message, rest []byte, err error) {
	if len(b) < headerLen {
		return Message{}, nil, fmt.Errorf("%w: %d bytes are too few for a header of %d", ErrMalformed, len(b), headerLen)
	}
	n := int(int32(native.Uint32(b)))
	if n < headerLen || n > len(b) {
		return Message{}, nil, fmt.Errorf("%w: it claims %d bytes, %d are there", ErrMalformed, native.Uint32(b), len(b))
	}
	m = Message{
		Type: native.Uint16(b[4:]), Flags: native.Uint16(b[6:]), Seq: native.Uint32(b[8:]),
		Body: b[headerLen:n],
	}
	return m, b[min(align(n), len(b)):], nil
}

// Status says how far a reply is, and how far a dump can be trusted.
type Status struct {
	Done        bool // it is complete
	Interrupted bool // what was dumped changed meanwhile
}

// Reply reads messages that belong to the request numbered seq and calls each
// for every one that is neither an end nor an error. An error of the kernel, in
// a message of its own or in the one that ends a dump, is a syscall.Errno.
// Messages of other requests are skipped: they are left over from a dump that
// was given up.
func Reply(b []byte, seq uint32, each func(Message) error) (Status, error) {
	var status Status
	for len(b) > 0 {
		var m Message
		var err error
		if m, b, err = Next(b); err != nil {
			return status, err
		}
		if m.Seq != seq {
			continue
		}
		// The end of a dump may be the only message to carry the flag.
		status.Interrupted = status.Interrupted || m.Flags&flagInterrupted != 0
		switch m.Type {
		case typeError, typeDone:
			status.Done = true
			if err := kernelError(m); err != nil {
				return status, err
			}
		default:
			if err := each(m); err != nil {
				return status, err
			}
		}
	}
	return status, nil
}

// kernelError returns the error in a message that ends a reply. A dump that
// fails says so in the payload of its NLMSG_DONE.
func kernelError(m Message) error {
	if len(m.Body) < 4 {
		if m.Type == typeDone {
			return nil // old kernels end dumps without a payload
		}
		return fmt.Errorf("%w: an error of %d bytes", ErrMalformed, len(m.Body))
	}
	code := int32(native.Uint32(m.Body))
	switch {
	case code < 0 && code >= -4095: // MAX_ERRNO
		return syscall.Errno(-code)
	case code < 0:
		return fmt.Errorf("%w: error number %d", ErrMalformed, code)
	}
	return nil // 0 acknowledges; a dump may end with a positive count
}

// attributes calls each for every attribute in b.
func attributes(b []byte, each func(typ uint16, value []byte) error) error {
	for len(b) >= 4 {
		n := int(native.Uint16(b))
		if n < 4 || n > len(b) {
			return fmt.Errorf("%w: an attribute claims %d bytes, %d are there", ErrMalformed, n, len(b))
		}
		// The upper two bits are NLA_F_NESTED and NLA_F_NET_BYTEORDER.
		if err := each(native.Uint16(b[2:])&0x3fff, b[4:n]); err != nil {
			return err
		}
		b = b[min(align(n), len(b)):]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes after the last attribute", ErrMalformed, len(b))
	}
	return nil
}

// text cuts an attribute's string at its NUL.
func text(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

func u32(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, fmt.Errorf("%w: a number has %d bytes, not 4", ErrMalformed, len(b))
	}
	return native.Uint32(b), nil
}
