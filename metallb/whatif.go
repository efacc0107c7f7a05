package metallb

import "slices"

// Change is something that could happen to nodes, by their names.
type Change struct {
	// Leave: the nodes are deleted, with all that runs on them.
	Leave []string
	// Drain: the nodes are cordoned and their endpoints gone. The speakers stay,
	// as pods of a DaemonSet do, so that such a node goes on announcing Services of
	// the Cluster policy. Where evicted pods start again is not foreseen.
	Drain []string
	// LoseEndpoints: no endpoint on the nodes serves any more.
	LoseEndpoints []string
}

// After returns the state as it would be after a change, for another election. It
// does not change s. Statuses and events stay as they are: they are reports of
// the past.
func (s State) After(change Change) State {
	gone := func(node string) bool { return slices.Contains(change.Leave, node) }
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return gone(n.Name) })
	s.Speakers = slices.DeleteFunc(slices.Clone(s.Speakers), func(sp Speaker) bool { return gone(sp.Node) })
	for i := range s.Nodes {
		s.Nodes[i].Unschedulable = s.Nodes[i].Unschedulable || slices.Contains(change.Drain, s.Nodes[i].Name)
	}
	if s.SpeakerSet != nil {
		set := *s.SpeakerSet
		set.Desired, set.Ready = max(0, set.Desired-int32(len(change.Leave))), max(0, set.Ready-int32(len(change.Leave)))
		s.SpeakerSet = &set
	}
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		svc := &s.Services[i]
		svc.Endpoints = slices.DeleteFunc(slices.Clone(svc.Endpoints), func(ep Endpoint) bool {
			return gone(ep.Node) || slices.Contains(change.Drain, ep.Node) || slices.Contains(change.LoseEndpoints, ep.Node)
		})
	}
	return s
}
