package ipvs

import (
	"fmt"
	"net"
)

// MAC is an Ethernet hardware address. It can be compared and converted to
// arpcheck.MAC, and is text in JSON.
type MAC [6]byte

// String returns the MAC as colon-separated lower-case hexadecimal.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether the MAC is all zeros, which no station has.
func (m MAC) IsZero() bool { return m == MAC{} }

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MAC) UnmarshalText(text []byte) error {
	hw, err := net.ParseMAC(string(text))
	if err != nil || len(hw) != len(m) {
		return fmt.Errorf("ipvs: %q is not a MAC: want six bytes such as 52:54:00:12:34:56", text)
	}
	*m = MAC(hw)
	return nil
}
