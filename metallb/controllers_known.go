package metallb

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// identify returns what the workload is, if it can announce. Where it runs and
// what it is called is up to the caller.
func (in *inventory) identify(w workload) (Controller, bool) {
	// k3s makes one DaemonSet for each Service (pkg/cloudprovider/servicelb.go).
	if name := w.labels["svccontroller.k3s.cattle.io/svcname"]; name != "" {
		if w.kind == "pod" {
			return Controller{}, false
		}
		svc := w.labels["svccontroller.k3s.cattle.io/svcnamespace"] + "/" + name
		return Controller{Kind: KindServiceLB, Protocol: ProtocolNode, Handles: Handles{Services: []string{svc}},
			Why: "k3s made it to serve " + svc + " on the nodes' own addresses"}, true
	}
	for _, c := range w.spec.Containers {
		if found, ok := in.identifyContainer(w, container{c}); ok {
			return found, true
		}
	}
	return Controller{}, false
}

func (in *inventory) identifyContainer(w workload, c container) (Controller, bool) {
	path, base := c.image()
	switch {
	case base == "metallb-speaker" || base == "speaker" && strings.Contains(path, "metallb") || isSpeaker(w.labels):
		return metallbSpeaker(c), true
	case base == "kube-vip" || base == "kube-vip-iptables":
		return in.kubeVIP(w, c)
	case base == "lbnodeagent":
		return Controller{Kind: KindPureLB, Protocol: ProtocolLayer2, Handles: Handles{Annotations: []string{"purelb.io/allocated-by=PureLB"}},
			Why: "PureLB's node agent announces what PureLB has allocated"}, true
	case base == "openelb" || base == "openelb-manager" || base == "openelb-speaker":
		return in.openELB(c), true
	case strings.HasSuffix(path, "calico/node"):
		return in.calico()
	case strings.Contains(base, "antrea") && (w.name == "antrea-agent" || w.labels["component"] == "antrea-agent"):
		return in.antrea()
	case strings.Contains(base, "keepalived") && !strings.Contains(base, "operator"):
		return in.keepalived(w), true
	case base == "kube-router":
		return kubeRouter(c)
	}
	return Controller{}, false
}

// isSpeaker returns whether the labels are those of MetalLB's manifests or of
// its Helm chart.
func isSpeaker(l map[string]string) bool {
	return l["app"] == "metallb" && l["component"] == "speaker" ||
		l["app.kubernetes.io/name"] == "metallb" && l["app.kubernetes.io/component"] == "speaker"
}

func metallbSpeaker(c container) Controller {
	found := Controller{Kind: KindMetalLB, Protocol: ProtocolLayer2, Handles: Handles{All: true}, Why: "MetalLB's speaker"}
	if class := c.flag("lb-class", ""); class != "" {
		found.Handles = Handles{Classes: []string{class}}
		found.Why = fmt.Sprintf("MetalLB's speaker for the loadBalancerClass %q only", class)
	}
	return found
}

// kubeVIP reads the settings that kube-vip reads (pkg/kubevip/config_envvar.go,
// cmd/kube-vip.go).
func (in *inventory) kubeVIP(w workload, c container) (Controller, bool) {
	found := Controller{Kind: KindKubeVIP, PerService: c.on("servicesElection", "svc_election")}
	switch {
	case c.on("arp", "vip_arp"):
		found.Protocol = ProtocolLayer2
	case c.on("bgp", "bgp_enable"):
		found.Protocol = ProtocolBGP
	}
	services, plane := c.on("services", "svc_enable"), c.on("controlplane", "cp_enable")
	if plane {
		if a, err := netip.ParseAddr(c.setting("address", "address", "")); err == nil {
			found.Handles.Addresses = []netip.Addr{a}
		}
		found.Why = "kube-vip holds the control plane's address"
		namespace, name := leaseOf(c.setting("leaseName", "vip_leasename", "plndr-cp-lock"), w.namespace)
		found.Holds = in.leaseHolds(namespace, name, found.Handles.Addresses)
	}
	if services {
		found.Why = "kube-vip serves Services (svc_enable)"
		found.Handles.takeAsKubeVIP(c)
		found.Holds = append(found.Holds, in.kubeVIPHolds(w, c)...)
	}
	return found, services || plane
}

