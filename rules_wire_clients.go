package strictarp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

// checkFlapping: who answers first changes from host to host.
func checkFlapping(v *view, p *vip, s sighting) []Finding {
	won := map[string]int{}
	for _, i := range s.results {
		for _, a := range s.vantage.Probes[i].Responders {
			if a.WonRounds > 0 {
				won[v.owners.host(a.MAC)] += a.WonRounds
			}
		}
	}
	if len(won) < 2 {
		return nil
	}
	var shares []string
	var evidence []Evidence
	for _, a := range v.answers(s) {
		if won[a.host] > 0 {
			evidence = append(evidence, v.evidence(s, a))
		}
	}
	for _, host := range slices.Sorted(maps.Keys(won)) {
		shares = append(shares, fmt.Sprintf("%s %d", host, won[host]))
	}
	f := v.newFinding("responder-flapping", Subject(p.addr.String()), "The first answer for %s changes host; rounds won: %s.", p.addr, strings.Join(shares, ", "))
	f.Evidence = evidence
	return []Finding{f}
}

// checkClaims: who uses a VIP as sender of requests teaches everybody its own MAC.
func checkClaims(v *view) []Finding {
	var found []Finding
	for i := range v.Vantages {
		w := &v.Vantages[i]
		type claimant struct {
			vip *vip
			mac arpcheck.MAC
		}
		seen := map[claimant]bool{}
		claim := func(addr netip.Addr, c arpcheck.Claim) {
			p := v.judged(addr)
			if p == nil || c.Kind != arpcheck.Request || w.hasMAC(c.MAC) || seen[claimant{p, c.MAC}] || !v.wrongHost(p, c.MAC) {
				return
			}
			seen[claimant{p, c.MAC}] = true
			f := v.newFinding("vip-in-request-sender", Subject(p.addr.String()), "%s asks for other addresses in the name of %s and so teaches everybody its own MAC for it.",
				v.owners.name(c.MAC), p.addr)
			f.Node, f.Vantage = v.nodeName(c.MAC), w.Name
			f.Evidence = append(f.Evidence, Evidence{
				Observed: fmt.Sprintf("%s with the sender %s and %s", frames(c.Frames), p.addr, c.MAC), Source: w.Name + ": " + w.Source, At: c.Last,
			})
			if n := v.byNode[f.Node]; n != nil {
				f.Remedies = v.strictRemedies(n)
			}
			found = append(found, f)
		}
		for _, c := range w.Claims {
			claim(c.Addr, c.Claim)
		}
		for _, r := range w.Probes {
			for _, c := range r.Claims {
				claim(r.Target, c)
			}
		}
	}
	return found
}

func frames(n int) string {
	if n == 1 {
		return "one request"
	}
	return fmt.Sprintf("%d requests", n)
}

// wrongHost reports whether a MAC is known not to be the announcer's.
func (v *view) wrongHost(p *vip, mac arpcheck.MAC) bool {
	if who, ok := v.owners.of(mac); ok {
		e := v.expect(p)
		if e.known && len(e.nodes) > 0 {
			return !e.right(who.node)
		}
		// Who should answer is not known, but who does.
		answering := v.answering(p)
		return len(answering) > 0 && !slices.Contains(answering, who.node)
	}
	return len(v.withoutMAC()) == 0 && len(v.owners.byMAC[mac]) == 0 && !virtualRouter(mac) && v.expect(p).known
}

// answering returns the hosts that answer for a VIP at any vantage.
func (v *view) answering(p *vip) []string {
	var list []string
	for _, s := range p.seen {
		for _, a := range v.answers(s) {
			if !slices.Contains(list, a.host) {
				list = append(list, a.host)
			}
		}
	}
	return list
}

// checkNeighbours: caches that hold a wrong MAC for a VIP.
func checkNeighbours(v *view) []Finding {
	var found []Finding
	for i := range v.Vantages {
		w := &v.Vantages[i]
		for _, e := range w.Neighbours {
			found = append(found, v.staleNeighbour(e, w.Name, w.Node, w.Source, w.At)...)
		}
	}
	for _, n := range v.nodes {
		for _, e := range n.Neighbours {
			if l, ok := n.Link(e.Link); ok && l.segment() {
				found = append(found, v.staleNeighbour(e, n.name, n.name, n.Source, n.At)...)
			}
		}
	}
	return found
}

