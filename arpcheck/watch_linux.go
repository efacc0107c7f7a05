package arpcheck

import (
	"errors"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// filterAddrs implements addrFilter. A kernel that has no room for a long program
// (net.core.optmem_max) gets a shorter one that lets more pass.
func (c *packetConn) filterAddrs(addrs []netip.Addr) error {
	var err error
	for ranges := arpwire.MaxFilterRanges; ranges > 0; ranges /= 4 {
		var program []bpf.RawInstruction
		if program, err = bpf.Assemble(arpwire.FilterAddrs(addrs, ranges)); err != nil {
			return err
		}
		if err = c.option(func(fd int) error { return setFilter(fd, program) }); !errors.Is(err, unix.ENOMEM) {
			break
		}
	}
	if err != nil {
		return c.explain(err)
	}
	return nil
}

// filterAll implements addrFilter.
func (c *packetConn) filterAll() {
	if program, err := arpwire.RawFilterARP(); err == nil { // as it was when the Conn was opened
		_ = c.option(func(fd int) error { return setFilter(fd, program) }) // fails only if the socket is closed
	}
}

// linkName implements linkNamer.
func (k *kernelHost) linkName() (string, error) {
	link, err := k.now()
	if err != nil {
		return "", err
	}
	return link.Attrs().Name, nil
}