// takeAsKubeVIP follows lbClassFilterLegacy and, where that is turned off,
// lbClassFilter of pkg/services/watch_services.go.
func (h *Handles) takeAsKubeVIP(c container) {
	class := c.setting("lbClassName", "lb_class_name", "kube-vip.io/kube-vip-class")
	only := c.on("lbClassOnly", "lb_class_only")
	if c.setting("lbClassNameLegacyHandling", "lb_class_legacy_handling", "true") != "true" {
		only = class != ""
	}
	h.All, h.Classes = !only, []string{class}
	h.Ignores = []string{"kube-vip.io/ignore=true"}
}

// kubeVIPHolds returns the lease for all Services, and those of Services of their
// own: by default kubevip-NAME in the Service's namespace, or what the Service's
// annotation says (pkg/lease/lease.go).
func (in *inventory) kubeVIPHolds(w workload, c container) []Hold {
	namespace, name := leaseOf(c.setting("servicesLeaseName", "svc_leasename", "plndr-svcs-lock"), w.namespace)
	holds := in.leaseHolds(namespace, name, nil)
	own := func(service, namespace, name string) {
		for _, h := range in.leaseHolds(namespace, name, nil) {
			h.Service = service
			holds = append(holds, h)
		}
	}
	for _, l := range in.leases {
		service, ok := strings.CutPrefix(l.Name, "kubevip-")
		if key := l.Namespace + "/" + service; ok && in.kubeVIPLeases[key] == "" {
			own(key, l.Namespace, l.Name)
		}
	}
	for _, service := range slices.Sorted(maps.Keys(in.kubeVIPLeases)) {
		home, _, _ := strings.Cut(service, "/")
		namespace, name := leaseOf(in.kubeVIPLeases[service], home)
		own(service, namespace, name)
	}
	return holds
}

// leaseOf takes apart a lease's name, which may begin with a namespace.
func leaseOf(text, home string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return namespace, name
	}
	return home, text
}

// ciliumPolicies returns a controller for each CiliumL2AnnouncementPolicy that
// is in force (pkg/l2announcer/l2announcer.go).
func (in *inventory) ciliumPolicies() []Controller {
	config, known := in.configs["cilium-config"]
	if known && config.Data["enable-l2-announcements"] != "true" {
		return nil
	}
	var found []Controller
	for _, u := range in.ofKind("CiliumL2AnnouncementPolicy", "cilium.io") {
		spec := field(u, "spec")
		loadBalancer, external := spec["loadBalancerIPs"] == true, spec["externalIPs"] == true
		if !loadBalancer && !external {
			continue
		}
		c := Controller{Kind: KindCilium, Name: "ciliuml2announcementpolicy/" + u.GetName(), Protocol: ProtocolLayer2, PerService: true,
			Nodes: in.selectedNodes(spec["nodeSelector"]), Why: "an L2 announcement policy of Cilium",
			Handles: Handles{All: loadBalancer, ExternalIPs: external}}
		if loadBalancer {
			c.Handles.Classes = []string{"io.cilium/l2-announcer"}
		}
		if s, ok := spec["serviceSelector"]; ok {
			c.Handles.Selectors = []Selector{selectorOf(s)}
		}
		for _, l := range in.leases {
			// The lease's name is cilium-l2announce-NAMESPACE-NAME, which cannot be taken
			// apart without the Services: Expected compares it whole.
			if strings.HasPrefix(l.Name, "cilium-l2announce-") {
				c.Holds = append(c.Holds, in.leaseHolds(l.Namespace, l.Name, nil)...)
			}
		}
		found = append(found, c)
	}
	return found
}

// openELB returns OpenELB. From 0.6 on a DaemonSet of speakers announces, and elects
// by itself if layer 2 is on (pkg/speaker/layer2/options.go); before, its manager
// announced and noted the node on the Service (pkg/controllers/lb/controller.go, 0.5).
func (in *inventory) openELB(from container) Controller {
	_, base := from.image()
	c := Controller{Hashes: base == "openelb-speaker" && from.flag("enable-layer2", "false") == "true", Kind: KindOpenELB, Handles: Handles{Annotations: []string{"lb.kubesphere.io/v1alpha1=openelb"}},
		Why: "OpenELB announces Services that are annotated for it"}
	for _, eip := range in.ofKind("Eip", "network.kubesphere.io") {
		switch field(eip, "spec")["protocol"] {
		case "layer2":
			c.Protocol = ProtocolLayer2
		case "bgp", nil:
			if c.Protocol == "" {
				c.Protocol = ProtocolBGP
			}
		}
	}
	return c
}

