package metallb

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

// Algorithm is how speakers choose the one that announces.
type Algorithm string

// Algorithms.
const (
	// AlgorithmNameHash: before MetalLB 0.11, the lowest
	// SHA-256(node + "#" + namespace/name of the Service) among nodes with a ready
	// endpoint, whatever the traffic policy.
	AlgorithmNameHash Algorithm = "name-hash"
	// AlgorithmAddressHash: since 0.11, the lowest SHA-256(node + "#" + the
	// Service's first address).
	AlgorithmAddressHash Algorithm = "address-hash"
	// AlgorithmWeightedAddressHash: since 0.16.2, the highest sum of weights of
	// preferredNodeSelectors, and the hash of the address among equals.
	AlgorithmWeightedAddressHash Algorithm = "weighted-address-hash"
)

// behaviour is what differs between versions of MetalLB in who announces, read
// from speaker/layer2_controller.go of each of its tags from 0.9.0 to 0.16.2.
type behaviour struct {
	algorithm          Algorithm
	memberlist         bool // 0.9: speakers watch each other
	endpointGate       bool // 0.11: without any endpoint nobody announces, and only Local needs one on the node
	dualStack          bool // 0.12: more than one address
	objects            bool // 0.13: pools and L2Advertisements are objects
	interfaces         bool // 0.13.6: interfaces of an L2Advertisement
	networkUnavailable bool // 0.13.10, and with it the list of excluded interfaces
	excludeLabel       bool // 0.14.0
	servingEndpoints   bool // 0.14.0: serving is enough, before it had to be ready
	ignoreExcludeLB    bool // 0.14.4
	unschedulable      bool // 0.14.9 alone
	everyNode          bool // 0.15.0: without memberlist every node counts
	serviceSelectors   bool // 0.16.0
	preferred          bool // 0.16.2, and with it the conflict of shared addresses and service selectors
}

// release is a version's three numbers.
type release [3]int

func (r release) atLeast(major, minor, patch int) bool {
	return slices.Compare(r[:], []int{major, minor, patch}) >= 0
}

// newest stands for a version that is not known: most installations are newer
// than the last change of the rules.
var newest = release{1 << 20}

var releasePattern = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-+].*)?$`)

// parseRelease reads a version, such as 0.16.1, v0.16.1 or 0.13.7-debian-11-r1.
func parseRelease(text string) (release, bool) {
	m := releasePattern.FindStringSubmatch(text)
	if m == nil {
		return release{}, false
	}
	var r release
	for i, digits := range m[1:] {
		r[i], _ = strconv.Atoi(cmp.Or(digits, "0"))
	}
	return r, true
}

func (r release) String() string {
	return strconv.Itoa(r[0]) + "." + strconv.Itoa(r[1]) + "." + strconv.Itoa(r[2])
}

func behaviourOf(version string) behaviour {
	r, ok := parseRelease(version)
	if !ok {
		r = newest
	}
	b := behaviour{
		algorithm:          AlgorithmNameHash,
		memberlist:         r.atLeast(0, 9, 0),
		endpointGate:       r.atLeast(0, 11, 0),
		dualStack:          r.atLeast(0, 12, 0),
		objects:            r.atLeast(0, 13, 0),
		interfaces:         r.atLeast(0, 13, 6),
		networkUnavailable: r.atLeast(0, 13, 10),
		excludeLabel:       r.atLeast(0, 14, 0),
		servingEndpoints:   r.atLeast(0, 14, 0),
		ignoreExcludeLB:    r.atLeast(0, 14, 4),
		unschedulable:      r == release{0, 14, 9},
		everyNode:          r.atLeast(0, 15, 0),
		serviceSelectors:   r.atLeast(0, 16, 0),
		preferred:          r.atLeast(0, 16, 2),
	}
	switch {
	case b.preferred:
		b.algorithm = AlgorithmWeightedAddressHash
	case b.endpointGate:
		b.algorithm = AlgorithmAddressHash
	}
	return b
}
