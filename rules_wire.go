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

func wireChecks() []func(*view) []Finding {
	return []func(*view) []Finding{
		eachSighting(checkResponders), eachSighting(checkSilence), eachSighting(checkDoubleAnswer), eachSighting(checkFrames),
		eachSighting(checkFlapping), checkClaims, checkNeighbours, checkLocalPolicy, checkUnderlay,
	}
}

// eachSighting makes a check of one that looks at a VIP from one vantage.
func eachSighting(check func(*view, *vip, sighting) []Finding) func(*view) []Finding {
	return func(v *view) []Finding {
		var found []Finding
		for _, p := range v.vips {
			for _, s := range p.seen {
				for _, f := range check(v, p, s) {
					f.Vantage = s.vantage.Name
					found = append(found, f)
				}
			}
		}
		return found
	}
}

// answer is a responder as one vantage saw it, over all of its probes of the VIP.
type answer struct {
	arpcheck.Responder
	result *arpcheck.Result
	host   string // the node that it belongs to, or its MAC
}

// answers returns who answered, each MAC once, with the newest result it is in.
func (v *view) answers(s sighting) []answer {
	var list []answer
	for _, i := range s.results {
		r := &s.vantage.Probes[i]
		for _, p := range r.Responders {
			a := answer{p, r, v.owners.host(p.MAC)}
			if j := slices.IndexFunc(list, func(b answer) bool { return b.MAC == p.MAC }); j >= 0 {
				list[j] = a
			} else {
				list = append(list, a)
			}
		}
	}
	return list
}

