package sysctl

import "fmt"

// Meaning is what a value of a parameter does, in words.
type Meaning struct {
	Value int `json:"value"`
	// As is the value it is treated as. It differs from Value if that is
	// Reserved, or a switch that is on by another number than 1.
	As int `json:"as"`
	// Reserved says that the value has no meaning of its own. The kernel keeps
	// it all the same, and it takes part in the maximum of "all" and an
	// interface, so that it can undo a stricter one.
	Reserved bool   `json:"reserved,omitzero"`
	Text     string `json:"text"`              // one sentence without a full stop
	Caution  string `json:"caution,omitempty"` // an effect that is often not meant
}

// String returns the value and what it does, such as "0: answer requests for
// any address of the host".
func (m Meaning) String() string {
	s := fmt.Sprintf("%d: %s", m.Value, m.Text)
	if m.Reserved {
		s = fmt.Sprintf("%d (reserved, behaves as %d): %s", m.Value, m.As, m.Text)
	}
	if m.Caution != "" {
		s += "; " + m.Caution
	}
	return s
}

// Explain says what a value does where it is the one in effect. For parameters
// that are not among Params the text says that it is not known.
//
// Sources: arp_ignore and arp_announce and arp_accept in net/ipv4/arp.c,
// __fib_validate_source in net/ipv4/fib_frontend.c, Documentation/networking/ip-sysctl.rst.
func (p Param) Explain(value int) Meaning {
	if s, ok := switches()[p]; ok {
		if value == 0 {
			return Meaning{Value: value, Text: s.off}
		}
		return Meaning{Value: value, As: 1, Text: s.on, Caution: s.caution}
	}
	l, ok := levels()[p]
	if !ok {
		return Meaning{Value: value, As: value, Text: "it is not known what this does"}
	}
	m, ok := l.known[value]
	if !ok {
		m = l.known[l.others]
		m.As, m.Reserved = l.others, true
		if l.others == 0 {
			m.Caution = "being the larger, it undoes a smaller one that is strict"
		}
	} else {
		m.As = value
	}
	m.Value = value
	return m
}

// IsStrict reports whether a value that is in effect keeps the kernel from
// speaking for addresses that it holds on other interfaces, which is what
// strictARP is for: 1, 2 and 8 of arp_ignore, 2 of arp_announce. It is false for
// other parameters.
func (p Param) IsStrict(value int) bool {
	switch p {
	case ARPIgnore:
		return value == 1 || value == 2 || value == 8
	case ARPAnnounce:
		return value == 2
	}
	return false
}

type levelled struct {
	known  map[int]Meaning
	others int // what the others are treated as
}

func levels() map[Param]levelled {
	return map[Param]levelled{
		ARPIgnore: {known: map[int]Meaning{
			0: {Text: "answer requests for any address of the host, whichever interface holds it"},
			1: {Text: "answer only for addresses of the interface that the request arrives on"},
			2: {Text: "answer only if target and sender are both in the subnet of one address of the interface that the request arrives on",
				Caution: "links with /32 addresses, as between pods and their node, get no answer any more"},
			3: {Text: "answer for addresses of global and link scope on any interface, not for those of host scope",
				Caution: "addresses on kube-ipvs0 have global scope: they are answered for"},
			8: {Text: "answer for no address of the host",
				Caution: "nobody can resolve the host's own addresses any more"},
		}},
		ARPAnnounce: {known: map[int]Meaning{
			0: {Text: "ask with any address of the host as sender, that of the packet to be sent first",
				Caution: "neighbours take the sender for this host's: it may be an address that another host announces"},
			1: {Text: "ask with the packet's address as sender if it is in the target's subnet on the interface, else as 2",
				Caution: "an address in the interface's own subnet is still used, also one that another host announces"},
			2: {Text: "ask with the address of the interface that suits the target best as sender"},
		}},
		RPFilter: {others: 2, known: map[int]Meaning{
			0: {Text: "accept packets and requests whatever the route back to their sender is"},
			1: {Text: "drop packets, and do not answer requests, if the route back to their sender leaves by another interface or there is none"},
			2: {Text: "drop packets, and do not answer requests, if there is no route back to their sender"},
		}},
		ARPAccept: {known: map[int]Meaning{
			0: {Text: "make no neighbour entry from gratuitous ARP, only update one"},
			1: {Text: "make neighbour entries from gratuitous ARP"},
			2: {Text: "make neighbour entries from gratuitous ARP if the sender is in a subnet of the interface (since Linux 6.0; before, as 1)"},
		}},
	}
}

type onOff struct{ off, on, caution string }

func switches() map[Param]onOff {
	return map[Param]onOff{
		ARPFilter: {
			off: "answer whichever interface the route back to the sender leaves by",
			on:  "answer only if the route back to the sender leaves by the interface that the request arrives on",
		},
		ARPNotify: {
			off: "announce nothing when the interface comes up or its hardware address changes",
			on:  "send gratuitous ARP for the interface's addresses when it comes up or its hardware address changes",
		},
		ProxyARP: {
			off:     "do not answer for addresses that are routed elsewhere",
			on:      "answer for addresses that are routed by another interface, where forwarding is on",
			caution: "arp_ignore has no say in it",
		},
		ProxyARPPVLAN: {
			off:     "do not answer for addresses that are on the receiving interface",
			on:      "answer for addresses that are routed by the interface that the request arrives on",
			caution: "arp_ignore has no say in it",
		},
		Forwarding: {
			off: "drop packets that arrive on the interface for other hosts",
			on:  "forward packets that arrive on the interface for other hosts",
		},
		AcceptLocal: {
			off: "drop packets from the host's own addresses that arrive from outside",
			on:  "accept packets from the host's own addresses that arrive from outside",
		},
		RouteLocalnet: {
			off: "treat 127.0.0.0/8 as this host's alone",
			on:  "route 127.0.0.0/8 as other addresses, so that it can be reached by the interface",
		},
		DropGratuitousARP: {
			off: "take note of gratuitous ARP",
			on:  "ignore gratuitous ARP",
		},
		SendRedirects: {
			off: "send no ICMP redirects",
			on:  "tell hosts of a better router by ICMP redirects",
		},
	}
}
