package metallb

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Elect elects for one of the State's Services and says for every node why it is
// in or out, and why nobody answers if nobody does.
func (e *Elector) Elect(svc *Service) Election {
	el := Election{Namespace: svc.Namespace, Service: svc.Name, Addresses: slices.Clone(svc.Addresses)}
	if el.NotMine = e.notMine(svc); el.NotMine != "" {
		return el
	}
	r := e.round(svc)
	el.Mine, el.Algorithm, el.Unknown = true, e.rules.algorithm, e.unknown(svc)
	if r.pool != nil {
		el.Pool = r.pool.pool.Name
	}
	for _, ad := range r.ads {
		el.Advertisements = append(el.Advertisements, ad.ad.Name)
	}
	el.Reasons = e.silence(&r)
	stopped := el.Silent()
	el.Candidates = e.candidates(&r, stopped)
	if !stopped && len(el.Candidates) > 0 && el.Candidates[0].Rank == 1 {
		el.Announcer = el.Candidates[0].Node
		el.Interfaces = e.interfacesOf(el.Announcer, &r)
		el.Reasons = append(el.Reasons, e.cannotAnswer(el.Announcer)...)
		el.Reasons = append(el.Reasons, e.disagreements(svc, el.Announcer)...)
	}
	el.Reasons = append(el.Reasons, e.notes(&r, el.Reasons)...)
	return el
}

