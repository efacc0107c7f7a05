package ipvs

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// parseService reads "TCP 0A000314:0050 rr ops persistent 1080000 FFFFFFFF", of
// which the last two parts are optional, or "FWM 00000010 rr" and so on.
func parseService(f []string) (s Service, reason string) {
	if len(f) < 3 {
		return s, "a service has at least a protocol, an address and a scheduler"
	}
	s = Service{Scheduler: f[2], RealServers: []RealServer{}}
	if f[0] == "FWM" {
		mark, err := strconv.ParseUint(f[1], 16, 32)
		if err != nil || len(f[1]) != 8 || mark == 0 {
			return s, "a firewall mark has 8 hexadecimal digits and is not 0"
		}
		s.FWMark = uint32(mark)
	} else {
		if !protocolName(f[0]) {
			return s, "neither a protocol, nor FWM, nor ->"
		}
		at, reason := parseAddr(f[1])
		if reason != "" {
			return s, reason
		}
		s.Protocol, s.Addr, s.Port = Protocol(strings.ToLower(f[0])), at.Addr(), at.Port()
		s.IPv6 = at.Addr().Is6()
	}
	f = f[3:]
	if len(f) > 0 && f[0] == "ops" {
		s.OnePacket, f = true, f[1:]
	}
	if len(f) == 0 {
		return s, ""
	}
	return s, s.persistence(f)
}

// persistence reads "persistent TICKS MASK".
func (s *Service) persistence(f []string) (reason string) {
	if f[0] != "persistent" || len(f) != 3 {
		return fmt.Sprintf("after the scheduler only \"ops\" and \"persistent TICKS MASK\" are known, not %q", strings.Join(f, " "))
	}
	// The kernel prints an unsigned number as a signed one.
	ticks, err := strconv.ParseInt(f[1], 10, 64)
	mask, maskErr := strconv.ParseUint(f[2], 16, 32)
	if err != nil || maskErr != nil || len(f[2]) != 8 || ticks != int64(int32(ticks)) {
		return "persistence is a number of ticks and a mask of 8 hexadecimal digits"
	}
	ones, ok := prefixBits(uint32(mask))
	// A firewall mark may be for IPv6. Both fit only for 1 bit of IPv4, which
	// nobody uses, and 128 of IPv6, which is the default.
	if mark := s.Protocol == ""; s.IPv6 || mark {
		if n, fits := ipv6Bits(uint32(mask)); fits || !mark {
			ones, ok, s.IPv6 = n, fits, true
		}
	}
	if !ok {
		return fmt.Sprintf("%s is no mask of such a service", f[2])
	}
	s.Persistent, s.TimeoutTicks, s.ClientBits = true, uint32(int32(ticks)), ones
	return ""
}

// prefixBits reads an IPv4 mask.
func prefixBits(mask uint32) (ones int, ok bool) {
	ones = bits.LeadingZeros32(^mask)
	return ones, mask<<ones == 0
}

// ipv6Bits reads a prefix's length, which the kernel keeps in place of a mask
// and prints with its bytes in network order. On most machines that is the
// reverse of theirs: 128 is 80000000.
func ipv6Bits(mask uint32) (ones int, ok bool) {
	for _, n := range []uint32{bits.ReverseBytes32(mask), mask} {
		if n >= 1 && n <= 128 {
			return int(n), true
		}
	}
	return 0, false
}

// parseAddr reads 0A000314:0050 or [20010db8...0001]:0050 with colons inside.
func parseAddr(s string) (netip.AddrPort, string) {
	const want = "an address is 8 hexadecimal digits or an IPv6 address in brackets, then a colon and 4 hexadecimal digits"
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return netip.AddrPort{}, want
	}
	host, portText := s[:i], s[i+1:]
	if strings.Contains(host, ".") {
		return netip.AddrPort{}, "this is what ipvsadm prints: give /proc/net/ip_vs instead"
	}
	port, err := strconv.ParseUint(portText, 16, 16)
	if err != nil || len(portText) != 4 {
		return netip.AddrPort{}, want
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		addr, err := netip.ParseAddr(host[1 : len(host)-1])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return netip.AddrPort{}, want
		}
		return netip.AddrPortFrom(addr, uint16(port)), ""
	}
	ip, err := strconv.ParseUint(host, 16, 32)
	if err != nil || len(host) != 8 {
		return netip.AddrPort{}, want
	}
	addr := netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
	return netip.AddrPortFrom(addr, uint16(port)), ""
}

// protocolName accepts what ip_vs_proto_name returns: TCP, UDP, SCTP, and
// others such as IP_47 that no service can have today.
func protocolName(s string) bool {
	for i, c := range []byte(s) {
		if (c < 'A' || c > 'Z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(s) <= 16
}
