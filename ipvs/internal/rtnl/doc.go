// Package rtnl speaks the part of rtnetlink that reads IPv4 addresses and
// links: it builds requests, decodes replies and events, and joins a dump with
// the events that came while it ran.
//
// All but the sockets is pure: bytes in, values out, on every system. The
// numbers are those of the kernel's include/uapi/linux/netlink.h, rtnetlink.h,
// if_addr.h and if_link.h; the layouts are described in netlink(7) and
// rtnetlink(7). Integers are in the machine's byte order.
package rtnl

// Message types, see rtnetlink(7).
const (
	typeError = 2
	typeDone  = 3

	NewLink = 16
	DelLink = 17
	getLink = 18
	NewAddr = 20
	DelAddr = 21
	getAddr = 22
)

// Flags of a message's header, see netlink(7).
const (
	flagRequest     = 0x1
	flagInterrupted = 0x10  // NLM_F_DUMP_INTR
	flagDump        = 0x300 // NLM_F_ROOT | NLM_F_MATCH
)

// Attributes of links and addresses.
const (
	iflaAddress     = 1
	iflaName        = 3
	iflaMaster      = 10
	iflaOperState   = 16
	iflaLinkInfo    = 18
	iflaExtMask     = 29
	iflaPermAddress = 54
	infoKind        = 1 // in iflaLinkInfo

	ifaAddress = 1
	ifaLocal   = 2
	ifaLabel   = 3
	ifaFlags   = 8
)

const (
	headerLen   = 16 // struct nlmsghdr
	addrBodyLen = 8  // struct ifaddrmsg
	linkBodyLen = 16 // struct ifinfomsg

	familyIPv4 = 2 // AF_INET on Linux, which is what the bytes are from

	extSkipStats = 8 // RTEXT_FILTER_SKIP_STATS: a quarter fewer bytes
	// maxName is the longest interface name: IFNAMSIZ without the final NUL.
	maxName = 15
)

// NLMSG_ALIGN and NLA_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }
