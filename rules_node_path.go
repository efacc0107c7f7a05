package strictarp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// checkProxyARP: proxy_arp is on where VIPs are asked for.
func checkProxyARP(v *view, n *node) []Finding {
	for i := range n.Links {
		l := &n.Links[i]
		if !l.hasSubnet() {
			continue
		}
		if e, ok := n.effective(l.Name, sysctl.ProxyARP); ok && e.Value != 0 {
			f := v.newFinding("proxy-arp-on-node", "", "proxy_arp is in effect on %s of %s: its kernel answers for addresses that are routed elsewhere.", l.Name, n.name)
			f.Evidence = n.evidence("proxy_arp of %s: all %d, interface %d", l.Name, e.All, e.Interface)
			f.Remedies = []Remedy{n.proxyOff(l.Name, e)}
			return []Finding{f}
		}
	}
	return nil
}

func (n *node) proxyOff(link string, e sysctl.Effective) Remedy {
	var steps []Step
	if e.All != 0 {
		steps = append(steps, n.sysctlStep("all", sysctl.ProxyARP, e.All, 0))
	}
	if e.Interface != 0 {
		steps = append(steps, n.sysctlStep(link, sysctl.ProxyARP, e.Interface, 0))
	}
	return NewRemedy(fmt.Sprintf("Switch proxy_arp off on %s, unless something needs it there.", link), steps...)
}

// checkReturnPath: what comes in by the VIP's interface goes back by another.
func checkReturnPath(v *view, n *node) []Finding {
	vips := v.vips
	if n.named {
		vips = v.known
	}
	for _, p := range vips {
		for _, l := range v.receiving(n, p) {
			if !l.subnet(p.addr) {
				continue
			}
			client, back, ok := v.asymmetric(n, p, l)
			if !ok {
				continue
			}
			f := v.newFinding("asymmetric-return-path", "", "Clients %s reach %s by %s of %s, and the route back to them leaves by %s.", client, p.addr, l.Name, n.name, back)
			f.Evidence = n.evidence("route to %s dev %s", client, back)
			found := []Finding{f}
			if e, ok := n.effective(l.Name, sysctl.RPFilter); ok && e.Value == 1 {
				f := v.newFinding("rp-filter-strict", "", "rp_filter 1 is in effect on %s of %s, and the route back to clients %s leaves by %s: what they send there is dropped.", l.Name, n.name, client, back)
				f.Evidence = n.evidence("rp_filter of %s: all %d, interface %d", l.Name, e.All, e.Interface)
				f.Remedies = []Remedy{NewRemedy("Route back the way clients come.", Step{Action: DoByHand, Node: n.name, Object: fmt.Sprintf(
					"on %s add a rule and table by which replies from %s leave by %s", n.name, p.addr, l.Name)})}
				found = append(found, f)
			}
			return found
		}
	}
	return nil
}

// asymmetric returns clients whose packets for a VIP arrive on an interface and
// are answered by another: a vantage that asked and is in no subnet of the node,
// or all that are behind routers.
func (v *view) asymmetric(n *node, p *vip, l *Link) (client, back string, ok bool) {
	if n.Routes == nil || slices.ContainsFunc(n.Rules, func(r PolicyRule) bool { return !r.standard() }) {
		return "", "", false // where its replies leave is not followed here
	}
	if !slices.ContainsFunc(n.Routes, func(r Route) bool {
		return (r.Table == 0 || r.Table == TableMain) && r.Link != "" && r.Link != l.Name
	}) {
		return "", "", false // there is no other way
	}
	for _, s := range p.seen {
		for _, i := range s.results {
			asker := s.vantage.Probes[i].Sender.Addr
			out := n.routeTo(asker)
			if asker.Is4() && !asker.IsUnspecified() && out != "" && out != l.Name && (!n.onSegment(out, p) || v.answeredBy(s, l.MAC)) {
				return "such as " + asker.String(), out, true
			}
		}
	}
	for _, r := range n.Routes {
		if r.Dst.Bits() == 0 && (r.Table == 0 || r.Table == TableMain) && r.Link != "" && r.Link != l.Name && !n.onSegment(r.Link, p) {
			return "behind routers", r.Link, true
		}
	}
	return "", "", false
}

// onSegment reports whether an interface is in a VIP's subnet. If the one of the
// route back is, clients may just as well have heard its MAC.
func (n *node) onSegment(link string, p *vip) bool {
	l, ok := n.Link(link)
	return ok && l.subnet(p.addr)
}

func (v *view) answeredBy(s sighting, mac arpcheck.MAC) bool {
	return slices.ContainsFunc(v.answers(s), func(a answer) bool { return a.MAC == mac })
}

// routeTo returns the interface by which the main table sends to an address.
func (n *node) routeTo(addr netip.Addr) string {
	bits, metric, out := -1, 0, ""
	for _, r := range n.Routes {
		if r.Table != 0 && r.Table != TableMain || r.Link == "" || !r.Dst.Contains(addr) {
			continue
		}
		if b := r.Dst.Bits(); b > bits || b == bits && r.Metric < metric {
			bits, metric, out = b, r.Metric, r.Link
		}
	}
	return out
}
