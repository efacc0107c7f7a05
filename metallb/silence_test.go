package metallb_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
)

const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

func TestSilence(t *testing.T) {
	t.Parallel()
	local := func(s *metallb.State) { s.Services[0].Policy = metallb.PolicyLocal }
	excludeAll := func(s *metallb.State) {
		for i := range s.Nodes {
			s.Nodes[i].Labels[excludeLabel] = "false"
		}
	}
	for _, c := range []struct {
		name          string
		edit          func(*metallb.State)
		cause         metallb.Rule
		also          []metallb.Rule
		object, field string
		node          string
		message       string
	}{
		{
			name: "no address", edit: func(s *metallb.State) { s.Services[0].Addresses = nil },
			cause: metallb.RuleServiceWithoutAddress, object: "Service default/web", field: "status.loadBalancer.ingress",
			message: "the Service has no address: the events on it say what MetalLB's controller tried",
		},
		{
			name: "no address, no pool", edit: func(s *metallb.State) { s.Services[0].Addresses, s.Pools = nil, []metallb.Pool{} },
			cause: metallb.RuleServiceWithoutAddress, object: "Service default/web", field: "status.loadBalancer.ingress",
			message: "the Service has no address: MetalLB has no pool",
		},
		{
			name: "no address, an impossible request", edit: func(s *metallb.State) {
				s.Services[0].Addresses, s.Services[0].Requested = nil, []netip.Addr{netip.MustParseAddr("10.9.9.9")}
			},
			cause: metallb.RuleServiceWithoutAddress, object: "Service default/web", field: "status.loadBalancer.ingress",
			message: "the Service has no address: it asks for 10.9.9.9, which is in no pool",
		},
		{
			name: "a host name for an address", edit: func(s *metallb.State) { s.Services[0].BadIngress = []string{"lb.example"} },
			cause: metallb.RuleServiceWithoutAddress, object: "Service default/web", field: "status.loadBalancer.ingress",
			message: `the Service's status holds "lb.example", which is no address: MetalLB withdraws it`,
		},
		{
			name: "two addresses before 0.12", edit: func(s *metallb.State) {
				s.Version = "0.11.0"
				s.Services[0].Addresses = append(s.Services[0].Addresses, netip.MustParseAddr("10.0.0.2"))
			},
			cause: metallb.RuleServiceWithoutAddress, object: "Service default/web", field: "status.loadBalancer.ingress",
			message: "the Service has 2 addresses; MetalLB 0.11.0 announces only Services with one",
		},
		{
			name: "no pool", edit: func(s *metallb.State) { s.Services[0].Addresses[0] = netip.MustParseAddr("10.0.0.99") },
			cause: metallb.RuleNoPoolForAddress, object: "IPAddressPool in metallb-system", field: "spec.addresses",
			message: "no pool holds 10.0.0.99",
		},
		{
			name: "no pool holds both", edit: func(s *metallb.State) {
				s.Services[0].Addresses = append(s.Services[0].Addresses, netip.MustParseAddr("fd00::1"))
				s.Pools[0].Invalid = []string{"fd00::/999"}
			},
			cause: metallb.RuleNoPoolForAddress, object: "IPAddressPool in metallb-system", field: "spec.addresses",
			message: "no pool holds all of 10.0.0.1, fd00::1; the pool main has addresses that MetalLB refuses: fd00::/999",
		},
		{
			name: "no pool in the ConfigMap", edit: func(s *metallb.State) { s.Version, s.Pools = "0.12.1", []metallb.Pool{} },
			cause: metallb.RuleNoPoolForAddress, object: "ConfigMap metallb-system/config", field: "data.config",
			message: "no pool holds 10.0.0.1",
		},
		{
			name: "no endpoint", edit: func(s *metallb.State) { s.Services[0].Endpoints = []metallb.Endpoint{} },
			cause: metallb.RuleNoReadyEndpoint, object: "Service default/web", field: "spec.selector",
			message: "the Service has no endpoint: its selector matches no pod",
		},
		{
			name: "no serving endpoint, and then no node", edit: func(s *metallb.State) {
				s.Services[0].Endpoints[0] = metallb.Endpoint{Node: "node-a"}
				local(s)
				excludeAll(s)
			},
			cause: metallb.RuleNoReadyEndpoint, also: []metallb.Rule{metallb.RuleNodeExcluded},
			object: "Service default/web", field: "spec.selector", message: "none of the Service's 1 endpoints serves",
		},
		{
			name: "no advertisement", edit: func(s *metallb.State) { s.L2Advertisements = []metallb.L2Advertisement{} },
			cause: metallb.RuleNoL2Advertisement, object: "L2Advertisement in metallb-system", field: "spec.ipAddressPools",
			message: "there is no L2Advertisement, so the pool main is not announced by ARP",
		},
		{
			name: "advertisement of another pool", edit: func(s *metallb.State) { s.L2Advertisements[0].Pools = []string{"other"} },
			cause: metallb.RuleNoL2Advertisement, object: "L2Advertisement in metallb-system", field: "spec.ipAddressPools",
			message: "none of the 1 L2Advertisements names or selects the pool main",
		},
		{
			name: "service selectors that match no label", edit: func(s *metallb.State) {
				s.L2Advertisements[0].ServiceSelectors = []metallb.Selector{{Match: map[string]string{"app": "other"}}}
			},
			cause: metallb.RuleNoL2Advertisement, object: "L2Advertisement metallb-system/lan", field: "spec.serviceSelectors",
			message: "no L2Advertisement of the pool main has a serviceSelector that matches the Service's labels",
		},
		{
			name: "shared address and service selectors", edit: func(s *metallb.State) {
				s.Services[0].Annotations = metallb.Labels{"metallb.universe.tf/allow-shared-ip": ""}
				s.L2Advertisements[0].ServiceSelectors = []metallb.Selector{{}}
			},
			cause: metallb.RuleSharedIPConflict, object: "Service default/web", field: "metadata.annotations[metallb.io/allow-shared-ip]",
			message: "the Service may share its address and an L2Advertisement for it has serviceSelectors: since 0.16.2 MetalLB announces neither",
		},
		{
			name: "node selectors that match nothing", edit: func(s *metallb.State) { s.L2Advertisements[0].NodeSelectors = named("node-z") },
			cause: metallb.RuleAdvertisementSelectsNone, object: "L2Advertisement metallb-system/lan", field: "spec.nodeSelectors",
			message: "the nodeSelectors of L2Advertisement metallb-system/lan match no node",
		},
		{
			name: "no local endpoint on a selected node, whose speaker is not to blame", edit: func(s *metallb.State) {
				local(s)
				s.L2Advertisements[0].NodeSelectors = named("node-b")
			},
			cause: metallb.RuleNoLocalEndpoint, object: "Service default/web", field: "spec.externalTrafficPolicy", node: "node-b",
			message: "node-b has no serving endpoint of the Service, which are on node-a; externalTrafficPolicy Local wants one on the announcing node",
		},
		{
			name: "the only node with an endpoint is excluded", edit: func(s *metallb.State) {
				local(s)
				s.Nodes[0].Labels[excludeLabel] = "false"
			},
			cause: metallb.RuleNodeExcluded, object: "Node node-a", field: "metadata.labels[" + excludeLabel + "]", node: "node-a",
			message: "node-a has the label " + excludeLabel + ": its value does not matter, remove it",
		},
		{
			name: "all nodes are excluded", edit: excludeAll,
			cause: metallb.RuleNodeExcluded, object: "Node node-a", field: "metadata.labels[" + excludeLabel + "]",
			message: "node-a, node-b, node-c have the label " + excludeLabel + ": its value does not matter, remove it",
		},
		{
			name: "cordoned under 0.14.9", edit: func(s *metallb.State) {
				s.Version = "0.14.9"
				local(s)
				s.Nodes[0].Unschedulable = true
			},
			cause: metallb.RuleNodeExcluded, object: "Node node-a", field: "spec.unschedulable", node: "node-a",
			message: "node-a has been cordoned, which MetalLB 0.14.9 takes for not available: uncordon or use another version",
		},
		{
			name: "no network, and excluded", edit: func(s *metallb.State) {
				local(s)
				s.Nodes[0].NetworkUnavailable, s.Nodes[0].Labels[excludeLabel] = metallb.ConditionTrue, ""
			},
			cause: metallb.RuleNodeNetworkUnavailable, also: []metallb.Rule{metallb.RuleNodeExcluded},
			object: "Node node-a", field: "status.conditions[NetworkUnavailable]", node: "node-a",
			message: "node-a has the condition NetworkUnavailable",
		},
		{
			name: "a speaker that waits", edit: func(s *metallb.State) {
				local(s)
				s.Speakers[0].Ready, s.Speakers[0].Running = false, false
				s.Speakers[0].Waiting, s.Speakers[0].Message = "CreateContainerConfigError", `secret "memberlist" not found`
				s.SpeakerSet.Ready = 2
			},
			cause: metallb.RuleNoSpeakerOnNode, object: "DaemonSet metallb-system/speaker", node: "node-a",
			message: `node-a has no ready speaker; node-a: its speaker speaker-node-a waits: CreateContainerConfigError (secret "memberlist" not found)`,
		},
		{
			name: "a taint that the DaemonSet does not tolerate", edit: func(s *metallb.State) {
				local(s)
				s.Speakers, s.SpeakerSet.Ready = s.Speakers[1:], 2
				s.SpeakerSet.Tolerations = []metallb.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists", Effect: "NoSchedule"}}
				s.Nodes[0].Taints = []metallb.Taint{
					{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}, {Key: "soft", Effect: "PreferNoSchedule"},
					{Key: "dedicated", Value: "db", Effect: "NoSchedule"},
				}
			},
			cause: metallb.RuleNoSpeakerOnNode, object: "DaemonSet metallb-system/speaker", node: "node-a",
			message: "node-a has no ready speaker; node-a: no speaker runs on it: the DaemonSet does not tolerate its taint dedicated:NoSchedule",
		},
		{
			name: "a nodeSelector of the DaemonSet", edit: func(s *metallb.State) {
				local(s)
				s.Speakers, s.SpeakerSet.Ready, s.SpeakerSet.NodeSelector = s.Speakers[1:], 2, metallb.Labels{"metallb": "yes"}
			},
			cause: metallb.RuleNoSpeakerOnNode, object: "DaemonSet metallb-system/speaker", node: "node-a",
			message: "node-a has no ready speaker; node-a: no speaker runs on it: the DaemonSet's nodeSelector wants the label metallb=yes",
		},
		{
			name: "no memberlist in 0.14", edit: func(s *metallb.State) {
				s.Version, s.SpeakerSet.Options.Memberlist = "0.14.8", metallb.MemberlistOff
			},
			cause: metallb.RuleMemberlistDisabled, object: "DaemonSet metallb-system/speaker", field: "spec.template.spec.containers[].env",
			message: "memberlist is off, and without it MetalLB 0.14.8 elects nobody here: set METALLB_ML_BIND_ADDR and METALLB_ML_LABELS",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := healthy()
			c.edit(&s)
			el := electNamed(t, s, "default/web")
			assert.Empty(t, el.Announcer)
			assert.True(t, el.Silent())
			require.Equal(t, []metallb.Rule{c.cause}, rulesOf(el, metallb.RoleCause))
			assert.Equal(t, c.also, rulesOf(el, metallb.RoleAlso))
			assert.Equal(t, metallb.RoleCause, el.Reasons[0].Role, "the cause comes first")
			assert.Equal(t, c.object, el.Reasons[0].Object.String())
			assert.Equal(t, c.field, el.Reasons[0].Field)
			assert.Equal(t, c.node, el.Reasons[0].Node)
			assert.Equal(t, c.message, el.Reasons[0].Message)
		})
	}
}

