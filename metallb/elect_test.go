package metallb_test

import (
	"io/fs"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
)

// healthy is a small cluster in which node-b announces default/web. Tests edit it.
func healthy() metallb.State {
	s := metallb.State{
		Namespace: "metallb-system", Version: "0.16.2", Installed: true,
		Pools: []metallb.Pool{{
			Namespace: "metallb-system", Name: "main", AutoAssign: true, Labels: metallb.Labels{"kind": "lan"},
			Ranges: []metallb.Range{{From: netip.MustParseAddr("10.0.0.1"), To: netip.MustParseAddr("10.0.0.9"), Text: "10.0.0.1-10.0.0.9"}},
		}},
		L2Advertisements: []metallb.L2Advertisement{{Namespace: "metallb-system", Name: "lan", Pools: []string{"main"}}},
		Services: []metallb.Service{{
			Namespace: "default", Name: "web", Type: "LoadBalancer", Labels: metallb.Labels{"app": "web"},
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
			Endpoints: []metallb.Endpoint{{Node: "node-a", Ready: true, Serving: true}},
		}},
		SpeakerSet: &metallb.SpeakerSet{
			Namespace: "metallb-system", Name: "speaker", Desired: 3, Ready: 3,
			Options: metallb.Options{Memberlist: metallb.MemberlistOn},
		},
	}
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		s.Nodes = append(s.Nodes, metallb.Node{Name: name, Ready: metallb.ConditionTrue, Labels: metallb.Labels{"name": name}})
		s.Speakers = append(s.Speakers, metallb.Speaker{Namespace: "metallb-system", Name: "speaker-" + name, Node: name, Ready: true, Running: true, HostNetwork: true})
	}
	return s
}

func named(names ...string) []metallb.Selector {
	return []metallb.Selector{{Expressions: []metallb.Requirement{{Key: "name", Operator: metallb.OperatorIn, Values: names}}}}
}

func ranking(el metallb.Election) []string {
	var names []string
	for _, c := range el.Candidates {
		if c.Rank > 0 {
			names = append(names, c.Node)
		}
	}
	return names
}