// unknown lists what was not observed and bears on the Service.
func (e *Elector) unknown(svc *Service) []string {
	var parts []string
	for _, p := range []struct {
		name    string
		missing bool
	}{
		{"endpoints", svc.Endpoints == nil},
		{"l2Advertisements", e.state.L2Advertisements == nil},
		{"nodes", e.state.Nodes == nil},
		{"pools", e.state.Pools == nil},
		{"speakers", e.memberlist != MemberlistOff && !e.speakersKnown()},
		{"version", e.state.Version == ""},
	} {
		if p.missing {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// candidates ranks the nodes that pass all gates. If the Service was stopped
// before the nodes were asked nobody is in.
func (e *Elector) candidates(r *round, stopped bool) []Candidate {
	var in []int
	var out []Candidate
	for i, c := range e.nodes {
		closed := e.closed(i, r)
		if closed == 0 && !stopped {
			in = append(in, i)
			continue
		}
		why := "it would be a candidate, but nobody announces the Service"
		if closed != 0 {
			why = e.whyOut(closed.list(), c, r)
		}
		out = append(out, Candidate{Node: c.name, Out: closed.list(), Why: why})
	}
	slices.SortFunc(in, func(a, b int) int {
		ha, hb := e.hash(a, r.svc), e.hash(b, r.svc)
		return cmp.Or(cmp.Compare(weightOf(b, r.ads), weightOf(a, r.ads)), bytes.Compare(ha[:], hb[:]))
	})
	ranked := make([]Candidate, 0, len(e.nodes))
	for rank, i := range in {
		ranked = append(ranked, Candidate{
			Node: e.nodes[i].name, Rank: rank + 1, Weight: weightOf(i, r.ads), Why: e.whyIn(rank, i, in, r),
		})
	}
	return append(ranked, out...)
}

func (e *Elector) whyIn(rank, i int, in []int, r *round) string {
	of := "the address"
	if e.rules.algorithm == AlgorithmNameHash {
		of = "the Service's name"
	}
	if rank == 0 {
		switch {
		case len(in) == 1:
			return "it is the only candidate"
		case weightOf(i, r.ads) > weightOf(in[1], r.ads):
			return fmt.Sprintf("it has the highest weight, %d, of %d candidates", weightOf(i, r.ads), len(in))
		}
		return fmt.Sprintf("its hash with %s is the lowest of %d candidates", of, len(in))
	}
	if weightOf(i, r.ads) < weightOf(in[0], r.ads) {
		return fmt.Sprintf("it is candidate %d of %d: its weight %d is below the announcer's %d", rank+1, len(in), weightOf(i, r.ads), weightOf(in[0], r.ads))
	}
	return fmt.Sprintf("it is candidate %d of %d by its hash with %s", rank+1, len(in), of)
}

func (e *Elector) whyOut(closed []Gate, c candidate, r *round) string {
	var parts []string
	for _, g := range closed {
		parts = append(parts, e.gateText(g, c, r))
	}
	return strings.Join(parts, "; and ")
}

func (e *Elector) gateText(g Gate, c candidate, r *round) string {
	switch g {
	case GateAdvertisement:
		switch {
		case r.pool == nil:
			return "no pool holds the address, so no advertisement is for it"
		case len(r.ads) == 0:
			return "no advertisement covers the Service"
		case c.node == nil:
			return "there is no Node object for it, so no advertisement selects it"
		}
		return "no advertisement of the Service selects it"
	case GateSpeaker:
		return e.speakerText(c)
	case GateMemberlist:
		return "without memberlist MetalLB " + e.state.Version + " has no candidates"
	case GateUnschedulable:
		return "it is cordoned, which MetalLB 0.14.9 takes for not available"
	case GateNetwork:
		return "its condition NetworkUnavailable is True"
	case GateExcluded:
		return "it has the label " + excludeLabel + ", whose value does not matter"
	}
	return "it has no serving endpoint of the Service"
}

// speakerText says why a node has no ready speaker.
func (e *Elector) speakerText(c candidate) string {
	sp := c.speaker
	switch {
	case sp == nil:
		return "no speaker runs on it" + e.unscheduled(c)
	case sp.Waiting != "":
		text := fmt.Sprintf("its speaker %s waits: %s", sp.Name, sp.Waiting)
		if sp.Message != "" {
			text += " (" + sp.Message + ")"
		}
		return text
	case sp.Running:
		return fmt.Sprintf("its speaker %s runs but is not ready", sp.Name)
	}
	return fmt.Sprintf("its speaker %s is not ready (%s)", sp.Name, cmp.Or(sp.LastExit, sp.Phase, "no status"))
}

// unscheduled says why the DaemonSet makes no pod for a node.
func (e *Elector) unscheduled(c candidate) string {
	set := e.state.SpeakerSet
	if set == nil || c.node == nil {
		return ""
	}
	for key, value := range sorted(set.NodeSelector) {
		if got, ok := c.node.Labels[key]; !ok || got != value {
			return fmt.Sprintf(": the DaemonSet's nodeSelector wants the label %s=%s", key, value)
		}
	}
	for _, taint := range c.node.Taints {
		if taint.Effect != "PreferNoSchedule" && !slices.ContainsFunc(set.Tolerations, func(t Toleration) bool { return t.tolerates(taint) }) {
			return fmt.Sprintf(": the DaemonSet does not tolerate its taint %s:%s", taint.Key, taint.Effect)
		}
	}
	return ""
}

// tolerates follows ToleratesTaint of k8s.io/api/core/v1. The taints that the
// DaemonSet controller tolerates for its pods are taken for tolerated.
func (t Toleration) tolerates(taint Taint) bool {
	if slices.Contains([]string{
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
		"node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable", "node.kubernetes.io/network-unavailable",
	}, taint.Key) {
		return true
	}
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == "Exists" || t.Key != "" && t.Value == taint.Value
}

// interfacesOf follows ipAdvertisementFor: the interfaces of all advertisements
// that select the node, and all interfaces if one of them names none.
func (e *Elector) interfacesOf(node string, r *round) []string {
	var names []string
	for _, ad := range r.ads {
		if !ad.nodes[e.index[node]] {
			continue
		}
		if len(ad.ad.Interfaces) == 0 || !e.rules.interfaces {
			return nil
		}
		names = append(names, ad.ad.Interfaces...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
