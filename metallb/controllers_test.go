package metallb_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

func objectsOf(t *testing.T, documents ...string) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, d := range documents {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(d), &u.Object))
		objects = append(objects, u)
	}
	return objects
}

// readControllers makes a State of one of the real faults in
// testdata/controllers.
func readControllers(t *testing.T, name string) metallb.State {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "controllers", name+".yaml"))
	require.NoError(t, err)
	return metallb.FromObjects(objectsOf(t, strings.Split(string(text), "\n---\n")...)...)
}

// workload returns a DaemonSet of one container.
func workload(namespace, name, image, rest string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: %s, name: %s}, spec: {selector: {matchLabels: {k: %s}},
  template: {metadata: {labels: {k: %s}}, spec: {containers: [{name: c, image: %q%s}]}}}}`, namespace, name, name, name, image, rest)
}

func TestFindControllersKinds(t *testing.T) {
	t.Parallel()
	const eip = `{apiVersion: network.kubesphere.io/v1alpha2, kind: Eip, metadata: {name: e}, spec: {protocol: layer2}}`
	for name, tc := range map[string]struct {
		docs     []string
		kind     metallb.ControllerKind // empty: nothing is found
		protocol metallb.Protocol
		handles  metallb.Handles
	}{
		"metallb": {[]string{workload("m", "speaker", "quay.io/metallb/speaker:v0.16.1", "")},
			metallb.KindMetalLB, metallb.ProtocolLayer2, metallb.Handles{All: true}},
		"metallb by bitnami, of a class": {[]string{workload("m", "speaker", "docker.io/bitnami/metallb-speaker@sha256:0", `, args: [--lb-class=x/y]`)},
			metallb.KindMetalLB, metallb.ProtocolLayer2, metallb.Handles{Classes: []string{"x/y"}}},
		"another's speaker":  {[]string{workload("m", "speaker", "example.org/audio/speaker:1", "")}, "", "", metallb.Handles{}},
		"metallb controller": {[]string{workload("m", "controller", "quay.io/metallb/controller:v0.16.1", "")}, "", "", metallb.Handles{}},
		"kube-vip by flags": {[]string{workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7", `, args: [manager, --arp, --services, --lbClassOnly]`)},
			metallb.KindKubeVIP, metallb.ProtocolLayer2, metallb.Handles{Classes: []string{"kube-vip.io/kube-vip-class"}, Ignores: []string{"kube-vip.io/ignore=true"}}},
		"kube-vip of its class alone": {[]string{workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7",
			`, env: [{name: bgp_enable, value: "true"}, {name: svc_enable, value: "true"}, {name: lb_class_name, value: x/y}, {name: lb_class_legacy_handling, value: "false"}]`)},
			metallb.KindKubeVIP, metallb.ProtocolBGP, metallb.Handles{Classes: []string{"x/y"}, Ignores: []string{"kube-vip.io/ignore=true"}}},
		"kube-vip for the control plane": {[]string{workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7",
			`, env: [{name: vip_arp, value: "true"}, {name: cp_enable, value: "true"}, {name: address, value: 192.0.2.9}]`)},
			metallb.KindKubeVIP, metallb.ProtocolLayer2, metallb.Handles{Addresses: addrs("192.0.2.9")}},
		"kube-vip for nothing": {[]string{workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7", `, env: [{name: svc_enable, value: maybe}]`)}, "", "", metallb.Handles{}},
		"kube-vip's provider":  {[]string{workload("kube-system", "p", "ghcr.io/kube-vip/kube-vip-cloud-provider:v0.0.10", "")}, "", "", metallb.Handles{}},
		"purelb": {[]string{workload("purelb", "lbnodeagent", "registry.example.org:5000/purelb/lbnodeagent:v0.9", "")},
			metallb.KindPureLB, metallb.ProtocolLayer2, metallb.Handles{Annotations: []string{"purelb.io/allocated-by=PureLB"}}},
		"openelb": {[]string{workload("openelb-system", "openelb-speaker", "kubesphere/openelb-speaker:v0.6.0", ""), eip},
			metallb.KindOpenELB, metallb.ProtocolLayer2, metallb.Handles{Annotations: []string{"lb.kubesphere.io/v1alpha1=openelb"}}},
		"servicelb": {[]string{`{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: kube-system, name: svclb-web-0f1e, labels: {svccontroller.k3s.cattle.io/svcname: web, svccontroller.k3s.cattle.io/svcnamespace: default}}}`},
			metallb.KindServiceLB, metallb.ProtocolNode, metallb.Handles{Services: []string{"default/web"}}},
		"calico without BGP for Services": {[]string{workload("calico-system", "calico-node", "docker.io/calico/node:v3.28", "")}, "", "", metallb.Handles{}},
		"calico": {[]string{workload("calico-system", "calico-node", "docker.io/calico/node:v3.28", ""),
			`{apiVersion: crd.projectcalico.org/v1, kind: BGPConfiguration, metadata: {name: default}, spec: {serviceLoadBalancerIPs: [{cidr: 192.0.2.7/24}, {cidr: x}, 7]}}`},
			metallb.KindCalico, metallb.ProtocolBGP, metallb.Handles{AnyClass: true, Prefixes: prefixes("192.0.2.0/24")}},
		"antrea without either": {[]string{workload("kube-system", "antrea-agent", "antrea/antrea-agent-ubuntu:v2.0", "")}, "", "", metallb.Handles{}},
		"antrea": {[]string{workload("kube-system", "antrea-agent", "antrea/antrea-agent-ubuntu:v2.0", ""),
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: antrea-config-abc, namespace: kube-system}\ndata: {antrea-agent.conf: \"featureGates:\\n  ServiceExternalIP: true\\n\"}"},
			metallb.KindAntrea, metallb.ProtocolLayer2, metallb.Handles{Annotations: []string{"service.antrea.io/external-ip-pool"}}},
		"keepalived of somebody": {[]string{workload("lb", "keepalived", "osixia/keepalived:2.0.20", "")},
			metallb.KindKeepalived, metallb.ProtocolLayer2, metallb.Handles{Unclear: true}},
		"kube-router": {[]string{workload("kube-system", "kube-router", "cloudnativelabs/kube-router", `, args: ["--run-service-proxy"]`)},
			metallb.KindKubeRouter, metallb.ProtocolKernel, metallb.Handles{AnyClass: true, ExternalIPs: true}},
		"kube-router for BGP": {[]string{workload("kube-system", "kube-router", "cloudnativelabs/kube-router:v2", `, command: [kube-router, "--run-service-proxy=false", "--advertise-loadbalancer-ip=true"]`)},
			metallb.KindKubeRouter, metallb.ProtocolBGP, metallb.Handles{AnyClass: true, ExternalIPs: true}},
		"kube-router for policies": {[]string{workload("kube-system", "kube-router", "cloudnativelabs/kube-router", `, args: ["--run-service-proxy=false"]`)}, "", "", metallb.Handles{}},
		"cilium": {[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system}, data: {enable-l2-announcements: "true"}}`,
			`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}, spec: {loadBalancerIPs: true, serviceSelector: {matchLabels: {a: b}}}}`},
			metallb.KindCilium, metallb.ProtocolLayer2, metallb.Handles{All: true, Classes: []string{"io.cilium/l2-announcer"}, Selectors: []metallb.Selector{{Match: map[string]string{"a": "b"}}}}},
		"cilium with a selector that it refuses": {[]string{`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}, spec: {externalIPs: true, serviceSelector: [7]}}`},
			metallb.KindCilium, metallb.ProtocolLayer2, metallb.Handles{ExternalIPs: true, Selectors: []metallb.Selector{{Expressions: []metallb.Requirement{{}}}}}},
		"cilium turned off": {[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system}, data: {}}`,
			`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}, spec: {loadBalancerIPs: true}}`}, "", "", metallb.Handles{}},
		"cilium for nothing": {[]string{`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}}`}, "", "", metallb.Handles{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := metallb.FindControllers(objectsOf(t, tc.docs...)...)
			require.NotNil(t, found)
			if tc.kind == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, tc.kind, found[0].Kind)
			assert.Equal(t, tc.protocol, found[0].Protocol)
			assert.Equal(t, tc.handles, found[0].Handles)
			assert.NotEmpty(t, found[0].Why)
		})
	}
}

func TestControllerTakes(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("192.0.2.9")
	lb := metallb.Service{Namespace: "default", Name: "web", Type: "LoadBalancer", Addresses: []netip.Addr{vip},
		Labels: metallb.Labels{"a": "b"}, Annotations: metallb.Labels{"k": "v"}}
	with := func(edit func(*metallb.Service)) metallb.Service { s := lb; edit(&s); return s }
	classed := with(func(s *metallb.Service) { s.Class = "x" })
	nodePort := with(func(s *metallb.Service) { s.Type, s.ExternalIPs, s.Addresses = "NodePort", []netip.Addr{vip}, nil })
	selector := func(key, value string) []metallb.Selector {
		return []metallb.Selector{{Match: map[string]string{key: value}}}
	}
	for name, tc := range map[string]struct {
		handles metallb.Handles
		svc     metallb.Service
		want    metallb.Taking
	}{
		"nothing":                 {metallb.Handles{}, lb, metallb.TakesNot},
		"all":                     {metallb.Handles{All: true}, lb, metallb.Takes},
		"all, but it has a class": {metallb.Handles{All: true}, classed, metallb.TakesNot},
		"any class":               {metallb.Handles{AnyClass: true}, classed, metallb.Takes},
		"its class":               {metallb.Handles{Classes: []string{"x"}}, classed, metallb.Takes},
		"a class, it has none":    {metallb.Handles{Classes: []string{""}}, lb, metallb.TakesNot},
		"all, of type NodePort":   {metallb.Handles{All: true}, nodePort, metallb.TakesNot},
		"external IPs":            {metallb.Handles{ExternalIPs: true}, nodePort, metallb.Takes},
		"external IPs, none":      {metallb.Handles{ExternalIPs: true}, lb, metallb.TakesNot},
		"selected":                {metallb.Handles{All: true, Selectors: selector("a", "b")}, lb, metallb.Takes},
		"not selected":            {metallb.Handles{All: true, Selectors: selector("a", "c")}, lb, metallb.TakesNot},
		"selected by namespace":   {metallb.Handles{All: true, Selectors: selector("io.kubernetes.service.namespace", "default")}, lb, metallb.Takes},
		"in the prefix":           {metallb.Handles{All: true, Prefixes: prefixes("192.0.2.0/28")}, lb, metallb.Takes},
		"not in the prefix":       {metallb.Handles{All: true, Prefixes: prefixes("192.0.3.0/28")}, lb, metallb.TakesNot},
		"annotated":               {metallb.Handles{Annotations: []string{"k"}}, lb, metallb.Takes},
		"annotated as it says":    {metallb.Handles{Annotations: []string{"k=v"}}, classed, metallb.Takes},
		"annotated otherwise":     {metallb.Handles{Annotations: []string{"k=w"}}, lb, metallb.TakesNot},
		"ignored":                 {metallb.Handles{All: true, Ignores: []string{"k=v"}}, lb, metallb.TakesNot},
		"its Service":             {metallb.Handles{Services: []string{"default/web"}}, lb, metallb.Takes},
		"its address":             {metallb.Handles{Addresses: []netip.Addr{vip}}, metallb.Service{}, metallb.Takes},
		"unclear":                 {metallb.Handles{Unclear: true}, lb, metallb.MayTake},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := metallb.Controller{Handles: tc.handles}
			got, why := c.Takes(tc.svc, vip)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.want == metallb.TakesNot, why == "")
			if len(tc.handles.Addresses) == 0 {
				got, _ = c.Takes(tc.svc, netip.Addr{})
				assert.Equal(t, tc.want, got, "for any of its addresses")
			}
		})
	}
}

func TestControllersRealCases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vip   string
		kinds string // of all that is found
		rule  string
		says  string // part of the message
		node  string // that is expected
	}{
		"a06": {"192.0.2.240", "kube-router", "other-announcer", "kube-dummy-if", ""},
		"a10": {"192.0.2.244", "metallb", "", "", ""},
		"a13": {"192.0.2.240", "", "", "", ""},
		"d07": {"198.51.100.191", "kube-vip metallb", "second-announcer", "on ctl-1 by lease/kube-system/plndr-svcs-lock", "ctl-1"},
		"d12": {"192.0.2.30", "antrea", "other-announcer", "on node-a by egress/egress-web", "node-a"},
		"d13": {"192.0.2.240", "keepalived", "other-announcer", "keepalived-operator.redhat-cop.io/keepalivedgroup", ""},
		"f10": {"192.0.2.240", "openelb", "other-announcer", "lb.kubesphere.io/v1alpha1=openelb", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := readControllers(t, name)
			var kinds []string
			for _, c := range s.Controllers {
				kinds = append(kinds, string(c.Kind))
			}
			assert.Equal(t, tc.kinds, strings.Join(kinds, " "))
			vip := netip.MustParseAddr(tc.vip)
			var svc *metallb.Service
			if i := slices.IndexFunc(s.Services, func(svc metallb.Service) bool { return slices.Contains(svc.Addresses, vip) }); i >= 0 {
				svc = &s.Services[i]
			}
			reasons := s.Elector().AnnouncerReasons(svc, vip, nil)
			if tc.rule == "" {
				assert.Empty(t, reasons)
				return
			}
			require.Len(t, reasons, 1)
			assert.Equal(t, tc.rule, string(reasons[0].Rule))
			if tc.says == "kube-dummy-if" {
				assert.Contains(t, s.Controllers[0].Why, tc.says)
			} else {
				assert.Contains(t, reasons[0].Message, tc.says)
			}
			all := s.Elector().Announcers(svc, vip, nil)
			assert.Equal(t, tc.node, all[len(all)-1].Expected)
		})
	}
}

// A vip that kube-vip holds for the API server is told even where it is no
// Service's.
func TestAnnouncersControlPlane(t *testing.T) {
	t.Parallel()
	s := readControllers(t, "d07")
	found := s.Elector().Announcers(nil, netip.MustParseAddr("198.51.100.9"), nil)
	require.Len(t, found, 1)
	assert.Equal(t, metallb.KindKubeVIP, found[0].Controller.Kind)
	assert.Equal(t, metallb.Takes, found[0].Taking)
}

func TestAnnouncersMetalLB(t *testing.T) {
	t.Parallel()
	c := metallbtest.New("w1", "w2")
	c.AddService("default/web", "10.0.3.20", "w1").Local = true
	c.AddService("default/far", "192.0.2.1", "w1")
	s := metallb.FromObjects(c.Objects()...)
	e := s.Elector()
	vip := s.Services[1].Addresses[0]
	require.Equal(t, "web", s.Services[1].Name)
	found := e.Announcers(&s.Services[1], vip, nil)
	require.Len(t, found, 1)
	assert.Equal(t, "w1", found[0].Expected)
	assert.Equal(t, []string{"w1", "w2"}, found[0].Controller.Nodes)
	assert.Empty(t, e.AnnouncerReasons(&s.Services[1], vip, nil))
	assert.Empty(t, e.Announcers(&s.Services[0], s.Services[0].Addresses[0], nil), "in no pool")

	// A second MetalLB without a class takes the same Services; its pools are its own.
	other := metallbtest.New("w1")
	other.Namespace = "other"
	c.Extra = other.Objects()
	s = metallb.FromObjects(c.Objects()...)
	assert.Equal(t, []string{"second-announcer"}, rules(s.Elector().AnnouncerReasons(&s.Services[1], vip, nil)))
}

func TestAnnouncersExpect(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("192.0.2.9")
	svc := metallb.Service{Namespace: "default", Name: "web", Type: "LoadBalancer", Addresses: []netip.Addr{vip}}
	s := metallb.State{Services: []metallb.Service{svc}, Controllers: []metallb.Controller{{Kind: metallb.KindPureLB, Handles: metallb.Handles{All: true}}}}
	expect := func(c metallb.Controller, svc metallb.Service, addr netip.Addr) (string, string) {
		return "n-" + svc.Name + "-" + addr.String(), string(c.Kind)
	}
	reasons := s.Elector().AnnouncerReasons(&svc, vip, expect)
	require.Len(t, reasons, 1)
	assert.Equal(t, "n-web-192.0.2.9", reasons[0].Node)
}

func TestControllerChosen(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("192.0.2.9")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	svc := metallb.Service{Namespace: "default", Name: "web", Annotations: metallb.Labels{
		"kube-vip.io/vipHost": "noted", "purelb.io/announcing-IPv4": "p1,eth0", "layer2.openelb.kubesphere.io/v1alpha1": "o1"}}
	common := metallb.Hold{Object: "lease/kube-system/plndr-svcs-lock", Node: "n1", Renewed: at, Duration: 15 * time.Second}
	own := metallb.Hold{Object: "lease/default/kubevip-web", Node: "n2", Service: "default/web"}
	for name, tc := range map[string]struct {
		c     metallb.Controller
		after time.Duration
		want  string
	}{
		"common lease":          {metallb.Controller{Kind: metallb.KindKubeVIP, Holds: []metallb.Hold{own, common}}, 0, "n1"},
		"common lease, expired": {metallb.Controller{Kind: metallb.KindKubeVIP, Holds: []metallb.Hold{own, common}}, 16 * time.Second, "noted"},
		"own lease":             {metallb.Controller{Kind: metallb.KindKubeVIP, PerService: true, Holds: []metallb.Hold{common, own}}, 0, "n2"},
		"another's lease":       {metallb.Controller{Kind: metallb.KindKubeVIP, PerService: true, Holds: []metallb.Hold{{Node: "n3", Service: "default/other"}}}, 0, "noted"},
		"another address":       {metallb.Controller{Kind: metallb.KindAntrea, Holds: []metallb.Hold{{Node: "n3", Addr: netip.MustParseAddr("192.0.2.8")}}}, 0, ""},
		"cilium": {metallb.Controller{Kind: metallb.KindCilium, Holds: []metallb.Hold{
			{Object: "lease/kube-system/cilium-l2announce-default-web-2", Node: "n4"}, {Object: "lease/kube-system/cilium-l2announce-default-web", Node: "n5"}}}, 0, "n5"},
		"purelb":  {metallb.Controller{Kind: metallb.KindPureLB}, 0, "p1"},
		"openelb": {metallb.Controller{Kind: metallb.KindOpenELB}, 0, "o1"},
		"unknown": {metallb.Controller{}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, because := tc.c.Chosen(svc, vip, at.Add(tc.after))
			assert.Equal(t, tc.want, node)
			assert.Equal(t, node == "", because == "")
		})
	}
}

// Who holds kube-vip's common lease announces a Local Service only with an endpoint.
func TestControllerChosenByKubeVIPLocal(t *testing.T) {
	t.Parallel()
	svc := metallb.Service{Namespace: "default", Name: "web", Policy: metallb.PolicyLocal, Endpoints: []metallb.Endpoint{{Node: "n2", Ready: true}}}
	unseen := svc
	unseen.Endpoints = nil
	for name, tc := range map[string]struct {
		hold       metallb.Hold
		perService bool
		svc        metallb.Service
		want       string
	}{
		"no endpoint there":    {metallb.Hold{Object: "l", Node: "n1"}, false, svc, ""},
		"an endpoint there":    {metallb.Hold{Object: "l", Node: "n2"}, false, svc, "n2"},
		"endpoints not seen":   {metallb.Hold{Object: "l", Node: "n1"}, false, unseen, "n1"},
		"an election for each": {metallb.Hold{Object: "l", Node: "n1", Service: "default/web"}, true, svc, "n1"},
		"Cluster, no endpoint": {metallb.Hold{Object: "l", Node: "n1"}, false, metallb.Service{Endpoints: svc.Endpoints}, "n1"},
	} {
		c := metallb.Controller{Kind: metallb.KindKubeVIP, PerService: tc.perService, Holds: []metallb.Hold{tc.hold}}
		got, _ := c.Chosen(tc.svc, netip.MustParseAddr("192.0.2.9"), time.Time{})
		assert.Equal(t, tc.want, got, name)
	}
}

// What PureLB notes of several addresses, or in older versions of one.
func TestControllerChosenByPureLB(t *testing.T) {
	t.Parallel()
	c := metallb.Controller{Kind: metallb.KindPureLB}
	vip := netip.MustParseAddr("192.0.2.9")
	for value, want := range map[string]string{
		"":                                     "",
		"p1,eth0":                              "p1",
		"p1":                                   "p1",
		"p1,eth0,192.0.2.9":                    "p1",
		"p1,eth0,192.0.2.8":                    "",
		"p1,e,0,192.0.2.8 p2,e,0,192.0.2.9":    "p2",
		"p1,eth0 p2,eth0":                      "", // whose, it does not say
		"p1,eth0,2001:db8::1 p2,eth0,nonsense": "",
	} {
		got, _ := c.Chosen(metallb.Service{Annotations: metallb.Labels{"purelb.io/announcing-IPv4": value}}, vip, time.Time{})
		assert.Equal(t, want, got, value)
	}
}

// The order of the nodes was made by sha256sum.
func TestControllerChosenByOpenELB(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("10.0.3.20")
	c := metallb.Controller{Kind: metallb.KindOpenELB, Hashes: true, Nodes: []string{"w1", "w2", "w3"}}
	local := func(nodes ...string) metallb.Service {
		svc := metallb.Service{Policy: metallb.PolicyLocal, Endpoints: []metallb.Endpoint{}}
		for _, n := range nodes {
			svc.Endpoints = append(svc.Endpoints, metallb.Endpoint{Node: n, Ready: n != "w3"})
		}
		return svc
	}
	for name, tc := range map[string]struct {
		c    metallb.Controller
		svc  metallb.Service
		vip  netip.Addr
		want string
	}{
		"all":                         {c, metallb.Service{}, vip, "w3"},
		"Local":                       {c, local("w1", "w2", "w3"), vip, "w2"},
		"Local, one":                  {c, local("w1"), vip, "w1"},
		"Local, none":                 {c, local(), vip, ""},
		"Local, endpoints not seen":   {c, metallb.Service{Policy: metallb.PolicyLocal}, vip, ""},
		"any address":                 {c, metallb.Service{}, netip.Addr{}, ""},
		"no speaker":                  {metallb.Controller{Kind: metallb.KindOpenELB, Hashes: true}, metallb.Service{}, vip, ""},
		"without election, as in 0.5": {metallb.Controller{Kind: metallb.KindOpenELB, Nodes: c.Nodes}, metallb.Service{}, vip, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, because := tc.c.Chosen(tc.svc, tc.vip, time.Time{})
			assert.Equal(t, tc.want, got)
			assert.Equal(t, got == "", because == "")
		})
	}
}

// Leases name the nodes that elections gave.
func TestFindControllersHolds(t *testing.T) {
	t.Parallel()
	lease := func(namespace, name, holder string) string {
		return fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: %s, name: %s}, spec: {holderIdentity: %q, leaseDurationSeconds: 15, renewTime: "2026-01-02T03:04:05.000000Z"}}`, namespace, name, holder)
	}
	node := func(name, role string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {role: %s}}}`, name, role)
	}
	found := metallb.FindControllers(objectsOf(t,
		workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7", `, args: [--services, --servicesElection, --controlplane, --address, 192.0.2.9]`),
		`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}, spec: {loadBalancerIPs: true, nodeSelector: {matchLabels: {role: edge}}}}`,
		node("n2", "edge"), node("n1", "edge"), node("n3", "core"),
		lease("kube-system", "plndr-svcs-lock", ""), lease("kube-system", "plndr-cp-lock", "n1"), lease("default", "kubevip-web", "n2"),
		lease("kube-system", "cilium-l2announce-default-web", "n3"))...)
	require.Len(t, found, 2)
	cilium, kubeVIP := found[0], found[1]
	assert.Equal(t, []string{"n1", "n2"}, cilium.Nodes)
	svc := metallb.Service{Namespace: "default", Name: "web"}
	at := time.Date(2026, 1, 2, 3, 4, 20, 0, time.UTC)
	for addr, want := range map[string]string{"192.0.2.9": "n1", "192.0.2.8": "n2"} {
		got, _ := kubeVIP.Chosen(svc, netip.MustParseAddr(addr), at)
		assert.Equal(t, want, got, addr)
	}
	got, _ := cilium.Chosen(svc, netip.MustParseAddr("192.0.2.8"), at)
	assert.Equal(t, "n3", got)
	got, _ = cilium.Chosen(svc, netip.MustParseAddr("192.0.2.8"), at.Add(time.Second))
	assert.Empty(t, got, "it ran out")
}

// OpenELB's speaker elects only where it is told to announce by layer 2.
func TestFindControllersOpenELBElects(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"": false, "--enable-layer2=false": false, "--enable-layer2=true": true} {
		found := metallb.FindControllers(objectsOf(t, workload("openelb-system", "openelb-speaker", "kubesphere/openelb-speaker:v0.6.0", fmt.Sprintf(`, args: [%q]`, args)))...)
		require.Len(t, found, 1)
		assert.Equal(t, want, found[0].Hashes, args)
	}
}

// A Service's lease of the usual name, left from before it was annotated with
// another, says nothing.
func TestFindControllersLeaseLeftBehind(t *testing.T) {
	t.Parallel()
	lease := func(namespace, name, holder string) string {
		return fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: %s, name: %s}, spec: {holderIdentity: %s}}`, namespace, name, holder)
	}
	found := metallb.FindControllers(objectsOf(t,
		workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v1.0.0", `, args: [--services, --servicesElection]`),
		`{apiVersion: v1, kind: Service, metadata: {namespace: default, name: web, annotations: {kube-vip.io/leaseName: infra/shared}}}`,
		lease("default", "kubevip-web", "n1"), lease("infra", "shared", "n2"))...)
	require.Len(t, found, 1)
	node, because := found[0].Chosen(metallb.Service{Namespace: "default", Name: "web"}, netip.MustParseAddr("192.0.2.9"), time.Time{})
	assert.Equal(t, "n2", node)
	assert.Equal(t, "lease/infra/shared", because)
}

