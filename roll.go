package strictarp

import (
	"cmp"
	"net/netip"
	"slices"
)

// roll is a list of addresses on devices on which no request arrives, such as
// kube-ipvs0. On thousands of nodes it can be the same list, in the same memory: it is
// looked through once for all of them.
type roll struct {
	addrs []Address
	vips  []*vip       // those on it, in its order
	at    map[*vip]int // the place of each in addrs
	nodes []*node      // that have it, by name

	strays []netip.Addr // see strays
}

// rollKey tells lists of addresses apart by their memory.
type rollKey struct {
	first *Address
	n     int
}

// rollKey is that of an interface's addresses, of which there must be some.
func (l *Link) rollKey() rollKey { return rollKey{&l.Addrs[0], len(l.Addrs)} }

// enrolled is a device of a node that has the addresses of a roll.
type enrolled struct {
	*roll
	link *Link
	own  []*vip // those that are the node's own, which do not count
}

// enrol notes what is on a device of a node.
func (v *view) enrol(n *node, l *Link) {
	r := v.rolls[l.rollKey()]
	if r == nil {
		r = v.newRoll(l.Addrs)
		v.rolls[l.rollKey()] = r
	}
	if len(r.vips) == 0 {
		return
	}
	e := enrolled{roll: r, link: l}
	for _, addr := range v.addrsOf[n.name] {
		if p := v.byVIP[addr]; p != nil && v.nodeOf[addr] == n.name {
			e.own = append(e.own, p)
		}
	}
	r.nodes = append(r.nodes, n)
	n.rolls = append(n.rolls, e)
}

func (v *view) newRoll(addrs []Address) *roll {
	r := &roll{addrs: addrs, at: map[*vip]int{}}
	for i, a := range addrs {
		if p := v.byVIP[a.Prefix.Addr()]; p != nil {
			if _, twice := r.at[p]; !twice {
				r.at[p] = i
				r.vips = append(r.vips, p)
				p.rolls = append(p.rolls, r)
			}
		}
	}
	return r
}

// find returns where a VIP is on the device, if it is and is not the node's own.
func (e *enrolled) find(p *vip) (*Address, bool) {
	i, ok := e.at[p]
	if !ok || slices.Contains(e.own, p) {
		return nil, false
	}
	return &e.addrs[i], true
}

func (e *enrolled) has(p *vip) bool {
	_, ok := e.find(p)
	return ok
}

// strays returns the addresses of an interface that no Service has.
func (v *view) strays(l *Link) []netip.Addr {
	if len(l.Addrs) == 0 {
		return nil
	}
	r := v.rolls[l.rollKey()]
	if r == nil {
		r = v.newRoll(l.Addrs) // the device is used as a NIC
	}
	if r.strays == nil {
		r.strays = []netip.Addr{}
		for _, a := range r.addrs {
			addr := a.Prefix.Addr()
			if p := v.byVIP[addr]; (p == nil || len(p.services) == 0) && !v.serviceAddr(addr) {
				r.strays = append(r.strays, addr)
			}
		}
	}
	return r.strays
}

// enrolled reports whether a node has the VIP on such a device.
func (p *vip) enrolled() bool {
	return slices.ContainsFunc(p.rolls, func(r *roll) bool { return slices.ContainsFunc(r.nodes, func(n *node) bool { return n.enrolledAt(p) }) })
}

func (n *node) enrolledAt(p *vip) bool {
	return slices.ContainsFunc(n.rolls, func(e enrolled) bool { return e.has(p) })
}

// holds reports whether a node has the VIP on an interface, and not as its own.
func (n *node) holds(p *vip) bool { return len(p.on(n)) > 0 }

// on returns where a node has the VIP, in memory that the next call for that node
// uses again: it is asked for each of them, thousands of times thousands.
func (p *vip) on(n *node) []holding {
	list := n.found[:0]
	from, _ := slices.BinarySearchFunc(p.holders, n.at, func(h holding, at int) int { return h.node.at - at })
	for _, h := range p.holders[from:] {
		if h.node != n {
			break
		}
		list = append(list, h)
	}
	for i := range n.rolls {
		e := &n.rolls[i]
		if addr, ok := e.find(p); ok {
			list = append(list, holding{n, e.link, addr})
		}
	}
	n.found = list
	return list
}

// nodes returns the nodes that have the VIP, each once.
func (p *vip) nodes() []*node {
	var list []*node
	for _, h := range p.holders {
		list = append(list, h.node)
	}
	for _, r := range p.rolls {
		for _, n := range r.nodes {
			if n.enrolledAt(p) {
				list = append(list, n)
			}
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.at, b.at) })
	return slices.Compact(list)
}

// onDevice are the VIPs that a node holds on a device other than its NICs, as a
// service proxy puts them there: those that are judged, or all if the node is.
func (v *view) onDevice(n *node) []*vip {
	if n.onDevice == nil {
		n.onDevice = v.findOnDevice(n)
	}
	return n.onDevice
}

func (v *view) findOnDevice(n *node) []*vip {
	list := []*vip{}
	for i := range n.rolls {
		e := &n.rolls[i]
		if !n.named && len(v.vips) < len(e.vips) {
			from := len(list)
			for _, p := range v.vips {
				if e.has(p) {
					list = append(list, p)
				}
			}
			slices.SortFunc(list[from:], func(a, b *vip) int { return cmp.Compare(e.at[a], e.at[b]) })
			continue
		}
		for _, p := range e.vips {
			if v.looksAt(n, p) && !slices.Contains(e.own, p) {
				list = append(list, p)
			}
		}
	}
	if len(n.rolls) < 2 {
		return list
	}
	seen := map[*vip]bool{}
	return slices.DeleteFunc(list, func(p *vip) bool {
		twice := seen[p]
		seen[p] = true
		return twice
	})
}
