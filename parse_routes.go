package strictarp

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// ParseRoutes reads what "ip route" prints, of one table or of all. IPv6 routes are
// left out.
//
// Lines that cannot be used, and words of a route that are not understood, are
// returned as warnings, at most 101. The error is that of reading, or ErrLimit for
// more than 32 MiB; what stands before is returned with it.
func ParseRoutes(r io.Reader) ([]Route, []sysctl.Warning, error) {
	routes, warned := []Route{}, warnings{}
	lines, err := eachLine(r, func(number int, text string) {
		w := words(strings.Fields(text))
		if w.peek() == "nexthop" && len(routes) > 0 { // a line below its route
			w.next()
			var hop Route
			if unknown := hop.attributes(w); unknown != "" {
				warned.add(number, text, "not understood: "+unknown)
			}
			routes[len(routes)-1].addHop(hop)
			return
		}
		route, problem := parseRoute(w)
		if problem != "" {
			warned.add(number, text, problem)
		}
		if route.Dst.IsValid() {
			routes = append(routes, route)
		}
	})
	if err != nil {
		err = fmt.Errorf("strictarp: parse routes: %w", err)
	}
	return routes, warned.done(lines), err
}

func routeTypes() []RouteType {
	return []RouteType{
		RouteUnicast, RouteLocal, RouteBroadcast, RouteMulticast, RouteBlackhole, RouteUnreachable, RouteProhibit, RouteThrow,
	}
}

// parseRoute returns a Route without Dst if there is none, or one of IPv6.
func parseRoute(w words) (r Route, problem string) {
	if t := RouteType(w.peek()); slices.Contains(routeTypes(), t) {
		w.next()
		if t != RouteUnicast {
			r.Type = t
		}
	}
	text := w.next()
	dst, err := parseDst(text)
	if err != nil {
		return Route{}, err.Error()
	}
	if dst.Addr().Is6() {
		return Route{}, ""
	}
	r.Dst = dst
	if unknown := r.attributes(w); unknown != "" {
		problem = "not understood: " + unknown
	}
	return r, problem
}

func parseDst(text string) (netip.Prefix, error) {
	if text == "default" {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), nil
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.WithZone(""), addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not the destination of a route", text)
	}
	return prefix.Masked(), nil
}

// attributes takes the words behind the destination and returns the first that it
// does not know (print_route of iproute2's ip/iproute.c).
func (r *Route) attributes(w words) (unknown string) {
	for len(w) > 0 {
		switch word := w.next(); word {
		case "dev":
			r.Link = escapeName(w.next())
		case "via":
			if w.peek() == "inet6" || w.peek() == "inet" {
				w.next()
			}
			if gw, err := netip.ParseAddr(w.next()); err == nil && gw.Is4() {
				r.Gateway = gw
			}
		case "src":
			if src, err := netip.ParseAddr(w.next()); err == nil && src.Is4() {
				r.Source = src
			}
		case "metric":
			r.Metric, _ = strconv.Atoi(w.next())
		case "table":
			r.Table = tableNumber(w.next())
		case "nexthop": // ip -o prints them on the same line
			r.addHop(Route{Link: linkOf(w)})
			return ""
		case "proto", "scope", "mtu", "advmss", "initcwnd", "initrwnd", "rtt", "rttvar", "rto_min", "quickack", "hoplimit",
			"weight", "window", "cwnd", "ssthresh", "realm", "tos", "dsfield", "expires", "nhid", "error", "pref", "congctl", "users", "age":
			if w.peek() == "lock" {
				w.next()
			}
			w.next()
		case "onlink", "linkdown", "dead", "pervasive", "offload", "trap", "rt_offload", "rt_trap", "rt_offload_failed", "cache", "unresolved", "\\":
		default:
			unknown = cmp.Or(unknown, strconv.Quote(word))
		}
	}
	return unknown
}

func linkOf(w words) string {
	if i := slices.Index(w, "dev"); i >= 0 && i+1 < len(w) {
		return escapeName(w[i+1])
	}
	return ""
}

func (r *Route) addHop(hop Route) {
	switch {
	case r.Link == "":
		r.Link, r.Gateway = hop.Link, hop.Gateway
	case hop.Link != "":
		r.NextHops = append(r.NextHops, hop.Link)
	}
}

// tableNumber returns 0 for a name that only the machine itself knows.
func tableNumber(name string) int {
	switch name {
	case "default":
		return TableDefault
	case "main":
		return TableMain
	case "local":
		return TableLocal
	}
	n, _ := strconv.ParseUint(name, 10, 32)
	return int(n)
}

// ParseNeighbours reads what "ip neigh" prints: the IPv4 entries of the neighbour
// cache, and those of "ip neigh show proxy", which may follow. Warnings and error
// are as those of ParseRoutes.
func ParseNeighbours(r io.Reader) ([]arpcheck.Neighbour, []ProxyNeighbour, []sysctl.Warning, error) {
	cache, warned := []arpcheck.Neighbour{}, warnings{}
	var proxies []ProxyNeighbour
	lines, err := eachLine(r, func(number int, text string) {
		w := words(strings.Fields(text))
		addr, err := netip.ParseAddr(w.next())
		if err != nil {
			warned.add(number, text, errNotPrinted.Error())
			return
		}
		if !addr.Is4() {
			return
		}
		n, proxy, problem := parseNeighbour(addr, w)
		switch {
		case problem != "":
			warned.add(number, text, problem)
		case proxy:
			proxies = append(proxies, ProxyNeighbour{Addr: addr, Link: n.Link})
		default:
			cache = append(cache, n)
		}
	})
	if err != nil {
		err = fmt.Errorf("strictarp: parse neighbours: %w", err)
	}
	return cache, proxies, warned.done(lines), err
}

func parseNeighbour(addr netip.Addr, w words) (n arpcheck.Neighbour, proxy bool, problem string) {
	n.Addr = addr
	for len(w) > 0 {
		switch word := w.next(); word {
		case "dev":
			n.Link = escapeName(w.next())
		case "lladdr":
			mac, err := arpcheck.ParseMAC(w.next())
			if err != nil {
				return n, false, err.Error()
			}
			n.MAC = mac
		case "proxy":
			proxy = true
		case "ref", "probes", "proto", "nud", "nhid", "vlan", "used":
			w.next()
		case "router", "extern_learn", "managed", "offload", "extern_valid", "NONE":
		default:
			state := arpcheck.NeighbourState(strings.ToLower(word))
			if !slices.Contains(neighbourStateNames(), state) {
				return n, false, "not understood: " + strconv.Quote(word)
			}
			n.State = state
		}
	}
	return n, proxy, ""
}

func neighbourStateNames() []arpcheck.NeighbourState {
	return []arpcheck.NeighbourState{
		arpcheck.NeighbourReachable, arpcheck.NeighbourStale, arpcheck.NeighbourDelay, arpcheck.NeighbourProbe,
		arpcheck.NeighbourIncomplete, arpcheck.NeighbourFailed, arpcheck.NeighbourPermanent, arpcheck.NeighbourNoARP,
	}
}
