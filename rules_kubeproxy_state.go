package strictarp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

// loosest returns the settings in effect on that interface of a segment on which
// they are least strict.
func (n *node) loosest() *kubeproxy.ARP {
	var found *kubeproxy.ARP
	for i := range n.Links {
		l := &n.Links[i]
		if !l.hasSubnet() {
			continue
		}
		ignore, ok := n.effective(l.Name, sysctl.ARPIgnore)
		announce, also := n.effective(l.Name, sysctl.ARPAnnounce)
		if !ok || !also {
			continue
		}
		if arp := (kubeproxy.ARP{Ignore: ignore.Value, Announce: announce.Value}); found == nil || found.Strict() && !arp.Strict() {
			found = &arp
		}
	}
	return found
}

// checkState compares what kube-proxy is told, what it runs with and what the
// kernel does.
func checkState(v *view, n *node) []Finding {
	c := v.configOf(n.name)
	if c == nil {
		return nil
	}
	arp := n.loosest()
	j := kubeproxy.Judge(*c, n.Running, arp)
	var f Finding
	switch {
	case j.State == kubeproxy.StateModeMismatch:
		f = v.newFinding("kubeproxy-mode-mismatch", "", "%s: %s.", n.name, j.Reason)
	case j.State == kubeproxy.StatePending:
		f = v.newFinding("strictarp-pending", "", "%s: %s.", n.name, j.Reason)
		f.Remedies = []Remedy{NewRemedy("Restart kube-proxy: it reads its configuration when it starts.", restartSteps(c, n.name)...)}
	case j.State == kubeproxy.StateOverridden && !j.Inferred:
		f = v.newFinding("strictarp-overridden", "", "%s: %s.", n.name, j.Reason)
		f.Remedies = n.sysctlRemedies()
	case j.State == kubeproxy.StateOverridden:
		f = v.unknown("strictarp-overridden", "", NeedKubeProxyRunning, "%s: kube-proxy is told strictARP true and the kernel has %s: either it was not restarted since, or something changed the settings.", n.name, arp)
		f.Remedies = n.sysctlRemedies()
	case j.State == kubeproxy.StateResidue && c.EffectiveMode() == kubeproxy.ModeIPVS && !n.strictAtBoot():
		f = v.newFinding("strictarp-residue", "", "%s: %s.", n.name, j.Reason)
		f.Remedies = []Remedy{configRemedy(c)}
	default:
		return nil
	}
	f.Evidence = n.stateEvidence(arp)
	return []Finding{f}
}

func (n *node) stateEvidence(arp *kubeproxy.ARP) []Evidence {
	var list []Evidence
	if arp != nil {
		list = n.evidence("%s in effect", arp)
	}
	if r := n.Running; r != nil {
		text := "kube-proxy"
		if r.Mode != "" {
			text += fmt.Sprintf(", /proxyMode %s", r.Mode)
		}
		if r.Config != nil {
			text += fmt.Sprintf(", /configz mode %s, strictARP %s", r.Config.EffectiveMode(), orUnset(r.Config.StrictARP))
		}
		if !r.Started.IsZero() {
			text += ", started " + r.Started.UTC().Format("2006-01-02T15:04:05Z")
		}
		list = append(list, Evidence{Observed: text, Source: r.Source, At: r.At})
	}
	return list
}

// strictAtBoot reports whether files make the node strict at its next boot.
func (n *node) strictAtBoot() bool {
	if n.Persisted == nil {
		return false
	}
	for _, tool := range sysctl.Tools() {
		boot := n.Persisted.AtBoot(tool)
		for _, p := range []sysctl.Param{sysctl.ARPIgnore, sysctl.ARPAnnounce} {
			if !p.IsStrict(boot.ARP.All[p]) {
				return false
			}
		}
	}
	return true
}

