package ipvs

// EventType says what an Event tells.
type EventType string

// Types of events. The zero EventType is none of them.
const (
	// Full gives the device as it is, with all addresses: first of all, when the
	// device comes back, and whenever events were lost. What was known before is
	// replaced.
	Full EventType = "full"
	// Added means that the address is there: it is new, or has another scope,
	// flags or label than before.
	Added EventType = "added"
	// Removed means that the address is gone.
	Removed EventType = "removed"
	// Changed means that the device's state, flags, MAC or master changed. Its
	// addresses did not: Device.Addresses is nil.
	Changed EventType = "changed"
	// Gone means that there is no such device, with only its name in Device: it
	// vanished or was renamed, or is not there at the start.
	Gone EventType = "gone"
)

// Event is a change of a device or its addresses.
type Event struct {
	Type    EventType `json:"type"`
	Device  Device    `json:"device"`           // of Full and Changed; its name always
	Address Address   `json:"address,omitzero"` // of Added and Removed
	// Resync marks a Full that comes because events were lost: they came faster
	// than they were read, or the state before was Partial.
	Resync bool `json:"resync,omitempty"`
}