// Static pods of one program are one controller, and pods of a DaemonSet are
// none of their own.
func TestFindControllersPods(t *testing.T) {
	t.Parallel()
	pod := func(node string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {namespace: kube-system, name: kube-vip-%s, labels: {k: kube-vip}}, spec: {nodeName: %s, containers: [{name: kube-vip, image: "ghcr.io/kube-vip/kube-vip:v0.8.7", env: [{name: svc_enable, value: "true"}]}]}}`, node, node)
	}
	found := metallb.FindControllers(objectsOf(t, pod("n2"), pod("n1"))...)
	require.Len(t, found, 1)
	assert.Equal(t, []string{"n1", "n2"}, found[0].Nodes)
	found = metallb.FindControllers(objectsOf(t, pod("n2"), pod("n1"), workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7", `, args: [--services]`))...)
	require.Len(t, found, 1)
	assert.Equal(t, "daemonset/kube-vip", found[0].Name)
	assert.Equal(t, []string{"n1", "n2"}, found[0].Nodes)
}

func TestFindControllersOddObjects(t *testing.T) {
	t.Parallel()
	var none *corev1.Pod
	raw := &corev1.List{Items: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}`)}, {Raw: []byte(`nonsense`)}}}
	assert.Empty(t, metallb.FindControllers(nil, none, raw, &unstructured.Unstructured{}, &unstructured.UnstructuredList{},
		&unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "apiVersion": "v1", "spec": func() {}}}))
}

