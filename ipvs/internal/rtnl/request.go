package rtnl

import (
	"fmt"
	"io/fs"
	"strings"
)

// DumpAddresses asks for the IPv4 addresses of all interfaces. The kernel could
// be asked for those of one interface only, but then it never says that the dump
// was interrupted: in inet_dump_ifaddr (net/ipv4/devinet.c) that branch leaves
// the sequence number unset.
func DumpAddresses(seq uint32) []byte {
	body := make([]byte, addrBodyLen)
	body[0] = familyIPv4
	return request(getAddr, flagDump, seq, body)
}

// DumpLinks asks for all links, without their statistics.
func DumpLinks(seq uint32) []byte {
	return request(getLink, flagDump, seq, appendAttribute(make([]byte, linkBodyLen), iflaExtMask, skipStats()))
}

// LinkByName asks for one link. The error matches fs.ErrInvalid if no link can
// have that name.
func LinkByName(seq uint32, name string) ([]byte, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	body := appendAttribute(make([]byte, linkBodyLen), iflaExtMask, skipStats())
	body = appendAttribute(body, iflaName, append([]byte(name), 0))
	return request(getLink, 0, seq, body), nil
}

// CheckName returns an error that matches fs.ErrInvalid if no link can have
// that name, as dev_valid_name in net/core/dev.c decides.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || name == "." || name == ".." || strings.ContainsAny(name, "/:\x00 \t\n\v\f\r") {
		return fmt.Errorf("no interface can be named %q (1 to %d bytes, no slash, colon or space): %w", name, maxName, fs.ErrInvalid)
	}
	return nil
}

func skipStats() []byte { return native.AppendUint32(nil, extSkipStats) }

func request(typ, flags uint16, seq uint32, body []byte) []byte {
	b := make([]byte, 0, headerLen+len(body))
	b = native.AppendUint32(b, uint32(headerLen+len(body)))
	b = native.AppendUint16(b, typ)
	b = native.AppendUint16(b, flagRequest|flags)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0) // the kernel knows whose socket it is
	return append(b, body...)
}

func appendAttribute(b []byte, typ uint16, value []byte) []byte {
	b = native.AppendUint16(b, uint16(4+len(value)))
	b = native.AppendUint16(b, typ)
	b = append(b, value...)
	return append(b, make([]byte, align(len(value))-len(value))...)
}
