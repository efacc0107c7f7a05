package strictarp

import (
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// NodeFacts are what was observed on a node.
type NodeFacts struct {
	At     time.Time `json:"at"`     // when it was observed
	Source string    `json:"source"` // how, such as "netlink" or a file's name

	Links   []Link      `json:"links,omitzero"`   // network interfaces; nil if not observed
	Sysctls *sysctl.ARP `json:"sysctls,omitzero"` // IPv4 settings of all interfaces; nil if not observed
}

// Link is a network interface of a node.
type Link struct {
	Name   string       `json:"name"`
	MAC    arpcheck.MAC `json:"mac,omitzero"`     // zero for an interface without one
	Up     bool         `json:"up"`               // administratively up
	NoARP  bool         `json:"noARP"`            // it neither asks nor answers itself, as kube-ipvs0
	Master string       `json:"master,omitempty"` // the bridge or bond it is a port of
	Addrs  []Address    `json:"addrs,omitzero"`   // IPv4 addresses; nil if not observed
}

// Address is an IPv4 address of an interface.
type Address struct {
	Prefix netip.Prefix `json:"prefix"` // the address with the length of its subnet's prefix
	Scope  Scope        `json:"scope,omitempty"`
}

// Scope says how far an address is valid. It matters to arp_ignore 3. The zero
// Scope means that it was not observed.
type Scope string

// Scopes, as ip-address(8) prints them.
const (
	ScopeGlobal Scope = "global"
	ScopeSite   Scope = "site"
	ScopeLink   Scope = "link"
	ScopeHost   Scope = "host"
)

// Neighbour is an entry of a host's neighbour cache: the MAC to which the host
// sends what is for an address.
type Neighbour struct {
	Addr  netip.Addr     `json:"addr"`
	MAC   arpcheck.MAC   `json:"mac,omitzero"` // zero while the address is unresolved
	Link  string         `json:"link"`         // the interface's name
	State NeighbourState `json:"state,omitempty"`
}

// NeighbourState says how far an entry can be trusted. The zero NeighbourState
// means that it was not observed.
type NeighbourState string

// Neighbour states, as ip-neighbour(8) names them, in lower case.
const (
	NeighbourReachable  NeighbourState = "reachable"  // confirmed lately
	NeighbourStale      NeighbourState = "stale"      // used until it is found wrong
	NeighbourDelay      NeighbourState = "delay"      // in use, about to be checked
	NeighbourProbe      NeighbourState = "probe"      // being checked by unicast requests
	NeighbourIncomplete NeighbourState = "incomplete" // asked for, not answered yet
	NeighbourFailed     NeighbourState = "failed"     // asked for in vain
	NeighbourPermanent  NeighbourState = "permanent"  // set by hand
	NeighbourNoARP      NeighbourState = "noarp"      // needs no resolution
)
