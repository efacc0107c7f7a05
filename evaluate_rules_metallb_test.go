package strictarp_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// quiet: nobody answers, and nothing is reported.
func (s *scene) quiet() {
	s.Statuses, s.Events = nil, nil
	s.extra(noStatuses())
	s.ask(webVIP)
	s.client.Neighbours = nil
}

const noAnswer = "error no-responder@" + webVIP

func silenceTests() []ruleTest {
	return []ruleTest{
		{"no-l2-advertisement", "it names another pool", func(s *scene) {
			s.Advertisements[0].Pools = []string{"other"}
			s.quiet()
		}, []string{"error no-l2-advertisement@" + web, noAnswer}},
		{"no-l2-advertisement", "it names no pool, and so covers all", func(s *scene) { s.Advertisements[0].Pools = nil }, nil},
		{"no-l2-advertisement", "advertisements were not observed", func(s *scene) { s.Advertisements = nil }, nil},
		{"no-pool-for-address", "renumbered", func(s *scene) {
			s.Pools[0].Addresses = []string{"10.0.3.30-10.0.3.40"}
			s.quiet()
		}, []string{"error no-pool-for-address@" + web, noAnswer}},
		{"no-pool-for-address", "of another class", func(s *scene) {
			class := "example.com/other"
			s.service("foreign", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class}, corev1.LoadBalancerIngress{IP: "198.51.100.7"})
		}, nil},
		{"service-without-address", "pending", func(s *scene) { s.AddService("default/new", "", "w1") }, []string{"warning service-without-address@default/new"}},
		{"service-without-address", "a class that nobody serves", func(s *scene) {
			s.service("new", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/nobody")})
		}, []string{"warning service-without-address@default/new"}},
		{"service-without-address", "a class that kube-vip serves", func(s *scene) {
			s.service("new", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("kube-vip.io/kube-vip-class")})
			s.extra(kubeVIP("lb_class_only", "true"))
		}, nil},
		{"service-without-address", "no LoadBalancer", func(s *scene) { s.service("inner", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}) }, nil},
		{"no-ready-endpoint", "not ready", func(s *scene) {
			s.Service(web).Endpoints[0].NotReady = true
			s.quiet()
		}, []string{"error no-ready-endpoint@" + web, noAnswer}},
		{"no-ready-endpoint", "it terminates and serves", func(s *scene) { s.Service(web).Endpoints[0].Terminating = true }, nil},
		{"no-local-endpoint", "the selectors leave it out", func(s *scene) {
			s.Node("w2").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.quiet()
		}, []string{"error no-local-endpoint@" + web, noAnswer}},
		{"no-local-endpoint", "the Cluster policy", func(s *scene) {
			s.Node("w2").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.Service(web).Local = false
			s.elect()
		}, nil},
		{"advertisement-selects-no-node", "a misspelt label", func(s *scene) {
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yess"}}
			s.quiet()
		}, []string{"error advertisement-selects-no-node@" + web, noAnswer}},
		{"advertisement-selects-no-node", "one of two selectors matches", func(s *scene) {
			s.Node("w1").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yess"}, {"lb": "yes"}}
		}, nil},
		{"node-excluded-from-lb", "the only candidate", func(s *scene) {
			s.Node("w1").Excluded = true
			s.quiet()
		}, []string{"error node-excluded-from-lb@" + web, noAnswer}},
		{"node-excluded-from-lb", "the value false excludes too", func(s *scene) {
			s.Node("w1").Labels = map[string]string{excludeLabel: "false"}
			s.quiet()
		}, []string{"error node-excluded-from-lb@" + web, noAnswer}},
		{"node-excluded-from-lb", "another candidate is left", func(s *scene) {
			s.Node("w3").Excluded = true
		}, nil},
		{"node-excluded-from-lb", "the speakers look away", func(s *scene) {
			s.Node("w1").Excluded = true
			s.SpeakerArgs = []string{"--ignore-exclude-lb"}
		}, nil},
		{"node-network-unavailable", "the only candidate", func(s *scene) {
			s.Node("w1").NetworkUnavailable = true
			s.quiet()
		}, []string{"warning node-network-unavailable@" + web, noAnswer}},
		{"node-network-unavailable", "only not ready", func(s *scene) { s.Node("w1").NotReady = true }, nil},
		{"not-announced", "nothing is reported and nobody answers", (*scene).quiet, []string{"error not-announced@" + web, noAnswer}},
		{"not-announced", "nothing is reported, and the speaker answers", func(s *scene) {
			s.quiet()
			s.ask(webVIP, from("w1"))
		}, nil},
		{"not-announced", "reports were not asked for", func(s *scene) {
			s.Statuses, s.Events = nil, nil
			s.ask(webVIP)
		}, []string{noAnswer}},
		{"not-announced", "the probe cannot tell", func(s *scene) {
			s.quiet()
			r := s.ask(webVIP)
			r.Verdict, r.Reasons, r.Rounds = arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.TooFewRounds}, 1
		}, []string{"unknown probe-inconclusive@" + webVIP}},
	}
}

