package main

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

const source = "API server"

// base is what the objects of the API server say. It shares memory with the
// informers' caches and is made anew when these changed.
type base struct {
	found kubeproxy.Found
	state metallb.State
	facts strictarp.ClusterFacts
	bound *exchange.Services
}

// facts joins what is known now.
func (c *controller) facts(now time.Time) strictarp.Facts {
	c.build.Lock()
	defer c.build.Unlock()
	if c.stale.Swap(false) {
		all, services := c.sources.objects()
		custom, missing := c.customs.objects()
		all = append(all, custom...)
		c.base = base{kubeproxy.FromObjects(all...), metallb.FromObjects(all...), strictarp.ClusterFacts{At: now, Source: source, Objects: services}, boundOf(services)}
		c.base.state.Source, c.base.state.Missing = source, missing
		c.unseeSpeakers(&c.base.state)
		for i := range c.base.found.Configs {
			c.base.found.Configs[i].At = now
		}
	}
	f := c.collector.Facts(now, c.base.bound)
	found, state, cluster := c.base.found, c.base.state, c.base.facts
	state.At, cluster.Version = now, c.customs.serverVersion()
	f.KubeProxy, f.MetalLB, f.Cluster = &found, &state, &cluster
	return f
}

func boundOf(services []runtime.Object) *exchange.Services {
	var addrs []netip.Addr
	for _, o := range services {
		if s, ok := o.(*corev1.Service); ok {
			addrs = append(addrs, exchange.AddressesOf(s)...)
		}
	}
	return exchange.NewServices(addrs)
}

// unseeSpeakers says that speakers were not observed where the namespace of MetalLB
// is none that is watched, or must not be: to see no Pods there does not mean that
// there are none.
func (c *controller) unseeSpeakers(s *metallb.State) {
	if s.Namespace == "" || c.sources.sees(s.Namespace) {
		return
	}
	s.Speakers, s.ExcludeInterfaces = nil, nil
	s.Missing = append(s.Missing, metallb.Missing{
		What: "pods and configmaps in " + s.Namespace, Err: "the namespace is not watched, or must not be",
		Collect: "name it with --watch-namespaces, and grant the verbs list and watch on both there",
	})
}

// judge judges the owners of a batch, keeps and tells what was found, and returns
// whom to judge again as that failed.
func (c *controller) judge(ctx context.Context, batch []owner) (again map[owner]bool) {
	c.metrics.begin()
	now := time.Now()
	if slices.Contains(batch, changedFacts) {
		batch = slices.Concat(batch, c.touched())
	}
	all := slices.Contains(batch, theCluster)
	if all {
		c.mu.Lock()
		c.lastFull = now
		c.mu.Unlock()
	}
	f := c.facts(now)
	whose := newSharing(&f)
	owners, subjects := c.everybody(whose), []strictarp.Subject(nil)
	if !all {
		owners = map[owner]bool{}
		for _, o := range batch {
			if o != changedFacts && validOwner(o) {
				owners[o] = true
				subjects = append(subjects, o.subject())
			}
		}
		if len(subjects) == 0 {
			return nil
		}
	}
	began := time.Now()
	findings := strictarp.Evaluate(f, subjects...)
	took := time.Since(began)
	c.metrics.judged(all, took)
	by := whose.divide(findings)
	c.metrics.tally.found(owners, by, all)
	if all {
		c.mu.Lock()
		c.lastTook, c.latest = took, findings
		c.mu.Unlock()
	}
	return c.keep(ctx, owners, by, newDoubt(&f, whose, findings))
}

// everybody returns all of whom something could be found, or was.
func (c *controller) everybody(whose sharing) map[owner]bool {
	owners := map[owner]bool{theCluster: true}
	for _, o := range whose.services {
		owners[o] = true
	}
	for name := range whose.nodes {
		owners[nodeOwner(string(name))] = true
	}
	for _, o := range listed(c.sources.findings) {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			if o, ok := ownerOf(cm); ok {
				owners[o] = true
			}
		}
	}
	maps.DeleteFunc(owners, func(o owner, _ bool) bool { return !validOwner(o) })
	return owners
}

