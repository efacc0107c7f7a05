package strictarp

import (
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

// NodeFacts are what was observed on a node.
type NodeFacts struct {
	At     time.Time `json:"at"`     // when it was observed
	Source string    `json:"source"` // how, such as "netlink" or a file's name

	Links   []Link      `json:"links,omitzero"`   // network interfaces; nil if not observed
	Sysctls *sysctl.ARP `json:"sysctls,omitzero"` // IPv4 settings of all interfaces; nil if not observed

	// Routes are those of all tables, connected ones included; local ones may be
	// left out for addresses that have one. They are in the kernel's order: of
	// those with the same destination, table and metric it uses the first. Nil if
	// not observed.
	Routes []Route      `json:"routes,omitzero"`
	Rules  []PolicyRule `json:"rules,omitzero"` // policy routing, IPv4; nil if not observed

	Neighbours      []arpcheck.Neighbour `json:"neighbours,omitzero"`      // IPv4; nil if not observed
	ProxyNeighbours []ProxyNeighbour     `json:"proxyNeighbours,omitzero"` // IPv4; nil if not observed

	IPVS      *ipvs.Table       `json:"ipvs,omitzero"`      // nil if not observed, or the kernel has none: see Missing
	Persisted *sysctl.Persisted `json:"persisted,omitzero"` // what files set at boot; nil if not observed
	KubeProxy []Process         `json:"kubeProxy,omitzero"` // running kube-proxies, one on a healthy node; nil if not observed

	// Running is what kube-proxy says of itself; nil if it was not asked.
	Running      *kubeproxy.Running `json:"running,omitzero"`
	KubeProxyLog []string           `json:"kubeProxyLog,omitzero"` // the last lines of its log, at most 200; nil if not observed

	Speaker *SpeakerFacts `json:"speaker,omitzero"` // MetalLB's speaker; nil if not observed

	// Counters are those of the network stack, by the names that nstat(8) prints,
	// such as "TcpExtIPReversePathFilter"; nil if not observed.
	Counters map[string]uint64 `json:"counters,omitzero"`
}

// SpeakerFacts are what was observed of a node's MetalLB speaker. Parts that are
// nil were not observed.
type SpeakerFacts struct {
	Args    []string                `json:"args,omitzero"` // its command line
	Log     *metallb.SpeakerLog     `json:"log,omitzero"`
	Metrics *metallb.SpeakerMetrics `json:"metrics,omitzero"`
}

// Link returns the interface of a name, and whether there is one among those
// observed.
func (n NodeFacts) Link(name string) (Link, bool) {
	for _, l := range n.Links {
		if l.Name == name {
			return l, true
		}
	}
	return Link{}, false
}

// Link is a network interface of a node.
type Link struct {
	// Name is the interface's name. Observe writes a backslash, and each byte that
	// is not UTF-8, as \xNN: JSON would lose such bytes.
	Name string       `json:"name"`
	MAC  arpcheck.MAC `json:"mac,omitzero"` // zero for an interface without one
	// PermanentMAC is the hardware's own, where it differs: of a bond's ports, which
	// share one MAC.
	PermanentMAC arpcheck.MAC `json:"permanentMAC,omitzero"`
	Kind         string       `json:"kind,omitempty"`     // such as "dummy" or "bridge"; empty for hardware, or if not observed
	Up           bool         `json:"up"`                 // administratively up
	NoARP        bool         `json:"noARP"`              // it neither asks nor answers itself, as kube-ipvs0
	Loopback     bool         `json:"loopback,omitempty"` // it is lo
	Flags        uint32       `json:"flags,omitempty"`    // all, as netdevice(7) lists them; 0 if not observed
	Master       string       `json:"master,omitempty"`   // the bridge or bond it is a port of, or its VRF
	Addrs        []Address    `json:"addrs,omitzero"`     // IPv4 addresses; nil if not observed
}

// Address is an IPv4 address of an interface.
type Address struct {
	Prefix netip.Prefix `json:"prefix"` // the address with the length of its subnet's prefix
	Scope  Scope        `json:"scope,omitempty"`
	Peer   netip.Addr   `json:"peer,omitzero"` // the far end, whose subnet counts; zero if there is none
	// Secondary says that the interface had an address of the same subnet before.
	Secondary bool `json:"secondary,omitempty"`
	// NoPrefixRoute says that the address came without a route to its subnet.
	NoPrefixRoute bool `json:"noPrefixRoute,omitempty"`
	// NoLocalRoute says that the route which makes the kernel take packets for the
	// address was deleted. Then nothing is answered for it.
	NoLocalRoute bool `json:"noLocalRoute,omitempty"`
}

// RouteType says what a route does with a packet. The zero RouteType is
// unicast, as ip-route(8) leaves that out.
type RouteType string

// Types of routes, as ip-route(8) names them.
const (
	RouteUnicast     RouteType = "unicast"
	RouteLocal       RouteType = "local"
	RouteBroadcast   RouteType = "broadcast"
	RouteMulticast   RouteType = "multicast"
	RouteBlackhole   RouteType = "blackhole"
	RouteUnreachable RouteType = "unreachable"
	RouteProhibit    RouteType = "prohibit"
	RouteThrow       RouteType = "throw"
)

// Numbers of routing tables that every namespace has (rt_tables).
const (
	TableDefault = 253
	TableMain    = 254
	TableLocal   = 255
)

// Route is an IPv4 route.
type Route struct {
	Dst      netip.Prefix `json:"dst"` // 0.0.0.0/0 for the default route
	Type     RouteType    `json:"type,omitempty"`
	Table    int          `json:"table,omitempty"`    // 0 stands for main, or local for what is local or broadcast
	Link     string       `json:"link,omitempty"`     // the interface it leaves by; empty if it leads nowhere
	NextHops []string     `json:"nextHops,omitempty"` // interfaces of further next hops, if there are several
	Gateway  netip.Addr   `json:"gateway,omitzero"`   // of the first next hop; zero for hosts on the link
	Source   netip.Addr   `json:"source,omitzero"`    // preferred source address
	Metric   int          `json:"metric,omitempty"`   // the lowest wins
}

// PolicyRule is a rule of policy routing, as ip-rule(8) lists them.
type PolicyRule struct {
	Priority int `json:"priority"` // the lowest is asked first
	Table    int `json:"table"`    // 0 if it names none
	// Mark is the firewall mark, in the bits of Mask, that packets need to have; a
	// Mask of 0 means any.
	Mark uint32 `json:"mark,omitempty"`
	Mask uint32 `json:"mask,omitempty"`
	VRF  bool   `json:"vrf,omitempty"` // the one rule that serves all VRFs (l3mdev)
	// Other says that it selects or does something else, which this package does
	// not follow: by address, interface, port, or a jump.
	Other bool `json:"other,omitempty"`
}

// ProxyNeighbour is an entry of "ip neighbour show proxy": an address that the
// node answers for on an interface as if it were its own.
type ProxyNeighbour struct {
	Addr netip.Addr `json:"addr"`
	Link string     `json:"link,omitempty"` // empty: on every interface
}

// Process is a running program.
type Process struct {
	PID     int       `json:"pid"`
	Args    []string  `json:"args"`             // the program's name first
	Started time.Time `json:"started,omitzero"` // to 10 ms; zero if not observed
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
	// ScopeNowhere is that of an address that nothing can be done with. Other
	// scopes are decimal numbers up to 255.
	ScopeNowhere Scope = "nowhere"
)
