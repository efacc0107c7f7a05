package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb/metallbtest"
	"github.com/strictarp/strictarp/sysctl"
)

const ownNamespace = "strictarp"

// scene is a cluster with MetalLB, kube-proxy in ipvs mode and an agent on each
// node, in an API server in memory. Unless it is loose, all is well.
type scene struct {
	t     testing.TB
	api   *fakeAPI
	names []string
	lb    *metallbtest.Cluster
	vips  []string
	hosts []string // who announces which VIP

	mu     sync.Mutex
	strict map[string]bool // nodes whose kernel is
	config bool            // strictARP in the ConfigMap
	mute   map[string]bool // nodes whose agent is dead

	past map[string]int // events that expired

	client     kubernetes.Interface
	publishers map[string]*exchange.Publisher
}

func newScene(t testing.TB, nodes, services int, strict bool) *scene {
	s := &scene{t: t, api: newFakeAPI(t), strict: map[string]bool{}, config: strict, mute: map[string]bool{}, publishers: map[string]*exchange.Publisher{}}
	for i := range nodes {
		s.names = append(s.names, fmt.Sprintf("w%d", i+1))
		s.strict[s.names[i]] = strict
	}
	s.lb = metallbtest.New(s.names...)
	for i, n := range s.lb.Nodes {
		n.IP = nodeAddr(i)
	}
	s.lb.Pools[0].Addresses = []string{"10.1.0.0/16"}
	for i := range services {
		s.addService(fmt.Sprintf("svc-%d", i), fmt.Sprintf("10.1.%d.%d", 1+i/200, 1+i%200), s.names[i%nodes])
	}
	s.api.serveMetalLB(true)
	s.client, _ = s.api.clients()
	for i, name := range s.names {
		s.publishers[name] = &exchange.Publisher{ConfigMaps: s.client.CoreV1().ConfigMaps(ownNamespace), Leases: s.client.CoordinationV1().Leases(ownNamespace),
			Namespace: ownNamespace, Node: name}
		s.api.put(kubeProxyPod(name, fmt.Sprintf("kube-proxy-%d", i), fmt.Sprintf("first-%d", i)))
	}
	s.putCluster()
	s.observe()
	return s
}

func nodeAddr(i int) string { return fmt.Sprintf("10.0.%d.%d", i/200, 11+i%200) }

// addService adds one with an endpoint on a node, which announces it.
func (s *scene) addService(name, vip, node string) {
	s.lb.AddService("web/"+name, vip, node).Local = true
	s.lb.Announce("web/"+name, node, "eth0")
	s.vips, s.hosts = append(s.vips, vip), append(s.hosts, node)
}

// putCluster writes what the API server has besides facts.
func (s *scene) putCluster() {
	objects := append(s.lb.Objects(), s.kubeProxyConfig())
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy", UID: "ds"}}
	labels := map[string]string{"k8s-app": "kube-proxy"}
	set.Spec.Selector, set.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	set.Spec.Template.Spec = kubeProxySpec("")
	s.api.put(append(objects, set)...)
}

func kubeProxySpec(node string) corev1.PodSpec {
	volume := corev1.Volume{Name: "kube-proxy"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-proxy"}}
	return corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{volume}, Containers: []corev1.Container{{
		Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.34.3", Command: []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"},
		VolumeMounts: []corev1.VolumeMount{{Name: "kube-proxy", MountPath: "/var/lib/kube-proxy"}},
	}}}
}

func kubeProxyPod(node, name, uid string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"k8s-app": "kube-proxy"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "kube-proxy", UID: "ds", Controller: &yes}}}}
	if uid != "" {
		p.UID = types.UID("pod-" + uid)
	}
	p.Spec = kubeProxySpec(node)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	return p
}

func (s *scene) kubeProxyConfig() runtime.Object {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"},
		Data: map[string]string{"config.conf": configText(s.config)}}
}

func configText(strict bool) string {
	return fmt.Sprintf("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs:\n  strictARP: %t\n", strict)
}

// told returns strictARP as the ConfigMap in the API server has it.
func (s *scene) told() bool {
	cm, err := s.client.CoreV1().ConfigMaps("kube-system").Get(s.t.Context(), "kube-proxy", metav1.GetOptions{})
	require.NoError(s.t, err)
	return strings.Contains(cm.Data["config.conf"], "strictARP: true")
}

