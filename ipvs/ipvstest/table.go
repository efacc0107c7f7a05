package ipvstest

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp/ipvs"
)

const (
	version   = "1.2.1" // of IPVS since 2005
	connTable = 4096    // buckets, the kernel's default
	tick      = 4 * time.Millisecond
)

// SetTable gives the node an IPVS table, with the kernel's Version and ConnTable
// if it has none. It replaces the one before.
func (n *Node) SetTable(t ipvs.Table) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t = clone(t)
	if t.Version == "" {
		t.Version = version
	}
	if t.ConnTable == 0 {
		t.ConnTable = connTable
	}
	n.table = &t
}

// SetService adds a virtual server, or replaces it. A node without a table gets
// one. ClientBits is all of an address if the service is Persistent without.
func (n *Node) SetService(s ipvs.Service) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table == nil {
		n.table = &ipvs.Table{Version: version, ConnTable: connTable}
	}
	if s.Protocol != "" {
		s.IPv6 = s.Addr.Is6()
	}
	if s.Persistent && s.ClientBits == 0 {
		s.ClientBits = 32
		if s.IPv6 {
			s.ClientBits = 128
		}
	}
	n.table.Services = append(without(n.table.Services, s), s)
}

// RemoveService removes a virtual server if it is there.
func (n *Node) RemoveService(s ipvs.Service) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table != nil {
		n.table.Services = without(n.table.Services, s)
	}
}

// RemoveTable leaves the node without IPVS.
func (n *Node) RemoveTable() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table = nil
}

// ReadTable returns what ipvs.ReadTable does: what can be seen of the table in
// /proc. The error matches ipvs.ErrNoIPVS if the node has no IPVS.
func (n *Node) ReadTable() (ipvs.Table, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.tableError(); err != nil {
		return ipvs.Table{}, err
	}
	t, err := ipvs.ParseTable(strings.NewReader(Proc(*n.table)))
	t.Partial = n.partial
	return t, err
}

// ReadTableNetlink returns what ipvs.ReadTableNetlink does: the table as it was
// set, without TimeoutTicks. The error matches ipvs.ErrNoIPVS if the node has no
// IPVS.
func (n *Node) ReadTableNetlink() (ipvs.Table, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.tableError(); err != nil {
		return ipvs.Table{}, err
	}
	t := clone(*n.table)
	t.Partial = n.partial
	for i := range t.Services {
		t.Services[i].TimeoutTicks = 0
	}
	return t, nil
}

func (n *Node) tableError() error {
	if n.err == nil && n.table == nil {
		return fmt.Errorf("ipvstest: read IPVS table: %w", ipvs.ErrNoIPVS)
	}
	return n.err
}

func without(services []ipvs.Service, s ipvs.Service) []ipvs.Service {
	return slices.DeleteFunc(slices.Clone(services), func(o ipvs.Service) bool { return s.Compare(o) == 0 })
}

// clone sorts as reading does.
func clone(t ipvs.Table) ipvs.Table {
	t.Services = slices.Clone(t.Services)
	slices.SortFunc(t.Services, ipvs.Service.Compare)
	for i := range t.Services {
		servers := append([]ipvs.RealServer{}, t.Services[i].RealServers...)
		slices.SortFunc(servers, func(a, b ipvs.RealServer) int {
			return netip.AddrPortFrom(a.Addr, a.Port).Compare(netip.AddrPortFrom(b.Addr, b.Port))
		})
		t.Services[i].RealServers = servers
	}
	return t
}

// Proc returns a table as /proc/net/ip_vs shows it on a little-endian machine. A
// Timeout is given in ticks of 4 ms unless there are TimeoutTicks. What the
// kernel does not show there is left out.
func Proc(t ipvs.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "IP Virtual Server version %s (size=%d)\n", t.Version, t.ConnTable)
	b.WriteString("Prot LocalAddress:Port Scheduler Flags\n")
	b.WriteString("  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n")
	for _, s := range t.Services {
		b.WriteString(procService(s))
		for _, r := range s.RealServers {
			fmt.Fprintf(&b, "  -> %s      %-7s %-6d %-10d %-10d\n",
				procAddr(r.Addr, r.Port), procForward(r.Forward), r.Weight, r.ActiveConns, r.InactiveConns)
		}
	}
	return b.String()
}

func procService(s ipvs.Service) string {
	ops := ""
	if s.OnePacket {
		ops = "ops "
	}
	line := ""
	switch {
	case s.Protocol == "":
		line = fmt.Sprintf("FWM  %08X %s %s", s.FWMark, s.Scheduler, ops)
	case s.Addr.Is6(): // the kernel forgets ops there
		line = fmt.Sprintf("%s  %s %s ", strings.ToUpper(string(s.Protocol)), procAddr(s.Addr, s.Port), s.Scheduler)
	default:
		line = fmt.Sprintf("%s  %s %s %s ", strings.ToUpper(string(s.Protocol)), procAddr(s.Addr, s.Port), s.Scheduler, ops)
	}
	if s.Persistent {
		ticks := s.TimeoutTicks
		if ticks == 0 {
			ticks = uint32(s.Timeout / tick)
		}
		mask := bits.ReverseBytes32(uint32(s.ClientBits)) // of IPv6 it is the prefix's length
		if !s.IPv6 && !s.Addr.Is6() {
			mask = ^(^uint32(0) >> s.ClientBits)
		}
		line += fmt.Sprintf("persistent %d %08X", int32(ticks), mask)
	}
	return line + "\n"
}

func procAddr(addr netip.Addr, port uint16) string {
	if addr.Is6() {
		return fmt.Sprintf("[%s]:%04X", addr.StringExpanded(), port)
	}
	return fmt.Sprintf("%X:%04X", addr.As4(), port)
}

func procForward(f ipvs.Forward) string {
	switch f {
	case ipvs.Local:
		return "Local"
	case ipvs.Tunnel:
		return "Tunnel"
	case ipvs.Route:
		return "Route"
	}
	return "Masq"
}
