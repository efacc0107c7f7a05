package sysctl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/strictarp/strictarp/internal/arprule"
)

// Param is an IPv4 setting that every interface has: the last part of
// net/ipv4/conf/INTERFACE/PARAM.
type Param string

// Parameters that take part in who answers ARP and in what neighbours learn.
const (
	ARPIgnore         Param = "arp_ignore"          // for which of the host's addresses requests are answered
	ARPAnnounce       Param = "arp_announce"        // which address the host's own requests name as sender
	ARPFilter         Param = "arp_filter"          // answer only if the route back leaves by the receiving interface
	ARPAccept         Param = "arp_accept"          // make neighbour entries from gratuitous ARP
	ARPNotify         Param = "arp_notify"          // send gratuitous ARP when the interface comes up
	ProxyARP          Param = "proxy_arp"           // answer for addresses that are routed elsewhere
	ProxyARPPVLAN     Param = "proxy_arp_pvlan"     // the same for addresses on the receiving interface
	RPFilter          Param = "rp_filter"           // drop packets and requests whose route back does not fit
	Forwarding        Param = "forwarding"          // forward packets that arrive on the interface
	AcceptLocal       Param = "accept_local"        // accept packets from the host's own addresses
	RouteLocalnet     Param = "route_localnet"      // treat 127.0.0.0/8 as routable
	DropGratuitousARP Param = "drop_gratuitous_arp" // ignore gratuitous ARP
	SendRedirects     Param = "send_redirects"      // send ICMP redirects, and so check senders by route where that could be needed
)

// Params returns the parameters that ReadARP reads, in a fixed order.
func Params() []Param {
	return []Param{
		ARPIgnore, ARPAnnounce, ARPFilter, ARPAccept, ARPNotify, ProxyARP, ProxyARPPVLAN,
		RPFilter, Forwarding, AcceptLocal, RouteLocalnet, DropGratuitousARP, SendRedirects,
	}
}

// ParseValue reads the value of a parameter. Values without a meaning are kept:
// the kernel keeps them too, and some of them undo a stricter setting.
func ParseValue(text string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32) // the kernel keeps an int
	if err != nil {
		return 0, fmt.Errorf("sysctl: value %q: want a decimal number of 32 bits: %w", text, err)
	}
	return int(n), nil
}

// Decider says where the value in effect comes from.
type Decider string

// Deciders.
const (
	DecidedByAll       Decider = "all"       // the value of "all"
	DecidedByInterface Decider = "interface" // the interface's own value
	DecidedByBoth      Decider = "both"      // either alone would give the same
)

// Effective is the value of a parameter that counts on an interface.
type Effective struct {
	Value     int     `json:"value"`
	DecidedBy Decider `json:"decidedBy"`
	All       int     `json:"all"`       // the value of "all"
	Interface int     `json:"interface"` // the interface's own value
}

// Combine returns what the kernel makes of the value of "all" and an
// interface's own value of a parameter (include/linux/inetdevice.h):
//
//   - the maximum for arp_ignore, arp_announce, arp_notify, rp_filter and
//     arp_accept (before Linux 6.0 arp_accept was on if either was);
//   - on (1) if either is not 0 for arp_filter, proxy_arp, proxy_arp_pvlan,
//     accept_local, route_localnet, drop_gratuitous_arp and send_redirects
//     (before Linux 5.11 "all" had no effect on proxy_arp_pvlan);
//   - the interface's own for forwarding. Writing "all" overwrites every
//     interface's value, but "all" is not looked at afterwards.
//
// Other parameters are an error.
func Combine(p Param, all, own int) (Effective, error) {
	value, ok := combine(p, all, own)
	if !ok {
		return Effective{}, fmt.Errorf("sysctl: combine %q: it is not known how the kernel combines it", p)
	}
	e := Effective{Value: value, All: all, Interface: own, DecidedBy: DecidedByBoth}
	byAll, _ := combine(p, all, all)
	byOwn, _ := combine(p, own, own)
	switch {
	case p == Forwarding || byAll != value:
		e.DecidedBy = DecidedByInterface
	case byOwn != value:
		e.DecidedBy = DecidedByAll
	}
	return e, nil
}

func combine(p Param, all, own int) (value int, ok bool) {
	if p == ARPAccept || p == ARPNotify {
		return max(all, own), true // no part of how requests are answered
	}
	const iface = "interface"
	h := arprule.Host{Interfaces: []arprule.Interface{{Name: iface}}}
	name := string(p)
	ofAll, ofInterface := h.All.Param(name), h.Interfaces[0].Conf.Param(name)
	if ofAll == nil {
		return 0, false
	}
	*ofAll, *ofInterface = all, own
	effective := h.Effective(iface)
	return *effective.Param(name), true
}
