package arpcheck

import (
	"encoding/binary"
	"net/netip"
)

// Numbers of linux/netlink.h, linux/rtnetlink.h and linux/neighbour.h. They are
// here, and not taken from the system's, so that what parses bytes is tested
// everywhere.
const (
	nlmsgHeader  = 16
	nlmsgOverrun = 4  // NLMSG_OVERRUN
	newNeigh     = 28 // RTM_NEWNEIGH
	delNeigh     = 29 // RTM_DELNEIGH
	ndmsgSize    = 12
	rtattrHeader = 4
	ndaDst       = 1
	ndaLLAddr    = 2
	familyIPv4   = 2 // AF_INET
	attrMask     = 0x3fff
)

// neighbourStates are the NUD_ bits.
var neighbourStates = map[uint16]NeighbourState{
	0x01: NeighbourIncomplete, 0x02: NeighbourReachable, 0x04: NeighbourStale, 0x08: NeighbourDelay,
	0x10: NeighbourProbe, 0x20: NeighbourFailed, 0x40: NeighbourNoARP, 0x80: NeighbourPermanent,
}

// parseNeighbourChanges reads what the kernel sends of neighbours. Messages of
// other kinds and families, and such as are cut, are passed over. Lost says that
// the kernel could not send all.
func parseNeighbourChanges(b []byte) (changes []neighbourChange, lost bool) {
	for len(b) >= nlmsgHeader {
		size := int(binary.NativeEndian.Uint32(b))
		if size < nlmsgHeader || size > len(b) {
			break
		}
		kind, body := binary.NativeEndian.Uint16(b[4:]), b[nlmsgHeader:size]
		b = b[min(aligned(size), len(b)):]
		switch kind {
		case newNeigh, delNeigh:
			if c, ok := parseNeighbour(body); ok {
				c.gone = kind == delNeigh
				changes = append(changes, c)
			}
		case nlmsgOverrun:
			lost = true
		}
	}
	return changes, lost
}

// parseNeighbour reads a struct ndmsg and its attributes.
func parseNeighbour(b []byte) (c neighbourChange, ok bool) {
	if len(b) < ndmsgSize || b[0] != familyIPv4 {
		return c, false
	}
	c.key.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	c.state = neighbourStates[binary.NativeEndian.Uint16(b[8:])]
	for b = b[ndmsgSize:]; len(b) >= rtattrHeader; {
		size := int(binary.NativeEndian.Uint16(b))
		if size < rtattrHeader || size > len(b) {
			break
		}
		value := b[rtattrHeader:size]
		switch kind := binary.NativeEndian.Uint16(b[2:]) & attrMask; {
		case kind == ndaDst && len(value) == 4:
			c.key.addr = netip.AddrFrom4([4]byte(value))
		case kind == ndaLLAddr && len(value) == len(c.mac):
			c.mac = MAC(value)
		}
		b = b[min(aligned(size), len(b)):]
	}
	return c, c.key.addr.IsValid()
}
