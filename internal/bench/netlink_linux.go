package main

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// dump asks the kernel for all of a kind by rtnetlink and counts messages without
// looking at them: what reading costs at least. The body is zeros but for the family
// and what follows the fixed part.
func dump(kind uint16, body []byte) (messages int, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, dumpRequest(kind, body), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask for a dump: %w", err)
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return messages, fmt.Errorf("read a dump: %w", err)
		}
		for left := buf[:n]; len(left) >= unix.SizeofNlMsghdr; {
			length, kind := native.Uint32(left), native.Uint16(left[4:])
			if kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
				return messages, nil
			}
			messages++
			left = left[min(int(length+3)&^3, len(left)):]
		}
	}
}

func dumpRequest(kind uint16, body []byte) []byte {
	request := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	native.PutUint32(request, uint32(unix.SizeofNlMsghdr+len(body)))
	native.PutUint16(request[4:], kind)
	native.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	return append(request, body...)
}

// linksBody is struct ifinfomsg, with an attribute that leaves out statistics.
func linksBody() []byte {
	const skipStatistics = 8 // RTEXT_FILTER_SKIP_STATS
	body := make([]byte, unix.SizeofIfInfomsg, unix.SizeofIfInfomsg+8)
	body = native.AppendUint16(body, 8)
	body = native.AppendUint16(body, unix.IFLA_EXT_MASK)
	return native.AppendUint32(body, skipStatistics)
}

// addressesBody is struct ifaddrmsg, for IPv4.
func addressesBody() []byte {
	body := make([]byte, unix.SizeofIfAddrmsg)
	body[0] = unix.AF_INET
	return body
}
