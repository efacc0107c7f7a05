package strictarp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
	strict := map[*Link]bool{} // asked once for all VIPs
	for _, p := range v.onDevice(n) {
		for _, l := range v.receiving(n, p) {
			if strict[l] {
				continue
			}
			if got, ok := n.effective(l.Name, sysctl.ARPAnnounce); ok && !sysctl.ARPAnnounce.IsStrict(got.Value) {
				loose, link, e = append(loose, p), l.Name, got
				break
			}
			strict[l] = true
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
