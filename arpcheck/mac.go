package arpcheck

import (
	"fmt"
	"net"
)

// MAC is an Ethernet hardware address. Unlike net.HardwareAddr it can be
// compared, used as a map key, and is text in JSON.
type MAC [6]byte

// Broadcast is the address every station on a segment listens to.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ParseMAC reads a MAC in any of the forms net.ParseMAC takes, six bytes long.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil {
		// net's error has the text unquoted, and it may come from a stranger.
		return MAC{}, fmt.Errorf("arpcheck: %q is not a MAC: want six bytes such as 52:54:00:12:34:56", s)
	}
	if len(hw) != len(MAC{}) {
		return MAC{}, fmt.Errorf("arpcheck: %q has %d bytes: an Ethernet MAC has 6", s, len(hw))
	}
	return MAC(hw), nil
}

// String returns the MAC as colon-separated lower-case hexadecimal.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether the MAC is all zeros, which no station has.
func (m MAC) IsZero() bool { return m == MAC{} }

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; it takes what ParseMAC takes.
func (m *MAC) UnmarshalText(text []byte) error {
	parsed, err := ParseMAC(string(text))
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}
