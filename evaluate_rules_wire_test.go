package strictarp_test

import (
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// incident: strictARP is off, and all kernels answer; w1 answers once more by its
// speaker.
func incident(s *scene) {
	s.off()
	s.loose("w1", "w2", "w3")
	w1 := from("w1")
	w1.Replies, w1.DoubleAnswers, w1.DoubleAnswer = 8, 4, true
	s.ask(webVIP, from("w3"), from("w2"), w1)
}

func kernels(nodes ...string) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, "error kernel-answers-vip@"+n, "warning arp-announce-off@"+n)
	}
	return list
}

func responderTests() []ruleTest {
	return []ruleTest{
		{"multiple-responders", "the incident", incident, append(kernels("w1", "w2", "w3"), "error multiple-responders@"+webVIP, "error strictarp-off@kube-system/kube-proxy",
			"error local-policy-drop@"+webVIP, "warning double-answer@"+webVIP)},
		{"multiple-responders", "two NICs of one node", func(s *scene) {
			s.nic("w1", "ens34")
			s.ask(webVIP, from("w1"), from("w1/ens34"))
		}, []string{"info same-node-many-macs@" + webVIP}},
		{"multiple-responders", "a node and a stranger", func(s *scene) { s.ask(webVIP, from("w1"), from("stranger")) },
			[]string{"error multiple-responders@" + webVIP, "error foreign-responder@" + webVIP, "error pool-overlaps-node@metallb-system/pool"}},
		{"no-responder", "no advertisement", func(s *scene) {
			s.Advertisements, s.Statuses, s.Events = nil, nil, nil
			s.extra(emptyList("metallb.io/v1beta1", "L2Advertisement"))
			s.ask(webVIP)
		}, []string{"error no-responder@" + webVIP, "error no-l2-advertisement@" + web}},
		{"no-responder", "frames were dropped", func(s *scene) {
			r := s.ask(webVIP)
			r.Verdict, r.Reasons, r.Quality.Drops = arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.KernelDrops}, 7
		}, []string{"unknown probe-inconclusive@" + webVIP}},
		{"no-responder", "a canary is silent", func(s *scene) { s.ask(canary) }, nil},
		{"wrong-responder", "one loose kernel, and no speaker", func(s *scene) {
			s.loose("w2")
			s.RemoveSpeaker("w1")
			s.ask(webVIP, from("w2"))
			s.cached(webVIP, "w2")
		}, append(kernels("w2"), "error no-speaker-on-node@"+web, "error local-policy-drop@"+webVIP, "error strictarp-overridden@w2", "warning announcer-status-stale@"+web)},
		{"wrong-responder", "the announcer is silent, another node answers", func(s *scene) {
			s.loose("w2")
			s.ask(webVIP, from("w2"))
			s.cached(webVIP, "w2")
		}, append(kernels("w2"), "error wrong-responder@"+webVIP, "error local-policy-drop@"+webVIP, "error stale-neighbour@"+webVIP, "error strictarp-overridden@w2")},
		{"wrong-responder", "only the status names another", func(s *scene) {
			s.Service(web).Endpoints = append(s.Service(web).Endpoints, &metallbtest.Endpoint{Node: "w2"})
			s.elect()
			s.Statuses[0].Node, s.Events[0].Message = s.loser(), "-"
		}, []string{"warning announcer-mismatch@" + web}},
		{"double-answer", "the announcer's kernel is loose", func(s *scene) {
			s.loose("w1")
			w1 := from("w1")
			w1.Replies, w1.DoubleAnswers, w1.DoubleAnswer = 8, 4, true
			s.ask(webVIP, w1)
		}, append(kernels("w1"), "warning double-answer@"+webVIP, "error strictarp-overridden@w1")},
		{"double-answer", "a duplicating driver", func(s *scene) {
			w1 := from("w1")
			w1.Replies, w1.DoubleAnswers, w1.DoubleAnswer = 8, 4, true
			s.ask(webVIP, w1)
		}, []string{"info double-answer@" + webVIP}},
		{"double-answer", "once in four rounds", func(s *scene) {
			w1 := from("w1")
			w1.Replies, w1.DoubleAnswers = 5, 1
			s.ask(webVIP, w1)
		}, nil},
		{"same-node-many-macs", "a port of a bond", func(s *scene) {
			s.link("w1", "ens33").PermanentMAC = mac("w1/ens35")
			s.ask(webVIP, from("w1"), from("w1/ens35"))
		}, []string{"info same-node-many-macs@" + webVIP}},
		{"same-node-many-macs", "two nodes", func(s *scene) {
			s.loose("w2")
			s.ask(webVIP, from("w1"), from("w2"))
		}, append(kernels("w2"), "error multiple-responders@"+webVIP, "error local-policy-drop@"+webVIP, "error strictarp-overridden@w2")},
		{"foreign-responder", "all nodes are known", func(s *scene) { s.ask(webVIP, from("stranger")) },
			[]string{"error foreign-responder@" + webVIP, "error pool-overlaps-node@metallb-system/pool"}},
		{"foreign-responder", "it may be a node's", func(s *scene) {
			delete(s.nodes, "w3")
			s.ask(webVIP, from("w1"), from("w3"))
		}, []string{"unknown foreign-responder@" + webVIP, "error multiple-responders@" + webVIP, "unknown node-not-observed@w3"}},
		{"foreign-responder", "a node's MACs were not understood", func(s *scene) {
			s.link("w3", "ens33").MAC = arpcheck.MAC{}
			s.ask(webVIP, from("w1"), from("w3"))
		}, []string{"unknown foreign-responder@" + webVIP, "error multiple-responders@" + webVIP}},
		{"foreign-responder", "a node's address leads to it", func(s *scene) {
			delete(s.nodes, "w3")
			s.cached("10.0.3.13", "w3").State = arpcheck.NeighbourStale
			s.ask(webVIP, from("w1"), from("w3"))
		}, []string{"error multiple-responders@" + webVIP, "error local-policy-drop@" + webVIP, "unknown node-not-observed@w3"}},
		{"proxy-arp-responder", "a router", func(s *scene) {
			s.ask(webVIP, from("w1"), from("router"))
			s.ask(canary, from("router"))
		}, []string{"error proxy-arp-responder@" + webVIP}},
		{"proxy-arp-responder", "the announcer of two VIPs", func(s *scene) {
			s.AddService("default/api", "10.0.3.21", "w1").Local = true
			s.Announce("default/api", "w1", "ens33")
			s.hold("kube-ipvs0", "10.0.3.21/32")
			s.ask("10.0.3.21", from("w1"))
		}, nil},
		{"proxy-arp-responder", "a router answers for itself", func(s *scene) { s.ask("10.0.3.1", from("router")) }, nil},
		{"split-brain", "two speakers", func(s *scene) { s.ask(webVIP, from("w1"), from("w2")) },
			[]string{"error split-brain@" + webVIP, "error multiple-responders@" + webVIP, "error local-policy-drop@" + webVIP}},
		{"split-brain", "the other took over", func(s *scene) { s.takeOver(30 * time.Millisecond) },
			[]string{"error wrong-responder@" + webVIP, "error local-policy-drop@" + webVIP}},
		{"split-brain", "the other announced itself while the first still answered", func(s *scene) { s.takeOver(10 * time.Millisecond) },
			[]string{"error split-brain@" + webVIP, "error multiple-responders@" + webVIP, "error local-policy-drop@" + webVIP}},
		{"split-brain", "settings are not known", func(s *scene) {
			s.nodes["w2"].Sysctls = nil
			s.ask(webVIP, from("w1"), from("w2"))
		}, []string{"error multiple-responders@" + webVIP, "error local-policy-drop@" + webVIP, "unknown kernel-answers-vip@w2"}},
		{"responder-flapping", "a lottery", func(s *scene) {
			s.loose("w2")
			a, b := from("w1"), from("w2")
			a.WonRounds, b.WonRounds = 3, 1
			s.ask(webVIP, a, b)
		}, append(kernels("w2"), "error multiple-responders@"+webVIP, "error local-policy-drop@"+webVIP, "error strictarp-overridden@w2", "warning responder-flapping@"+webVIP)},
		{"responder-flapping", "two NICs of one node take turns", func(s *scene) {
			s.nic("w1", "ens34")
			a, b := from("w1"), from("w1/ens34")
			a.WonRounds, b.WonRounds = 2, 2
			s.ask(webVIP, a, b)
		}, []string{"info same-node-many-macs@" + webVIP}},
	}
}

