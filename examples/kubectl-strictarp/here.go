package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

// addThisMachine adds what is seen here: as a node if it is one, and as a place
// from which VIPs are asked for.
func (a *app) addThisMachine(ctx context.Context, f *strictarp.Facts) {
	// On the node itself kube-proxy answers at once or not at all.
	client := &http.Client{Timeout: 2 * time.Second}
	node, missing := a.observe(ctx, strictarp.ObserveOptions{Node: a.host, KubeProxy: client})
	name := a.nodeName(*f, node.Links)
	if name != "" {
		if f.Nodes == nil {
			f.Nodes = map[string]strictarp.NodeFacts{}
		}
		f.Nodes[name] = node
		for _, m := range missing {
			m.Where = name
			f.Missing = append(f.Missing, m)
		}
	}
	if node.Links != nil {
		f.Vantages = append(f.Vantages, strictarp.Vantage{
			Name: a.host, Node: name, At: node.At, Source: node.Source, Links: node.Links, Neighbours: node.Neighbours,
		})
	}
}

// nodeName returns the name of the node that this machine is; empty if it is none.
func (a *app) nodeName(f strictarp.Facts, links []strictarp.Link) string {
	if a.node != "" || f.MetalLB == nil {
		return a.node
	}
	own := map[netip.Addr]bool{}
	for _, l := range links {
		for _, addr := range l.Addrs {
			own[addr.Prefix.Addr()] = !l.Loopback && !l.NoARP
		}
	}
	for _, is := range []func(metallb.Node) bool{
		func(n metallb.Node) bool { return n.Name == a.host || n.Labels["kubernetes.io/hostname"] == a.host },
		func(n metallb.Node) bool {
			return slices.ContainsFunc(n.Addresses, func(addr netip.Addr) bool { return own[addr] })
		},
	} {
		if i := slices.IndexFunc(f.MetalLB.Nodes, is); i >= 0 {
			return f.MetalLB.Nodes[i].Name
		}
	}
	return ""
}

// probeInto asks who answers for VIPs, all of them if none is named, and for the
// nodes' own addresses, by which answers are told apart. That it cannot be done is
// among the Missing.
func (a *app) probeInto(ctx context.Context, f *strictarp.Facts, named []string) {
	if !a.ask.probe && a.ask.link == "" {
		return
	}
	var targets []netip.Addr
	for _, name := range named {
		if addr, err := netip.ParseAddr(name); err == nil {
			targets = append(targets, addr)
		}
	}
	if len(targets) == 0 {
		targets = vips(*f)
	}
	results, err := a.probe(ctx, *f, targets)
	if err != nil {
		f.Missing = append(f.Missing, strictarp.Missing{What: "probes", Where: a.host, Err: err.Error(), Collect: "run this as root, or with CAP_NET_RAW, on a host of the VIP's segment; or, " + strictarp.NeedProbes.Collect()})
	}
	v := a.vantage(f)
	v.Probes = append(v.Probes, results...)
	if len(results) > 0 {
		v.At, v.Source = results[0].Ended, "packet socket"
	}
}

// vantage returns this machine's among the facts.
func (a *app) vantage(f *strictarp.Facts) *strictarp.Vantage {
	for i := range f.Vantages {
		if f.Vantages[i].Name == a.host {
			return &f.Vantages[i]
		}
	}
	f.Vantages = append(f.Vantages, strictarp.Vantage{Name: a.host, Node: a.node, At: a.now(), Source: "packet socket"})
	return &f.Vantages[len(f.Vantages)-1]
}

// probe asks for addresses and for the nodes', on the interface that is named or
// where routes lead.
func (a *app) probe(ctx context.Context, f strictarp.Facts, targets []netip.Addr) ([]arpcheck.Result, error) {
	nodes := nodeAddrs(f)
	others := make([]netip.Addr, 0, len(nodes))
	for addr := range nodes {
		others = append(others, addr)
	}
	slices.SortFunc(others, netip.Addr.Compare)
	byLink, err := a.links(targets, others)
	if err != nil {
		return nil, err
	}
	var results []arpcheck.Result
	for link, targets := range byLink {
		a.progress("Asking for %s on %s, which takes some 5 s ...", plural(len(targets), "address"), link)
		some, err := a.probeOn(ctx, link, targets)
		if err != nil {
			return results, err
		}
		results = append(results, some...)
	}
	slices.SortStableFunc(results, func(a, b arpcheck.Result) int { return a.Target.Compare(b.Target) })
	return results, nil
}

// links sorts addresses by the interface on which to ask for them. Others are left
// out where that is not known, or where they are this machine's own.
func (a *app) links(targets, others []netip.Addr) (map[string][]netip.Addr, error) {
	byLink := map[string][]netip.Addr{}
	for i, addr := range slices.Concat(targets, others) {
		must := i < len(targets)
		if a.ask.link != "" {
			byLink[a.ask.link] = append(byLink[a.ask.link], addr)
			continue
		}
		hop, err := a.linkTo(addr)
		switch {
		case must && err != nil:
			return nil, fmt.Errorf("find the interface to ask for %s on: %w: name it with --interface", addr, err)
		case must && hop.Gateway.IsValid():
			return nil, fmt.Errorf("%s is behind the router %s: ask from a host of its segment, or name the interface with --interface if this is one", addr, hop.Gateway)
		case err != nil || hop.Gateway.IsValid() || hop.Local && !must:
		default:
			byLink[hop.Link] = append(byLink[hop.Link], addr)
		}
	}
	return byLink, nil
}

// manyTargets is from where a sweep is better than asking for all at once.
const manyTargets = 64

func (a *app) probeOn(ctx context.Context, link string, targets []netip.Addr) ([]arpcheck.Result, error) {
	p, err := a.open(link)
	if err != nil {
		if runtime.GOOS != "linux" {
			return nil, fmt.Errorf("ask on %s: %w: ask from a Linux host of the segment", link, err)
		}
		return nil, fmt.Errorf("ask on %s: %w", link, err)
	}
	defer p.Close()
	p.Vantage = a.host
	slices.SortFunc(targets, netip.Addr.Compare)
	targets = slices.Compact(targets)
	if len(targets) <= manyTargets {
		return p.ProbeAll(ctx, targets)
	}
	var results []arpcheck.Result
	for r, err := range p.Sweep(ctx, slices.Values(targets)) {
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}
