package main

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// changedFacts is the key of the queue which says that nodes published other facts.
var changedFacts = owner{Kind: "Facts"}

// notes remember which nodes published other facts, and of each what was judged
// last, so that only what differs is judged again.
type notes struct {
	mu      sync.Mutex
	dirty   map[string]bool
	digests map[string]digest
	silent  []string
}

// digest is what a node's facts were: of each address what was seen there, and the
// rest in one.
type digest struct {
	rest  string
	addrs []sighting // by address
}

type sighting struct {
	addr netip.Addr
	hash uint64
}

func (n *notes) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dirty, n.digests, n.silent = nil, nil, nil
}

func (n *notes) changed(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dirty == nil {
		n.dirty = map[string]bool{}
	}
	n.dirty[node] = true
}

// silence reports whether other agents are silent than when it was called last.
func (n *notes) silence(nodes []string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	same := slices.Equal(n.silent, nodes)
	n.silent = nodes
	return !same
}

// touched returns whom the changes of facts bear on: the node, and the Services
// whose VIPs were seen otherwise. If it is more than VIPs that changed it asks for
// everything to be judged, when it is time.
func (c *controller) touched() (owners []owner) {
	c.notes.mu.Lock()
	defer c.notes.mu.Unlock()
	if len(c.notes.dirty) == 0 {
		return nil
	}
	if c.notes.digests == nil {
		c.notes.digests = map[string]digest{}
	}
	for node := range c.notes.dirty {
		f, lacks, there := c.collector.Published(node)
		owners = append(owners, nodeOwner(node))
		if !there {
			delete(c.notes.digests, node)
			c.touchAll()
			continue
		}
		old, known := c.notes.digests[node]
		now := digestOf(node, f, lacks)
		c.notes.digests[node] = now
		if !known || old.rest != now.rest {
			c.touchAll()
			continue
		}
		for _, addr := range differing(old.addrs, now.addrs) {
			owners = append(owners, c.having(addr.String())...)
		}
	}
	clear(c.notes.dirty)
	return owners
}

// digestOf sums up what a node's agent published.
func digestOf(node string, f strictarp.Facts, lacks []netip.Addr) digest {
	n := f.Nodes[node]
	seen := map[netip.Addr]uint64{}
	note := func(addr netip.Addr, parts ...[]byte) {
		h := fnv.New64a()
		for _, p := range parts {
			_, _ = h.Write(p) // it never fails
		}
		seen[addr] += h.Sum64() // the order does not matter
	}
	n.Links = slices.Clone(n.Links)
	for i, l := range n.Links {
		if !l.NoARP { // where service proxies keep VIPs
			continue
		}
		for _, a := range l.Addrs {
			note(a.Prefix.Addr(), []byte("held"), []byte(l.Name))
		}
		n.Links[i].Addrs = nil
	}
	for _, addr := range lacks {
		note(addr, []byte("lacks"))
	}
	n.Neighbours, n.IPVS, n.Routes = nil, nil, localless(n.Routes)
	rest := strictarp.Facts{Nodes: map[string]strictarp.NodeFacts{node: n}}
	for _, v := range f.Vantages {
		if v.Name != node {
			continue
		}
		noteVantage(v, note)
		v.Probes, v.Claims, v.Neighbours = nil, nil, nil
		rest.Vantages = append(rest.Vantages, v)
	}
	d := digest{}
	var err error
	if d.rest, err = exchange.Hash(rest); err != nil {
		d.rest = err.Error() // what cannot be written as JSON was not read from it either
	}
	for addr, hash := range seen {
		d.addrs = append(d.addrs, sighting{addr, hash})
	}
	slices.SortFunc(d.addrs, func(a, b sighting) int { return a.addr.Compare(b.addr) })
	return d
}

// localless leaves out the routes that come and go with the addresses of a service
// proxy's device.
func localless(routes []strictarp.Route) []strictarp.Route {
	return slices.DeleteFunc(slices.Clone(routes), func(r strictarp.Route) bool {
		return r.Type == strictarp.RouteLocal && r.Dst.IsSingleIP()
	})
}

func noteVantage(v strictarp.Vantage, note func(netip.Addr, ...[]byte)) {
	for _, p := range v.Probes {
		note(p.Target, []byte("probe"), []byte(p.Verdict))
		for _, r := range p.Responders {
			note(p.Target, r.MAC[:], flag(r.DoubleAnswer))
		}
		for _, claim := range p.Claims {
			note(p.Target, []byte("claim"), claim.MAC[:], []byte(claim.Kind))
		}
	}
	claims := map[arpcheck.AddrClaim]bool{}
	for _, claim := range v.Claims {
		key := arpcheck.AddrClaim{}
		key.Addr, key.MAC, key.Kind = claim.Addr, claim.MAC, claim.Kind
		if !claims[key] {
			claims[key] = true
			note(key.Addr, []byte("heard"), key.MAC[:], []byte(key.Kind))
		}
	}
	for _, nb := range v.Neighbours {
		note(nb.Addr, []byte("neighbour"), nb.MAC[:], []byte(nb.Link))
	}
}

func flag(on bool) []byte {
	if on {
		return []byte{1}
	}
	return []byte{0}
}

// differing returns the addresses that are in one list only or differ. Both are
// sorted.
func differing(a, b []sighting) (list []netip.Addr) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].addr.Less(b[0].addr):
			list, a = append(list, a[0].addr), a[1:]
		case len(a) == 0 || b[0].addr.Less(a[0].addr):
			list, b = append(list, b[0].addr), b[1:]
		default:
			if a[0].hash != b[0].hash {
				list = append(list, a[0].addr)
			}
			a, b = a[1:], b[1:]
		}
	}
	return list
}

func compareOwners(a, b owner) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// reference is what an event about an object names it by.
func reference(o metav1.Object, kind string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}