// elect makes the Service's status that of the elected node; loser returns one that
// is not.
func (s *scene) elect() {
	f := s.facts()
	e, err := f.MetalLB.Elect("default", "web")
	require.NoError(s.t, err)
	require.NotEmpty(s.t, e.Announcer)
	s.Statuses, s.Events = nil, nil
	s.Announce(web, e.Announcer, "ens33")
	s.ask(webVIP, from(e.Announcer))
	s.cached(webVIP, e.Announcer)
}

func (s *scene) loser() string {
	for _, n := range []string{"w1", "w2"} {
		if n != s.Statuses[0].Node {
			return n
		}
	}
	return ""
}

func wireFaultTests() []ruleTest {
	return []ruleTest{
		{"vip-in-request-sender", "a node that does not announce", func(s *scene) { claim(s.client, arpcheck.Request, webVIP, "w2", "10.0.3.50", "") },
			[]string{"error vip-in-request-sender@" + webVIP}},
		{"vip-in-request-sender", "arp_announce is the cause", func(s *scene) {
			s.nodes["w2"].Sysctls.All = values(1, 1)
			claim(s.client, arpcheck.Request, webVIP, "w2", "10.0.3.50", "")
		}, []string{"error vip-in-request-sender@" + webVIP, "warning arp-announce-off@w2", "error strictarp-overridden@w2"}},
		{"vip-in-request-sender", "gratuitous, from the announcer", func(s *scene) { claim(s.client, arpcheck.Announcement, webVIP, "w1", webVIP, "") }, nil},
		{"vip-in-request-sender", "the announcer asks", func(s *scene) { claim(s.client, arpcheck.Request, webVIP, "w1", "10.0.3.50", "") }, nil},
		{"vip-in-request-sender", "a node asks in its own name", func(s *scene) { claim(s.client, arpcheck.Request, "10.0.3.12", "w2", webVIP, "") }, nil},
		{"stale-neighbour", "an entry of another node", func(s *scene) { s.cached(webVIP, "w2") },
			[]string{"error stale-neighbour@" + webVIP, "error local-policy-drop@" + webVIP}},
		{"stale-neighbour", "a failed entry", func(s *scene) { s.cached(webVIP, "w2").State = arpcheck.NeighbourFailed }, nil},
		{"stale-neighbour", "an entry of a node that has the address itself", func(s *scene) {
			s.nodes["w3"].Neighbours = []arpcheck.Neighbour{{Addr: netip.MustParseAddr(webVIP), MAC: mac("w2"), Link: "ens33", State: arpcheck.NeighbourStale}}
		}, nil},
		{"stale-neighbour", "an entry of a node that lacks it", func(s *scene) {
			s.link("w3", "kube-ipvs0").Addrs = addrs()
			s.nodes["w3"].Neighbours = []arpcheck.Neighbour{{Addr: netip.MustParseAddr(webVIP), MAC: mac("w2"), Link: "ens33", State: arpcheck.NeighbourStale}}
		}, []string{"error stale-neighbour@" + webVIP}},
		{"stale-neighbour", "the announcer's second NIC", func(s *scene) {
			s.nic("w1", "ens34")
			s.cached(webVIP, "w1/ens34").State = arpcheck.NeighbourStale
		}, nil},
		{"frame-source-mismatch", "a relay", func(s *scene) {
			w1 := from("w1")
			w1.FrameSources = []arpcheck.MAC{mac("stranger")}
			s.ask(webVIP, w1)
		}, []string{"warning frame-source-mismatch@" + webVIP}},
		{"frame-source-mismatch", "a second NIC with its own frames", func(s *scene) {
			s.nic("w1", "ens34")
			s.ask(webVIP, from("w1/ens34"))
		}, nil},
		{"answer-from-other-nic", "a NIC of another subnet", func(s *scene) {
			s.nic("w1", "eth1", "10.9.0.1/24")
			s.ask(webVIP, from("w1/eth1"))
		}, []string{"warning answer-from-other-nic@" + webVIP}},
		{"answer-from-other-nic", "a second NIC of the subnet", func(s *scene) {
			s.nic("w1", "ens34", "10.0.3.61/24")
			s.ask(webVIP, from("w1/ens34"))
		}, []string{"warning asymmetric-return-path@w1"}},
		{"answer-from-other-nic", "a NIC of another segment that stays silent", func(s *scene) { s.nic("w1", "eth1", "10.9.0.1/24") }, nil},
		{"local-policy-drop", "a cached wrong node", func(s *scene) {
			s.cached(webVIP, "w3").State = arpcheck.NeighbourStale
		}, []string{"error stale-neighbour@" + webVIP, "error local-policy-drop@" + webVIP}},
		{"local-policy-drop", "the Cluster policy", func(s *scene) {
			s.Service(web).Local = false
			s.elect()
			s.cached(webVIP, "w1")
			if s.Statuses[0].Node == "w1" {
				s.cached(webVIP, "w2")
			}
		}, []string{"error stale-neighbour@" + webVIP}},
		{"local-policy-drop", "the node has an endpoint too", func(s *scene) {
			s.Service(web).Endpoints = []*metallbtest.Endpoint{{Node: "w1"}, {Node: "w2"}, {Node: "w3"}}
			s.elect()
			s.ask(webVIP, from("w1"), from("w2"), from("w3"))
		}, []string{"error multiple-responders@" + webVIP, "error split-brain@" + webVIP}},
		{"probe-inconclusive", "the prober holds the VIP", func(s *scene) {
			s.client.Links, s.client.Neighbours = s.nodes["w2"].Links, nil
			s.client.Node, s.client.Name = "w2", "w2"
			r := s.ask(webVIP)
			r.Verdict, r.Reasons = arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.HeldHere}
		}, []string{"unknown probe-inconclusive@" + webVIP}},
		{"probe-inconclusive", "a later probe decides", func(s *scene) {
			r := s.ask(webVIP)
			r.Verdict, r.Reasons = arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.CutShort}
			again := *r
			again.Verdict, again.Reasons, again.Responders = arpcheck.Single, nil, []arpcheck.Responder{{MAC: mac("w1"), Replies: 4, WonRounds: 4}}
			s.client.Probes = append(s.client.Probes, again)
		}, nil},
		{"underlay-drops-arp", "a reply does not arrive", func(s *scene) {
			s.ask(webVIP)
			s.others = append(s.others, &strictarp.Vantage{Name: "w1", Node: "w1", Source: "arp.pcap", Links: s.nodes["w1"].Links})
			claim(s.others[0], arpcheck.Reply, webVIP, "w1", "10.0.3.50", "client")
		}, []string{"warning underlay-drops-arp@" + webVIP, "error no-responder@" + webVIP}},
		{"underlay-drops-arp", "a reply to somebody else", func(s *scene) {
			s.ask(webVIP)
			s.others = append(s.others, &strictarp.Vantage{Name: "w1", Node: "w1", Source: "arp.pcap", Links: s.nodes["w1"].Links})
			claim(s.others[0], arpcheck.Reply, webVIP, "w1", "10.0.3.99", "router")
		}, []string{"error no-responder@" + webVIP}},
		{"underlay-drops-arp", "a reply arrives", func(s *scene) {
			s.others = append(s.others, &strictarp.Vantage{Name: "w1", Node: "w1", Source: "arp.pcap", Links: s.nodes["w1"].Links})
			claim(s.others[0], arpcheck.Reply, webVIP, "w1", "10.0.3.50", "client")
		}, nil},
	}
}

// takeOver has w1 answer until 20 ms after a probe began, and w2 from 40 ms on, which
// announces the VIP at some time.
func (s *scene) takeOver(announced time.Duration) {
	a, b := from("w1"), from("w2")
	r := s.ask(webVIP)
	a.First, a.Last = r.Started, r.Started.Add(20*time.Millisecond)
	b.First, b.Last = r.Started.Add(40*time.Millisecond), r.Started.Add(60*time.Millisecond)
	at := r.Started.Add(announced)
	r.Verdict, r.Reasons, r.Responders = arpcheck.Multiple, nil, []arpcheck.Responder{a, b}
	r.Claims = []arpcheck.Claim{{Kind: arpcheck.Announcement, MAC: b.MAC, First: at, Last: at, Frames: 1}}
}