// TestElectedButSilent: MetalLB elects a node that does not answer.
func TestElectedButSilent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		edit  func(*metallb.State)
		cause metallb.Rule
	}{
		{"no speaker and no memberlist", func(s *metallb.State) {
			s.SpeakerSet.Options.Memberlist, s.SpeakerSet.Ready = metallb.MemberlistOff, 2
			s.Speakers[1].Ready = false
		}, metallb.RuleNoSpeakerOnNode},
		{"no raw socket", func(s *metallb.State) { s.Speakers[1].RawSocket = metallb.ConditionFalse }, metallb.RuleSpeakerCannotAnswer},
		{"not on the host's network", func(s *metallb.State) {
			s.Speakers[1].HostNetwork, s.Speakers[1].Options.Memberlist = false, metallb.MemberlistOn
		}, metallb.RuleSpeakerCannotAnswer},
	} {
		s := healthy()
		c.edit(&s)
		el := electNamed(t, s, "default/web")
		assert.Equal(t, "node-b", el.Announcer, c.name)
		assert.Equal(t, []metallb.Rule{c.cause}, rulesOf(el, metallb.RoleCause), c.name)
		assert.Equal(t, "node-b", el.Reasons[0].Node, c.name)
	}
}

func TestMemberlistOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version   string
		policy    metallb.Policy
		announcer string
	}{
		{"0.16.2", metallb.PolicyCluster, "node-b"},
		{"0.15.0", metallb.PolicyLocal, "node-a"},
		{"0.14.9", metallb.PolicyLocal, ""},
		{"0.12.1", metallb.PolicyLocal, "node-a"},
		{"0.12.1", metallb.PolicyCluster, ""},
		{"0.10.3", metallb.PolicyCluster, "node-a"},
	} {
		s := healthy()
		s.Version, s.Services[0].Policy, s.SpeakerSet.Options.Memberlist = c.version, c.policy, metallb.MemberlistOff
		el := electNamed(t, s, "default/web")
		assert.Equal(t, c.announcer, el.Announcer, "%s %s", c.version, c.policy)
		role := metallb.RoleNote
		if c.announcer == "" {
			role = metallb.RoleCause
		}
		assert.Equal(t, []metallb.Rule{metallb.RuleMemberlistDisabled}, rulesOf(el, role), "%s %s", c.version, c.policy)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	wide := metallb.L2Advertisement{Namespace: "metallb-system", Name: "wide"}
	for _, c := range []struct {
		name    string
		edit    func(*metallb.State)
		rules   []metallb.Rule
		object  string
		message string
	}{
		{"none", func(*metallb.State) {}, nil, "", ""},
		{"an empty advertisement widens the nodes of another", func(s *metallb.State) {
			s.L2Advertisements[0].NodeSelectors = named("node-a")
			s.L2Advertisements = append(s.L2Advertisements, wide)
		}, []metallb.Rule{metallb.RuleAdvertisementOverlap}, "L2Advertisement metallb-system/wide", "L2Advertisement metallb-system/lan restricts the nodes of the pool main and has no effect: L2Advertisement metallb-system/wide covers it with all"},
		{"it widens the interfaces", func(s *metallb.State) {
			s.L2Advertisements[0].Interfaces = []string{"eth0"}
			s.L2Advertisements = append(s.L2Advertisements, wide)
		}, []metallb.Rule{metallb.RuleAdvertisementOverlap}, "L2Advertisement metallb-system/wide", "L2Advertisement metallb-system/lan restricts the interfaces of the pool main and has no effect: L2Advertisement metallb-system/wide covers it with all"},
		{"two that restrict", func(s *metallb.State) {
			s.L2Advertisements[0].NodeSelectors = named("node-a")
			other := s.L2Advertisements[0]
			other.Name, other.NodeSelectors = "other", named("node-b")
			s.L2Advertisements = append(s.L2Advertisements, other)
		}, nil, "", ""},
		{"a node without network", func(s *metallb.State) { s.Nodes[2].NetworkUnavailable = metallb.ConditionTrue },
			[]metallb.Rule{metallb.RuleNodeNetworkUnavailable}, "Node node-c", "node-c is no candidate: its condition NetworkUnavailable is True"},
		{"a node without network that is not selected", func(s *metallb.State) {
			s.Nodes[2].NetworkUnavailable = metallb.ConditionTrue
			s.L2Advertisements[0].NodeSelectors = named("node-b")
		}, nil, "", ""},
		{"Services that cannot agree", func(s *metallb.State) {
			other := s.Services[0]
			other.Name, other.Policy = "other", metallb.PolicyLocal
			s.Services = append(s.Services, other)
		}, []metallb.Rule{metallb.RuleSharedIPConflict}, "Service default/other", "10.0.0.1 is announced by node-b for this Service and by node-a for Service default/other: give both the Cluster policy and the same advertisements"},
		{"Services that agree", func(s *metallb.State) {
			other := s.Services[0]
			other.Name = "other"
			s.Services = append(s.Services, other)
		}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := healthy()
			c.edit(&s)
			el := electNamed(t, s, "default/web")
			assert.Equal(t, "node-b", el.Announcer)
			require.Equal(t, c.rules, rulesOf(el, metallb.RoleNote))
			if len(c.rules) > 0 {
				assert.Equal(t, c.object, el.Reasons[0].Object.String())
				assert.Equal(t, c.message, el.Reasons[0].Message)
			}
		})
	}
}

