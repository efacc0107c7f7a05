package strictarp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

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
		if k := v.kernel(n, p); k.known && (!k.answers && !k.onNIC || k.onNIC && v.bound(n, p)) {
			announcing = append(announcing, name)
		}
	}
	if len(announcing) < 2 {
		return Finding{}, false
	}
	return v.newFinding("split-brain", Subject(p.addr.String()),
		"%s answer for %s, and not because of a service proxy: two announcers believe that they own it.", strings.Join(announcing, " and "), p.addr), true
}

// bound reports whether a program that takes the VIP and announces by putting it on a
// NIC can have done so on a node.
func (v *view) bound(n *node, p *vip) bool {
	return slices.ContainsFunc(v.takers(p), func(c metallb.Controller) bool {
		binds := c.Kind == metallb.KindKubeVIP || c.Kind == metallb.KindPureLB || c.Kind == metallb.KindKeepalived
		return binds && c.Protocol == metallb.ProtocolLayer2 && (c.Nodes == nil || slices.Contains(c.Nodes, n.name))
	})
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
	if v.metallb.Nodes == nil {
		missing = append(missing, "the cluster's nodes, which were not listed")
	}
	for _, n := range v.metallb.Nodes {
		if !wholeLinks(v.Facts.Nodes[n.Name].Links) {
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

// wholeLinks reports whether links are all of a node's: "ip addr show kube-ipvs0"
// prints one only, and every list of all has lo. One without a usable MAC was not
// understood.
func wholeLinks(links []Link) bool {
	return slices.ContainsFunc(links, func(l Link) bool { return l.Loopback }) &&
		slices.ContainsFunc(links, func(l Link) bool { return !l.Loopback && !l.NoARP && !l.MAC.IsZero() })
}
