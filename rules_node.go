package strictarp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

func nodeChecks() []func(*view) []Finding {
	return []func(*view) []Finding{
		eachNode(checkKernelAnswers), eachNode(checkAnnounce), eachNode(checkSideEffects), eachNode(checkUseless),
		eachNode(checkPersisted), eachNode(checkNeedsKernel), eachNode(checkStaleAddresses), eachNode(checkRealInterface),
		eachNode(checkProxyARP), eachNode(checkReturnPath), checkNotObserved,
	}
}

// eachNode makes a check of one that looks at an observed node. The node is the
// subject.
func eachNode(check func(*view, *node) []Finding) func(*view) []Finding {
	return func(v *view) []Finding {
		var found []Finding
		for _, n := range v.nodes {
			for _, f := range check(v, n) {
				f.Subject, f.Node = Subject(n.name), n.name
				found = append(found, f)
			}
		}
		return found
	}
}

func (n *node) evidence(format string, args ...any) []Evidence {
	return []Evidence{{Observed: fmt.Sprintf(format, args...), Source: n.name + ": " + n.Source, At: n.At}}
}

func addrsOf(vips []*vip) []netip.Addr {
	addrs := make([]netip.Addr, len(vips))
	for i, p := range vips {
		addrs[i] = p.addr
	}
	return addrs
}

// checkKernelAnswers: the kernel would answer for VIPs that are on a device such
// as kube-ipvs0.
func checkKernelAnswers(v *view, n *node) []Finding {
	var answered, undecided []*vip
	var first kernelAnswer
	var missing []Missing
	for _, p := range v.onDevice(n) {
		switch k := v.kernel(n, p); {
		case k.answers:
			if answered = append(answered, p); len(answered) == 1 {
				first = k
			}
		case !k.known:
			undecided, missing = append(undecided, p), k.missing
		}
	}
	switch {
	case len(answered) > 0:
		f := v.newFinding("kernel-answers-vip", "", "The kernel of %s would answer for %s on %s. %s", n.name, joinAddrs(addrsOf(answered)), first.link, first.answer.Why)
		f.Evidence = n.evidence("%s of %s", settingText(first.answer), first.link)
		f.Remedies = v.strictRemedies(n)
		return []Finding{f}
	case len(undecided) > 0:
		f := v.newFinding("kernel-answers-vip", "", "Whether the kernel of %s would answer for %s is not known without %s. Collect: %s",
			n.name, joinAddrs(addrsOf(undecided)), missing[0].What, missing[0].Collect)
		f.Severity = SeverityUnknown
		return []Finding{f}
	}
	return nil
}

func settingText(a Answer) string {
	if a.Setting == nil {
		return a.Rule
	}
	return fmt.Sprintf("%s: %d in effect, all %d, interface %d", a.Param, a.Setting.Value, a.Setting.All, a.Setting.Interface)
}

// checkAnnounce: the node's own requests can carry a VIP as sender.
func checkAnnounce(v *view, n *node) []Finding {
	var loose []*vip
	var link string
	var e sysctl.Effective
	for _, p := range v.onDevice(n) {
		for _, l := range v.receiving(n, p) {
			if got, ok := n.effective(l.Name, sysctl.ARPAnnounce); ok && !sysctl.ARPAnnounce.IsStrict(got.Value) {
				loose, link, e = append(loose, p), l.Name, got
				break
			}
		}
	}
	if len(loose) == 0 {
		return nil
	}
	f := v.newFinding("arp-announce-off", "", "%s may use %s as sender of its own requests on %s, which teaches clients its MAC: arp_announce %d is in effect, want 2.", n.name, joinAddrs(addrsOf(loose)), link, e.Value)
	f.Evidence = n.evidence("arp_announce of %s: %d in effect, all %d, interface %d", link, e.Value, e.All, e.Interface)
	f.Remedies = v.strictRemedies(n)
	return []Finding{f}
}

