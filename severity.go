package strictarp

import "fmt"

// Severity says how bad a finding is. Severities can be compared: more severe
// is greater.
type Severity uint8

// Severities.
const (
	SeverityUnknown Severity = iota // cannot be decided: the finding says which fact is missing
	SeverityInfo                    // worth knowing
	SeverityWarning                 // a latent or partial fault
	SeverityError                   // traffic is lost, or will be
)

var severityNames = [...]string{"unknown", "info", "warning", "error"}

// String returns the severity's name in lower case.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) {
	if int(s) >= len(severityNames) {
		return nil, fmt.Errorf("strictarp: %v does not exist", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler; it takes the names that
// String returns.
func (s *Severity) UnmarshalText(text []byte) error {
	for i, name := range severityNames {
		if string(text) == name {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("strictarp: no severity %q: want error, warning, info or unknown", text)
}
