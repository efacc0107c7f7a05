package arpcheck

// NeighbourMessages is what is read of messages of the kernel.
func NeighbourMessages(b []byte) (told []NeighbourEvent, lost bool) {
	changes, lost := parseNeighbourChanges(b)
	for _, c := range changes {
		e := NeighbourEvent{Type: NeighbourChanged, Neighbour: Neighbour{Addr: c.key.addr, MAC: c.mac, State: c.state}}
		if c.gone {
			e.Type = NeighbourGone
		}
		told = append(told, e)
	}
	return told, lost
}
