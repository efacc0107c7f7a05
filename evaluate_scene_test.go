package strictarp_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
	"github.com/strictarp/strictarp/sysctl"
)

// What newScene makes.
const (
	webVIP = "10.0.3.20"
	canary = "10.0.3.250" // nobody's
	web    = "default/web"
)

// scene is a cluster on one segment, in which all is well until a test edits it:
// nodes w1 to w3 with ens33 on 10.0.3.0/24, kube-proxy in ipvs mode with strictARP,
// and the Service default/web with the VIP 10.0.3.20, externalTrafficPolicy: Local
// and one endpoint on w1, which so is to announce it. The client 10.0.3.50 asked.
type scene struct {
	*metallbtest.Cluster
	t       testing.TB
	nodes   map[string]*strictarp.NodeFacts
	client  *strictarp.Vantage
	others  []*strictarp.Vantage // further vantages
	version string               // of the API server

	config      string   // the text that kube-proxy is told by its ConfigMap; empty: there is none
	flags       []string // of its DaemonSet, after --config
	noKubeProxy bool     // there is no such DaemonSet
	unset       bool     // DaemonSets were not asked for
}

func newScene(t testing.TB) *scene {
	s := &scene{Cluster: metallbtest.New("w1", "w2", "w3"), t: t, nodes: map[string]*strictarp.NodeFacts{}, version: "v1.34.3", config: configText("ipvs", "true")}
	s.AddService(web, webVIP, "w1").Local = true
	s.Announce(web, "w1", "ens33")
	for i, name := range []string{"w1", "w2", "w3"} {
		s.nodes[name] = s.node(name, i+1)
	}
	s.client = &strictarp.Vantage{Name: "client", Source: "packet socket", At: s.now(), Links: []strictarp.Link{
		{Name: "eth0", MAC: mac("client"), Up: true, Flags: 0x1003, Addrs: addrs("10.0.3.50/24")}}}
	s.ask(webVIP, from("w1"))
	s.cached(webVIP, "w1")
	return s
}

func (s *scene) now() time.Time { return metallbtest.Start().Add(time.Minute) }

// configText is what kubeadm writes, shortened.
func configText(mode, strict string) string {
	return fmt.Sprintf("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: %q\nipvs:\n  strictARP: %s\n", mode, strict)
}

// mac returns the MAC of a host: w1 to w9 have 02:00:5e:10:00:01 and so on.
func mac(host string) arpcheck.MAC {
	m := arpcheck.MAC{2, 0, 0x5e, 0x10}
	switch host {
	case "client":
		m[5] = 0x50
	case "router":
		m[5] = 0xfe
	case "stranger":
		m = arpcheck.MAC{0, 0x0c, 0x29, 1, 2, 3}
	default:
		name, nic, _ := strings.Cut(host, "/")
		m[5] = name[1] - '0'
		if nic != "" {
			m[4] = nic[len(nic)-1]
		}
	}
	return m
}

// addrs are of global scope, those of 127/8 of host scope.
func addrs(texts ...string) []strictarp.Address {
	list := []strictarp.Address{}
	for _, text := range texts {
		a := strictarp.Address{Prefix: netip.MustParsePrefix(text), Scope: strictarp.ScopeGlobal}
		if a.Prefix.Addr().IsLoopback() {
			a.Scope = strictarp.ScopeHost
		}
		list = append(list, a)
	}
	return list
}

