package linkdump

import (
	"errors"
	"fmt"
)

// Conn is a netlink socket as Dump needs it.
type Conn interface {
	Send(msg []byte) error
	// Receive reads a datagram into b and returns its length, which is larger
	// than b if it did not fit.
	Receive(b []byte) (int, error)
}

// BufferSize is enough for any part of a dump: the kernel fills at most 32 KiB
// at a time (NLMSG_GOODSIZE's bound in netlink_dump), unless one message alone
// is larger.
const BufferSize = 64 << 10

// attempts is how often a dump is begun anew when interfaces came or went
// meanwhile. One takes 1 to 5 ms; a host on which all of three are interrupted
// makes interfaces faster than that, and would interrupt a fourth.
const attempts = 3

// Dump reads all interfaces that have IPv4 settings. It calls start at the
// beginning of each attempt: what was collected before is void. If all attempts
// were interrupted, the error matches ErrInterrupted and what the last one
// found is the caller's to keep or not.
func Dump(c Conn, start func(), link func(Link)) error {
	buf := make([]byte, BufferSize)
	var err error
	for seq := range uint32(attempts) {
		start()
		if err = once(c, seq+1, buf, link); !errors.Is(err, ErrInterrupted) {
			return err
		}
	}
	return fmt.Errorf("%d times: %w", attempts, err)
}

func once(c Conn, seq uint32, buf []byte, link func(Link)) error {
	if err := c.Send(Request(seq)); err != nil {
		return fmt.Errorf("ask for the links: %w", err)
	}
	interrupted := false
	for {
		n, err := c.Receive(buf)
		if err != nil {
			return fmt.Errorf("receive links: %w", err)
		}
		if n > len(buf) {
			return fmt.Errorf("receive links: %w: %d bytes do not fit into %d", errMalformed, n, len(buf))
		}
		s, err := Parse(buf[:n], seq, link)
		if err != nil {
			return fmt.Errorf("links: %w", err)
		}
		interrupted = interrupted || s.Interrupted
		if s.Done {
			if interrupted {
				return ErrInterrupted
			}
			return nil
		}
	}
}