// TestRanking: the first two orders are those of MetalLB's own TestSortL2Candidates
// (speaker/layer2_controller_test.go, 0.16.2).
func TestRanking(t *testing.T) {
	t.Parallel()
	second := netip.MustParseAddr("10.0.0.2")
	prefer := func(s *metallb.State, weights map[string]int64) {
		for name, weight := range weights {
			s.L2Advertisements[0].Preferred = append(s.L2Advertisements[0].Preferred, metallb.PreferredNode{Weight: weight, Nodes: named(name)[0]})
		}
	}
	for _, c := range []struct {
		name string
		edit func(*metallb.State)
		want []string
		by   metallb.Algorithm
	}{
		{"by the address", func(*metallb.State) {}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"by another address", func(s *metallb.State) { s.Services[0].Addresses[0] = second }, []string{"node-b", "node-c", "node-a"}, metallb.AlgorithmWeightedAddressHash},
		{"by the address before weights came", func(s *metallb.State) { s.Version = "0.16.1" }, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmAddressHash},
		{"the first of two addresses counts", func(s *metallb.State) {
			s.Services[0].Addresses = []netip.Addr{second, netip.MustParseAddr("10.0.0.1")}
		}, []string{"node-b", "node-c", "node-a"}, metallb.AlgorithmWeightedAddressHash},
		{"by weight", func(s *metallb.State) { prefer(s, map[string]int64{"node-c": 10, "node-a": 1}) }, []string{"node-c", "node-a", "node-b"}, metallb.AlgorithmWeightedAddressHash},
		{"weights of two advertisements add up", func(s *metallb.State) {
			s.L2Advertisements = append(s.L2Advertisements, s.L2Advertisements[0])
			prefer(s, map[string]int64{"node-c": 10})
			s.L2Advertisements[1].Name = "other"
			s.L2Advertisements[1].Preferred = []metallb.PreferredNode{{Weight: 6, Nodes: named("node-a")[0]}, {Weight: 6, Nodes: named("node-a", "node-b")[0]}}
		}, []string{"node-a", "node-c", "node-b"}, metallb.AlgorithmWeightedAddressHash},
		{"no weights before 0.16.2", func(s *metallb.State) {
			s.Version = "0.16.1"
			prefer(s, map[string]int64{"node-c": 10})
		}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmAddressHash},
		{"an unknown version counts as new", func(s *metallb.State) {
			s.Version = ""
			prefer(s, map[string]int64{"node-c": 10})
		}, []string{"node-c", "node-b", "node-a"}, metallb.AlgorithmWeightedAddressHash},
		// SHA-256 of node-b#default/web begins with ac77, of node-c#default/web with cad6.
		{"by the name before 0.11, among nodes with an endpoint", func(s *metallb.State) {
			s.Version = "0.10.3"
			s.Services[0].Endpoints = []metallb.Endpoint{{Node: "node-c", Ready: true}, {Node: "node-b", Ready: true}, {Node: "node-a", Serving: true}}
		}, []string{"node-b", "node-c"}, metallb.AlgorithmNameHash},
		{"an endpoint on what is no node, without memberlist", func(s *metallb.State) {
			s.Version, s.SpeakerSet.Options.Memberlist = "0.9.6", metallb.MemberlistOff
			s.Services[0].Endpoints[0].Node = "gone"
		}, []string{"gone"}, metallb.AlgorithmNameHash},
		{"Local, with a serving endpoint", func(s *metallb.State) {
			s.Services[0].Policy = metallb.PolicyLocal
			s.Services[0].Endpoints = []metallb.Endpoint{{Node: "node-c", Serving: true, Terminating: true}, {Node: "node-a", Ready: true, Serving: true}, {Node: "node-b"}}
		}, []string{"node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"Local, with a ready endpoint before 0.14", func(s *metallb.State) {
			s.Version = "0.13.12"
			s.Services[0].Policy = metallb.PolicyLocal
			s.Services[0].Endpoints = []metallb.Endpoint{{Node: "node-c", Serving: true, Terminating: true}, {Node: "node-a", Ready: true, Serving: true}}
		}, []string{"node-a"}, metallb.AlgorithmAddressHash},
		{"the exclude label counts since 0.14", func(s *metallb.State) {
			s.Version = "0.13.12"
			s.Nodes[1].Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "true"
		}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmAddressHash},
		{"the exclude label can be ignored", func(s *metallb.State) {
			s.SpeakerSet.Options.IgnoreExcludeLB = true
			s.Nodes[1].Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "true"
		}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"a cordoned node counts", func(s *metallb.State) { s.Nodes[1].Unschedulable = true }, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"a node that is not ready counts while its speaker is", func(s *metallb.State) { s.Nodes[1].Ready = metallb.ConditionFalse }, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"a selected pool", func(s *metallb.State) {
			s.L2Advertisements[0].Pools = nil
			s.L2Advertisements[0].PoolSelectors = []metallb.Selector{{Match: map[string]string{"kind": "lan"}}}
		}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmWeightedAddressHash},
		{"service selectors count since 0.16", func(s *metallb.State) {
			s.Version = "0.15.3"
			s.L2Advertisements[0].ServiceSelectors = []metallb.Selector{{Match: map[string]string{"app": "other"}}}
		}, []string{"node-b", "node-a", "node-c"}, metallb.AlgorithmAddressHash},
		// SHA-256 of node-a#10.0.0.200 begins with 48, of node-c# with 81, of node-b# with 88.
		{"overlapping pools", func(s *metallb.State) {
			wide := s.Pools[0]
			wide.Name, wide.Ranges = "wide", []metallb.Range{{From: netip.MustParseAddr("10.0.0.0"), To: netip.MustParseAddr("10.0.0.255")}}
			s.Pools = append([]metallb.Pool{wide}, s.Pools[0])
			s.Services[0].Addresses[0] = netip.MustParseAddr("10.0.0.200")
			s.L2Advertisements[0].Pools = []string{"wide"}
		}, []string{"node-a", "node-c", "node-b"}, metallb.AlgorithmWeightedAddressHash},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := healthy()
			c.edit(&s)
			el := electNamed(t, s, "default/web")
			require.Equal(t, c.want, ranking(el))
			assert.Equal(t, c.want[0], el.Announcer)
			assert.Equal(t, c.by, el.Algorithm)
			assert.Equal(t, c.want[0] == "gone", el.Silent())
		})
	}
}