// evidence of a responder.
func (v *view) evidence(s sighting, a answer) Evidence {
	text := fmt.Sprintf("%s answered %s %s, first in %s", v.owners.name(a.MAC), a.result.Target, times(a.Replies), counted(a.WonRounds, "round", "rounds"))
	if a.RTT.Mean > 0 {
		text += fmt.Sprintf(", after %s", a.RTT.Mean.Round(100*time.Microsecond))
	}
	return Evidence{Observed: text, Source: s.vantage.Name + ": " + s.vantage.Source, At: a.Last}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// hosts groups answers by host.
func hosts(list []answer) map[string][]answer {
	byHost := map[string][]answer{}
	for _, a := range list {
		byHost[a.host] = append(byHost[a.host], a)
	}
	return byHost
}

// checkResponders is about who answers: one host or several, the right one or not.
func checkResponders(v *view, p *vip, s sighting) []Finding {
	subject := Subject(p.addr.String())
	all := v.answers(s)
	proxies := v.proxies(s.vantage)
	real := slices.DeleteFunc(slices.Clone(all), func(a answer) bool { return len(proxies[a.MAC]) > 0 })
	var found []Finding
	add := func(f Finding, of ...answer) {
		for _, a := range of {
			f.Evidence = append(f.Evidence, v.evidence(s, a))
		}
		found = append(found, f)
	}
	for _, a := range all {
		if canaries := proxies[a.MAC]; len(canaries) > 0 {
			f := v.newFinding("proxy-arp-responder", subject, "%s answers for %s and also for %s, which nobody should hold: it is a proxy-ARP router or host.",
				v.owners.name(a.MAC), p.addr, joinAddrs(canaries))
			f.Node = v.nodeName(a.MAC)
			f.Remedies = v.proxyRemedies(a.MAC)
			add(f, a)
		}
	}
	byHost := hosts(real)
	names := slices.Sorted(maps.Keys(byHost))
	if len(names) > 1 {
		f := v.newFinding("multiple-responders", subject, "%d hosts answer for %s: %s.", len(names), p.addr, strings.Join(names, ", "))
		f.Remedies = v.flushRemedies(p, s)
		f.Avoid = v.severalCautions(p)
		add(f, real...)
		if f, ok := v.splitBrain(p, byHost, names); ok {
			add(f, real...)
		}
	}
	for _, name := range names {
		if list := byHost[name]; len(list) > 1 {
			f := v.newFinding("same-node-many-macs", subject, "%s answers for %s with %d MACs: a second NIC, a port of a bond or a bridge.", name, p.addr, len(list))
			f.Node = name
			add(f, list...)
		}
	}
	for _, a := range real {
		if f, ok := v.foreign(p, a); ok {
			add(f, a)
		}
	}
	if len(names) == 1 {
		if f, ok := v.wrong(p, byHost[names[0]][0]); ok {
			add(f, byHost[names[0]]...)
		}
	}
	return found
}

// proxies returns MACs that answer for several addresses, at least one of which
// nobody should hold, and those.
func (v *view) proxies(from *Vantage) map[arpcheck.MAC][]netip.Addr {
	found, ok := v.proxied[from]
	if !ok {
		found = v.findProxies(from)
		v.proxied[from] = found
	}
	return found
}

func (v *view) findProxies(from *Vantage) map[arpcheck.MAC][]netip.Addr {
	targets, canaries := map[arpcheck.MAC]int{}, map[arpcheck.MAC][]netip.Addr{}
	for _, r := range from.Probes {
		canary := v.canary(r.Target)
		for _, a := range r.Responders {
			targets[a.MAC]++
			if canary && !slices.Contains(canaries[a.MAC], r.Target) {
				canaries[a.MAC] = append(canaries[a.MAC], r.Target)
			}
		}
	}
	maps.DeleteFunc(canaries, func(mac arpcheck.MAC, _ []netip.Addr) bool { return targets[mac] < 2 })
	return canaries
}

// canary reports whether nobody should hold an address: it is no Service's, no
// node's, on no observed interface and in no pool.
func (v *view) canary(addr netip.Addr) bool {
	if p := v.byVIP[addr]; v.nodeOf[addr] != "" || p == nil || v.ours(p) || v.poolOf(addr) != nil {
		return false
	}
	return !slices.ContainsFunc(v.Vantages, func(w Vantage) bool { return w.has(addr) })
}

func joinAddrs(addrs []netip.Addr) string {
	const most = 4
	var names []string
	for _, a := range addrs[:min(len(addrs), most)] {
		names = append(names, a.String())
	}
	if more := len(addrs) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// splitBrain: two nodes answer, and not because of their kernels.
func (v *view) splitBrain(p *vip, byHost map[string][]answer, names []string) (Finding, bool) {
	var announcing []string
	for _, name := range names {
		n := v.byNode[name]
		if n == nil {
			continue
		}
		if k := v.kernel(n, p); !k.known || k.answers || k.onNIC {
			continue
		}
		announcing = append(announcing, name)
	}
	if len(announcing) < 2 {
		return Finding{}, false
	}
	return v.newFinding("split-brain", Subject(p.addr.String()),
		"%s answer for %s although none of their kernels would: two announcers believe that they own it.", strings.Join(announcing, " and "), p.addr), true
}

// foreign: a MAC of no node answers. While MACs of nodes are missing it may be one
// of theirs.
func (v *view) foreign(p *vip, a answer) (Finding, bool) {
	if !v.stranger(p, a.MAC) {
		return Finding{}, false
	}
	subject := Subject(p.addr.String())
	if missing := v.withoutMAC(); len(missing) > 0 {
		f := v.unknown("foreign-responder", subject, NeedNodeLinks, "%s answers for %s; whether it belongs to a node is not known without the MACs of %s.",
			v.owners.name(a.MAC), p.addr, strings.Join(missing, ", "))
		return f, true
	}
	f := v.newFinding("foreign-responder", subject, "%s answers for %s and belongs to no node of the cluster.", v.owners.name(a.MAC), p.addr)
	f.Remedies = []Remedy{NewRemedy("Give the address one owner.", Step{Action: DoByHand, Object: fmt.Sprintf(
		"find the host with MAC %s by the switch's forwarding table and take %s from it, or give the Service another address", a.MAC, p.addr)})}
	return f, true
}

// withoutMAC returns nodes of the cluster of which not all MACs are known: that of
// an address may not be the only one.
func (v *view) withoutMAC() []string {
	var missing []string
	for _, n := range v.metallb.Nodes {
		if v.Facts.Nodes[n.Name].Links == nil {
			missing = append(missing, n.Name)
		}
	}
	return missing
}

// wrong: the only host that answers is a node, and not the announcer.
func (v *view) wrong(p *vip, a answer) (Finding, bool) {
	e := v.expect(p)
	who, ok := v.owners.of(a.MAC)
	if !ok || !e.known || len(e.nodes) == 0 || e.right(who.node) {
		return Finding{}, false
	}
	f := v.newFinding("wrong-responder", Subject(p.addr.String()), "Only %s answers for %s, and the announcer is %s (%s).", who.node, p.addr, strings.Join(e.nodes, " and "), e.why)
	f.Node = who.node
	return f, true
}

// silent reports whether all probes are sure that nobody answers.
func (s sighting) silent() bool {
	return !slices.ContainsFunc(s.results, func(i int) bool { return s.vantage.Probes[i].Verdict != arpcheck.None })
}

// checkSilence is about VIPs that nobody answers for, or of which that cannot be
// told.
func checkSilence(v *view, p *vip, s sighting) []Finding {
	subject := Subject(p.addr.String())
	for _, i := range s.results {
		if verdict := s.vantage.Probes[i].Verdict; verdict == arpcheck.Single || verdict == arpcheck.Multiple {
			return nil
		}
	}
	last := &s.vantage.Probes[s.results[len(s.results)-1]]
	at := Evidence{Source: s.vantage.Name + ": " + s.vantage.Source, At: last.Ended}
	if !s.silent() {
		var why []string
		for _, r := range last.Reasons {
			why = append(why, r.Explain())
		}
		f := v.newFinding("probe-inconclusive", subject, "The probe of %s from %s cannot decide: %s.", p.addr, s.vantage.Name, strings.Join(why, "; "))
		f.Message += " Collect: " + NeedProbes.Collect()
		at.Observed = fmt.Sprintf("%d rounds, %d frames dropped", last.Rounds, last.Quality.Drops)
		f.Evidence = append(f.Evidence, at)
		return []Finding{f}
	}
	if v.canary(p.addr) {
		return nil // silence is right
	}
	f := v.newFinding("no-responder", subject, "Nobody answers for %s. %s", p.addr, v.sentence(v.expect(p)))
	if v.strictlyHeld(p) {
		f.Message += " The settings of the kernels that hold it are right and not the cause: do not loosen them."
	}
	at.Observed = fmt.Sprintf("%d silent rounds from %s", last.Rounds, last.Sender.Addr)
	if last.Control != nil && last.Control.Answered {
		at.Observed += fmt.Sprintf(", while %s answered", last.Control.Target)
	}
	f.Evidence = append(f.Evidence, at)
	f.Avoid = v.silenceCautions(p)
	return []Finding{f}
}

// strictlyHeld reports whether nodes hold a VIP for a service proxy and their kernels
// are silent about it, as they should be.
func (v *view) strictlyHeld(p *vip) bool {
	return len(p.holders) > 0 && !slices.ContainsFunc(p.holders, func(h holding) bool {
		k := v.kernel(h.node, p)
		return !k.known || k.answers || k.onNIC
	})
}

// checkDoubleAnswer is about a MAC that answers twice; what is known of its node
// tells why.
func checkDoubleAnswer(v *view, p *vip, s sighting) []Finding {
	var found []Finding
	for _, a := range v.answers(s) {
		if !a.DoubleAnswer {
			continue
		}
		f := v.newFinding("double-answer", Subject(p.addr.String()), "%s answers each request for %s more than once", v.owners.name(a.MAC), p.addr)
		why := ": its kernel and its announcer, or something duplicates frames."
		if n := v.byNode[a.host]; n != nil {
			f.Node = n.name
			switch k := v.kernel(n, p); {
			case k.answers || k.onNIC:
				why = ": its kernel and its announcer."
			case k.known:
				f.Severity = SeverityInfo
				why = ", although its kernel would not: something duplicates frames, or a second prober asks."
			}
		}
		f.Message += why
		e := v.evidence(s, a)
		e.Observed += fmt.Sprintf("; more replies than requests in %d rounds", a.DoubleAnswers)
		f.Evidence = append(f.Evidence, e)
		found = append(found, f)
	}
	return found
}

// checkFrames is about replies whose MACs do not fit.
func checkFrames(v *view, p *vip, s sighting) []Finding {
	subject := Subject(p.addr.String())
	var found []Finding
	for _, a := range v.answers(s) {
		if len(a.FrameSources) > 0 {
			f := v.newFinding("frame-source-mismatch", subject, "Answers for %s with the ARP sender %s come in frames from %s: a relay, a bond, a Wi-Fi bridge or ARP suppression.",
				p.addr, v.owners.name(a.MAC), v.owners.name(a.FrameSources[0]))
			f.Node = v.nodeName(a.FrameSources[0])
			f.Evidence = append(f.Evidence, v.evidence(s, a))
			found = append(found, f)
		}
		if link, right := v.otherNIC(p, s, a); link != "" {
			f := v.newFinding("answer-from-other-nic", subject, "%s answers for %s with the MAC of %s, whose subnet is another: %s is on the VIP's segment. Segments are joined somewhere.",
				a.host, p.addr, link, right)
			f.Node = a.host
			f.Evidence = append(f.Evidence, v.evidence(s, a))
			f.Remedies = []Remedy{NewRemedy("Part the segments.", Step{Action: DoByHand, Node: a.host, Object: fmt.Sprintf(
				"look at switch ports, VLANs and bridges for what joins the segments of %s and %s of %s", link, right, a.host)})}
			found = append(found, f)
		}
	}
	return found
}

// otherNIC returns the interface whose MAC a node answers with, and the one on the
// VIP's segment, if they have nothing to do with each other.
func (v *view) otherNIC(p *vip, s sighting, a answer) (link, right string) {
	who, ok := v.owners.of(a.MAC)
	n := v.byNode[who.node]
	if !ok || n == nil || who.link == "" {
		return "", ""
	}
	for _, l := range v.receiving(n, p) {
		if l.MAC == a.MAC || l.Name == who.link {
			return "", ""
		}
		right = l.Name
	}
	l, _ := n.Link(who.link)
	if right == "" || l.Master != "" || len(l.Addrs) == 0 || l.subnet(p.addr) {
		return "", ""
	}
	return who.link, right
}

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
	if n := v.byNode[onNode]; n != nil && slices.Contains(n.held, p) {
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

// checkUnderlay: a node is seen to answer, and the answer does not arrive where it
// was asked.
func checkUnderlay(v *view) []Finding {
	var found []Finding
	for i := range v.Vantages {
		w := &v.Vantages[i]
		for _, c := range w.Claims {
			p := v.judged(c.Addr)
			if p == nil || c.Kind != arpcheck.Reply || !w.sends(v, c.MAC) {
				continue
			}
			for _, s := range p.seen {
				if s.vantage == w || !s.vantage.hasMAC(c.To) || len(v.answers(s)) > 0 {
					continue
				}
				f := v.newFinding("underlay-drops-arp", Subject(p.addr.String()), "%s answers %s for %s, and no answer arrives there: a switch, hypervisor or Wi-Fi in between filters ARP.",
					v.owners.name(c.MAC), s.vantage.Name, p.addr)
				f.Node, f.Vantage = v.nodeName(c.MAC), s.vantage.Name
				f.Evidence = []Evidence{
					{Observed: fmt.Sprintf("%d replies from %s to %s", c.Frames, c.MAC, c.To), Source: w.Name + ": " + w.Source, At: c.Last},
					{Observed: "no answer", Source: s.vantage.Name + ": " + s.vantage.Source, At: s.vantage.Probes[s.results[0]].Ended},
				}
				f.Remedies = []Remedy{NewRemedy("Let ARP through.", Step{Action: DoByHand, Object: fmt.Sprintf(
					"allow ARP replies with the sender %s from %s: port security, anti-spoofing of the hypervisor or cloud, ARP suppression, Wi-Fi isolation", p.addr, f.Node)})}
				found = append(found, f)
			}
		}
	}
	return dedupe(found)
}

// sends reports whether a vantage is the host with that MAC.
func (p *Vantage) sends(v *view, mac arpcheck.MAC) bool {
	return p.hasMAC(mac) || p.Node != "" && v.nodeName(mac) == p.Node
}

func (p *Vantage) hasMAC(mac arpcheck.MAC) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool { return l.MAC == mac })
}

// nodeName returns the node a MAC belongs to; empty if that is not known.
func (v *view) nodeName(mac arpcheck.MAC) string {
	who, _ := v.owners.of(mac)
	return who.node
}

// dedupe keeps the first finding of each key.
func dedupe(found []Finding) []Finding {
	seen := map[Key]bool{}
	return slices.DeleteFunc(found, func(f Finding) bool {
		again := seen[f.Key()]
		seen[f.Key()] = true
		return again
	})
}
