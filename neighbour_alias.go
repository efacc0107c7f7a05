package strictarp

import "github.com/strictarp/strictarp/arpcheck"

// Neighbour is arpcheck.Neighbour.
//
// Deprecated: use arpcheck.Neighbour.
type Neighbour = arpcheck.Neighbour

// Neighbour states that are used by this name.
//
// Deprecated: use those of arpcheck.
const (
	NeighbourReachable  = arpcheck.NeighbourReachable
	NeighbourStale      = arpcheck.NeighbourStale
	NeighbourDelay      = arpcheck.NeighbourDelay
	NeighbourProbe      = arpcheck.NeighbourProbe
	NeighbourIncomplete = arpcheck.NeighbourIncomplete
	NeighbourFailed     = arpcheck.NeighbourFailed
)