func speakerTests() []ruleTest {
	log := func(lines ...string) func(*scene) {
		return func(s *scene) {
			s.log("w1", append([]string{`{"branch":"dev","msg":"MetalLB speaker starting version 0.16.1","ts":"2026-01-02T03:04:05Z"}`}, lines...)...)
		}
	}
	return []ruleTest{
		{"no-speaker-on-node", "it crashes", func(s *scene) {
			s.Speaker("w1").Waiting = "CrashLoopBackOff"
			s.quiet()
		}, []string{"error no-speaker-on-node@" + web, noAnswer}},
		{"no-speaker-on-node", "no candidate has an endpoint", func(s *scene) {
			s.Node("w2").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.RemoveSpeaker("w2")
			s.quiet()
		}, []string{"error no-local-endpoint@" + web, "warning no-speaker-on-node@" + web, noAnswer}},
		{"no-speaker-on-node", "another node has one", func(s *scene) { s.RemoveSpeaker("w2") }, nil},
		{"speaker-cannot-answer", "no NET_RAW", func(s *scene) {
			s.Speaker("w1").NoNetRaw = true
			s.ask(webVIP)
		}, []string{"error speaker-cannot-answer@" + web, noAnswer}},
		{"speaker-cannot-answer", "its log says so", log(
			`{"op":"createARPResponder","interface":"ens33","error":"creating ARP responder for \"ens33\": listen packet: operation not permitted","ts":"2026-01-02T03:04:06Z"}`),
			[]string{"error speaker-cannot-answer@w1"}},
		{"speaker-cannot-answer", "it worked later", log(
			`{"op":"createARPResponder","interface":"ens33","error":"creating ARP responder for \"ens33\": listen packet: network is down","ts":"2026-01-02T03:04:06Z"}`,
			`{"event":"createARPResponder","interface":"ens33","ts":"2026-01-02T03:04:16Z"}`), nil},
		{"memberlist-disabled", "off", func(s *scene) { s.NoMemberlist = true }, []string{"warning memberlist-disabled@" + web}},
		{"memberlist-disabled", "on", func(s *scene) { s.SpeakerArgs = []string{"--ml-bindaddr=$(METALLB_ML_BIND_ADDR)"} }, nil},
		{"advertisement-overlap", "an empty one beside", func(s *scene) {
			s.Node("w1").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.Advertisements = append(s.Advertisements, &metallbtest.Advertisement{Name: "quickstart"})
		}, []string{"info advertisement-overlap@" + web}},
		{"advertisement-overlap", "for another pool", func(s *scene) {
			s.Node("w1").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.Advertisements = append(s.Advertisements, &metallbtest.Advertisement{Name: "quickstart", Pools: []string{"other"}})
		}, nil},
		{"announcing-interface-missing", "none of the named", func(s *scene) {
			s.Advertisements[0].Interfaces = []string{"eth9"}
			s.quiet()
			s.FailAnnounce(web, webVIP, "w1")
		}, []string{"error announcing-interface-missing@" + web, noAnswer}},
		{"announcing-interface-missing", "one of the named", func(s *scene) { s.Advertisements[0].Interfaces = []string{"eth9", "ens33"} }, nil},
		{"announcing-interface-missing", "it exists on the elected node only", func(s *scene) {
			s.link("w1", "ens33").Name = "eno1"
			s.nodes["w1"].Sysctls.Interfaces["eno1"] = values(0, 0)
			s.nodes["w1"].Routes[0].Link, s.nodes["w1"].Routes[1].Link = "eno1", "eno1"
			s.Advertisements[0].Interfaces = []string{"eno1"}
		}, nil},
		{"announcing-interface-skipped", "a port of a bridge is named", func(s *scene) {
			s.bridged()
			s.Advertisements[0].Interfaces = []string{"ens33"}
			s.ask(webVIP)
			s.client.Neighbours = nil
		}, []string{"error announcing-interface-skipped@" + web, noAnswer}},
		{"announcing-interface-skipped", "the bridge is named", func(s *scene) {
			s.bridged()
			s.Advertisements[0].Interfaces = []string{"br0"}
			s.ask(webVIP, from("w1"))
		}, nil},
		{"announcing-interface-skipped", "the status names kube-ipvs0", func(s *scene) {
			s.Advertisements[0].Interfaces = []string{"kube-ipvs0"}
			s.Statuses[0].Interfaces = []string{"kube-ipvs0"}
			s.ask(webVIP)
			s.client.Neighbours = nil
		}, []string{"error announcing-interface-skipped@" + web, noAnswer}},
		{"announcing-interface-skipped", "another interface is on the exclude list", func(s *scene) { s.nic("w1", "veth0", "10.0.3.99/24") }, nil},
	}
}

