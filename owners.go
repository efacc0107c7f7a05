package strictarp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
)

// Owner is whom a MAC belongs to, as far as facts tell.
type Owner struct {
	// Nodes are those that have the MAC: one, several where virtual machines were
	// cloned, none if it is not known whose it is.
	Nodes []string `json:"nodes,omitempty"`
	Link  string   `json:"link,omitempty"` // the interface of the first node; empty if only an address of the node is known to be at the MAC
	From  string   `json:"from,omitempty"` // where that is known from, such as "links of w1"
	// Class is what kind of thing has such a MAC, as its bits tell, such as "virtual
	// router of VRRP or CARP, IPv4" or "vendor 3c:fd:fe". It is never empty.
	Class string `json:"class"`
}

// Node returns the node that has the MAC; empty if none is known or several have it.
func (o Owner) Node() string {
	if len(o.Nodes) == 1 {
		return o.Nodes[0]
	}
	return ""
}

// Owners tells whom MACs belong to. It is made by Facts.Owners, does not change, and
// may be used from several goroutines.
type Owners struct {
	byMAC map[arpcheck.MAC][]owner // each node once
}

// Owners returns whom MACs belong to: first as the links of nodes say, then as what
// answered for nodes' addresses does, then as neighbour caches do. It takes a time
// that grows with the facts; to ask for one MAC takes none.
func (f Facts) Owners() Owners { return newAddressView(&f).owners }

// Of returns whom a MAC belongs to.
func (o Owners) Of(mac arpcheck.MAC) Owner {
	found := Owner{Class: macClass(mac)}
	for i, h := range o.byMAC[mac] {
		if i == 0 {
			found.Link, found.From = h.link, h.from
		}
		found.Nodes = append(found.Nodes, h.node)
	}
	return found
}

// owner is a node that a MAC belongs to.
type owner struct {
	node string
	link string // empty if only an address of the node is known to be at the MAC
	from string // where that is known from
}

// newOwners looks for MACs where they are told most reliably first.
func newOwners(f *Facts, nodeOf map[netip.Addr]string) Owners {
	o := Owners{byMAC: map[arpcheck.MAC][]owner{}}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		n := f.Nodes[name]
		for _, l := range n.Links {
			if l.NoARP || l.Loopback {
				continue // a kube-ipvs0 may have the same MAC everywhere
			}
			o.add(l.MAC, owner{name, l.Name, "links of " + name})
			o.add(l.PermanentMAC, owner{name, l.Name, "permanent MACs of " + name})
		}
	}
	for _, v := range f.Vantages {
		for _, r := range v.Probes {
			if node := nodeOf[r.Target]; node != "" && len(r.Responders) == 1 {
				o.add(r.Responders[0].MAC, owner{node, "", fmt.Sprintf("what answered for %s at %s", r.Target, v.Name)})
			}
		}
	}
	for _, v := range f.Vantages {
		o.addNeighbours(v.Neighbours, nodeOf, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		o.addNeighbours(f.Nodes[name].Neighbours, nodeOf, name)
	}
	return o
}

func (o Owners) addNeighbours(list []arpcheck.Neighbour, nodeOf map[netip.Addr]string, where string) {
	for _, n := range list {
		if node := nodeOf[n.Addr]; node != "" {
			o.add(n.MAC, owner{node, "", fmt.Sprintf("the neighbour entry of %s at %s", n.Addr, where)})
		}
	}
}

// add keeps the first that is known of a MAC at a node. What only an address tells
// does not add a second node to a MAC: a proxy answers for addresses of others.
func (o Owners) add(mac arpcheck.MAC, who owner) {
	have := o.byMAC[mac]
	same := slices.ContainsFunc(have, func(h owner) bool { return h.node == who.node })
	if mac.IsZero() || same || who.link == "" && len(have) > 0 {
		return
	}
	o.byMAC[mac] = append(have, who)
}

// of returns the node that a MAC belongs to, or nothing if that is not known or
// several have it.
func (o Owners) of(mac arpcheck.MAC) (owner, bool) {
	if list := o.byMAC[mac]; len(list) == 1 {
		return list[0], true
	}
	return owner{}, false
}

// name says whose a MAC is, for people.
func (o Owners) name(mac arpcheck.MAC) string {
	list := o.byMAC[mac]
	switch {
	case len(list) == 0:
		return fmt.Sprintf("%s (of no known node; %s)", mac, macClass(mac))
	case len(list) > 1:
		return fmt.Sprintf("%s (of %s and %s)", mac, list[0].node, list[1].node)
	case list[0].link != "":
		return fmt.Sprintf("%s (%s, %s)", mac, list[0].node, list[0].link)
	}
	return fmt.Sprintf("%s (%s)", mac, list[0].node)
}

// host names who stands behind a MAC: a node, or the MAC itself.
func (o Owners) host(mac arpcheck.MAC) string {
	if who, ok := o.of(mac); ok {
		return who.node
	}
	return mac.String()
}

// prefixes of MACs that tell what kind of thing has it, longest first. Sources:
// RFC 9568 section 7.3 (VRRP), RFC 7042 section 2.1 (IANA), vendors' manuals.
var macPrefixes = []struct {
	prefix []byte
	class  string
}{
	{[]byte{0x00, 0x00, 0x5e, 0x00, 0x01}, "virtual router of VRRP or CARP, IPv4"},
	{[]byte{0x00, 0x00, 0x5e, 0x00, 0x02}, "virtual router of VRRP, IPv6"},
	{[]byte{0x00, 0x00, 0x0c, 0x07, 0xac}, "virtual router of HSRP"},
	{[]byte{0x00, 0x00, 0x0c, 0x9f}, "virtual router of HSRP version 2"},
	{[]byte{0x00, 0x07, 0xb4}, "virtual router of GLBP"},
	{[]byte{0x00, 0x05, 0x69}, "VMware virtual machine"},
	{[]byte{0x00, 0x0c, 0x29}, "VMware virtual machine"},
	{[]byte{0x00, 0x50, 0x56}, "VMware virtual machine"},
	{[]byte{0x00, 0x15, 0x5d}, "Hyper-V virtual machine"},
	{[]byte{0x00, 0x16, 0x3e}, "Xen virtual machine"},
	{[]byte{0x08, 0x00, 0x27}, "VirtualBox virtual machine"},
	{[]byte{0x52, 0x54, 0x00}, "QEMU or KVM virtual machine"},
	{[]byte{0x02, 0x42}, "Docker container"},
}

// macClass says what kind of thing has a MAC, as far as its bits tell.
func macClass(mac arpcheck.MAC) string {
	for _, p := range macPrefixes {
		if slices.Equal(mac[:len(p.prefix)], p.prefix) {
			return p.class
		}
	}
	switch {
	case mac[0]&1 != 0:
		return "multicast"
	case mac[0]&2 != 0:
		return "locally administered: set by software"
	}
	return fmt.Sprintf("vendor %02x:%02x:%02x", mac[0], mac[1], mac[2])
}

// virtualRouter reports whether a MAC moves between the hosts of a group, so that
// it belongs to none of them.
func virtualRouter(mac arpcheck.MAC) bool {
	return cmp.Or(
		slices.Equal(mac[:4], []byte{0x00, 0x00, 0x5e, 0x00}) && (mac[4] == 1 || mac[4] == 2),
		slices.Equal(mac[:5], []byte{0x00, 0x00, 0x0c, 0x07, 0xac}),
		slices.Equal(mac[:4], []byte{0x00, 0x00, 0x0c, 0x9f}),
		slices.Equal(mac[:3], []byte{0x00, 0x07, 0xb4}),
	)
}
