package metallb

// Gate is what takes a node out of an election. They are in the order in which
// MetalLB decides: each speaker first asks whether an advertisement is for its
// own node, and then which speakers are candidates.
type Gate string

// Gates.
const (
	GateAdvertisement Gate = "no-advertisement"    // no advertisement of the Service selects it
	GateSpeaker       Gate = "no-speaker"          // no ready speaker runs on it
	GateMemberlist    Gate = "memberlist-disabled" // without memberlist this version elects nobody
	GateUnschedulable Gate = "unschedulable"       // it is cordoned, which counts in MetalLB 0.14.9 only
	GateNetwork       Gate = "network-unavailable" // its condition NetworkUnavailable is True
	GateExcluded      Gate = "excluded"            // it carries the label that excludes it from load balancers
	GateEndpoint      Gate = "no-endpoint"         // it needs a serving endpoint of the Service and has none
)

func gates() []Gate {
	return []Gate{GateAdvertisement, GateSpeaker, GateMemberlist, GateUnschedulable, GateNetwork, GateExcluded, GateEndpoint}
}

// gateSet is a set of gates, one bit each: 200 nodes are asked for each of 5,000
// Services.
type gateSet uint8

func (g Gate) bit() gateSet {
	switch g {
	case GateAdvertisement:
		return 1 << 0
	case GateSpeaker:
		return 1 << 1
	case GateMemberlist:
		return 1 << 2
	case GateUnschedulable:
		return 1 << 3
	case GateNetwork:
		return 1 << 4
	case GateExcluded:
		return 1 << 5
	case GateEndpoint:
		return 1 << 6
	}
	return 0
}

func (s gateSet) with(g Gate) gateSet { return s | g.bit() }
func (s gateSet) has(g Gate) bool     { return s&g.bit() != 0 }

func (s gateSet) list() []Gate {
	var closed []Gate
	for _, g := range gates() {
		if s.has(g) {
			closed = append(closed, g)
		}
	}
	return closed
}
