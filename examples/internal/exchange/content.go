package exchange

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// Hash returns the hash of what matters in facts. It is the same when they were
// observed again and only that moved which always does: times, counters,
// connections, how fresh neighbour entries are, and the interfaces and routes that
// come and go with pods. These are published with the next change that matters.
func Hash(f strictarp.Facts) (string, error) {
	return hashOf(content(f))
}

func hashOf(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}

// content returns facts without what always moves. Anything new in facts counts
// until it is taken out here, so that no change is lost.
func content(f strictarp.Facts) strictarp.Facts {
	f.At = time.Time{}
	nodes := make(map[string]strictarp.NodeFacts, len(f.Nodes))
	for name, n := range f.Nodes {
		nodes[name] = nodeContent(n)
	}
	f.Nodes = nodes
	f.Vantages = slices.Clone(f.Vantages)
	for i, v := range f.Vantages {
		v.At, v.Capture = time.Time{}, nil
		v.Neighbours = neighbourContent(v.Neighbours)
		v.Claims = claimContent(v.Claims)
		v.Probes = slices.Clone(v.Probes)
		for j := range v.Probes {
			v.Probes[j] = probeContent(v.Probes[j])
		}
		f.Vantages[i] = v
	}
	f.Missing = slices.Clone(f.Missing)
	for i := range f.Missing {
		f.Missing[i].Err = "" // it may name a port or PID
	}
	return f
}

func nodeContent(n strictarp.NodeFacts) strictarp.NodeFacts {
	n.At, n.Counters = time.Time{}, nil
	n = withoutPods(n)
	n.Neighbours = neighbourContent(n.Neighbours)
	n.KubeProxyLog = nil
	n.KubeProxy = slices.Clone(n.KubeProxy)
	for i := range n.KubeProxy {
		n.KubeProxy[i].Started = moment(n.KubeProxy[i].Started)
	}
	if n.Running != nil {
		r := *n.Running
		r.At, r.Started = time.Time{}, moment(r.Started)
		if r.Config != nil {
			c := *r.Config
			c.At = time.Time{}
			r.Config = &c
		}
		n.Running = &r
	}
	if n.IPVS != nil {
		t := *n.IPVS
		t.Services = slices.Clone(t.Services)
		for i := range t.Services {
			s := &t.Services[i]
			s.RealServers = slices.Clone(s.RealServers)
			for j := range s.RealServers {
				s.RealServers[j].ActiveConns, s.RealServers[j].InactiveConns = 0, 0
			}
		}
		n.IPVS = &t
	}
	if n.Speaker != nil {
		s := *n.Speaker
		s.Log = nil
		if s.Metrics != nil {
			m := *s.Metrics
			m.At, m.Packets = time.Time{}, nil
			s.Metrics = &m
		}
		n.Speaker = &s
	}
	return n
}

// withoutPods leaves out what a CNI plugin makes for each pod: the host's end of a
// veth pair, which has no address, its settings, neighbours, and routes to single
// hosts by it.
// No request for a VIP arrives there. A node's own veth, as where the node is a
// container, has an address.
func withoutPods(n strictarp.NodeFacts) strictarp.NodeFacts {
	pods := map[string]bool{}
	for _, l := range n.Links {
		if l.Kind == "veth" && l.Addrs != nil && len(l.Addrs) == 0 {
			pods[l.Name] = true
		}
	}
	if len(pods) == 0 {
		return n
	}
	n.Links = slices.DeleteFunc(slices.Clone(n.Links), func(l strictarp.Link) bool { return pods[l.Name] })
	n.Routes = slices.DeleteFunc(slices.Clone(n.Routes), func(r strictarp.Route) bool { return pods[r.Link] && r.Dst.Bits() == 32 })
	n.Neighbours = slices.DeleteFunc(slices.Clone(n.Neighbours), func(e arpcheck.Neighbour) bool { return pods[e.Link] })
	if n.Sysctls != nil {
		s := *n.Sysctls
		s.Interfaces = maps.Clone(s.Interfaces)
		maps.DeleteFunc(s.Interfaces, func(name string, _ sysctl.Values) bool { return pods[name] })
		n.Sysctls = &s
	}
	return n
}

// moment rounds the start of a process, which is told relative to the boot: when
// the clock is set it moves (proc_pid_stat(5), btime of proc_stat(5)).
func moment(t time.Time) time.Time { return t.Round(time.Minute) }

// neighbourContent leaves of an entry's state whether it is used.
func neighbourContent(list []arpcheck.Neighbour) []arpcheck.Neighbour {
	list = slices.Clone(list)
	for i := range list {
		switch list[i].State {
		case arpcheck.NeighbourStale, arpcheck.NeighbourDelay, arpcheck.NeighbourProbe:
			list[i].State = arpcheck.NeighbourReachable
		case arpcheck.NeighbourIncomplete:
			list[i].State = arpcheck.NeighbourFailed
		}
	}
	slices.SortFunc(list, func(a, b arpcheck.Neighbour) int {
		return cmp.Or(a.Addr.Compare(b.Addr), strings.Compare(a.Link, b.Link))
	})
	return list
}

// probeContent leaves who answered and what can be concluded. Who was first is
// left out: it changes from probe to probe where several answer.
func probeContent(r arpcheck.Result) arpcheck.Result {
	r.Started, r.Ended, r.Rounds, r.Quality = time.Time{}, time.Time{}, 0, arpcheck.Quality{}
	responders := make([]arpcheck.Responder, 0, len(r.Responders))
	for _, p := range r.Responders {
		sources := slices.Clone(p.FrameSources)
		slices.SortFunc(sources, compareMAC)
		responders = append(responders, arpcheck.Responder{MAC: p.MAC, DoubleAnswer: p.DoubleAnswer, FrameSources: sources})
	}
	slices.SortFunc(responders, func(a, b arpcheck.Responder) int { return compareMAC(a.MAC, b.MAC) })
	r.Responders = responders
	claims := slices.Clone(r.Claims)
	for i := range claims {
		claims[i].Frames, claims[i].First, claims[i].Last = 0, time.Time{}, time.Time{}
	}
	slices.SortFunc(claims, func(a, b arpcheck.Claim) int {
		return cmp.Or(compareMAC(a.MAC, b.MAC), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	r.Claims = claims
	return r
}

func claimContent(list []arpcheck.AddrClaim) []arpcheck.AddrClaim {
	list = slices.Clone(list)
	for i := range list {
		// Whom it is addressed to varies with every question that is asked.
		list[i].Frames, list[i].First, list[i].Last = 0, time.Time{}, time.Time{}
		list[i].Target, list[i].To = netip.Addr{}, arpcheck.MAC{}
	}
	slices.SortFunc(list, func(a, b arpcheck.AddrClaim) int {
		return cmp.Or(a.Addr.Compare(b.Addr), compareMAC(a.MAC, b.MAC), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return slices.CompactFunc(list, func(a, b arpcheck.AddrClaim) bool { return a == b })
}

func compareMAC(a, b arpcheck.MAC) int { return slices.Compare(a[:], b[:]) }