// checkSideEffects: arp_ignore is stricter, or otherwise, than is meant.
func checkSideEffects(v *view, n *node) []Finding {
	for i := range n.Links {
		l := &n.Links[i]
		if !l.segment() || len(l.Addrs) == 0 {
			continue
		}
		e, ok := n.effective(l.Name, sysctl.ARPIgnore)
		if !ok || e.Value != 2 && e.Value != 3 && e.Value != 8 {
			continue
		}
		m := sysctl.ARPIgnore.Explain(e.Value)
		f := v.newFinding("arp-ignore-side-effects", "", "arp_ignore %d is in effect on %s of %s: %s. %s Mean 1.", e.Value, l.Name, n.name, m.Text, sentence(m.Caution))
		f.Evidence = n.evidence("arp_ignore of %s: %d in effect, all %d, interface %d", l.Name, e.Value, e.All, e.Interface)
		f.Remedies = []Remedy{n.setIgnoreToOne()}
		return []Finding{f}
	}
	return nil
}

// sentence makes one of a clause. A name at its beginning stays as it is.
func sentence(clause string) string {
	clause = strings.TrimSuffix(clause, ".") + "."
	switch word, _, _ := strings.Cut(clause, " "); word {
	case "the", "no", "none", "there", "memberlist", "by", "links", "addresses", "nobody":
		return strings.ToUpper(clause[:1]) + clause[1:]
	}
	return clause
}

// setIgnoreToOne sets arp_ignore to 1 wherever a greater value stands.
func (n *node) setIgnoreToOne() Remedy {
	var steps []Step
	set := func(iface string, values sysctl.Values) {
		if value, ok := values[sysctl.ARPIgnore]; ok && value > 1 || iface == "all" && ok && value != 1 {
			steps = append(steps, n.sysctlStep(iface, sysctl.ARPIgnore, value, 1))
		}
	}
	set("all", n.Sysctls.All) // first: in between none may be 0
	for i := range n.Links {
		if l := &n.Links[i]; !l.Loopback && !l.NoARP {
			set(l.Name, n.Sysctls.Interfaces[l.Name])
		}
	}
	return NewRemedy("Set arp_ignore to 1, until the next boot.", steps...)
}

func (n *node) sysctlStep(iface string, p sysctl.Param, from, to int) Step {
	key := sysctl.Key("net/ipv4/conf/" + iface + "/" + string(p))
	return Step{Action: SetSysctl, Node: n.name, Object: string(key), From: fmt.Sprint(from), To: fmt.Sprint(to)}
}

// checkUseless: settings that cannot matter stand as if they did.
func checkUseless(v *view, n *node) []Finding {
	if n.Sysctls == nil {
		return nil
	}
	useless := n.Sysctls.Useless(n.holders()...)
	if n.Persisted != nil {
		for _, tool := range sysctl.Tools() {
			useless = append(useless, n.Persisted.Useless(tool, *n.Sysctls, n.holders()...)...)
		}
	}
	if len(useless) == 0 {
		return nil
	}
	f := v.newFinding("useless-sysctl", "", "")
	for _, u := range useless {
		if e := n.evidence("%s", u)[0]; !slices.Contains(f.Evidence, e) {
			f.Evidence = append(f.Evidence, e)
		}
	}
	f.Message = fmt.Sprintf("%s has %s nothing there.", n.name, counted(len(f.Evidence), "setting that does", "settings that do"))
	return []Finding{f}
}

// holders are the devices on which no request arrives.
func (n *node) holders() []string {
	list := []string{sysctl.KubeIPVS0}
	for i := range n.Links {
		if l := &n.Links[i]; l.NoARP && l.Name != sysctl.KubeIPVS0 {
			list = append(list, l.Name)
		}
	}
	return list
}

