package metallb

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Elect elects for one of the State's Services and says for every node why it is
// in or out, and why nobody answers if nobody does.
func (e *Elector) Elect(svc *Service) Election {
	el := e.Outcome(svc)
	if !el.Mine {
		return el
	}
	r := e.round(svc)
	el.Candidates = e.candidates(&r, el.Announcer == "")
	for i := range el.Candidates {
		el.Candidates[i].Why = printable(el.Candidates[i].Why)
	}
	return el
}

// Outcome is Elect without the Candidates, which take most of its time: for
// thousands of Services of which only the result and its Reasons matter.
func (e *Elector) Outcome(svc *Service) Election {
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
	if el.Announcer = e.Announcer(svc); el.Announcer == "" {
		el.Reasons = e.silence(&r)
	} else {
		el.Interfaces = e.interfacesOf(el.Announcer, &r)
		el.Reasons = append(el.Reasons, e.cannotAnswer(el.Announcer)...)
		el.Reasons = append(el.Reasons, e.disagreements(svc, el.Announcer)...)
	}
	el.Reasons = append(el.Reasons, e.notes(&r, el.Reasons)...)
	for i := range el.Reasons {
		el.Reasons[i].Message = printable(el.Reasons[i].Message)
	}
	return el
}

// printable makes a sentence that holds text of the cluster safe for terminals.
func printable(text string) string {
	const most = 2000 // bytes: a status message can be of any length
	if len(text) > most {
		text = text[:most] + " ..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
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

// runner is a node that passes all gates.
type runner struct {
	node   int
	weight int64
	hash   [sha256.Size]byte
}

// candidates ranks the nodes that pass all gates. If the Service was stopped
// before the nodes were asked nobody is in.
func (e *Elector) candidates(r *round, stopped bool) []Candidate {
	var in []runner
	var out []Candidate
	var suffix []byte
	if !stopped {
		suffix = e.suffix(nil, r.svc)
	}
	for i, c := range e.nodes {
		closed := e.closed(i, r)
		if closed == 0 && !stopped {
			in = append(in, runner{i, weightOf(i, r.ads), e.hash(i, suffix)})
			continue
		}
		why := "it would be a candidate, but nobody announces the Service"
		if closed != 0 {
			why = e.whyOut(closed.list(), c, r)
		}
		out = append(out, Candidate{Node: c.name, Out: closed.list(), Why: why})
	}
	slices.SortFunc(in, func(a, b runner) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), bytes.Compare(a.hash[:], b.hash[:]))
	})
	ranked := make([]Candidate, 0, len(e.nodes))
	for rank, i := range in {
		ranked = append(ranked, Candidate{Node: e.nodes[i.node].name, Rank: rank + 1, Weight: i.weight, Why: e.whyIn(rank, in)})
	}
	return append(ranked, out...)
}

func (e *Elector) whyIn(rank int, in []runner) string {
	of := "the address"
	if e.rules.algorithm == AlgorithmNameHash {
		of = "the Service's name"
	}
	weight := in[rank].weight
	switch {
	case len(in) == 1:
		return "it is the only candidate"
	case rank == 0 && weight > in[1].weight:
		return fmt.Sprintf("it has the highest weight, %d, of %d candidates", weight, len(in))
	case rank == 0:
		return fmt.Sprintf("its hash with %s is the lowest of %d candidates", of, len(in))
	case weight < in[0].weight:
		return fmt.Sprintf("it is candidate %d of %d: its weight %d is below the announcer's %d", rank+1, len(in), weight, in[0].weight)
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
