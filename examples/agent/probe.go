package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

const (
	// requestRate is how many requests a second a node sends. All nodes hear each, so
	// with a hundred nodes it is a thousand broadcasts a second at the very worst.
	requestRate = 10
	// manyNodes is with how many that is reached. In larger clusters each node asks for
	// fewer VIPs, so that it stays at that, seen over a pass.
	manyNodes = 100
	// maxAsked is how many VIPs a node asks for: with three requests each what one pass
	// does within five minutes.
	maxAsked = 1024
)

// shareOf returns the VIPs that a node of so many asks for, in how many requests a
// second, and what nobody asks for. The choice depends on the names alone, and so it
// stays, with another one for each node: of 10,000 VIPs and 5,000 nodes each node asks
// for 20, and each VIP is asked for by ten nodes.
func shareOf(node string, vips []netip.Addr, nodes int) (share []netip.Addr, rate int, missing []strictarp.Missing) {
	nodes = max(nodes, 1)
	most := max(1, min(maxAsked, maxAsked*manyNodes/nodes))
	rate = max(1, min(requestRate, requestRate*manyNodes/nodes))
	if len(vips) <= most {
		return vips, rate, nil
	}
	if can := most * nodes; len(vips) > can {
		missing = []strictarp.Missing{{
			What: "VIPs beyond the first", Where: node, Collect: "probe from elsewhere, with whoanswers",
			Err: fmt.Sprintf("%v: there are %d, of which all nodes together ask for %d", strictarp.ErrLimit, len(vips), can),
		}}
	}
	type place struct {
		vip  netip.Addr
		hash [sha256.Size]byte
	}
	places := make([]place, len(vips))
	for i, vip := range vips {
		places[i] = place{vip, sha256.Sum256([]byte(node + "#" + vip.String()))}
	}
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	for _, p := range places[:most] {
		share = append(share, p.vip)
	}
	slices.SortFunc(share, netip.Addr.Compare)
	return share, rate, missing
}

// prober asks for VIPs from the node.
type prober struct {
	node string
	link string                                      // empty: the one that each VIP is on
	open func(link string) (*arpcheck.Prober, error) // in the network namespace of the node
}

// probe asks who answers for the VIPs. The node is the vantage. It does not see
// its own kernel's answer: results for what it holds say HeldHere, and are not
// conclusive unless several others answer. What cannot be asked is missing.
func (p prober) probe(ctx context.Context, facts strictarp.NodeFacts, vips []netip.Addr, rate int) (strictarp.Vantage, []strictarp.Missing) {
	v := strictarp.Vantage{Name: p.node, Node: p.node, At: time.Now().UTC(), Source: "packet socket", Links: facts.Links, Probes: []arpcheck.Result{}}
	byLink, missing := p.assign(facts, vips)
	for _, link := range slices.Sorted(maps.Keys(byLink)) {
		results, err := p.ask(ctx, facts, link, byLink[link], rate)
		v.Probes = append(v.Probes, results...)
		if err != nil {
			missing = append(missing, strictarp.Missing{
				What: "who answers for VIPs on " + link, Where: p.node, Err: err.Error(),
				Collect: "grant CAP_NET_RAW and run in the host's network namespace; or ask from elsewhere, with whoanswers",
			})
		}
	}
	slices.SortFunc(v.Probes, func(a, b arpcheck.Result) int { return a.Target.Compare(b.Target) })
	return v, missing
}

// ask opens a socket for the pass only: an interface may have been made anew since
// the last one, and a pass is seldom.
func (p prober) ask(ctx context.Context, facts strictarp.NodeFacts, link string, vips []netip.Addr, rate int) ([]arpcheck.Result, error) {
	pr, err := p.open(link)
	if err != nil {
		return nil, err
	}
	defer pr.Close()
	pr.Vantage = p.node
	if gateway := gatewayOf(facts, link); gateway.IsValid() && !slices.Contains(vips, gateway) {
		pr.Control = gateway
	}
	var results []arpcheck.Result
	for r, err := range (arpcheck.Sweep{Prober: pr, Rate: rate, Seed: rand.Uint64()}).Run(ctx, slices.Values(vips)) {
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// assign says on which interface each VIP is asked for.
func (p prober) assign(facts strictarp.NodeFacts, vips []netip.Addr) (map[string][]netip.Addr, []strictarp.Missing) {
	byLink := map[string][]netip.Addr{}
	var lost []netip.Addr
	for _, vip := range vips {
		if link := p.linkFor(facts, vip); link != "" {
			byLink[link] = append(byLink[link], vip)
		} else {
			lost = append(lost, vip)
		}
	}
	if lost == nil {
		return byLink, nil
	}
	return byLink, []strictarp.Missing{{
		What: "who answers for VIPs of no segment", Where: p.node, Collect: "name the interface with --interface",
		Err: errors.Join(arpcheck.ErrNoRoute, fmt.Errorf("no interface has a subnet with %s, of %d such, and there is no default route", lost[0], len(lost))).Error(),
	}}
}

// linkFor returns the interface with a subnet that has the VIP, or else that of the
// default route: pools are often of no node's subnet and yet on their segment. The
// route to the VIP itself tells nothing, as the node may hold it.
func (p prober) linkFor(facts strictarp.NodeFacts, vip netip.Addr) string {
	if p.link != "" {
		return p.link
	}
	for _, l := range facts.Links {
		if !l.Up || l.NoARP || l.Loopback || l.Master != "" {
			continue
		}
		for _, a := range l.Addrs {
			if a.Prefix.Bits() < 32 && a.Prefix.Contains(vip) {
				return l.Name
			}
		}
	}
	return defaultRoute(facts, "").Link
}

// gatewayOf returns the default router on an interface, which should answer.
func gatewayOf(facts strictarp.NodeFacts, link string) netip.Addr {
	return defaultRoute(facts, link).Gateway
}

func defaultRoute(facts strictarp.NodeFacts, link string) (best strictarp.Route) {
	for _, r := range facts.Routes {
		if r.Dst.IsValid() && r.Dst.Bits() == 0 && (r.Table == 0 || r.Table == strictarp.TableMain) && r.Link != "" &&
			(link == "" || r.Link == link) && (best.Link == "" || r.Metric < best.Metric) {
			best = r
		}
	}
	return best
}
