package strictarp

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/sysctl"
)

// kernelAnswer is what a node's kernel makes of requests for a VIP.
type kernelAnswer struct {
	known   bool // false if facts are missing
	answers bool // for an address that it holds on another interface
	link    string
	answer  Answer
	onNIC   bool // the VIP is on the receiving interface: it answers whatever the settings are
	missing []Missing
}

// kernel returns whether a node's kernel answers requests for a VIP that it holds
// elsewhere. The question comes from 0.0.0.0, so that arp_ignore alone decides:
// filters that silence it towards one client do not cure it.
func (v *view) kernel(n *node, p *vip) kernelAnswer {
	k := kernelAnswer{known: true}
	if n.Links == nil {
		return kernelAnswer{missing: []Missing{{What: "the interfaces", Where: n.name, Collect: NeedNodeLinks.Collect()}}}
	}
	links, elsewhere := v.receiving(n, p), false
	for _, h := range p.on(n) {
		if slices.Contains(links, h.link) {
			k.onNIC = true
		} else {
			elsewhere = true
		}
	}
	if !elsewhere || k.onNIC {
		return k
	}
	for _, l := range links {
		a, err := v.wouldReply(n, l, p)
		var unknown *UnknownError
		if errors.As(err, &unknown) {
			k.known = false
			k.missing = append(k.missing, unknown.Missing...)
		}
		if err == nil && a.Replies {
			k.known, k.answers, k.link, k.answer = true, true, l.Name, a
			return k
		}
		if err == nil && k.link == "" {
			k.link, k.answer = l.Name, a
		}
	}
	return k
}

// alike is what the kernel's answer to a question from 0.0.0.0 depends on, besides
// the node: addresses that are held in the same way are answered in the same way.
type alike struct {
	link, holder string
	scope        Scope
	noLocalRoute bool
}

type reply struct {
	answer Answer
	err    error
}

// wouldReply is NodeFacts.WouldReply, which takes a time that grows with the number of
// addresses, asked once for all that are held alike.
func (v *view) wouldReply(n *node, l *Link, p *vip) (Answer, error) {
	ask := func() (Answer, error) {
		return v.without(n, p).WouldReply(Question{Link: l.Name, Sender: netip.IPv4Unspecified(), Target: p.addr})
	}
	held := p.on(n)
	proxied := slices.ContainsFunc(n.ProxyNeighbours, func(e ProxyNeighbour) bool { return e.Addr == p.addr })
	if len(held) != 1 || proxied {
		return ask()
	}
	key := alike{link: l.Name, holder: held[0].link.Name, scope: held[0].addr.Scope, noLocalRoute: held[0].addr.NoLocalRoute}
	r, ok := n.replies[key]
	if !ok {
		r.answer, r.err = ask()
		if n.replies == nil {
			n.replies = map[alike]reply{}
		}
		n.replies[key] = r
	}
	return r.answer, r.err
}

// without returns the node without the other addresses on devices such as kube-ipvs0,
// which have no part in what it answers for one.
func (v *view) without(n *node, p *vip) NodeFacts {
	f := n.NodeFacts
	f.Links = slices.Clone(f.Links)
	for i := range f.Links {
		l := &f.Links[i]
		if !l.NoARP || len(l.Addrs) == 0 {
			continue
		}
		r := v.rolls[l.rollKey()]
		if at, ok := r.at[p]; ok {
			l.Addrs = r.addrs[at : at+1 : at+1]
		} else {
			l.Addrs = []Address{}
		}
	}
	return f
}

// receiving returns the interfaces of a node on which requests for a VIP arrive:
// those in whose subnet it is, else those of the vantages that asked, else that of
// the node's own address, else all.
func (v *view) receiving(n *node, p *vip) []*Link {
	if n.segments == nil {
		n.segments = []*Link{}
		for i := range n.Links {
			if l := &n.Links[i]; l.segment() && len(l.Addrs) > 0 {
				n.segments = append(n.segments, l)
			}
		}
	}
	in := func(test func(*Link) bool) (list []*Link) {
		for i, l := range n.segments {
			if !test(l) {
				continue
			}
			if list == nil {
				list = n.segments[i : i+1 : i+1] // mostly there is one
			} else {
				list = append(list, l)
			}
		}
		return list
	}
	for _, test := range []func(*Link) bool{
		func(l *Link) bool { return l.subnet(p.addr) },
		func(l *Link) bool { return slices.ContainsFunc(p.askers(), l.subnet) },
		func(l *Link) bool {
			return slices.ContainsFunc(l.Addrs, func(a Address) bool { return v.nodeOf[a.Prefix.Addr()] == n.name && v.named(a.Prefix.Addr()) })
		},
		func(*Link) bool { return true },
	} {
		if list := in(test); len(list) > 0 {
			return list
		}
	}
	return nil
}

// askers are the addresses of the vantages that asked for a VIP.
func (p *vip) askers() []netip.Addr {
	if p.from == nil {
		p.from = p.findAskers()
	}
	return p.from
}

func (p *vip) findAskers() []netip.Addr {
	list := []netip.Addr{}
	for _, s := range p.seen {
		for i := range s.vantage.Links {
			l := &s.vantage.Links[i]
			if !l.segment() {
				continue
			}
			for _, a := range l.Addrs {
				list = append(list, a.Prefix.Addr())
			}
		}
		for _, i := range s.results {
			list = append(list, s.vantage.Probes[i].Sender.Addr)
		}
	}
	return list
}

// named reports whether a Node object names an address.
func (v *view) named(addr netip.Addr) bool {
	return v.objectAddrs[addr]
}

// effective returns a parameter's value in effect on an interface, if it was
// observed.
func (n *node) effective(link string, p sysctl.Param) (sysctl.Effective, bool) {
	if n.Sysctls == nil {
		return sysctl.Effective{}, false
	}
	e, err := n.Sysctls.Effective(link, p)
	return e, err == nil
}

// looksAt reports whether a VIP is of interest on a node: it is judged, or the node
// itself is.
func (v *view) looksAt(n *node, p *vip) bool { return p.judged || n.named && v.ours(p) }