func TestWhyEveryNode(t *testing.T) {
	t.Parallel()
	s := healthy()
	s.Version = "0.14.9"
	s.Services[0].Policy = metallb.PolicyLocal
	s.L2Advertisements[0].NodeSelectors = named("node-a", "node-b", "node-d", "node-e", "node-f")
	for _, name := range []string{"node-d", "node-e", "node-f"} {
		s.Nodes = append(s.Nodes, metallb.Node{Name: name, Labels: metallb.Labels{"name": name}})
		s.Services[0].Endpoints = append(s.Services[0].Endpoints, metallb.Endpoint{Node: name, Ready: true})
	}
	s.Nodes[3].NetworkUnavailable = metallb.ConditionTrue
	s.Nodes[4].Unschedulable = true
	s.Nodes[5].Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	s.Speakers[2].Node = "node-d"
	s.Speakers = append(s.Speakers, metallb.Speaker{Name: "x", Node: "node-e", Ready: true}, metallb.Speaker{Name: "y", Node: "ghost", Ready: true})

	el := electNamed(t, s, "default/web")
	assert.Equal(t, "node-a", el.Announcer)
	for node, want := range map[string][]metallb.Gate{
		"node-a": nil,
		"node-b": {metallb.GateEndpoint},
		"node-c": {metallb.GateAdvertisement, metallb.GateSpeaker, metallb.GateEndpoint},
		"node-d": {metallb.GateNetwork},
		"node-e": {metallb.GateUnschedulable},
		"node-f": {metallb.GateSpeaker, metallb.GateExcluded},
		"ghost":  {metallb.GateAdvertisement, metallb.GateEndpoint},
	} {
		c, ok := el.Candidate(node)
		require.True(t, ok, node)
		assert.Equal(t, want, c.Out, node)
		assert.NotEmpty(t, c.Why, node)
	}
	_, ok := el.Candidate("nobody")
	assert.False(t, ok)
}

// TestNotMetalLBs: such Services have no reasons.
func TestNotMetalLBs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*metallb.State)
		want string
	}{
		"no MetalLB":    {func(s *metallb.State) { s.Installed = false }, "MetalLB was not found"},
		"external IPs":  {func(s *metallb.State) { s.Services[0].Type = "ClusterIP" }, "its type is ClusterIP, MetalLB takes LoadBalancer"},
		"another class": {func(s *metallb.State) { s.Services[0].Class = "kube-vip.io/kube-vip-class" }, "its loadBalancerClass is kube-vip.io/kube-vip-class, MetalLB takes those without one"},
		"no class":      {func(s *metallb.State) { s.SpeakerSet.Options.Class = "metallb" }, "it has no loadBalancerClass, MetalLB takes metallb"},
	} {
		s := healthy()
		c.edit(&s)
		el := electNamed(t, s, "default/web")
		assert.Equal(t, c.want, el.NotMine, name)
		assert.False(t, el.Mine || el.Silent(), name)
	}
	s := healthy()
	s.Services[0].Class, s.SpeakerSet.Options.Class = "metallb", "metallb"
	assert.True(t, electNamed(t, s, "default/web").Mine)
}

// TestUnknown: what was not observed is never a reason for silence.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*metallb.State){
		"endpoints":        func(s *metallb.State) { s.Services[0].Endpoints = nil },
		"l2Advertisements": func(s *metallb.State) { s.L2Advertisements = nil },
		"nodes":            func(s *metallb.State) { s.Nodes = nil },
		"pools":            func(s *metallb.State) { s.Pools = nil },
		"speakers":         func(s *metallb.State) { s.Speakers = nil },
		"version":          func(s *metallb.State) { s.Version = "" },
	} {
		s := healthy()
		edit(&s)
		el := electNamed(t, s, "default/web")
		assert.Equal(t, []string{name}, el.Unknown)
		assert.Empty(t, el.Reasons, name)
		assert.Equal(t, "node-b", el.Announcer, name)
	}
	// Fewer speakers were dumped than the DaemonSet counts.
	s := healthy()
	s.Speakers = s.Speakers[:1]
	el := electNamed(t, s, "default/web")
	assert.Equal(t, []string{"speakers"}, el.Unknown)
	assert.Equal(t, "node-b", el.Announcer)
}

func TestElectByNameAndAddress(t *testing.T) {
	t.Parallel()
	s := healthy()
	el, err := s.Elect("default", "web")
	require.NoError(t, err)
	assert.Equal(t, "node-b", el.Announcer)
	_, err = s.Elect("default", "nothing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "default/nothing")

	s.Services = append(s.Services, s.Services[0])
	s.Services[1].Name = "shared"
	assert.Len(t, s.ElectAddress(netip.MustParseAddr("::ffff:10.0.0.1")), 2)
	assert.Empty(t, s.ElectAddress(netip.MustParseAddr("10.0.0.2")))
}