func TestFindControllersListsInLists(t *testing.T) {
	t.Parallel()
	nested := func(depth int) runtime.Object {
		kubeRouter, err := yaml.YAMLToJSON([]byte(workload("kube-system", "kube-router", "cloudnativelabs/kube-router", "")))
		require.NoError(t, err)
		text := string(kubeRouter)
		for range depth - 1 {
			text = `{"apiVersion":"v1","kind":"List","items":[` + text + `]}`
		}
		return &corev1.List{Items: []runtime.RawExtension{{Raw: []byte(text)}}}
	}
	assert.Len(t, metallb.FindControllers(nested(1)), 1)
	assert.Len(t, metallb.FindControllers(nested(3)), 1)
	assert.Empty(t, metallb.FindControllers(nested(1000)))
}

func FuzzFindControllers(f *testing.F) {
	for _, doc := range []string{
		workload("kube-system", "kube-vip", "ghcr.io/kube-vip/kube-vip:v0.8.7", `, args: [--services, --address, x, "-", "--="]`),
		`{apiVersion: cilium.io/v2alpha1, kind: CiliumL2AnnouncementPolicy, metadata: {name: p}, spec: {loadBalancerIPs: true, nodeSelector: {matchExpressions: [{key: a, operator: x}]}}}`,
		`{apiVersion: crd.antrea.io/v1beta1, kind: Egress, metadata: {name: e}, spec: {egressIPs: [192.0.2.1, [x]], egressIP: {}}, status: []}`,
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: plndr-svcs-lock}, spec: {holderIdentity: a, leaseDurationSeconds: -1}}`,
		`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [7]}]}`,
	} {
		text, err := yaml.YAMLToJSON([]byte(doc))
		require.NoError(f, err)
		f.Add(text)
	}
	antrea := workload("kube-system", "antrea-agent", "antrea/antrea-agent-ubuntu:v2.0", "")
	f.Fuzz(func(t *testing.T, text []byte) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(text, &u.Object) != nil {
			return
		}
		objects := append(objectsOf(t, antrea), u)
		found := metallb.FindControllers(objects...)
		for _, c := range found {
			assert.NotEmpty(t, c.Kind)
			_, _ = c.Takes(metallb.Service{Type: "LoadBalancer"}, netip.Addr{})
		}
		assert.Equal(t, found, metallb.FindControllers(objects...), "equal objects, equal controllers")
	})
}
