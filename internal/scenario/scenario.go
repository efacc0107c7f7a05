// Package scenario is one table of situations on a segment, as plain data. The
// in-memory segment and the lab of network namespaces are both tested against
// it, so that what the first says is what a kernel does.
package scenario

import (
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// The addresses that the table speaks of.
var (
	VIP    = netip.MustParseAddr("10.0.3.20")
	Client = netip.MustParsePrefix("10.0.3.50/24")
	// Unused is an address on the segment that nobody has.
	Unused = netip.MustParseAddr("10.0.3.77")
	// Elsewhere is of a subnet that no node has.
	Elsewhere = netip.MustParseAddr("172.31.1.9")
)

// Scenario is a situation and what a client's probes for VIP say of it.
type Scenario struct {
	Name   string
	Hosts  []Host // they join the segment in this order, the client first
	Passes []Pass
}

// Host is a host on the segment, with an interface eth0.
type Host struct {
	Name      string
	Addr      netip.Prefix // on eth0
	Holds     bool         // VIP is on kube-ipvs0
	Binds     bool         // VIP is on eth0
	Announces bool         // it runs an announcer for VIP
	SecondNIC bool         // it has an eth1 without address on the segment too
	RoutesVIP bool         // it has a route for VIP by eth9, which is elsewhere
	ProxyARP  bool
	Routes    []netip.Prefix // by eth0
	Sysctls   []Sysctl
}

// Sysctl is a setting of net/ipv4/conf.
type Sysctl struct {
	Link  string
	Param sysctl.Param
	Value int
}

// Pass is one probe.
type Pass struct {
	Before []Action
	During []Action // while windows are open
	Sender netip.Addr
	// Patient probes wait as long as a Prober does by default, others a fraction.
	Patient bool
	Want    Want
}

// Action is what a host does.
type Action struct {
	Host string
	Do   Deed
}

// Deed is a thing to do.
type Deed int

// Deeds.
const (
	Announce       Deed = iota // start announcing VIP
	StopAnnouncing             // stop
	SendAsVIP                  // send a packet from VIP to Unused
)

// Want is the expected result of a probe. Hosts are named; host/eth1 is the
// second NIC of a host.
type Want struct {
	Verdict    arpcheck.Verdict
	Responders []string // in any order
	Double     []string // those that answer twice
	Requesters []string // those that sent requests with VIP as sender
}