// bridged makes ens33 of w1 a port of br0.
func (s *scene) bridged() {
	s.link("w1", "ens33").Master, s.link("w1", "ens33").Addrs = "br0", addrs()
	br := s.nic("w1", "br0", "10.0.3.11/24")
	br.Kind, br.MAC = "bridge", mac("w1")
	s.nodes["w1"].Routes[0].Link, s.nodes["w1"].Routes[1].Link = "br0", "br0"
}

func announcementTests() []ruleTest {
	return []ruleTest{
		{"announcer-mismatch", "a live status of another node", func(s *scene) {
			s.Service(web).Local = false
			s.elect()
			s.Statuses[0].Node = s.loser()
			s.Events = nil
		}, []string{"warning announcer-mismatch@" + web}},
		{"announcer-mismatch", "an old event of another node", func(s *scene) {
			s.Service(web).Local = false
			s.elect()
			s.Events[0].Message = `announcing from node "` + s.loser() + `" with protocol "layer2"`
			s.Events[0].At = metallbtest.Start().Add(-time.Hour)
		}, nil},
		{"announcer-status-conflict", "two live statuses", func(s *scene) {
			s.Service(web).Local = false
			s.elect()
			s.Statuses = append(s.Statuses, &metallbtest.Status{Service: web, Node: s.loser()})
		}, []string{"error announcer-status-conflict@" + web}},
		{"announcer-status-conflict", "one of a speaker that is gone", func(s *scene) {
			s.Statuses = append(s.Statuses, &metallbtest.Status{Service: web, Node: "w2"})
			s.RemoveSpeaker("w2")
		}, []string{"warning announcer-status-stale@" + web}},
		{"announcer-status-stale", "of a node that is gone", func(s *scene) {
			s.Statuses = append(s.Statuses, &metallbtest.Status{Service: web, Node: "w9"})
		}, []string{"warning announcer-status-stale@" + web}},
		{"announcer-status-stale", "of a Service that is gone", func(s *scene) {
			s.Statuses = append(s.Statuses, &metallbtest.Status{Service: "default/gone", Node: "w1"})
		}, []string{"warning announcer-status-stale@default/gone"}},
		{"announcer-status-stale", "of a node that is not ready and may answer", func(s *scene) { s.Node("w1").NotReady = true }, nil},
		{"shared-ip-conflict", "two Local Services with different selectors", func(s *scene) {
			s.Service(web).Annotations = map[string]string{"metallb.io/allow-shared-ip": "k"}
			api := s.AddService("default/api", webVIP, "w1")
			api.Local, api.Annotations, api.Ports = true, map[string]string{"metallb.io/allow-shared-ip": "k"}, []int32{81}
			s.Announce("default/api", "w1", "ens33")
		}, []string{"error shared-ip-conflict@" + web}},
		{"shared-ip-conflict", "the same selector", func(s *scene) {
			s.Service(web).Annotations = map[string]string{"metallb.io/allow-shared-ip": "k"}
			api := s.AddService("default/api", webVIP, "w1")
			api.Local, api.Annotations, api.Ports = true, map[string]string{"metallb.io/allow-shared-ip": "k"}, []int32{81}
			api.Selector = map[string]string{"app": "web"}
			s.Announce("default/api", "w1", "ens33")
		}, nil},
		{"pool-overlaps-node", "a node's address", func(s *scene) { s.Pools[0].Addresses = []string{"10.0.3.13-10.0.3.40"} },
			[]string{"error pool-overlaps-node@metallb-system/pool"}},
		{"pool-overlaps-node", "the gateway", func(s *scene) { s.Pools[0].Addresses = append(s.Pools[0].Addresses, "10.0.3.1/32") },
			[]string{"error pool-overlaps-node@metallb-system/pool"}},
		{"pool-overlaps-node", "the next address", func(s *scene) { s.Pools[0].Addresses = []string{"10.0.3.14-10.0.3.40"} }, nil},
		{"pool-awkward-address", "up to .255", func(s *scene) { s.Pools[0].Addresses = []string{"10.0.3.20-10.0.3.255"} },
			[]string{"info pool-awkward-address@metallb-system/pool"}},
		{"pool-awkward-address", "avoidBuggyIPs", func(s *scene) {
			s.Pools[0].Addresses, s.Pools[0].AvoidBuggyIPs = []string{"10.0.3.20-10.0.3.255"}, true
		}, nil},
		{"second-announcer", "kube-vip takes all", func(s *scene) { s.extra(kubeVIP()) }, []string{"warning second-announcer@" + web}},
		{"second-announcer", "kube-vip heeds classes", func(s *scene) { s.extra(kubeVIP("lb_class_only", "true")) }, nil},
		{"second-announcer", "kube-vip for the API server's address only", func(s *scene) {
			s.extra(kubeVIP("svc_enable", "false", "cp_enable", "true", "address", "10.0.3.9"))
		}, nil},
		{"metallb-config-invalid", "the controller says so", func(s *scene) { s.InvalidConfig = "CIDR overlaps" },
			[]string{"error metallb-config-invalid@metallb-system/controller"}},
		{"metallb-config-invalid", "a range that cannot be read", func(s *scene) { s.Pools[0].Addresses = append(s.Pools[0].Addresses, "10.0.3.50-10.0.3.45") },
			[]string{"error metallb-config-invalid@metallb-system/pool"}},
		{"metallb-config-invalid", "an interface that does not exist is valid", func(s *scene) { s.Advertisements[0].Interfaces = []string{"ens33", "nosuch"} }, nil},
		{"other-announcer", "kube-vip by class", (*scene).kubeVIPService, []string{"info other-announcer@default/kv"}},
		{"other-announcer", "MetalLB alone", func(s *scene) { s.AddService("default/api", "10.0.3.21", "w2") }, nil},
	}
}