// calico returns Calico if it tells routers about LoadBalancer IPs. Its answers
// by proxy ARP are for pods' default gateway and have nothing to do with VIPs.
func (in *inventory) calico() (Controller, bool) {
	c := Controller{Kind: KindCalico, Protocol: ProtocolBGP, Handles: Handles{AnyClass: true},
		Why: "Calico's BGPConfiguration lists serviceLoadBalancerIPs"}
	for _, u := range append(in.ofKind("BGPConfiguration", "crd.projectcalico.org"), in.ofKind("BGPConfiguration", "projectcalico.org")...) {
		list, _ := field(u, "spec")["serviceLoadBalancerIPs"].([]any)
		for _, item := range list {
			entry, _ := item.(map[string]any)
			text, _ := entry["cidr"].(string)
			if p, err := netip.ParsePrefix(text); err == nil {
				c.Handles.Prefixes = append(c.Handles.Prefixes, p.Masked())
			}
		}
	}
	return c, len(c.Handles.Prefixes) > 0
}

// antrea returns Antrea if it has egress addresses or serves external IPs, which
// stands behind a feature gate (docs/service-loadbalancer.md).
func (in *inventory) antrea() (Controller, bool) {
	c := Controller{Kind: KindAntrea, Protocol: ProtocolLayer2}
	if in.antreaGate("ServiceExternalIP") {
		c.Handles.Annotations = []string{"service.antrea.io/external-ip-pool"}
		c.Why = "Antrea's ServiceExternalIP is on"
	}
	for _, u := range in.ofKind("Egress", "crd.antrea.io") {
		spec, status := field(u, "spec"), field(u, "status")
		node, _ := status["egressNode"].(string)
		for _, text := range append(texts(spec["egressIP"], spec["egressIPs"]), texts(status["egressIP"])...) {
			a, err := netip.ParseAddr(text)
			if err != nil || slices.Contains(c.Handles.Addresses, a) {
				continue
			}
			c.Handles.Addresses = append(c.Handles.Addresses, a)
			if node != "" {
				c.Holds = append(c.Holds, Hold{Object: "egress/" + u.GetName(), Node: node, Addr: a})
			}
		}
	}
	if c.Why == "" {
		c.Why = "Antrea holds egress addresses"
	}
	return c, len(c.Handles.Annotations)+len(c.Handles.Addresses) > 0
}

func (in *inventory) antreaGate(name string) bool {
	for _, cm := range in.configs {
		if !strings.HasPrefix(cm.Name, "antrea-config") {
			continue
		}
		var conf struct {
			FeatureGates map[string]bool `json:"featureGates"`
		}
		if yaml.Unmarshal([]byte(cm.Data["antrea-agent.conf"]), &conf) == nil && conf.FeatureGates[name] {
			return true
		}
	}
	return false
}

// keepalived returns a set of keepalived pods: of a KeepalivedGroup, for whose
// annotation the operator looks, or with a configuration that is out of sight.
func (in *inventory) keepalived(w workload) Controller {
	c := Controller{Kind: KindKeepalived, Protocol: ProtocolLayer2, PerService: true}
	for _, u := range in.ofKind("KeepalivedGroup", "redhatcop.redhat.io") {
		if u.GetNamespace() == w.namespace && u.GetName() == w.name {
			c.Handles.Annotations = []string{"keepalived-operator.redhat-cop.io/keepalivedgroup=" + w.namespace + "/" + w.name}
			c.Why = "keepalived of the group " + w.namespace + "/" + w.name
			return c
		}
	}
	c.Handles.Unclear = true
	c.Why = "keepalived runs; which addresses it holds stands in its own configuration"
	return c
}

// kubeRouter returns kube-router if its service proxy puts VIPs on kube-dummy-if
// or if it tells routers about them.
func kubeRouter(c container) (Controller, bool) {
	proxy := c.flag("run-service-proxy", "true") == "true"
	tells := c.flag("run-router", "true") == "true" && c.flag("advertise-loadbalancer-ip", "false") == "true"
	found := Controller{Kind: KindKubeRouter, Handles: Handles{AnyClass: true, ExternalIPs: true}}
	switch {
	case proxy:
		found.Protocol = ProtocolKernel
		found.Why = "kube-router's service proxy puts VIPs on kube-dummy-if of every node"
	case tells:
		found.Protocol = ProtocolBGP
		found.Why = "kube-router tells routers about LoadBalancer IPs"
	}
	return found, proxy || tells
}
