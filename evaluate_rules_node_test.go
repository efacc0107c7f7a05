package strictarp_test

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl"
)

func kernelTests() []ruleTest {
	return []ruleTest{
		{"kernel-answers-vip", "0", func(s *scene) { s.loose("w2") }, append(kernels("w2"), "error strictarp-overridden@w2")},
		{"kernel-answers-vip", "3", func(s *scene) { s.nodes["w2"].Sysctls.All[sysctl.ARPIgnore] = 3 },
			[]string{"error kernel-answers-vip@w2", "warning arp-ignore-side-effects@w2", "error strictarp-overridden@w2"}},
		{"kernel-answers-vip", "a reserved value on the interface", func(s *scene) { s.nodes["w2"].Sysctls.Interfaces["ens33"][sysctl.ARPIgnore] = 4 },
			[]string{"error kernel-answers-vip@w2", "error strictarp-overridden@w2"}},
		{"kernel-answers-vip", "8 on the interface under a reserved all", func(s *scene) {
			s.nodes["w2"].Sysctls.All[sysctl.ARPIgnore] = 9
			s.nodes["w2"].Sysctls.Interfaces["ens33"][sysctl.ARPIgnore] = 8
		}, []string{"error kernel-answers-vip@w2", "error strictarp-overridden@w2"}},
		{"kernel-answers-vip", "strict on the interface alone", func(s *scene) {
			s.nodes["w2"].Sysctls.All = values(0, 0)
			s.nodes["w2"].Sysctls.Interfaces["ens33"] = values(1, 2)
		}, nil},
		{"kernel-answers-vip", "2", func(s *scene) { s.nodes["w2"].Sysctls.All[sysctl.ARPIgnore] = 2 }, []string{"warning arp-ignore-side-effects@w2"}},
		{"kernel-answers-vip", "no VIP is held", func(s *scene) {
			s.mode("iptables")
			s.loose("w1", "w2", "w3")
		}, nil},
		{"kernel-answers-vip", "the bridge's settings count, not its port's", func(s *scene) {
			n := s.nodes["w2"]
			s.link("w2", "ens33").Master, s.link("w2", "ens33").Addrs = "br0", addrs()
			s.nic("w2", "br0", "10.0.3.12/24").Kind = "bridge"
			n.Sysctls.All = values(0, 0)
			n.Routes[0].Link, n.Routes[1].Link = "br0", "br0"
			n.Sysctls.Interfaces["br0"] = values(1, 2)
		}, nil},
		{"kernel-answers-vip", "the port's settings do not help the bridge", func(s *scene) {
			n := s.nodes["w2"]
			s.link("w2", "ens33").Master, s.link("w2", "ens33").Addrs = "br0", addrs()
			s.nic("w2", "br0", "10.0.3.12/24").Kind = "bridge"
			n.Sysctls.All = values(0, 0)
			n.Routes[0].Link, n.Routes[1].Link = "br0", "br0"
			n.Sysctls.Interfaces["ens33"] = values(1, 2)
		}, append(kernels("w2"), "error strictarp-overridden@w2")},
		{"kernel-answers-vip", "settings were not observed", func(s *scene) { s.nodes["w2"].Sysctls = nil }, []string{"unknown kernel-answers-vip@w2"}},
		{"arp-announce-off", "1", func(s *scene) { s.nodes["w2"].Sysctls.All[sysctl.ARPAnnounce] = 1 }, []string{"warning arp-announce-off@w2", "error strictarp-overridden@w2"}},
		{"arp-announce-off", "2 on the interface alone", func(s *scene) {
			s.nodes["w2"].Sysctls.All[sysctl.ARPAnnounce] = 0
			s.nodes["w2"].Sysctls.Interfaces["ens33"][sysctl.ARPAnnounce] = 2
		}, nil},
		{"arp-announce-off", "no VIP is held", func(s *scene) {
			s.mode("nftables")
			s.loose("w1", "w2", "w3")
		}, nil},
		{"strictarp-overridden", "something loosened it", func(s *scene) { s.loose("w3") }, append(kernels("w3"), "error strictarp-overridden@w3")},
		{"strictarp-overridden", "2 and 8 are strict", func(s *scene) {
			s.nodes["w2"].Sysctls.All[sysctl.ARPIgnore] = 2
			s.nodes["w3"].Sysctls.All[sysctl.ARPIgnore] = 8
		}, []string{"warning arp-ignore-side-effects@w2", "warning arp-ignore-side-effects@w3"}},
		{"strictarp-overridden", "mode iptables sets nothing", func(s *scene) {
			s.mode("iptables")
			s.config = configText("iptables", "true")
			s.loose("w1", "w2", "w3")
		}, []string{"warning strictarp-ignored@kube-system/kube-proxy"}},
		{"strictarp-overridden", "/configz was not asked", func(s *scene) {
			s.loose("w2")
			s.nodes["w2"].Running = nil
		}, append(kernels("w2"), "unknown strictarp-overridden@w2")},
		{"strictarp-pending", "not restarted", func(s *scene) {
			s.off()
			s.config = configText("ipvs", "true")
			s.loose("w1", "w2", "w3")
		}, append(kernels("w1", "w2", "w3"), "error strictarp-pending@w1", "error strictarp-pending@w2", "error strictarp-pending@w3")},
		{"strictarp-pending", "one node behind", func(s *scene) {
			s.runs(s.nodes["w2"], "ipvs", "false")
			s.loose("w2")
		}, append(kernels("w2"), "error strictarp-pending@w2", "warning kubeproxy-nodes-differ@kube-proxy")},
		{"strictarp-pending", "off is what is declared", func(s *scene) {
			s.off()
			s.loose("w1", "w2", "w3")
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@kube-system/kube-proxy")},
		{"strictarp-residue", "turned off, not booted", func(s *scene) { s.off() },
			[]string{"error strictarp-off@kube-system/kube-proxy", "warning strictarp-residue@w1", "warning strictarp-residue@w2", "warning strictarp-residue@w3"}},
		{"strictarp-residue", "files make it strict at boot", func(s *scene) {
			s.off()
			for _, n := range []string{"w1", "w2", "w3"} {
				s.persist(n, "net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.all.arp_announce = 2\n")
			}
		}, []string{"error strictarp-off@kube-system/kube-proxy"}},
		{"strictarp-residue", "a file sets arp_ignore only", func(s *scene) {
			s.off()
			for _, n := range []string{"w1", "w2", "w3"} {
				s.persist(n, "net.ipv4.conf.all.arp_ignore = 1\n")
			}
		}, []string{"error strictarp-off@kube-system/kube-proxy", "warning strictarp-residue@w1", "warning strictarp-residue@w2", "warning strictarp-residue@w3"}},
		{"persisted-sysctl-loosens", "0 in all", func(s *scene) { s.persist("w2", "net.ipv4.conf.all.arp_ignore = 0\n") }, []string{"warning persisted-sysctl-loosens@w2"}},
		{"persisted-sysctl-loosens", "0 on an interface under all 1", func(s *scene) {
			s.persist("w2", "net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.ens33.arp_ignore = 0\n")
		}, nil},
		{"persisted-sysctl-loosens", "3 on an interface", func(s *scene) { s.persist("w2", "net.ipv4.conf.ens33.arp_ignore = 3\n") },
			[]string{"warning persisted-sysctl-loosens@w2"}},
		{"useless-sysctl", "on kube-ipvs0", func(s *scene) { s.persist("w2", "net.ipv4.conf.kube-ipvs0.arp_ignore = 1\n") }, []string{"info useless-sysctl@w2"}},
		{"useless-sysctl", "on kube-ipvs0, in force", func(s *scene) { s.nodes["w2"].Sysctls.Interfaces["kube-ipvs0"] = values(1, 2) }, []string{"info useless-sysctl@w2"}},
		{"useless-sysctl", "a new interface under all 1", func(s *scene) { s.nic("w2", "ens35", "10.9.0.2/24") }, nil},
		{"useless-sysctl", "rp_filter of kube-ipvs0, as distributions set it by default", func(s *scene) {
			for _, n := range s.nodes {
				n.Sysctls.Default[sysctl.RPFilter], n.Sysctls.Interfaces["kube-ipvs0"][sysctl.RPFilter], n.Sysctls.Interfaces["ens33"][sysctl.RPFilter] = 2, 2, 2
			}
		}, nil},
		{"arp-ignore-side-effects", "8", func(s *scene) { s.nodes["w2"].Sysctls.All[sysctl.ARPIgnore] = 8 }, []string{"warning arp-ignore-side-effects@w2"}},
		{"arp-ignore-side-effects", "on an interface without requests", func(s *scene) { s.nodes["w2"].Sysctls.Interfaces["lo"][sysctl.ARPIgnore] = 2 }, nil},
		{"needs-kernel-answer", "an external IP", func(s *scene) {
			s.service("old", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", ExternalIPs: []string{"10.0.3.60"}})
			s.hold("kube-ipvs0", "10.0.3.60/32")
		}, []string{"warning needs-kernel-answer@w1", "warning needs-kernel-answer@w2", "warning needs-kernel-answer@w3"}},
		{"needs-kernel-answer", "the VIP of an announcer", func(s *scene) {
			s.AddService("default/api", "10.0.3.21", "w1")
			s.hold("kube-ipvs0", "10.0.3.21/32")
		}, nil},
		{"needs-kernel-answer", "an external IP and loose kernels", func(s *scene) {
			s.service("old", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", ExternalIPs: []string{"10.0.3.60"}})
			s.hold("kube-ipvs0", "10.0.3.60/32")
			s.off()
			s.loose("w1", "w2", "w3")
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@kube-system/kube-proxy")},
	}
}

func holderTests() []ruleTest {
	return []ruleTest{
		{"leftover-kube-ipvs0", "changed to iptables without clean-up", func(s *scene) {
			s.config = configText("iptables", "false")
			for _, n := range s.nodes {
				s.runs(n, "iptables", "false")
			}
		}, []string{"error leftover-kube-ipvs0@w1", "error leftover-kube-ipvs0@w2", "error leftover-kube-ipvs0@w3"}},
		{"leftover-kube-ipvs0", "the device is empty", func(s *scene) {
			s.config = configText("nftables", "false")
			for name, n := range s.nodes {
				s.runs(n, "nftables", "false")
				s.link(name, "kube-ipvs0").Addrs = []strictarp.Address{}
			}
		}, nil},
		{"leftover-kube-ipvs0", "kube-proxy is no pod, and processes were not looked at", func(s *scene) {
			s.unset, s.config = true, ""
			for _, n := range s.nodes {
				n.Running = nil
			}
		}, []string{"info kubeproxy-absent@kube-proxy", "unknown leftover-kube-ipvs0@w1", "unknown leftover-kube-ipvs0@w2", "unknown leftover-kube-ipvs0@w3"}},
		{"leftover-kube-ipvs0", "something has replaced kube-proxy", func(s *scene) {
			s.unset, s.config = true, ""
			for _, n := range s.nodes {
				n.Running = nil
			}
			s.extra(daemonSet("kube-system", "cilium", "quay.io/cilium/cilium:v1.16.0", []string{"cilium-agent", "--kube-proxy-replacement=true"}, ""))
		}, []string{"info kubeproxy-absent@kube-proxy", "error leftover-kube-ipvs0@w1", "error leftover-kube-ipvs0@w2", "error leftover-kube-ipvs0@w3"}},
		{"stale-vip-on-device", "the address of a deleted Service", func(s *scene) { s.hold("kube-ipvs0", "10.0.3.29/32") },
			[]string{"warning stale-vip-on-device@w1", "warning stale-vip-on-device@w2", "warning stale-vip-on-device@w3"}},
		{"stale-vip-on-device", "cluster and external IPs", func(s *scene) {
			s.service("old", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}})
			s.hold("kube-ipvs0", "10.96.0.7/32", "10.96.0.1/32")
		}, nil},
		{"vip-on-real-interface", "bound by hand", func(s *scene) {
			l := s.link("w2", "ens33")
			l.Addrs = append(l.Addrs, addrs(webVIP+"/32")...)
		}, []string{"error vip-on-real-interface@w2"}},
		{"vip-on-real-interface", "on lo", func(s *scene) {
			l := s.link("w2", "lo")
			l.Addrs = append(l.Addrs, addrs(webVIP+"/32")...)
		}, []string{"error vip-on-real-interface@w2"}},
		{"vip-on-real-interface", "kube-vip put it on the elected node", func(s *scene) {
			s.kubeVIPService()
			l := s.link("w1", "ens33")
			l.Addrs = append(l.Addrs, addrs("10.0.3.60/32")...)
		}, []string{"info other-announcer@default/kv"}},
		{"vip-on-real-interface", "kube-vip left it on another node", func(s *scene) {
			s.kubeVIPService()
			l := s.link("w2", "ens33")
			l.Addrs = append(l.Addrs, addrs("10.0.3.60/32")...)
		}, []string{"info other-announcer@default/kv", "error vip-on-real-interface@w2"}},
		{"vip-on-real-interface", "keepalived's, of no Service", func(s *scene) {
			l := s.link("w2", "ens33")
			l.Addrs = append(l.Addrs, addrs("10.0.3.25/32")...)
			s.ask("10.0.3.25", from("w2"))
		}, nil},
		{"vip-on-real-interface", "of no Service, and another host answers too", func(s *scene) {
			l := s.link("w2", "ens33")
			l.Addrs = append(l.Addrs, addrs("10.0.3.25/32")...)
			s.ask("10.0.3.25", from("w2"), from("w3"))
		}, []string{"error vip-on-real-interface@w2", "error multiple-responders@10.0.3.25"}},
		{"vip-on-real-interface", "ServiceLB uses the nodes' own addresses", func(s *scene) {
			class := "example.com/none"
			s.service("own", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class}, corev1.LoadBalancerIngress{IP: "10.0.3.12"})
		}, nil},
		{"proxy-arp-on-node", "on the segment's interface", func(s *scene) { s.nodes["w2"].Sysctls.Interfaces["ens33"][sysctl.ProxyARP] = 1 },
			[]string{"warning proxy-arp-on-node@w2"}},
		{"proxy-arp-on-node", "on an interface to a pod", func(s *scene) {
			s.nic("w2", "cali0123456789a")
			s.nodes["w2"].Sysctls.Interfaces["cali0123456789a"][sysctl.ProxyARP] = 1
		}, nil},
	}
}

// kubeVIPService is one of a class of kube-vip, which has chosen w1.
func (s *scene) kubeVIPService() {
	class := "kube-vip.io/kube-vip-class"
	s.service("kv", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class}, corev1.LoadBalancerIngress{IP: "10.0.3.60"})
	s.extra(kubeVIP("lb_class_only", "true"), lease("kube-system", "plndr-svcs-lock", "w1", s.now()))
}

func pathTests() []ruleTest {
	behind := func(s *scene, rpFilter int) {
		// VIPs are in a VLAN of their own; the default route leaves by another.
		n := s.nodes["w1"]
		s.nic("w1", "ens36", "10.8.0.1/24")
		n.Routes[0].Link, n.Routes[0].Gateway = "ens36", netip.MustParseAddr("10.8.0.254")
		n.Sysctls.Interfaces["ens33"][sysctl.RPFilter] = rpFilter
	}
	return []ruleTest{
		{"asymmetric-return-path", "the default route leaves elsewhere", func(s *scene) { behind(s, 0) }, []string{"warning asymmetric-return-path@w1"}},
		{"asymmetric-return-path", "a second NIC without clients", func(s *scene) { s.nic("w1", "ens36", "10.8.0.1/24") }, nil},
		{"asymmetric-return-path", "two NICs in one subnet, the answer is by the one of the route", func(s *scene) { s.nic("w1", "ens34", "10.0.3.61/24") }, nil},
		{"asymmetric-return-path", "policy routing sends replies back", func(s *scene) {
			behind(s, 1)
			s.nodes["w1"].Rules = []strictarp.PolicyRule{{Priority: 100, Table: 100, Other: true}}
		}, nil},
		{"rp-filter-strict", "1, and the route leaves elsewhere", func(s *scene) { behind(s, 1) },
			[]string{"warning asymmetric-return-path@w1", "warning rp-filter-strict@w1"}},
		{"rp-filter-strict", "1 alone", func(s *scene) {
			for _, n := range s.nodes {
				n.Sysctls.All[sysctl.RPFilter] = 1
			}
		}, nil},
		{"rp-filter-strict", "2 in all wins", func(s *scene) {
			behind(s, 1)
			s.nodes["w1"].Sysctls.All[sysctl.RPFilter] = 2
		}, []string{"warning asymmetric-return-path@w1"}},
		{"node-not-observed", "one of three", func(s *scene) { delete(s.nodes, "w3") }, []string{"unknown node-not-observed@w3"}},
		{"node-not-observed", "a node that is no longer one", func(s *scene) {
			s.RemoveNode("w3")
			s.nodes["w3"].Running = nil
		}, []string{"error leftover-kube-ipvs0@w3"}},
	}
}