func (s *scene) node(name string, i int) *strictarp.NodeFacts {
	own := fmt.Sprintf("10.0.3.%d", 10+i)
	n := &strictarp.NodeFacts{
		At: s.now(), Source: "netlink",
		Links: []strictarp.Link{
			{Name: "lo", Kind: "", Up: true, Loopback: true, Flags: 0x49, Addrs: addrs("127.0.0.1/8")},
			{Name: "ens33", MAC: mac(name), Up: true, Flags: 0x1043, Addrs: addrs(own + "/24")},
			{Name: "kube-ipvs0", Kind: "dummy", MAC: arpcheck.MAC{6, 1, 1, 1, 1, 1}, NoARP: true, Flags: 0x82, Addrs: addrs(webVIP + "/32")},
		},
		Sysctls: &sysctl.ARP{All: values(1, 2), Default: values(0, 0), Interfaces: map[string]sysctl.Values{
			"lo": values(0, 0), "ens33": values(0, 0), "kube-ipvs0": values(0, 0)}},
		Routes: []strictarp.Route{
			{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "ens33", Gateway: netip.MustParseAddr("10.0.3.1")},
			{Dst: netip.MustParsePrefix("10.0.3.0/24"), Link: "ens33", Source: netip.MustParseAddr(own)},
		},
		Neighbours: []arpcheck.Neighbour{},
	}
	s.runs(n, "ipvs", "true")
	return n
}

func values(ignore, announce int) sysctl.Values {
	return sysctl.Values{sysctl.ARPIgnore: ignore, sysctl.ARPAnnounce: announce, sysctl.ARPFilter: 0, sysctl.RPFilter: 0, sysctl.ProxyARP: 0, sysctl.Forwarding: 1}
}

// runs sets what a node's kube-proxy says that it runs with.
func (s *scene) runs(n *strictarp.NodeFacts, mode kubeproxy.Mode, strict string) {
	c, err := kubeproxy.Parse([]byte(configText(string(mode), strict)), kubeproxy.ParseOptions{})
	require.NoError(s.t, err)
	c.Source = kubeproxy.Source{Kind: kubeproxy.SourceConfigz}
	n.Running = &kubeproxy.Running{Source: "http://127.0.0.1:10249", Started: metallbtest.Start(), Mode: mode, Config: &c}
}

// loose makes a node's kernel answer for what it holds.
func (s *scene) loose(nodes ...string) {
	for _, name := range nodes {
		s.nodes[name].Sysctls.All = values(0, 0)
	}
}

// off turns strictARP off in what kube-proxy is told and runs with.
func (s *scene) off() {
	s.config = configText("ipvs", "false")
	for _, n := range s.nodes {
		s.runs(n, "ipvs", "false")
	}
}

// mode makes kube-proxy run in another one everywhere, and clean up after itself.
func (s *scene) mode(m kubeproxy.Mode) {
	s.config = configText(string(m), "false")
	for _, n := range s.nodes {
		s.runs(n, m, "false")
		n.Links = slices.DeleteFunc(n.Links, func(l strictarp.Link) bool { return l.Name == "kube-ipvs0" })
	}
}

// link returns an interface of a node, to be edited.
func (s *scene) link(node, name string) *strictarp.Link {
	n := s.nodes[node]
	i := slices.IndexFunc(n.Links, func(l strictarp.Link) bool { return l.Name == name })
	require.GreaterOrEqual(s.t, i, 0, "%s of %s", name, node)
	return &n.Links[i]
}

// nic adds one to a node.
func (s *scene) nic(node, name string, prefixes ...string) *strictarp.Link {
	n := s.nodes[node]
	n.Links = append(n.Links, strictarp.Link{Name: name, MAC: mac(node + "/" + name), Up: true, Flags: 0x1043, Addrs: addrs(prefixes...)})
	n.Sysctls.Interfaces[name] = values(0, 0)
	return s.link(node, name)
}

// hold puts addresses on a device of every node.
func (s *scene) hold(device string, prefixes ...string) {
	for name := range s.nodes {
		l := s.link(name, device)
		l.Addrs = append(l.Addrs, addrs(prefixes...)...)
	}
}

// persist gives a node a file below /etc/sysctl.d.
func (s *scene) persist(node, text string) {
	p, err := sysctl.ReadPersisted(fstest.MapFS{"etc/sysctl.d/90-arp.conf": &fstest.MapFile{Data: []byte(text)}})
	require.NoError(s.t, err)
	s.nodes[node].Persisted = &p
}