// beat is what all agents do now and then. An API server that is down they try
// again later.
func (s *scene) beat(ctx context.Context) {
	var addrs []netip.Addr
	for _, service := range all[corev1.Service](s.api, "services") {
		addrs = append(addrs, exchange.AddressesOf(&service)...)
	}
	services := exchange.NewServices(addrs)
	for i, name := range s.names {
		s.mu.Lock()
		mute := s.mute[name]
		s.mu.Unlock()
		if mute {
			continue
		}
		if _, err := s.publishers[name].Publish(ctx, s.facts(i), services); err == nil {
			_ = s.publishers[name].Beat(ctx) // likewise
		}
	}
}

// observe has all agents publish what is there, at once.
func (s *scene) observe() { s.beat(s.t.Context()) }

// agents publish and beat until they are stopped.
func (s *scene) agents() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for pause(ctx, 20*time.Second) {
			s.beat(ctx)
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// facts are what a node's agent sees: its own settings, and, on w1, who answers.
func (s *scene) facts(i int) strictarp.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, at := s.names[i], time.Now()
	ignore, announce := 0, 0
	if s.strict[name] {
		ignore, announce = 1, 2
	}
	held := []strictarp.Address{}
	for _, vip := range s.vips {
		held = append(held, strictarp.Address{Prefix: netip.MustParsePrefix(vip + "/32"), Scope: strictarp.ScopeGlobal})
	}
	own := netip.MustParsePrefix(nodeAddr(i) + "/8")
	links := []strictarp.Link{
		{Name: "lo", Up: true, Loopback: true, Flags: 0x49, Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Scope: strictarp.ScopeHost}}},
		{Name: "eth0", MAC: macOf(i), Up: true, Flags: 0x1043, Addrs: []strictarp.Address{{Prefix: own, Scope: strictarp.ScopeGlobal}}},
		{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Flags: 0x82, Addrs: held},
	}
	n := strictarp.NodeFacts{
		At: at, Source: "netlink", Links: links, Neighbours: []arpcheck.Neighbour{},
		Sysctls: &sysctl.ARP{All: values(ignore, announce), Default: values(0, 0), Interfaces: map[string]sysctl.Values{"lo": values(0, 0), "eth0": values(0, 0), "kube-ipvs0": values(0, 0)}},
		Routes:  []strictarp.Route{{Dst: own.Masked(), Link: "eth0", Source: own.Addr()}},
	}
	c, err := kubeproxy.Parse([]byte(configText(s.strict[name])), kubeproxy.ParseOptions{})
	require.NoError(s.t, err)
	c.Source = kubeproxy.Source{Kind: kubeproxy.SourceConfigz}
	n.Running = &kubeproxy.Running{Source: "http://127.0.0.1:10249", Started: metallbtest.Start(), Mode: kubeproxy.ModeIPVS, Config: &c}
	f := strictarp.Facts{At: at, Nodes: map[string]strictarp.NodeFacts{name: n}}
	if i == 0 {
		f.Vantages = []strictarp.Vantage{s.vantage(at, links)}
	}
	return f
}

func (s *scene) vantage(at time.Time, links []strictarp.Link) strictarp.Vantage {
	v := strictarp.Vantage{Name: s.names[0], Node: s.names[0], At: at, Source: "packet socket", Links: links, Neighbours: []arpcheck.Neighbour{}}
	for k, vip := range s.vips {
		r := arpcheck.Result{Target: netip.MustParseAddr(vip), Verdict: arpcheck.None, Vantage: v.Name, Interface: "eth0", MAC: macOf(0),
			Sender: arpcheck.Sender{Addr: links[1].Addrs[0].Prefix.Addr()}, Started: at.Add(-5 * time.Second), Ended: at, Rounds: 4, Quality: arpcheck.Quality{Requests: 4}}
		for i, name := range s.names[1:] {
			if name == s.hosts[k] || !s.strict[name] && i < 8 {
				r.Responders = append(r.Responders, arpcheck.Responder{MAC: macOf(i + 1), Replies: 4, First: r.Started, Last: at})
			}
		}
		switch len(r.Responders) {
		case 0:
			if s.hosts[k] == v.Name { // it does not hear itself
				r.Verdict, r.Reasons = arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.HeldHere}
			}
		case 1:
			r.Verdict, r.Responders[0].WonRounds = arpcheck.Single, 4
		default:
			r.Verdict, r.Responders[0].WonRounds = arpcheck.Multiple, 4
		}
		v.Probes = append(v.Probes, r)
	}
	return v
}