func (v *view) staleNeighbour(e arpcheck.Neighbour, where, onNode, source string, at time.Time) []Finding {
	p := v.judged(e.Addr)
	if p == nil || e.MAC.IsZero() || e.State == arpcheck.NeighbourFailed || e.State == arpcheck.NeighbourIncomplete || !v.wrongHost(p, e.MAC) {
		return nil
	}
	if n := v.byNode[onNode]; n != nil && n.holds(p) {
		return nil // it delivers to itself, and has no use for the entry
	}
	f := v.newFinding("stale-neighbour", Subject(p.addr.String()), "The neighbour cache of %s holds %s for %s, which is not the announcer's MAC.", where, v.owners.name(e.MAC), p.addr)
	f.Vantage = where
	f.Evidence = []Evidence{neighbourEvidence(e, where, source, at)}
	f.Remedies = []Remedy{NewRemedy("Make it ask again, once only the announcer answers.",
		Step{Action: ForgetNeighbour, Node: onNode, Object: fmt.Sprintf("%s dev %s", e.Addr, e.Link), From: e.MAC.String()})}
	return []Finding{f}
}

// checkLocalPolicy: under externalTrafficPolicy: Local traffic reaches a node
// without an endpoint.
func checkLocalPolicy(v *view) []Finding {
	var found []Finding
	for _, p := range v.vips {
		for _, s := range p.services {
			serving, known := servingNodes(s)
			if s.Policy != metallb.PolicyLocal || !known {
				continue
			}
			for from, list := range v.reached(p) {
				var nodes []string
				var evidence []Evidence
				for _, r := range list {
					if !slices.Contains(serving, r.node) {
						nodes, evidence = append(nodes, r.node), append(evidence, r.evidence)
					}
				}
				if len(nodes) == 0 {
					continue
				}
				slices.Sort(nodes)
				f := v.newFinding("local-policy-drop", Subject(p.addr.String()), "From %s traffic for %s (%s, externalTrafficPolicy: Local) can reach %s, where no endpoint serves: connections time out.",
					from, p.addr, serviceSubject(s), strings.Join(slices.Compact(nodes), ", "))
				f.Vantage, f.Evidence = from, evidence
				if len(nodes) == 1 {
					f.Node = nodes[0]
				}
				found = append(found, f)
			}
		}
	}
	return found
}

// reach is a node that traffic can go to, and what shows it.
type reach struct {
	node     string
	evidence Evidence
}

// reached returns the nodes that each vantage's traffic for a VIP can go to: those
// that answer and those in its neighbour cache.
func (v *view) reached(p *vip) map[string][]reach {
	nodes := map[string][]reach{}
	note := func(from *Vantage, mac arpcheck.MAC, e Evidence) {
		if who, ok := v.owners.of(mac); ok {
			nodes[from.Name] = append(nodes[from.Name], reach{who.node, e})
		}
	}
	for _, s := range p.seen {
		for _, a := range v.answers(s) {
			note(s.vantage, a.MAC, v.evidence(s, a))
		}
	}
	for i := range v.Vantages {
		w := &v.Vantages[i]
		for _, e := range w.Neighbours {
			if e.Addr == p.addr && e.State != arpcheck.NeighbourFailed && e.State != arpcheck.NeighbourIncomplete {
				note(w, e.MAC, neighbourEvidence(e, w.Name, w.Source, w.At))
			}
		}
	}
	return nodes
}

// neighbourEvidence is the entry as ip-neighbour(8) prints it.
func neighbourEvidence(e arpcheck.Neighbour, where, source string, at time.Time) Evidence {
	return Evidence{Observed: strings.TrimSpace(fmt.Sprintf("%s dev %s lladdr %s %s", e.Addr, e.Link, e.MAC, strings.ToUpper(string(e.State)))), Source: where + ": " + source, At: at}
}
