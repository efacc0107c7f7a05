package strictarp

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"regexp"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
)

// addressMapper replaces addresses, each by the same one everywhere.
type addressMapper struct {
	key  []byte
	ip4  *regexp.Regexp
	mac  *regexp.Regexp
	ip6  *regexp.Regexp
	macs map[arpcheck.MAC]arpcheck.MAC
	used map[arpcheck.MAC]bool
}

func newAddressMapper(key []byte) (*addressMapper, error) {
	m := &addressMapper{key: key, macs: map[arpcheck.MAC]arpcheck.MAC{}, used: map[arpcheck.MAC]bool{}}
	for pattern, to := range map[string]**regexp.Regexp{
		`\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b`:           &m.ip4,
		`(?i)\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b`:          &m.mac,
		`(?i)(?:[0-9a-f]{1,4}:|::)[0-9a-f:]*(?:/\d{1,3}\b)?`: &m.ip6,
	} {
		r, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		*to = r
	}
	return m, nil
}

func (m *addressMapper) text(s string) string {
	s = m.mac.ReplaceAllStringFunc(s, m.replaceMAC)
	s = m.ip4.ReplaceAllStringFunc(s, m.replace4)
	return m.ip6.ReplaceAllStringFunc(s, m.replace6)
}

func (m *addressMapper) hash(text string) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// replace4 changes the second byte of an address, and leaves what is the same of
// two addresses the same, so that prefixes of any length hold what they held.
func (m *addressMapper) replace4(text string) string {
	host, length, isPrefix := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.IsUnspecified() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.As4()[0] >= 224 {
		return text
	}
	bytes := addr.As4()
	changed := byte(0)
	for bit := range 8 {
		above := bytes[1] >> (8 - bit) // the bits before this one
		changed = changed<<1 | bytes[1]>>(7-bit)&1 ^ m.hash(string([]byte{'4', bytes[0], byte(bit), above}))[0]&1
	}
	bytes[1] = changed
	mapped := netip.AddrFrom4(bytes)
	if !isPrefix {
		return mapped.String()
	}
	before, err := netip.ParsePrefix(text)
	if err != nil {
		return mapped.String() + "/" + length
	}
	after := netip.PrefixFrom(mapped, before.Bits())
	if before == before.Masked() {
		after = after.Masked()
	}
	return after.String()
}

// replace6 changes an address's subnet of 64 bits and its other half, each by
// itself.
func (m *addressMapper) replace6(text string) string {
	host, length, isPrefix := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is6() || addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() {
		return text
	}
	bytes := addr.As16()
	zero := [8]byte{}
	if !addr.IsLinkLocalUnicast() {
		copy(bytes[2:8], m.hash("6"+string(bytes[:8])))
	}
	if [8]byte(bytes[8:]) != zero {
		copy(bytes[8:], m.hash("i"+string(bytes[8:])))
	}
	mapped := netip.AddrFrom16(bytes).String()
	if isPrefix {
		mapped += "/" + length
	}
	return mapped
}

// replaceMAC changes what is the host's own of a MAC. Those that say what they are
// stay: groups, VRRP's (RFC 9568) and such without a host.
func (m *addressMapper) replaceMAC(text string) string {
	mac, err := arpcheck.ParseMAC(text)
	vrrp := mac[0] == 0 && mac[1] == 0 && mac[2] == 0x5e && mac[3] == 0 && (mac[4] == 1 || mac[4] == 2)
	if err != nil || mac[0]&1 == 1 || mac.IsZero() || vrrp {
		return text
	}
	mapped, known := m.macs[mac]
	for try := byte(0); !known; try++ {
		mapped = mac
		copy(mapped[3:], m.hash("m"+string(append(mac[:], try))))
		if known = !m.used[mapped] || try == 255; known {
			m.macs[mac], m.used[mapped] = mapped, true
		}
	}
	return mapped.String()
}