// checkPersisted: what files set at boot is looser than strict.
func checkPersisted(v *view, n *node) []Finding {
	if n.Persisted == nil {
		return nil
	}
	var names []string
	for i := range n.Links {
		names = append(names, n.Links[i].Name)
	}
	var what []string
	var evidence []Evidence
	var steps []Step
	for _, tool := range sysctl.Tools() {
		for _, l := range n.Persisted.AtBoot(tool, names...).Loosening(n.holders()...) {
			for _, by := range l.By {
				text := fmt.Sprintf("%s %d on %s", l.Param, l.Next.Value, l.Interface)
				e := n.evidence("%s by %s", text, by)[0]
				step := Step{Action: DoByHand, Node: n.name, Object: fmt.Sprintf("on %s take the line that sets %s out: %s, line %d", n.name, l.Param, by.File, by.Line)}
				if !slices.Contains(what, text) {
					what = append(what, text)
				}
				if !slices.Contains(evidence, e) {
					evidence = append(evidence, e)
				}
				if !slices.Contains(steps, step) {
					steps = append(steps, step)
				}
			}
		}
	}
	if len(what) == 0 {
		return nil
	}
	f := v.newFinding("persisted-sysctl-loosens", "", "At the next boot or sysctl --system files loosen settings of %s: %s.", n.name, strings.Join(what, "; "))
	f.Evidence = evidence
	f.Remedies = []Remedy{NewRemedy("Take the lines out.", steps...)}
	return []Finding{f}
}

// checkNeedsKernel: the node is strict and holds addresses that nothing but its
// kernel would answer for.
func checkNeedsKernel(v *view, n *node) []Finding {
	var need []*vip
	why := ""
	for _, p := range v.onDevice(n) {
		w := v.unannounced(p)
		if w == "" { // first: it is so of most, and asked soonest
			continue
		}
		if k := v.kernel(n, p); k.known && !k.answers && !k.onNIC && len(v.answering(p)) == 0 {
			need, why = append(need, p), w
		}
	}
	if len(need) == 0 {
		return nil
	}
	f := v.newFinding("needs-kernel-answer", "", "%s holds %s, which nothing announces (%s): clients on the segment reached it only while kernels answered, and strict settings stop that. It needs one owner.",
		n.name, joinAddrs(addrsOf(need)), why)
	f.Evidence = n.evidence("%s is on %s", need[0].addr, n.deviceOf(need[0]))
	f.Remedies = []Remedy{NewRemedy("Give the address one owner that announces it.", Step{Action: DoByHand, Object: fmt.Sprintf(
		"make %s the address of a LoadBalancer Service from a MetalLB pool with an L2Advertisement, route it to one node, or use an announcer of the tool that holds it", joinAddrs(addrsOf(need)))})}
	f.Avoid = v.looseningCautions(n)
	return []Finding{f}
}

// unannounced says why nothing but kernels answers for an address; empty if
// something announces it, or that is not known.
func (v *view) unannounced(p *vip) string {
	if v.MetalLB == nil || len(v.expect(p).elections) > 0 {
		return ""
	}
	for _, c := range v.takers(p) {
		if c.Protocol == metallb.ProtocolLayer2 && !slices.Contains(c.Handles.Addresses, p.addr) {
			return ""
		}
	}
	switch {
	case p.external:
		return "an external IP of " + string(serviceSubject(p.services[0]))
	case len(p.services) > 0:
		return "" // waiting for an announcer is another matter
	}
	for _, c := range v.takers(p) {
		return fmt.Sprintf("an address of %s", c.Kind)
	}
	return "it belongs to no Service"
}

// deviceOf returns the device on which a node has a VIP.
func (n *node) deviceOf(p *vip) string {
	for _, h := range p.on(n) {
		if !h.link.segment() {
			return h.link.Name
		}
	}
	return ""
}

