package strictarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

var errShort = errors.New("the kernel sent what this program does not understand")

// header is struct rtmsg; struct fib_rule_hdr has the same layout.
type header struct {
	dstBits, srcBits, tos, table, protocol, scope, typ uint8
	flags                                              uint32
}

func parseHeader(msg []byte) (h header, attrs []byte, err error) {
	if len(msg) < unix.SizeofRtMsg || msg[0] != unix.AF_INET || msg[1] > 32 {
		return h, nil, errShort
	}
	h = header{msg[1], msg[2], msg[3], msg[4], msg[5], msg[6], msg[7], binary.NativeEndian.Uint32(msg[8:])}
	return h, msg[unix.SizeofRtMsg:], nil
}

// attributes yields each attribute's type and value, and stops where one is cut
// short.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofRtAttr {
			size := int(binary.NativeEndian.Uint16(b))
			if size < unix.SizeofRtAttr || size > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&typeMask, b[unix.SizeofRtAttr:size]) {
				return
			}
			b = b[min(len(b), (size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
		}
	}
}

// dump calls f with each message of a list of the kernel's.
func dump(request int, response uint16, f func(msg []byte) error) error {
	var failed error
	r := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
	r.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET}})
	err := r.ExecuteIter(unix.NETLINK_ROUTE, response, func(msg []byte) bool {
		failed = f(msg)
		return failed == nil
	})
	return errors.Join(failed, err)
}

func (ob *observer) routes() error {
	return errors.Join(again(ob.readRoutes), again(ob.readRules))
}

// readRoutes leaves out the local routes of addresses: a node with 20,000 of
// those has as many. An address without one is marked.
func (ob *observer) readRoutes() error {
	served := map[netip.Addr]bool{}
	for _, l := range ob.facts.Links {
		for _, a := range l.Addrs {
			served[a.Prefix.Addr()] = false
		}
	}
	found := []Route{}
	err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, func(msg []byte) error {
		h, attrs, err := parseHeader(msg)
		// Dead ones are not used, and requests have no type of service.
		if err != nil || h.flags&(unix.RTM_F_CLONED|unix.RTNH_F_DEAD) != 0 || h.tos != 0 {
			return err
		}
		r, err := ob.route(h, attrs)
		if err != nil {
			return err
		}
		if _, ok := served[r.Dst.Addr()]; ok && h.typ == unix.RTN_LOCAL && h.dstBits == 32 {
			served[r.Dst.Addr()] = true
			return nil
		}
		if found = append(found, r); len(found) > ob.o.MaxRoutes {
			return fmt.Errorf("%w of %d: raise MaxRoutes", ErrLimit, ob.o.MaxRoutes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	ob.facts.Routes = found
	for _, l := range ob.facts.Links {
		for i := range l.Addrs {
			l.Addrs[i].NoLocalRoute = !served[l.Addrs[i].Prefix.Addr()]
		}
	}
	return nil
}

func (ob *observer) route(h header, attrs []byte) (Route, error) {
	r := Route{Type: routeType(h.typ), Table: int(h.table)}
	dst := netip.IPv4Unspecified()
	for typ, value := range attributes(attrs) {
		switch {
		case typ == unix.RTA_MULTIPATH:
			ob.multipath(&r, value)
		case len(value) != 4:
		case typ == unix.RTA_DST:
			dst = netip.AddrFrom4([4]byte(value))
		case typ == unix.RTA_GATEWAY:
			r.Gateway = netip.AddrFrom4([4]byte(value))
		case typ == unix.RTA_PREFSRC:
			r.Source = netip.AddrFrom4([4]byte(value))
		case typ == unix.RTA_TABLE:
			r.Table = int(binary.NativeEndian.Uint32(value))
		case typ == unix.RTA_PRIORITY:
			r.Metric = int(binary.NativeEndian.Uint32(value))
		case typ == unix.RTA_OIF:
			r.Link = ob.name(int(binary.NativeEndian.Uint32(value)))
		}
	}
	r.Dst = netip.PrefixFrom(dst, int(h.dstBits))
	if h.typ == unix.RTN_UNICAST && r.Link == "" {
		return r, fmt.Errorf("route to %s: no interface: %w", r.Dst, errShort)
	}
	return r, nil
}

// multipath reads a list of struct rtnexthop.
func (ob *observer) multipath(r *Route, b []byte) {
	for len(b) >= unix.SizeofRtNexthop {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtNexthop || size > len(b) {
			return
		}
		link := ob.name(int(binary.NativeEndian.Uint32(b[4:])))
		switch {
		case b[2]&unix.RTNH_F_DEAD != 0:
		case r.Link != "":
			r.NextHops = append(r.NextHops, link)
		default:
			r.Link = link
			for typ, value := range attributes(b[unix.SizeofRtNexthop:size]) {
				if typ == unix.RTA_GATEWAY && len(value) == 4 {
					r.Gateway = netip.AddrFrom4([4]byte(value))
				}
			}
		}
		b = b[min(len(b), (size+3)&^3):]
	}
}

func routeType(typ uint8) RouteType {
	name, ok := map[uint8]RouteType{
		unix.RTN_UNICAST: RouteUnicast, unix.RTN_LOCAL: RouteLocal, unix.RTN_BROADCAST: RouteBroadcast,
		unix.RTN_MULTICAST: RouteMulticast, unix.RTN_BLACKHOLE: RouteBlackhole, unix.RTN_UNREACHABLE: RouteUnreachable,
		unix.RTN_PROHIBIT: RouteProhibit, unix.RTN_THROW: RouteThrow,
	}[typ]
	if !ok {
		return RouteType(strconv.Itoa(int(typ)))
	}
	return name
}

func (ob *observer) readRules() error {
	found := []PolicyRule{}
	err := dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, func(msg []byte) error {
		h, attrs, err := parseHeader(msg)
		if err != nil {
			return err
		}
		found = append(found, rule(h, attrs))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list policy routing rules: %w", err)
	}
	ob.facts.Rules = found
	return nil
}

// rule reads struct fib_rule_hdr and its attributes (linux/fib_rules.h). What is
// not known here selects something, until it is known not to.
func rule(h header, attrs []byte) PolicyRule {
	r := PolicyRule{Table: int(h.table), Other: h.typ != nl.FR_ACT_TO_TBL || h.dstBits != 0 || h.srcBits != 0 || h.tos != 0 || h.flags&invert != 0}
	for typ, value := range attributes(attrs) {
		switch {
		case typ == nl.FRA_L3MDEV && len(value) == 1:
			r.VRF = value[0] != 0
		case typ == nl.FRA_PROTOCOL:
		case len(value) != 4:
			r.Other = true
		case typ == nl.FRA_PRIORITY:
			r.Priority = int(binary.NativeEndian.Uint32(value))
		case typ == nl.FRA_TABLE:
			r.Table = int(binary.NativeEndian.Uint32(value))
		case typ == nl.FRA_FWMARK:
			r.Mark = binary.NativeEndian.Uint32(value)
		case typ == nl.FRA_FWMASK:
			r.Mask = binary.NativeEndian.Uint32(value)
		case typ == nl.FRA_SUPPRESS_PREFIXLEN && int32(binary.NativeEndian.Uint32(value)) == -1:
		case typ == nl.FRA_SUPPRESS_IFGROUP && int32(binary.NativeEndian.Uint32(value)) == -1:
		default:
			r.Other = true
		}
	}
	return r
}

const (
	invert   = 0x2    // FIB_RULE_INVERT
	typeMask = 0x3fff // NLA_TYPE_MASK
)