func macOf(i int) arpcheck.MAC { return arpcheck.MAC{2, 0, 0x5e, 0x10, byte(i >> 8), byte(i)} }

func values(ignore, announce int) sysctl.Values {
	return sysctl.Values{sysctl.ARPIgnore: ignore, sysctl.ARPAnnounce: announce, sysctl.ARPFilter: 0, sysctl.RPFilter: 0, sysctl.ProxyARP: 0, sysctl.Forwarding: 1}
}

func (s *scene) makeStrict(strict bool, nodes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range nodes {
		s.strict[name] = strict
	}
}

// setMute has an agent fall silent, or speak again.
func (s *scene) setMute(name string, mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute[name] = mute
}

// mend sets strictARP as somebody would by hand, with all that follows.
func (s *scene) mend() {
	s.makeStrict(true, s.names...)
	s.config = true
	s.api.put(s.kubeProxyConfig())
	s.observe()
}

// start runs a replica until it is stopped.
func (s *scene) start(identity string, remedy *remedyOptions) (c *controller, stop func()) {
	return s.startOn(s.api, identity, remedy)
}

// startOn runs one whose way to the API server is another.
func (s *scene) startOn(transport http.RoundTripper, identity string, remedy *remedyOptions) (c *controller, stop func()) {
	typed, dynamic := clients(s.t, transport)
	c, err := newController(options{namespace: ownNamespace, identity: identity, watched: []string{"kube-system", "metallb-system"}, resync: 10 * time.Minute, remedy: remedy},
		typed, dynamic, slog.New(slog.DiscardHandler), newMetrics())
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := c.run(ctx); err != nil {
			s.t.Errorf("run %s: %v", identity, err)
		}
	})
	return c, func() {
		cancel()
		work.Wait()
	}
}

// leader is who holds the lease.
func (s *scene) leader() string {
	for _, l := range all[coordinationv1.Lease](s.api, "leases") {
		if l.Name == leaseName && l.Spec.HolderIdentity != nil {
			return *l.Spec.HolderIdentity
		}
	}
	return ""
}

// after lets time pass, and all that is due happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// kept returns the findings of severity warning and error that are kept, by owner,
// as rule and subject.
func (s *scene) kept() map[string][]string {
	by := map[string][]string{}
	for _, cm := range all[corev1.ConfigMap](s.api, "configmaps") {
		o, ok := ownerOf(&cm)
		if !ok || cm.Data[findingsKey] == "" {
			continue
		}
		var r record
		require.NoError(s.t, json.Unmarshal([]byte(cm.Data[findingsKey]), &r))
		if len(r.Untold) > 0 {
			by[o.String()] = append(by[o.String()], "untold")
		}
		for _, e := range r.Findings {
			if loud(e.Finding) {
				by[o.String()] = append(by[o.String()], e.Finding.Rule)
			}
		}
		if len(by[o.String()]) > 0 {
			slices.Sort(by[o.String()])
		}
	}
	return by
}

// events returns how often each was told, as what, kind, name and key.
func (s *scene) events() map[string]int {
	by := map[string]int{}
	maps.Copy(by, s.past)
	for _, e := range all[corev1.Event](s.api, "events") {
		if e.Source.Component != eventComponent {
			continue
		}
		by[fmt.Sprintf("%s %s %s %s", e.Annotations[whatAnnotation], e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Annotations[keyAnnotation])]++
	}
	return by
}

// expire deletes all events, as the API server does with old ones, and remembers
// that they were.
func (s *scene) expire() {
	s.past = s.events()
	for _, e := range all[corev1.Event](s.api, "events") {
		s.api.remove(&e)
	}
}

func countOf(events map[string]int, part string) (n int) {
	for text, times := range events {
		if strings.Contains(text, part) {
			n += times
		}
	}
	return n
}
