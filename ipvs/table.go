package ipvs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Table is the kernel's IPVS table: virtual servers and the real servers they
// forward to. ParseTable, ReadTable and ReadTableNetlink make equal Tables of
// the same state, but for what the fields' comments say.
type Table struct {
	Version   string    `json:"version"`   // of IPVS, such as "1.2.1"
	ConnTable int       `json:"connTable"` // size of the connection table, in buckets
	Services  []Service `json:"services"`  // sorted, see Service.Compare
	// Partial means that services changed so fast while they were read that one
	// may be missing that was there all the time.
	Partial bool `json:"partial,omitempty"`
}

// Service is a virtual server: a protocol, address and port, or a firewall
// mark.
type Service struct {
	// Protocol is empty for a firewall mark.
	Protocol Protocol   `json:"protocol,omitempty"`
	Addr     netip.Addr `json:"addr,omitzero"`
	Port     uint16     `json:"port,omitempty"` // 0 is all ports
	FWMark   uint32     `json:"fwMark,omitempty"`
	// IPv6 is the family of Addr, or that for which a firewall mark is. /proc
	// shows the latter only if there is a real server with an IPv6 address, or
	// by ClientBits.
	IPv6      bool   `json:"ipv6,omitempty"`
	Scheduler string `json:"scheduler"` // such as "rr"; "none" if it has none

	// OnePacket means that datagrams are scheduled one by one. /proc does not
	// tell of services with an IPv6 address.
	OnePacket bool `json:"onePacket,omitempty"`
	// Persistent means that a client stays with its real server.
	Persistent bool `json:"persistent,omitempty"`
	// ClientBits is how much of a client's address makes it the same client:
	// 32 for each IPv4 address, 128 for each IPv6 address; 0 if not Persistent.
	ClientBits int `json:"clientBits,omitempty"`
	// Timeout is how long a client stays. Only netlink tells.
	Timeout time.Duration `json:"timeout,omitempty"`
	// TimeoutTicks is Timeout in the kernel's ticks, of which a second has 100 to
	// 1000: the kernel knows. Only /proc tells.
	TimeoutTicks uint32 `json:"timeoutTicks,omitempty"`
	// Flags are the kernel's, IP_VS_SVC_F_* in include/uapi/linux/ip_vs.h. Only
	// netlink tells.
	Flags uint32 `json:"flags,omitempty"`

	// RealServers is empty for a service without any, whose connections are
	// refused.
	RealServers []RealServer `json:"realServers"` // sorted by address and port
}

// Protocol is a transport protocol, in lower case.
type Protocol string

// Protocols of virtual servers. The zero Protocol is that of a firewall mark.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	SCTP Protocol = "sctp"
)

// RealServer is where a Service's connections are forwarded to.
type RealServer struct {
	Addr    netip.Addr `json:"addr"`
	Port    uint16     `json:"port"`
	Forward Forward    `json:"forward"`
	// Weight is the share of new connections. With 0 it gets no new ones: so does
	// kube-proxy retire an endpoint.
	Weight        int `json:"weight"`
	ActiveConns   int `json:"activeConns"`   // established
	InactiveConns int `json:"inactiveConns"` // others that are still known
}

// Forward is how packets reach a real server. The zero Forward is unknown.
type Forward string

// Ways of forwarding, as ipvsadm(8) explains them. kube-proxy uses Masq.
const (
	Masq   Forward = "masq"   // destination rewritten
	Local  Forward = "local"  // it is an address of this host
	Tunnel Forward = "tunnel" // packed into another packet
	Route  Forward = "route"  // sent to its MAC unchanged
)

// String returns the service as ipvsadm takes it, such as "tcp 10.0.3.20:80" or
// "fwmark 16".
func (s Service) String() string {
	if s.Protocol == "" {
		family := ""
		if s.IPv6 {
			family = " ipv6"
		}
		return fmt.Sprintf("fwmark %d%s", s.FWMark, family)
	}
	return fmt.Sprintf("%s %s", s.Protocol, netip.AddrPortFrom(s.Addr, s.Port))
}

// Compare orders services: by address, port and protocol, firewall marks last.
func (s Service) Compare(o Service) int {
	return cmp.Or(
		cmp.Compare(s.FWMark, o.FWMark), s.Addr.Compare(o.Addr), cmp.Compare(s.Port, o.Port),
		strings.Compare(string(s.Protocol), string(o.Protocol)), compareBool(s.IPv6, o.IPv6),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (r RealServer) compare(o RealServer) int {
	return cmp.Or(r.Addr.Compare(o.Addr), cmp.Compare(r.Port, o.Port))
}

// sort makes equal tables of equal states: the kernel's order is that of a hash.
func (t *Table) sort() {
	slices.SortStableFunc(t.Services, Service.Compare)
	for i := range t.Services {
		slices.SortStableFunc(t.Services[i].RealServers, RealServer.compare)
	}
}

// For returns the services of a VIP, of all protocols and ports. A firewall
// mark belongs to no VIP.
func (t Table) For(vip netip.Addr) []Service {
	vip = vip.Unmap()
	var found []Service
	for _, s := range t.Services {
		if s.Protocol != "" && s.Addr == vip {
			found = append(found, s)
		}
	}
	return found
}

// Backing counts a VIP's virtual servers by where their real servers are.
type Backing struct {
	Local  int `json:"local"`  // with a real server on this node
	Remote int `json:"remote"` // with real servers, all of them on other nodes
	Empty  int `json:"empty"`  // with none that takes new connections
}

// Backing tells whether the virtual servers of a VIP have a real server on this
// node. A node on which none has one forwards the VIP's connections elsewhere,
// which under externalTrafficPolicy: Local nobody should rely on. All zero means
// that the table has no virtual server for the VIP.
//
// isLocal reports whether an address is on this node: usually a pod's, which is
// no address of the node itself. A real server with Forward Local is on this
// node whatever isLocal says. Those with weight 0 do not count.
func (t Table) Backing(vip netip.Addr, isLocal func(netip.Addr) bool) Backing {
	var b Backing
	for _, s := range t.For(vip) {
		switch local, usable := s.local(isLocal); {
		case local:
			b.Local++
		case usable:
			b.Remote++
		default:
			b.Empty++
		}
	}
	return b
}

func (s Service) local(isLocal func(netip.Addr) bool) (local, usable bool) {
	for _, r := range s.RealServers {
		if r.Weight == 0 {
			continue
		}
		usable = true
		if r.Forward == Local || isLocal(r.Addr) {
			return true, true
		}
	}
	return false, usable
}