// keep brings the findings objects of owners up to date, in an order that does not
// change. When the API server cannot be reached the rest waits, too.
func (c *controller) keep(ctx context.Context, owners map[owner]bool, by map[owner][]strictarp.Finding, unseen doubt) map[owner]bool {
	again := map[owner]bool{}
	down := false
	for _, o := range slices.SortedFunc(maps.Keys(owners), compareOwners) {
		if down || ctx.Err() != nil {
			again[o] = true
			continue
		}
		c.metrics.begin()
		if err := c.keepOne(ctx, o, by[o], unseen); err != nil {
			again[o] = true
			down = unreachable(err)
			c.log.Warn("findings could not be written", "about", clip(o.String()), "error", clip(err.Error()))
		}
	}
	return again
}

func (c *controller) keepOne(ctx context.Context, o owner, findings []strictarp.Finding, unseen doubt) error {
	switch o.Kind {
	case ofService:
		s := get[*corev1.Service](c.sources.services, o.Namespace+"/"+o.Name)
		if s == nil {
			return c.ledger.remove(ctx, o)
		}
		return c.ledger.sync(ctx, o, reference(s, "Service"), findings, unseen)
	case ofNode:
		n := get[*corev1.Node](c.sources.nodes, o.Name)
		if n == nil {
			return c.ledger.remove(ctx, o)
		}
		return c.ledger.sync(ctx, o, reference(n, "Node"), findings, unseen)
	}
	return c.ledger.sync(ctx, o, nil, findings, unseen)
}

// newDoubt returns what decides whether a finding that is not there any more is
// only not seen: an agent fell silent or has not asked yet, its probe was
// inconclusive, or the rule says that it cannot tell.
func newDoubt(f *strictarp.Facts, whose sharing, findings []strictarp.Finding) doubt {
	silent := map[string]bool{}
	for _, m := range f.Missing {
		if m.What == "facts" {
			silent[m.Where] = true
		}
	}
	unknown := map[strictarp.Subject]map[string]bool{}
	for _, g := range findings {
		if g.Severity == strictarp.SeverityUnknown {
			if unknown[g.Subject] == nil {
				unknown[g.Subject] = map[string]bool{}
			}
			unknown[g.Subject][g.Rule] = true
		}
	}
	asked := map[string]map[netip.Addr]bool{} // whether it was seen who answers there
	for _, v := range f.Vantages {
		asked[v.Name] = map[netip.Addr]bool{}
		for _, p := range v.Probes {
			// That the prober holds the address itself does not hide other answers.
			asked[v.Name][p.Target] = p.Verdict != arpcheck.Inconclusive ||
				!slices.ContainsFunc(p.Reasons, func(r arpcheck.Reason) bool { return r != arpcheck.HeldHere })
		}
	}
	exists := func(vip strictarp.Subject) bool { return len(whose.vips[vip]) > 0 }
	return func(g strictarp.Finding) bool {
		about := unknown[g.Subject]
		if silent[g.Node] || silent[g.Vantage] || silent[string(g.Subject)] || about[g.Rule] ||
			about["node-not-observed"] || unknown[strictarp.Subject(g.Node)]["node-not-observed"] {
			return true
		}
		if g.Vantage == "" || !whose.nodes[strictarp.Subject(g.Vantage)] {
			return false
		}
		probes, there := asked[g.Vantage]
		vip, err := netip.ParseAddr(string(g.Subject))
		return !there || err == nil && exists(g.Subject) && fromProbes(g.Rule) && !probes[vip]
	}
}

// fromProbes reports whether a rule is about what probes show.
func fromProbes(rule string) bool {
	r, ok := strictarp.RuleByID(rule)
	return ok && slices.Contains(r.Needs, strictarp.NeedProbes)
}