// checkStaleAddresses: kube-ipvs0 has an address of the segment that is no
// Service's. ClusterIPs are not looked at: they are on no segment.
func checkStaleAddresses(v *view, n *node) []Finding {
	if v.metallb.Services == nil {
		return nil
	}
	device, ok := n.Link(sysctl.KubeIPVS0)
	if !ok {
		return nil
	}
	var stale []netip.Addr
	for _, a := range device.Addrs {
		addr := a.Prefix.Addr()
		if p := v.byVIP[addr]; p != nil && len(p.services) > 0 || v.serviceAddr(addr) {
			continue
		}
		onSegment := slices.ContainsFunc(n.Links, func(l Link) bool { return l.segment() && l.subnet(addr) })
		if onSegment || v.poolOf(addr) != nil {
			stale = append(stale, addr)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	f := v.newFinding("stale-vip-on-device", "", "%s of %s has %s, which no Service has.", device.Name, n.name, joinAddrs(stale))
	f.Evidence = n.evidence("%d addresses on %s, %d of no Service", len(device.Addrs), device.Name, len(stale))
	var steps []Step
	for _, addr := range stale {
		steps = append(steps, Step{Action: SetAddress, Node: n.name, Object: fmt.Sprintf("%s/32 dev %s", addr, device.Name), From: Present, To: Absent})
	}
	f.Remedies = []Remedy{NewRemedy("Remove them. A kube-proxy that runs in ipvs mode does that by itself within seconds: see why it did not.", steps...)}
	return []Finding{f}
}

// checkRealInterface: a VIP is on a NIC or lo.
func checkRealInterface(v *view, n *node) []Finding {
	var found []Finding
	for i := range n.Links {
		l := &n.Links[i]
		if l.NoARP || !l.segment() && !l.Loopback && l.Kind == "dummy" {
			continue
		}
		for _, a := range l.Addrs {
			p := v.byVIP[a.Prefix.Addr()]
			if p == nil || !v.looksAt(n, p) || !slices.ContainsFunc(p.on(n), func(h holding) bool { return h.link == l }) || v.elected(n, p) {
				continue
			}
			if l.Loopback && v.unannounced(p) != "" {
				continue // needs-kernel-answer says so
			}
			f := v.newFinding("vip-on-real-interface", "", "%s has %s on %s: its kernel answers for it whatever arp_ignore is, besides whoever announces it.", n.name, p.addr, l.Name)
			f.Evidence = n.evidence("%s dev %s", a.Prefix, l.Name)
			f.Remedies = []Remedy{NewRemedy("Remove it, after whatever put it there is stopped.", Step{
				Action: SetAddress, Node: n.name, Object: fmt.Sprintf("%s dev %s", a.Prefix, l.Name), From: Present, To: Absent})}
			found = append(found, f)
		}
	}
	return mergeBySubject(found)
}

// elected reports whether another announcer that works by putting a VIP on the
// NIC of one node has rightly put it there.
func (v *view) elected(n *node, p *vip) bool {
	if len(v.expect(p).elections) > 0 || len(v.takers(p)) == 0 && len(p.services) > 0 {
		return false
	}
	if e := v.expect(p); e.known {
		return e.right(n.name)
	}
	on := 0
	for _, h := range p.holders {
		if h.link.segment() {
			on++
		}
	}
	return on == 1 && len(v.takers(p)) > 0
}

// checkProxyARP: proxy_arp is on where VIPs are asked for.
func checkProxyARP(v *view, n *node) []Finding {
	for i := range n.Links {
		l := &n.Links[i]
		if !l.segment() || !slices.ContainsFunc(l.Addrs, func(a Address) bool { return a.Prefix.Bits() < 32 }) {
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

// checkNotObserved: nodes of the cluster of which nothing was observed.
func checkNotObserved(v *view) []Finding {
	var found []Finding
	for _, n := range v.metallb.Nodes {
		if _, ok := v.Nodes[n.Name]; ok {
			continue
		}
		f := v.newFinding("node-not-observed", Subject(n.Name), "Nothing was observed on %s: what its kernel would answer is not known. Collect: %s; %s", n.Name, NeedNodeLinks.Collect(), NeedNodeSysctls.Collect())
		f.Node = n.Name
		found = append(found, f)
	}
	return found
}

// mergeBySubject joins findings of one rule and subject into one.
func mergeBySubject(found []Finding) []Finding {
	if len(found) < 2 {
		return found
	}
	first := found[0]
	for _, f := range found[1:] {
		first.Message += " " + f.Message
		first.Evidence = append(first.Evidence, f.Evidence...)
		first.Remedies = append(first.Remedies, f.Remedies...)
	}
	return []Finding{first}
}
