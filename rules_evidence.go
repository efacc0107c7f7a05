package strictarp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp/metallb"
)

// reasonEvidence is what was seen of the object that a reason is about.
func (v *view) reasonEvidence(r metallb.Reason) Evidence {
	interfaces := r.Rule == metallb.RuleAnnouncingInterfaceAbsent || r.Rule == metallb.RuleAnnouncingInterfaceSkip
	if n := v.byNode[r.Node]; interfaces && n != nil && n.Links != nil {
		return n.evidence("interfaces: %s", n.linksText())[0]
	}
	source := r.Object.String()
	if r.Field != "" {
		source += ", " + r.Field
	}
	return Evidence{Observed: v.objectText(r.Object), Source: source, At: v.metallb.At}
}

func (n *node) linksText() string {
	var texts []string
	for i := range n.Links {
		l := &n.Links[i]
		text := l.Name
		if !l.Up {
			text += " down"
		}
		if l.Master != "" {
			text += " of " + l.Master
		}
		texts = append(texts, text)
	}
	return some(texts)
}

// some joins texts, of many only the first.
func some(texts []string) string {
	const most = 8
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// objectText says how an object of the cluster is, as far as it bears on
// announcements.
func (v *view) objectText(o metallb.Object) string {
	m := &v.metallb
	switch o.Kind {
	case "Node":
		if i := slices.IndexFunc(m.Nodes, func(n metallb.Node) bool { return n.Name == o.Name }); i >= 0 {
			return nodeText(&m.Nodes[i])
		}
	case "Service":
		if i := slices.IndexFunc(m.Services, func(s metallb.Service) bool { return s.Namespace == o.Namespace && s.Name == o.Name }); i >= 0 {
			return serviceText(&m.Services[i])
		}
	case "L2Advertisement":
		return advertisementsText(m.L2Advertisements, o)
	case "IPAddressPool", "AddressPool":
		if i := slices.IndexFunc(m.Pools, func(p metallb.Pool) bool { return p.Namespace == o.Namespace && p.Name == o.Name }); i >= 0 {
			var ranges []string
			for _, r := range m.Pools[i].Ranges {
				ranges = append(ranges, r.Text)
			}
			return "addresses " + some(ranges)
		}
	case "ServiceL2Status":
		if i := slices.IndexFunc(m.Statuses, func(s metallb.ServiceL2Status) bool { return s.Namespace == o.Namespace && s.Name == o.Name }); i >= 0 {
			return fmt.Sprintf("status.node %s, made at %s", m.Statuses[i].Node, m.Statuses[i].Created.UTC().Format(time.RFC3339))
		}
	}
	if i := slices.IndexFunc(m.Controllers, func(c metallb.Controller) bool {
		return c.Kind != metallb.KindMetalLB && c.Namespace == o.Namespace && strings.EqualFold(c.Name, o.Kind+"/"+o.Name)
	}); i >= 0 {
		if c := &m.Controllers[i]; len(c.Nodes) > 0 {
			return fmt.Sprintf("%s, on %s", c.Why, some(c.Nodes))
		}
		return m.Controllers[i].Why
	}
	if text := speakersText(m.Speakers, o); text != "" {
		return text
	}
	return "not among the objects that were read"
}

func nodeText(n *metallb.Node) string {
	texts := []string{"Ready " + string(cmp.Or(n.Ready, metallb.ConditionUnknown))}
	if n.NetworkUnavailable != "" {
		texts = append(texts, "NetworkUnavailable "+string(n.NetworkUnavailable))
	}
	if value, ok := n.Labels[excludeFromLB]; ok {
		texts = append(texts, fmt.Sprintf("label %s=%q", excludeFromLB, value))
	}
	if n.Unschedulable {
		texts = append(texts, "unschedulable")
	}
	return strings.Join(texts, ", ")
}

func serviceText(s *metallb.Service) string {
	addrs := "no address"
	if len(s.Addresses) > 0 {
		addrs = "address " + joinAddrs(s.Addresses)
	}
	text := fmt.Sprintf("%s, externalTrafficPolicy %s", addrs, cmp.Or(s.Policy, metallb.PolicyCluster))
	if s.Endpoints == nil {
		return text
	}
	var endpoints []string
	for _, e := range s.Endpoints {
		state := "serving"
		if !e.Serving {
			state = "not serving"
		}
		endpoints = append(endpoints, state+" on "+cmp.Or(e.Node, "no node"))
	}
	return text + "; endpoints: " + some(endpoints)
}

func advertisementsText(list []metallb.L2Advertisement, o metallb.Object) string {
	i := slices.IndexFunc(list, func(a metallb.L2Advertisement) bool { return a.Namespace == o.Namespace && a.Name == o.Name })
	if i < 0 {
		var names []string
		for _, a := range list {
			names = append(names, a.Namespace+"/"+a.Name)
		}
		return fmt.Sprintf("%d L2Advertisements: %s", len(list), some(names))
	}
	orAll := func(texts []string) string {
		if len(texts) == 0 {
			return "all"
		}
		return some(texts)
	}
	a := &list[i]
	pools := orAll(a.Pools)
	if len(a.PoolSelectors) > 0 {
		pools = fmt.Sprintf("%s and those of %d selectors", some(a.Pools), len(a.PoolSelectors))
	}
	nodes := "all"
	if n := len(a.NodeSelectors); n > 0 {
		nodes = "those of " + counted(n, "selector", "selectors")
	}
	return fmt.Sprintf("pools %s; nodes %s; interfaces %s", pools, nodes, orAll(a.Interfaces))
}

// speakersText is about the speaker pod that is named, or about all pods of
// MetalLB's DaemonSet; empty if it is another.
func speakersText(list []metallb.Speaker, o metallb.Object) string {
	if o.Kind != "Pod" && o.Kind != "DaemonSet" {
		return ""
	}
	var texts []string
	for i := range list {
		s := &list[i]
		if s.Namespace != o.Namespace || o.Kind == "Pod" && o.Name != "" && s.Name != o.Name {
			continue
		}
		state := cmp.Or(s.Waiting, "not ready")
		if s.Ready {
			state = "ready"
		}
		texts = append(texts, fmt.Sprintf("%s on %s %s", s.Name, cmp.Or(s.Node, "no node"), state))
	}
	if len(texts) == 0 {
		return ""
	}
	return "speakers: " + some(texts)
}

// logEvidence is what a speaker's log says of its responders at its end.
func logEvidence(l *metallb.SpeakerLog) Evidence {
	return Evidence{
		Observed: fmt.Sprintf("%s, %s; responders on: %s", counted(len(l.Sockets), "socket failed", "sockets failed"), counted(len(l.Scans), "scan failed", "scans failed"), some(l.Responders)),
		Source:   cmp.Or(l.Source, "log of the speaker on "+l.Node), At: l.Last,
	}
}
