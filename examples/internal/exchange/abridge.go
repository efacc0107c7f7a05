package exchange

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/strictarp/strictarp"
)

// document is what is published of a node. Form 1 is the facts alone.
type document struct {
	Facts strictarp.Facts `json:"facts"`
	// Held are interfaces of which the facts list only those addresses that Services do
	// not have, or that are not as usual.
	Held []held `json:"held"`
}

// held is an interface that has the addresses of Services.
type held struct {
	Link  string       `json:"link"`
	Lacks []netip.Addr `json:"lacks,omitempty"` // sorted: those that it does not have
}

// form is the oldest form in which the document can be written.
func (d *document) form() int {
	if len(d.Held) == 0 {
		return 1
	}
	return Format
}

func (d *document) marshal() ([]byte, error) {
	if d.form() == 1 {
		return json.Marshal(d.Facts)
	}
	return json.Marshal(d)
}

// abridge leaves out of a node's facts what a controller does not need or knows
// itself, so that an object is of a node's own size, however many Services and pods
// there are, and does not change with them: addresses that Services have, what a CNI
// plugin makes for pods, and the IPVS table, which no rule reads. If services is nil
// nothing is known of them, and all addresses are listed. It changes nothing of f.
func abridge(node string, f strictarp.Facts, services *Services) *document {
	n := withoutPods(f.Nodes[node])
	n.IPVS = nil
	d := &document{}
	if services != nil {
		n.Links = slices.Clone(n.Links)
		for i := range n.Links {
			if l := &n.Links[i]; l.NoARP && !l.Loopback {
				if extra, lacks := services.differ(l.Addrs); len(extra)+len(lacks) < len(l.Addrs) {
					l.Addrs = extra
					d.Held = append(d.Held, held{l.Name, lacks})
				}
			}
		}
	}
	f.Nodes = map[string]strictarp.NodeFacts{node: n}
	if len(d.Held) > 0 { // the vantage is the node: its interfaces are known
		f.Vantages = slices.Clone(f.Vantages)
		for i := range f.Vantages {
			f.Vantages[i].Links = nil
		}
	}
	d.Facts = f
	return d
}

// differ returns the addresses that Services do not have so, and those that are
// missing.
func (s *Services) differ(addrs []strictarp.Address) (extra []strictarp.Address, lacks []netip.Addr) {
	extra = []strictarp.Address{}
	has := make([]bool, len(s.addrs))
	for i, a := range addrs {
		ok := i < len(s.addrs) && a == s.addrs[i]
		if !ok {
			i, ok = s.find(a.Prefix.Addr())
		}
		if ok {
			has[i] = true
		}
		if !ok || a != s.addrs[i] {
			extra = append(extra, a)
		}
	}
	for i, ok := range has {
		if !ok {
			lacks = append(lacks, s.addrs[i].Prefix.Addr())
		}
	}
	return extra, lacks
}

// hash is that of what matters.
func (d *document) hash() (string, error) {
	if d.form() == 1 {
		return Hash(d.Facts)
	}
	return hashOf(document{content(d.Facts), d.Held})
}

// expand returns the facts with the addresses that were left out. Interfaces that have
// the same share one list, which shared keeps.
func (d *document) expand(node string, services *Services, shared map[string][]strictarp.Address) strictarp.Facts {
	f := d.Facts
	if len(d.Held) == 0 {
		return f
	}
	n := f.Nodes[node]
	n.Links = slices.Clone(n.Links)
	for _, h := range d.Held {
		i := slices.IndexFunc(n.Links, func(l strictarp.Link) bool { return l.Name == h.Link })
		switch {
		case i < 0:
		case services == nil:
			n.Links[i].Addrs = nil // not known
		default:
			n.Links[i].Addrs = services.with(n.Links[i].Addrs, h.Lacks, shared)
		}
	}
	f.Nodes = map[string]strictarp.NodeFacts{node: n}
	f.Vantages = slices.Clone(f.Vantages)
	for i := range f.Vantages {
		f.Vantages[i].Links = n.Links
	}
	return f
}

// with returns the addresses of Services, with those of extra in place of or besides
// them, and without those that are lacking.
func (s *Services) with(extra []strictarp.Address, lacks []netip.Addr, shared map[string][]strictarp.Address) []strictarp.Address {
	if len(extra) == 0 && len(lacks) == 0 {
		return s.addrs
	}
	key, err := json.Marshal([]any{extra, lacks})
	if list, ok := shared[string(key)]; ok && err == nil {
		return list
	}
	without := make(map[netip.Addr]bool, len(extra)+len(lacks))
	for _, addr := range lacks {
		without[addr] = true
	}
	for _, a := range extra {
		without[a.Prefix.Addr()] = true
	}
	list := slices.Clone(extra)
	for _, a := range s.addrs {
		if !without[a.Prefix.Addr()] {
			list = append(list, a)
		}
	}
	if err == nil {
		shared[string(key)] = list
	}
	return list
}

// standing is how long an interface must differ from the Services before that is
// told: a service proxy follows them within seconds, and all nodes' are behind at
// once.
const standing = time.Minute

// difference is an address that an interface has besides those of Services, or lacks.
type difference struct {
	link  string
	addr  netip.Addr
	lacks bool
}

// differences remember since when there is each. Its zero value takes the first ones
// for old: an agent that is started anew tells what the one before told.
type differences struct {
	since map[difference]time.Time
}

// settle takes those out of a document that have not stood long enough.
func (o *differences) settle(d *document, node string, now time.Time) {
	since := map[difference]time.Time{}
	young := func(key difference) bool {
		first, known := o.since[key]
		if !known && o.since != nil {
			first = now
		}
		since[key] = first
		return !first.IsZero() && now.Sub(first) < standing
	}
	n := d.Facts.Nodes[node]
	for i := range d.Held {
		h := &d.Held[i]
		h.Lacks = slices.DeleteFunc(h.Lacks, func(addr netip.Addr) bool { return young(difference{h.Link, addr, true}) })
		for k := range n.Links {
			if l := &n.Links[k]; l.Name == h.Link {
				l.Addrs = slices.DeleteFunc(l.Addrs, func(a strictarp.Address) bool { return young(difference{h.Link, a.Prefix.Addr(), false}) })
			}
		}
	}
	o.since = since
}
