package exchange

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
)

const (
	// minStale and maxStale bound what a Lease says of how long facts hold: others
	// could write it.
	minStale = 10 * time.Second
	maxStale = time.Hour
	// maxNodes is how many nodes are kept: four times what Kubernetes supports.
	maxNodes = 20000
)

// Collector keeps what the nodes of a cluster published, as informers tell of it.
// Its zero value is ready for use, by several goroutines.
type Collector struct {
	mu    sync.Mutex
	nodes map[string]entry // by the object's name
	beats map[string]beat  // likewise
}

type entry struct {
	node    string
	hash    string
	version string // resourceVersion
	facts   *document
	seen    time.Time // by this program's clock
	err     error     // why there are no facts
}

// beat is a Lease's state. Clocks of nodes are not compared with this program's:
// what counts is when a renewal was seen here, as for client-go's leader election.
type beat struct {
	renewed time.Time
	hash    string
	seen    time.Time
	lasts   time.Duration
}

// Put takes a ConfigMap that was added or changed, and returns its node and
// whether its facts are other ones than before. With an error, that of Decode,
// its facts are missing until it is written again.
func (c *Collector) Put(cm *corev1.ConfigMap, now time.Time) (node string, changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.nodes[cm.Name]
	if known && old.version == cm.ResourceVersion && old.version != "" {
		return old.node, false, old.err
	}
	node, facts, err := decode(cm)
	if node == "" {
		return "", false, err
	}
	if !known && len(c.nodes) >= maxNodes {
		return node, false, fmt.Errorf("exchange: keep the facts of %s: %w: there are %d nodes", node, strictarp.ErrLimit, maxNodes)
	}
	if c.nodes == nil {
		c.nodes = map[string]entry{}
	}
	e := entry{node: node, hash: cm.Annotations[HashAnnotation], version: cm.ResourceVersion, facts: facts, seen: now, err: err}
	c.nodes[cm.Name] = e
	return node, !known || old.hash != e.hash || (old.err == nil) != (err == nil), err
}

// Delete takes note that a ConfigMap is gone, and returns its node, or "" if it
// was none that a node published.
func (c *Collector) Delete(name string) (node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	node = c.nodes[name].node
	delete(c.nodes, name)
	return node
}

// Beat takes a Lease that was added or changed.
func (c *Collector) Beat(lease *coordinationv1.Lease, now time.Time) {
	if lease.Spec.RenewTime == nil || lease.Name != Name(lease.Annotations[NodeAnnotation]) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.beats[lease.Name]
	b := beat{renewed: lease.Spec.RenewTime.Time, hash: lease.Annotations[HashAnnotation], seen: now, lasts: Missed * DefaultInterval}
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		b.lasts = min(max(time.Duration(*s)*time.Second, minStale), maxStale)
	}
	switch {
	case known && old.renewed.Equal(b.renewed):
		b.seen = old.seen
	case !known && now.Sub(b.renewed) > b.lasts:
		b.seen = b.renewed // at the start an old one is not taken for a renewal
	}
	if c.beats == nil {
		c.beats = map[string]beat{}
	}
	if known || len(c.beats) < maxNodes {
		c.beats[lease.Name] = b
	}
}

// DeleteBeat takes note that a Lease is gone.
func (c *Collector) DeleteBeat(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.beats, name)
}

// Stale returns the nodes whose agent is no longer heard of, sorted: their facts
// are old.
func (c *Collector) Stale(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for name, e := range c.nodes {
		if _, old := c.stale(name, e, now); old {
			list = append(list, e.node)
		}
	}
	slices.Sort(list)
	return list
}

// stale returns since when nothing was heard, and whether that is too long. A
// Lease counts if it confirms what the ConfigMap holds.
func (c *Collector) stale(name string, e entry, now time.Time) (since time.Time, old bool) {
	since, lasts := e.seen, Missed*DefaultInterval
	if b, ok := c.beats[name]; ok {
		lasts = b.lasts
		if b.hash == e.hash {
			since = b.seen
		}
	}
	return since, now.Sub(since) > lasts
}

// Facts joins what all nodes published. Of a node whose facts are old only the
// interfaces are left, by which its MACs are known, and the rest is missing: a
// node that is not heard of may have become anything. What cannot be read is
// missing, too. Addresses that nodes did not list are those of services. The result
// shares memory with the Collector's and with services.
func (c *Collector) Facts(now time.Time, services *Services) strictarp.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := strictarp.Facts{Version: strictarp.FactsVersion, At: now, Nodes: make(map[string]strictarp.NodeFacts, len(c.nodes))}
	shared := map[string][]strictarp.Address{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		e := c.nodes[name]
		if e.err != nil {
			f.Missing = append(f.Missing, strictarp.Missing{What: "facts", Where: e.node, Err: e.err.Error(), Collect: unreadable(e.err)})
			continue
		}
		facts := e.facts.expand(e.node, services, shared)
		n := facts.Nodes[e.node]
		if since, old := c.stale(name, e, now); old {
			n = strictarp.NodeFacts{At: n.At, Source: n.Source, Links: n.Links}
			f.Missing = append(f.Missing, strictarp.Missing{
				What: "facts", Where: e.node, Err: "nothing was heard of its agent since " + since.UTC().Format(time.RFC3339),
				Collect: "see whether the node and its agent's pod run, and reach the API server",
			})
		} else {
			f.Vantages = append(f.Vantages, facts.Vantages...)
			f.Missing = append(f.Missing, facts.Missing...)
		}
		f.Nodes[e.node] = n
	}
	return f
}

// Published returns what a node's agent wrote last, as it did: interfaces that have
// the addresses of Services list those that differ, and lacks are those that are
// missing there. It is false for a node of which there is nothing that can be read.
func (c *Collector) Published(node string) (f strictarp.Facts, lacks []netip.Addr, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.nodes[Name(node)]
	if !ok || e.err != nil {
		return f, nil, false
	}
	for _, h := range e.facts.Held {
		lacks = append(lacks, h.Lacks...)
	}
	return e.facts.Facts, lacks, true
}

func unreadable(err error) string {
	if errors.Is(err, errors.ErrUnsupported) {
		return "update this program to the agents' version"
	}
	return "see who writes to it besides the node's agent, and delete it: the agent writes it again"
}
