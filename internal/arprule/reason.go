package arprule

// Reason names the rule that decided. Its text is stable.
type Reason string

// Why the host answers.
const (
	ReasonLocal             Reason = "local-address"
	ReasonArpIgnoreReserved Reason = "arp-ignore-reserved"
	ReasonProxyARP          Reason = "proxy-arp"
	ReasonProxyPVLAN        Reason = "proxy-arp-pvlan"
	ReasonProxyNeighbour    Reason = "proxy-neighbour"
)

// Why the host does not hear the request, or drops it unread.
const (
	ReasonNotIPv4          Reason = "not-ipv4"
	ReasonUnknownInterface Reason = "unknown-interface"
	ReasonLoopback         Reason = "loopback-interface"
	ReasonInterfaceDown    Reason = "interface-down"
	ReasonBridgePort       Reason = "bridge-port"
	ReasonBondSlave        Reason = "bond-slave"
	ReasonEnslaved         Reason = "enslaved"
	ReasonNoARP            Reason = "no-arp"
	ReasonMulticastTarget  Reason = "multicast-target"
	ReasonLoopbackTarget   Reason = "loopback-target"
	ReasonDropGratuitous   Reason = "drop-gratuitous"
)

// Why the sender is refused.
const (
	ReasonMartianSender     Reason = "martian-sender"
	ReasonSenderBroadcast   Reason = "sender-is-broadcast"
	ReasonSenderLocal       Reason = "sender-is-local"
	ReasonGratuitous        Reason = "gratuitous"
	ReasonRpFilterStrict    Reason = "rp-filter-strict"
	ReasonRpFilterLoose     Reason = "rp-filter-loose"
	ReasonRpFilterNoAddress Reason = "rp-filter-no-address"
)

// Why a local address is kept silent.
const (
	ReasonArpIgnore1 Reason = "arp-ignore-1"
	ReasonArpIgnore2 Reason = "arp-ignore-2"
	ReasonArpIgnore3 Reason = "arp-ignore-3"
	ReasonArpIgnore8 Reason = "arp-ignore-8"
	ReasonArpFilter  Reason = "arp-filter"
)

// Why nothing is answered for an address that is not local.
const (
	ReasonNotLocal           Reason = "not-local"
	ReasonProbeNotLocal      Reason = "probe-not-local"
	ReasonBroadcastTarget    Reason = "broadcast-target"
	ReasonForwardingOff      Reason = "forwarding-off"
	ReasonNoRoute            Reason = "no-route"
	ReasonProxySameInterface Reason = "proxy-same-interface"
)

// Answers reports whether the reason is one for answering.
func (r Reason) Answers() bool {
	return r == ReasonLocal || r == ReasonArpIgnoreReserved || r.Proxy()
}

// Proxy reports whether the reason is one for answering on behalf of another
// host. The kernel delays most such answers, see [Delayed].
func (r Reason) Proxy() bool {
	return r == ReasonProxyARP || r == ReasonProxyPVLAN || r == ReasonProxyNeighbour
}

// Explain says in one sentence which rule decided; empty for an unknown reason.
func (r Reason) Explain() string { return explanations[r] }

// explanations is never written to.
var explanations = map[Reason]string{
	ReasonLocal: "The target is an address of this host and arp_ignore allows the answer.",
	ReasonArpIgnoreReserved: "The target is an address of this host and the effective arp_ignore is a reserved value," +
		" which the kernel treats as 0.",
	ReasonProxyARP: "proxy_arp is on and the route to the target leaves by another interface.",
	ReasonProxyPVLAN: "proxy_arp_pvlan is on and the route to the target leaves by the interface" +
		" on which the request arrived.",
	ReasonProxyNeighbour: "The target is a proxy neighbour entry of this interface, whatever arp_ignore says.",

	ReasonNotIPv4:          "Sender and target have to be IPv4 addresses.",
	ReasonUnknownInterface: "The host has no interface of that name.",
	ReasonLoopback:         "The loopback interface takes no ARP from a network.",
	ReasonInterfaceDown:    "The interface is down and receives nothing.",
	ReasonBridgePort:       "The interface is a bridge port: the bridge takes the request and the bridge's own sysctls count.",
	ReasonBondSlave: "The interface belongs to a bond or team: the bond takes the request" +
		" and the bond's own sysctls count.",
	ReasonEnslaved:        "The interface is enslaved: its master takes the request and the master's own sysctls count.",
	ReasonNoARP:           "ARP is switched off on the interface (NOARP).",
	ReasonMulticastTarget: "The target is a multicast address.",
	ReasonLoopbackTarget:  "The target is in 127.0.0.0/8 and route_localnet is off.",
	ReasonDropGratuitous:  "Sender and target are the same and drop_gratuitous_arp is on.",

	ReasonMartianSender: "The sender cannot be the address of a host: it is multicast, 255.255.255.255," +
		" or in 127.0.0.0/8 while route_localnet is off.",
	ReasonSenderBroadcast: "The sender is the broadcast address of a subnet of this host.",
	ReasonSenderLocal:     "The sender is an address of this host and accept_local is off.",
	ReasonGratuitous:      "Sender and target are the same address of this host: an announcement, not a question.",
	ReasonRpFilterStrict:  "rp_filter is 1 and the route back to the sender is missing or leaves by another interface.",
	ReasonRpFilterLoose:   "rp_filter is on and there is no route back to the sender.",
	ReasonRpFilterNoAddress: "rp_filter is on, the interface has no address" +
		" and the route back to the sender leaves by another interface.",

	ReasonArpIgnore1: "arp_ignore is 1 and the target is not an address of the receiving interface.",
	ReasonArpIgnore2: "arp_ignore is 2 and the target is not an address of the receiving interface," +
		" or not in one subnet with the sender there.",
	ReasonArpIgnore3: "arp_ignore is 3 and the target is no address of global or link scope.",
	ReasonArpIgnore8: "arp_ignore is 8: nothing is answered for local addresses.",
	ReasonArpFilter:  "arp_filter is on and the route back to the sender does not leave by the receiving interface.",

	ReasonNotLocal:        "The target is not an address of this host and no proxy ARP is set up for it.",
	ReasonProbeNotLocal:   "The sender is 0.0.0.0 and the target is not an address of this host: proxy ARP does not answer probes.",
	ReasonBroadcastTarget: "The target is a broadcast address.",
	ReasonForwardingOff:   "Proxy ARP is set up but forwarding is off on the receiving interface.",
	ReasonNoRoute:         "Proxy ARP is set up but there is no usable route to the target.",
	ReasonProxySameInterface: "Proxy ARP is set up but the route to the target leaves by the interface" +
		" on which the request arrived.",
}