// log gives a node a speaker's log.
func (s *scene) log(node string, lines ...string) {
	l, err := metallb.ParseSpeakerLog(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	require.NoError(s.t, err)
	l.Node, l.Source = node, "log of "+node
	s.nodes[node].Speaker = &strictarp.SpeakerFacts{Log: &l}
}

// from is a responder that answered each of four rounds once, after the others.
func from(host string) arpcheck.Responder {
	return arpcheck.Responder{MAC: mac(host), Replies: 4}
}

// ask replaces what the client saw of an address in four rounds; the first of the
// answers was first in all.
func (s *scene) ask(target string, answers ...arpcheck.Responder) *arpcheck.Result {
	return probed(s.client, target, answers...)
}

func probed(v *strictarp.Vantage, target string, answers ...arpcheck.Responder) *arpcheck.Result {
	addr, begin := netip.MustParseAddr(target), metallbtest.Start()
	r := arpcheck.Result{Target: addr, Verdict: arpcheck.None, Vantage: v.Name, Started: begin, Ended: begin.Add(5 * time.Second),
		Rounds: 4, Responders: answers, Quality: arpcheck.Quality{Requests: 4}}
	if len(v.Links) > 0 {
		r.Interface, r.MAC, r.Sender = v.Links[0].Name, v.Links[0].MAC, arpcheck.Sender{Addr: v.Links[0].Addrs[0].Prefix.Addr()}
	}
	for i := range answers {
		answers[i].First, answers[i].Last = begin, r.Ended
		r.Verdict = arpcheck.Single
	}
	if len(answers) > 0 && answers[0].WonRounds == 0 {
		answers[0].WonRounds = 4
	}
	if len(answers) > 1 {
		r.Verdict = arpcheck.Multiple
	}
	i := slices.IndexFunc(v.Probes, func(p arpcheck.Result) bool { return p.Target == addr })
	if i < 0 {
		i, v.Probes = len(v.Probes), append(v.Probes, r)
	}
	v.Probes[i] = r
	return &v.Probes[i]
}

// cached replaces what the client's neighbour cache has of an address.
func (s *scene) cached(addr, host string) *arpcheck.Neighbour {
	n := arpcheck.Neighbour{Addr: netip.MustParseAddr(addr), MAC: mac(host), Link: "eth0", State: arpcheck.NeighbourReachable}
	i := slices.IndexFunc(s.client.Neighbours, func(o arpcheck.Neighbour) bool { return o.Addr == n.Addr })
	if i < 0 {
		i, s.client.Neighbours = len(s.client.Neighbours), append(s.client.Neighbours, n)
	}
	s.client.Neighbours[i] = n
	return &s.client.Neighbours[i]
}

// claim adds a frame that a vantage heard.
func claim(v *strictarp.Vantage, kind arpcheck.Kind, sender, host, target, to string) {
	at := metallbtest.Start()
	c := arpcheck.AddrClaim{Addr: netip.MustParseAddr(sender), Target: netip.MustParseAddr(target), To: arpcheck.MAC{255, 255, 255, 255, 255, 255},
		Claim: arpcheck.Claim{MAC: mac(host), Kind: kind, Frames: 3, First: at, Last: at}}
	if to != "" {
		c.To = mac(to)
	}
	v.Claims = append(v.Claims, c)
}

// extra adds objects of other programs.
func (s *scene) extra(objects ...runtime.Object) { s.Extra = append(s.Extra, objects...) }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(metallbtest.Start())}
}

// service adds a Service that is not as those of metallbtest.
func (s *scene) service(name string, spec corev1.ServiceSpec, ingress ...corev1.LoadBalancerIngress) {
	o := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta("default", name), Spec: spec}
	o.Status.LoadBalancer.Ingress = ingress
	s.extra(o)
}