// Pools that BGP announces need no L2Advertisement, and others do.
func TestSilenceBesideBGP(t *testing.T) {
	t.Parallel()
	pool := func(name, addresses, label string) string {
		return `{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {namespace: metallb-system, name: ` + name + `, labels: {net: ` + label + `}}, spec: {addresses: [` + addresses + `]}}`
	}
	advertisement := func(spec string) string {
		return `{apiVersion: metallb.io/v1beta1, kind: BGPAdvertisement, metadata: {namespace: metallb-system, name: b}, spec: ` + spec + `}`
	}
	const l2 = `{apiVersion: metallb.io/v1beta1, kind: L2Advertisement, metadata: {namespace: metallb-system, name: a}, spec: {ipAddressPools: [lan]}}`
	legacy := func(protocol string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: metallb-system, name: config}\ndata:\n  config: |\n    address-pools:\n    - {name: wan, protocol: " + protocol + ", addresses: [192.0.2.1-192.0.2.9]}\n"
	}
	for name, tc := range map[string]struct {
		documents []string
		want      []metallb.Rule
	}{
		"no advertisement":             {nil, []metallb.Rule{metallb.RuleNoL2Advertisement}},
		"by name":                      {[]string{advertisement("{ipAddressPools: [wan]}")}, nil},
		"by label":                     {[]string{advertisement("{ipAddressPoolSelectors: [{matchLabels: {net: wan}}]}")}, nil},
		"all":                          {[]string{advertisement("{}")}, nil},
		"another pool":                 {[]string{advertisement("{ipAddressPools: [lan]}")}, []metallb.Rule{metallb.RuleNoL2Advertisement}},
		"the other pool has layer 2":   {[]string{advertisement("{ipAddressPools: [wan]}"), l2}, nil},
		"only the other, with layer 2": {[]string{l2}, []metallb.Rule{metallb.RuleNoL2Advertisement}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents := append([]string{pool("wan", "192.0.2.1-192.0.2.9", "wan"), pool("lan", "10.0.3.20-10.0.3.40", "lan")}, tc.documents...)
			assert.Equal(t, tc.want, withoutL2(t, documents...))
		})
	}
	assert.Empty(t, withoutL2(t, legacy("bgp")))
	assert.Empty(t, withoutL2(t, `{apiVersion: metallb.io/v1beta1, kind: AddressPool, metadata: {namespace: metallb-system, name: old}, spec: {protocol: bgp, addresses: [192.0.2.1-192.0.2.9]}}`))
}

// withoutL2 returns whether no-l2-advertisement is said of a Service with the VIP
// 192.0.2.5.
func withoutL2(t *testing.T, documents ...string) (found []metallb.Rule) {
	t.Helper()
	const none = `{apiVersion: metallb.io/v1beta1, kind: L2AdvertisementList, items: []}`
	s := metallb.FromObjects(objectsOf(t, append(documents, none)...)...)
	require.Len(t, s.Pools, map[bool]int{true: 1, false: 2}[len(documents) == 1])
	s.Services = []metallb.Service{{Namespace: "default", Name: "web", Type: "LoadBalancer", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.5")},
		Endpoints: []metallb.Endpoint{{Node: "w1", Ready: true, Serving: true}}}}
	el, err := s.Elect("default", "web")
	require.NoError(t, err)
	for _, r := range el.Reasons {
		if r.Rule == metallb.RuleNoL2Advertisement {
			found = append(found, r.Rule)
		}
	}
	return found
}