// sysctlRemedies make the node strict now.
func (n *node) sysctlRemedies() []Remedy {
	if n.Sysctls == nil {
		return nil
	}
	var steps []Step
	for _, c := range n.Sysctls.Strict(n.holders()...) {
		steps = append(steps, Step{Action: SetSysctl, Node: n.name, Object: string(c.Key), From: c.From, To: c.To})
	}
	if len(steps) == 0 {
		return nil
	}
	return []Remedy{NewRemedy("Make the kernel strict now; it lasts until the next boot.", steps...)}
}

// strictRemedies make a node strict: by kube-proxy's configuration where that is
// what sets it, and by hand.
func (v *view) strictRemedies(n *node) []Remedy {
	var remedies []Remedy
	if c := v.configOf(n.name); c != nil && c.Refused == "" && c.EffectiveMode() == kubeproxy.ModeIPVS {
		j := kubeproxy.Judge(*c, n.Running, n.loosest())
		switch {
		case !c.Strict():
			remedies = append(remedies, configRemedy(c))
		case j.State == kubeproxy.StatePending:
			remedies = append(remedies, NewRemedy("Restart kube-proxy: it is told strictARP true and has not read it.", restartSteps(c, n.name)...))
		}
	}
	return append(remedies, n.sysctlRemedies()...)
}

// checkLeftover: kube-ipvs0 holds addresses and no kube-proxy in ipvs mode keeps
// them.
func checkLeftover(v *view, n *node) []Finding {
	device, ok := n.Link(sysctl.KubeIPVS0)
	if !ok || len(device.Addrs) == 0 {
		return nil
	}
	why := v.leftover(n)
	if why == "" {
		return nil
	}
	them := "them"
	if len(device.Addrs) == 1 {
		them = "it"
	}
	var addrs []netip.Addr
	for _, a := range device.Addrs {
		addrs = append(addrs, a.Prefix.Addr())
	}
	f := v.newFinding("leftover-kube-ipvs0", "", "kube-ipvs0 of %s still holds %s although %s: the kernel goes on answering for %s, and nothing removes %[4]s.",
		n.name, counted(len(device.Addrs), "address", "addresses"), why, them)
	f.Evidence = n.evidence("on kube-ipvs0: %s", joinAddrs(addrs))
	if v.unseenProxy(n) {
		f.Severity = SeverityUnknown
		f.Message += " One that is no pod may run all the same. Collect: " + NeedKubeProxyRunning.Collect()
		return []Finding{f}
	}
	f.Remedies = []Remedy{NewRemedy("Remove the device with its addresses.", Step{Action: DoByHand, Node: n.name, Object: "ip link del kube-ipvs0 on " + n.name + ", or run kube-proxy --cleanup there"})}
	f.Remedies = append(f.Remedies, n.sysctlRemedies()...)
	return []Finding{f}
}

// unseenProxy reports whether a kube-proxy may run on a node where the API server
// does not see it, as a systemd unit for example.
func (v *view) unseenProxy(n *node) bool {
	if n.KubeProxy != nil || n.Running != nil || n.object == nil || v.KubeProxy == nil || v.configOf(n.name) != nil {
		return false
	}
	return !slices.ContainsFunc(v.KubeProxy.Replacers, func(r kubeproxy.Replacer) bool { return r.Active == kubeproxy.Present })
}

// leftover says why nothing keeps a node's kube-ipvs0; empty if something does or
// that is not known.
func (v *view) leftover(n *node) string {
	c := v.configOf(n.name)
	switch {
	case n.Running != nil && n.Running.Mode != "":
		if n.Running.Mode != kubeproxy.ModeIPVS {
			return fmt.Sprintf("its kube-proxy runs in mode %s", n.Running.Mode)
		}
	case n.object == nil && v.metallb.Nodes != nil:
		return "it is no node of the cluster any more"
	case n.Running == nil && c == nil && v.KubeProxy != nil && v.KubeProxy.Presence == kubeproxy.Absent:
		return "there is no kube-proxy"
	case n.Running == nil && c != nil && c.Refused == "" && c.EffectiveMode() != kubeproxy.ModeIPVS:
		return fmt.Sprintf("kube-proxy is told mode %s", c.EffectiveMode())
	}
	return ""
}
