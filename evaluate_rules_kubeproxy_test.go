package strictarp_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

const kubeProxyMap = "kube-system/kube-proxy" // both of the ConfigMap and of the DaemonSet

// forget makes the nodes unobserved as to how kube-proxy runs.
func (s *scene) forget() {
	for _, n := range s.nodes {
		n.Running = nil
	}
}

func kubeProxyTests() []ruleTest {
	return []ruleTest{
		{"strictarp-off", "false", func(s *scene) {
			s.off()
			s.loose("w1", "w2", "w3")
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@"+kubeProxyMap)},
		{"strictarp-off", "the section is null", func(s *scene) {
			s.off()
			s.loose("w1", "w2", "w3")
			s.config = strings.Replace(configText("ipvs", ""), "ipvs:\n  strictARP: ", "ipvs: null", 1)
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@"+kubeProxyMap)},
		{"strictarp-off", "mode iptables", func(s *scene) { s.mode("iptables") }, nil},
		{"strictarp-off", "an empty mode", func(s *scene) {
			s.mode("iptables")
			s.config = configText("", "false")
		}, nil},
		{"strictarp-off", "nothing is announced in layer 2", func(s *scene) {
			s.off()
			s.Cluster = &metallbtest.Cluster{Nodes: s.Nodes, Services: s.Services}
			s.Services[0].Addresses = nil
			s.client.Probes, s.client.Neighbours = nil, nil
			for name := range s.nodes {
				s.link(name, "kube-ipvs0").Addrs = []strictarp.Address{}
			}
		}, []string{"warning strictarp-residue@w1", "warning strictarp-residue@w2", "warning strictarp-residue@w3"}},
		{"strictarp-ignored", "a flag beside --config", func(s *scene) {
			s.flags = []string{"--ipvs-strict-arp=true"}
			s.off()
			s.loose("w1", "w2", "w3")
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@"+kubeProxyMap, "warning strictarp-ignored@"+kubeProxyMap)},
		{"strictarp-ignored", "indented wrongly", func(s *scene) {
			s.off()
			s.loose("w1", "w2", "w3")
			s.config = strings.Replace(configText("ipvs", "true"), "  strictARP", "strictARP", 1)
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@"+kubeProxyMap, "warning strictarp-ignored@"+kubeProxyMap)},
		{"strictarp-ignored", "a flag that says what the file does", func(s *scene) { s.flags = []string{"--v=4"} }, nil},
		{"strictarp-ignored", "false in mode iptables", func(s *scene) { s.mode("iptables") }, nil},
		{"kubeproxy-config-invalid", "a mode in the wrong case", func(s *scene) {
			s.config = configText("IPVS", "true")
		}, []string{"error kubeproxy-config-invalid@" + kubeProxyMap}},
		{"kubeproxy-config-invalid", "a tab", func(s *scene) { s.config = strings.Replace(s.config, "  strictARP", "\tstrictARP", 1) },
			[]string{"error kubeproxy-config-invalid@" + kubeProxyMap}},
		{"kubeproxy-config-invalid", "a repeated field", func(s *scene) { s.config += "mode: ipvs\n" }, []string{"warning kubeproxy-config-ambiguous@" + kubeProxyMap}},
		{"kubeproxy-config-ambiguous", "strictARP twice", func(s *scene) { s.config += "  strictARP: true\n" }, []string{"warning kubeproxy-config-ambiguous@" + kubeProxyMap}},
		{"kubeproxy-config-ambiguous", "a strictARP key that is not read", func(s *scene) {
			s.config = strings.Replace(s.config, "strictARP", "strictArp", 1)
			s.off2()
		}, append(kernels("w1", "w2", "w3"), "error strictarp-off@"+kubeProxyMap, "warning strictarp-ignored@"+kubeProxyMap)},
		{"kubeproxy-config-ambiguous", "the kubeconfig beside it", func(s *scene) {
			s.extra(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("kube-system", "other"),
				Data: map[string]string{"kubeconfig.conf": "apiVersion: v1\nkind: Config\n"}})
		}, nil},
		{"kubeproxy-config-not-found", "its ConfigMap was not given", func(s *scene) {
			s.config = ""
			s.forget()
		}, []string{"unknown kubeproxy-config-not-found@kube-proxy"}},
		{"kubeproxy-config-not-found", "there is none", func(s *scene) {
			s.mode("iptables")
			s.config, s.unset = "", true
			s.forget()
		}, []string{"info kubeproxy-absent@kube-proxy"}},
		{"kubeproxy-absent", "a full list of DaemonSets", func(s *scene) {
			s.mode("iptables")
			s.config, s.noKubeProxy = "", true
			s.forget()
		}, []string{"info kubeproxy-absent@kube-proxy"}},
		{"kubeproxy-absent", "a process runs", func(s *scene) {
			s.mode("iptables")
			s.config, s.noKubeProxy = "", true
			s.forget()
			s.nodes["w1"].KubeProxy = []strictarp.Process{{PID: 7, Args: []string{"/usr/bin/kube-proxy", "--config=/etc/kube-proxy.yaml"}}}
		}, []string{"unknown kubeproxy-config-not-found@kube-proxy"}},
		{"kubeproxy-nodes-differ", "one node in another mode", func(s *scene) {
			s.runs(s.nodes["w2"], "iptables", "true")
			s.link("w2", "kube-ipvs0").Addrs = []strictarp.Address{}
		}, []string{"warning kubeproxy-nodes-differ@kube-proxy", "error kubeproxy-mode-mismatch@w2"}},
		{"kubeproxy-nodes-differ", "/configz was not asked on all", func(s *scene) { s.nodes["w2"].Running.Config = nil }, nil},
		{"kubeproxy-nodes-differ", "started at other times", func(s *scene) { s.nodes["w2"].Running.Started = s.now() }, nil},
		{"kubeproxy-mode-mismatch", "ipvs is declared, iptables runs", func(s *scene) {
			s.mode("iptables")
			s.config = configText("ipvs", "true")
		}, []string{"error kubeproxy-mode-mismatch@w1", "error kubeproxy-mode-mismatch@w2", "error kubeproxy-mode-mismatch@w3"}},
		{"kubeproxy-mode-mismatch", "an empty mode is iptables", func(s *scene) {
			s.mode("iptables")
			s.config = configText("", "false")
		}, nil},
		{"two-service-proxies", "Cilium replaces it", func(s *scene) {
			s.extra(daemonSet("kube-system", "cilium", "quay.io/cilium/cilium:v1.16.0", []string{"cilium-agent", "--kube-proxy-replacement=true"}, ""))
		}, []string{"error two-service-proxies@" + kubeProxyMap}},
		{"two-service-proxies", "Cilium does not replace it", func(s *scene) {
			s.extra(daemonSet("kube-system", "cilium", "quay.io/cilium/cilium:v1.16.0", []string{"cilium-agent", "--kube-proxy-replacement=false"}, ""))
		}, nil},
		{"two-service-proxies", "kube-router is a CNI only", func(s *scene) {
			s.extra(daemonSet("kube-system", "kube-router", "docker.io/cloudnativelabs/kube-router:v2", []string{"kube-router", "--run-service-proxy=false"}, ""))
		}, nil},
		{"ipvs-mode-deprecated", "1.35", func(s *scene) { s.version = "v1.35.0" }, []string{"info ipvs-mode-deprecated@" + kubeProxyMap}},
		{"ipvs-mode-deprecated", "1.40", func(s *scene) {
			s.version = "v1.40.0"
			s.config += "featureGates:\n  KubeProxyIPVS: true\n"
		}, []string{"warning ipvs-mode-deprecated@" + kubeProxyMap}},
		{"ipvs-mode-deprecated", "1.43", func(s *scene) { s.version = "v1.43.0" },
			[]string{"error ipvs-mode-deprecated@" + kubeProxyMap, "error kubeproxy-config-invalid@" + kubeProxyMap}},
		{"ipvs-mode-deprecated", "1.34", func(s *scene) { s.version = "v1.34.9" }, nil},
		{"ipvs-mode-deprecated", "nftables", func(s *scene) {
			s.mode("nftables")
			s.version = "v1.40.0"
		}, nil},
	}
}

// off2 makes kube-proxy run without strictARP, whatever it is told.
func (s *scene) off2() {
	told := s.config
	s.off()
	s.loose("w1", "w2", "w3")
	s.config = told
}
