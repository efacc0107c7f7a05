package strictarp

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

// view is the facts as rules look at them: indexed, and narrowed to the subjects
// that were asked for.
type view struct {
	*Facts
	metallb      metallb.State // the zero State if it was not observed
	elector      *metallb.Elector
	severities   map[string]Severity // by rule
	all          bool                // nothing was named
	subjects     map[Subject]bool
	names        []string            // of observed nodes, sorted
	serviceAddrs map[netip.Addr]bool // of Services of all types; nil if not observed
	owners       Owners
	nodeOf       map[netip.Addr]string // nodes' own addresses
	known        []*vip                // all VIPs, by address
	vips         []*vip                // those that are judged
	nodes        []*node               // by name
	byVIP        map[netip.Addr]*vip
	byNode       map[string]*node
	rolls        map[rollKey]*roll                          // by their memory
	objectAddrs  map[netip.Addr]bool                        // that Node objects name
	addrsOf      map[string][]netip.Addr                    // of nodeOf, also those that were another node's later
	elections    map[*metallb.Service]metallb.Election      // see elect
	proxied      map[*Vantage]map[arpcheck.MAC][]netip.Addr // see proxies
}

// vip is an address that was asked for, or that a Service has. Rules are about
// those that could be announced: see ours.
type vip struct {
	addr     netip.Addr
	services []*metallb.Service // whose address it is; several may share it
	external bool               // it is one of a Service's externalIPs only
	expected *expectation       // see expect
	holders  []holding          // on NICs and the like, by the node's name
	rolls    []*roll            // that have it
	seen     []sighting
	judged   bool         // it is ours, and among the subjects
	from     []netip.Addr // see askers
}

// holding is an interface of an observed node that has an address.
type holding struct {
	node *node
	link *Link
	addr *Address
}

// sighting is what one vantage saw of a VIP.
type sighting struct {
	vantage *Vantage
	results []int // of vantage.Probes
}

// node is an observed node.
type node struct {
	name string
	at   int // its place in the order of names
	NodeFacts
	object *metallb.Node // nil if the cluster has no such node, or that is not known
	held   []*vip        // all that are on its NICs and the like and not its own, judged or not
	rolls  []enrolled    // what it has on other devices
	named  bool          // it is itself a subject, or everything is

	replies  map[alike]reply // see wouldReply
	segments []*Link         // see receiving
	onDevice []*vip          // see onDevice
	found    []holding       // see on
}

func newView(f *Facts, subjects []Subject) *view {
	v := newAddressView(f)
	v.proxied = map[*Vantage]map[arpcheck.MAC][]netip.Addr{}
	v.elections = map[*metallb.Service]metallb.Election{}
	v.elector = v.metallb.Elector()
	v.severities = map[string]Severity{}
	for _, r := range Rules() {
		v.severities[r.ID] = r.Severity
	}
	v.indexClusterIPs()
	v.indexVantages()
	v.narrow(subjects)
	return v
}

// newAddressView knows only whose addresses and MACs are.
func newAddressView(f *Facts) *view {
	v := &view{Facts: f, nodeOf: map[netip.Addr]string{}, byVIP: map[netip.Addr]*vip{}, byNode: map[string]*node{}, rolls: map[rollKey]*roll{}, objectAddrs: map[netip.Addr]bool{}, addrsOf: map[string][]netip.Addr{}}
	if f.MetalLB != nil {
		v.metallb = *f.MetalLB
	}
	v.indexServices()
	for _, from := range f.Vantages {
		for _, r := range from.Probes {
			v.vip(r.Target)
		}
	}
	v.indexNodes()
	v.owners = newOwners(f, v.nodeOf)
	return v
}

// vip returns the VIP of an address, and makes it one.
func (v *view) vip(addr netip.Addr) *vip {
	p := v.byVIP[addr]
	if p == nil {
		p = &vip{addr: addr}
		v.byVIP[addr] = p
	}
	return p
}

func (v *view) indexServices() {
	for i := range v.metallb.Services {
		s := &v.metallb.Services[i]
		for _, addr := range s.Addresses {
			if addr.Is4() {
				p := v.vip(addr)
				p.services = append(p.services, s)
			}
		}
		for _, addr := range s.ExternalIPs {
			if addr.Is4() && !slices.Contains(s.Addresses, addr) {
				p := v.vip(addr)
				p.external = len(p.services) == 0
				p.services = append(p.services, s)
			}
		}
	}
}

// indexNodes collects the nodes' own addresses: those that Node objects name, and
// those on the NICs of observed nodes that are no VIPs.
func (v *view) indexNodes() {
	objects := map[string]*metallb.Node{}
	for i := range v.metallb.Nodes {
		n := &v.metallb.Nodes[i]
		objects[n.Name] = n
		for _, addr := range n.Addresses {
			v.own(n.Name, addr)
			v.objectAddrs[addr] = true
		}
	}
	v.names = slices.Sorted(maps.Keys(v.Nodes))
	for at, name := range v.names {
		n := &node{name: name, at: at, NodeFacts: v.Nodes[name], object: objects[name]}
		v.byNode[name] = n
		for i := range n.Links {
			l := &n.Links[i]
			if !l.segment() && len(l.Addrs) > 0 {
				v.enrol(n, l)
				continue
			}
			for k := range l.Addrs {
				addr := l.Addrs[k].Prefix.Addr()
				p := v.byVIP[addr]
				own := v.nodeOf[addr] == name || p == nil || len(p.services) == 0 && k == 0
				switch {
				case own && v.nodeOf[addr] == "":
					v.own(name, addr)
				case !own && p != nil:
					p.holders = append(p.holders, holding{n, l, &l.Addrs[k]})
					if !slices.Contains(n.held[max(0, len(n.held)-1):], p) { // mostly on one interface
						n.held = append(n.held, p)
					}
				}
			}
		}
	}
}

// own notes that an address is a node's own.
func (v *view) own(node string, addr netip.Addr) {
	v.nodeOf[addr] = node
	v.addrsOf[node] = append(v.addrsOf[node], addr)
}

// indexVantages notes what each vantage saw of which address. An asked address
// is a VIP even if no Service has it, unless it is a node's or the vantage's own.
func (v *view) indexVantages() {
	for i := range v.Vantages {
		p := &v.Vantages[i]
		results := map[netip.Addr][]int{}
		for j, r := range p.Probes {
			if v.nodeOf[r.Target] == "" {
				results[r.Target] = append(results[r.Target], j)
			}
		}
		for _, addr := range slices.SortedFunc(maps.Keys(results), netip.Addr.Compare) {
			asked := v.vip(addr)
			asked.seen = append(asked.seen, sighting{p, results[addr]})
		}
	}
}

// has reports whether an address is the vantage's own.
func (p *Vantage) has(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool {
		return slices.ContainsFunc(l.Addrs, func(a Address) bool { return a.Prefix.Addr() == addr })
	})
}

// segment reports whether requests for VIPs can arrive on an interface: it is up
// and neither lo, a device such as kube-ipvs0, nor a port.
func (l *Link) segment() bool {
	return l.Up && !l.Loopback && !l.NoARP && l.Master == ""
}

// hasSubnet reports whether hosts of an interface's own subnet can ask it for VIPs.
func (l *Link) hasSubnet() bool {
	return l.segment() && slices.ContainsFunc(l.Addrs, func(a Address) bool { return a.Prefix.Bits() < 32 })
}

// subnet reports whether an address is of a subnet of the interface.
func (l *Link) subnet(addr netip.Addr) bool {
	return slices.ContainsFunc(l.Addrs, func(a Address) bool {
		return a.Prefix.Bits() < 32 && a.Prefix.Contains(addr)
	})
}

// narrow keeps what the subjects name: VIPs, nodes, and Services as
// namespace/name. Without subjects that is everything.
func (v *view) narrow(subjects []Subject) {
	v.known = slices.SortedFunc(maps.Values(v.byVIP), func(a, b *vip) int { return a.addr.Compare(b.addr) })
	v.known = slices.DeleteFunc(v.known, func(p *vip) bool { return !v.ours(p) })
	v.nodes = slices.SortedFunc(maps.Values(v.byNode), func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	v.all, v.subjects = len(subjects) == 0, map[Subject]bool{}
	for _, s := range subjects {
		v.subjects[s] = true
	}
	v.vips = slices.DeleteFunc(slices.Clone(v.known), func(p *vip) bool {
		p.judged = v.all || v.subjects[Subject(p.addr.String())] || slices.ContainsFunc(p.services, func(s *metallb.Service) bool {
			return v.subjects[serviceSubject(s)]
		})
		return !p.judged
	})
	v.nodes = slices.DeleteFunc(v.nodes, func(n *node) bool {
		n.named = v.all || v.subjects[Subject(n.name)]
		return !n.named && !slices.ContainsFunc(n.held, func(p *vip) bool { return p.judged }) && !slices.ContainsFunc(n.rolls, func(e enrolled) bool {
			return slices.ContainsFunc(v.vips, (&e).has)
		})
	})
}

// ours reports whether an address has to do with the cluster: it is a Service's,
// held by a node, or another announcer's. Others that are asked for are controls,
// such as a router's, and canaries; where Services were not observed, not if several
// MACs answer for them.
func (v *view) ours(p *vip) bool {
	return len(p.services) > 0 || len(p.holders) > 0 || p.enrolled() || len(v.announcers(p)) > 0 ||
		v.metallb.Services == nil && slices.ContainsFunc(p.seen, func(s sighting) bool { return len(v.answers(s)) > 1 })
}

func serviceSubject(s *metallb.Service) Subject { return Subject(s.Namespace + "/" + s.Name) }

// judged returns the VIP of an address if it is one that is judged.
func (v *view) judged(addr netip.Addr) *vip {
	if p := v.byVIP[addr]; p != nil && p.judged {
		return p
	}
	return nil
}

// serviceAddr reports whether an address is a Service's of any type.
func (v *view) serviceAddr(addr netip.Addr) bool { return v.serviceAddrs[addr] }

func (v *view) indexClusterIPs() {
	if v.Cluster == nil {
		return
	}
	v.serviceAddrs = map[netip.Addr]bool{}
	for _, o := range v.Cluster.Objects {
		s, ok := o.(*corev1.Service)
		if !ok {
			continue
		}
		for _, text := range append(slices.Clip(s.Spec.ClusterIPs), s.Spec.ClusterIP) {
			if addr, err := netip.ParseAddr(text); err == nil {
				v.serviceAddrs[addr] = true
			}
		}
	}
}
