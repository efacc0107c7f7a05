package strictarp_test

import (
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
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// announcer is a program other than MetalLB that announces default/web.
type announcer struct {
	manifest    string            // in testdata/announcers
	annotations map[string]string // of the Service: what makes the program take it
	choose      func(s *scene, node string, at time.Time)
	ages        bool   // what choose makes runs out
	onNIC       bool   // the program puts the VIP on the NIC of the node
	heeds       bool   // it announces a Local Service only where that has an endpoint
	because     string // what names the node
}

func announcers() map[string]announcer {
	held := func(namespace, name string) func(*scene, string, time.Time) {
		return func(s *scene, node string, at time.Time) { s.extra(lease(namespace, name, node, at)) }
	}
	noted := func(key, format string) func(*scene, string, time.Time) {
		return func(s *scene, node string, _ time.Time) {
			s.annotate(key, strings.ReplaceAll(format, "NODE", node))
		}
	}
	return map[string]announcer{
		"kube-vip": {manifest: "kube-vip", choose: held("kube-system", "plndr-svcs-lock"), ages: true, onNIC: true, heeds: true,
			because: "lease/kube-system/plndr-svcs-lock"},
		"kube-vip, one election for each": {manifest: "kube-vip-election", choose: held("default", "kubevip-web"), ages: true, onNIC: true,
			because: "lease/default/kubevip-web"},
		"kube-vip, a lease that Services share": {manifest: "kube-vip-election", annotations: map[string]string{"kube-vip.io/leaseName": "infra/shared"},
			choose: held("infra", "shared"), ages: true, onNIC: true, because: "lease/infra/shared"},
		"kube-vip, an election on demand": {manifest: "kube-vip", annotations: map[string]string{"kube-vip.io/forcePerServiceElection": "true"},
			choose: held("default", "kubevip-web"), ages: true, onNIC: true, because: "lease/default/kubevip-web"},
		"Cilium": {manifest: "cilium", choose: held("kube-system", "cilium-l2announce-default-web"), ages: true,
			because: "lease/kube-system/cilium-l2announce-default-web"},
		"PureLB": {manifest: "purelb", annotations: map[string]string{"purelb.io/allocated-by": "PureLB"}, onNIC: true,
			choose: noted("purelb.io/announcing-IPv4", "w3,ens33,10.0.3.19 NODE,ens33,10.0.3.20"), because: "purelb.io/announcing-IPv4"},
		"OpenELB 0.5": {manifest: "openelb-manager", annotations: map[string]string{"lb.kubesphere.io/v1alpha1": "openelb"},
			choose: noted("layer2.openelb.kubesphere.io/v1alpha1", "NODE"), because: "layer2.openelb.kubesphere.io/v1alpha1"},
		"OpenELB 0.6": {manifest: "openelb", annotations: map[string]string{"lb.kubesphere.io/v1alpha1": "openelb"},
			choose: (*scene).speakersOfOpenELB, heeds: true, because: "its election"},
	}
}

// twoMasters is what is found besides where two nodes have the VIP on their NICs.
func (a announcer) twoMasters() []string {
	if a.onNIC {
		return []string{"error split-brain@" + webVIP}
	}
	return nil
}

// annotate annotates default/web.
func (s *scene) annotate(key, value string) {
	svc := s.Service(web)
	if svc.Annotations == nil {
		svc.Annotations = map[string]string{}
	}
	svc.Annotations[key] = value
}

// speakersOfOpenELB runs them so that the election gives the node: those of lower
// hashes are not ready.
func (s *scene) speakersOfOpenELB(node string, _ time.Time) {
	ranked := []string{"w3", "w2", "w1"} // by the SHA-256 of NAME#10.0.3.20, as sha256sum prints it
	for i, name := range ranked {
		pod := &corev1.Pod{ObjectMeta: meta("openelb-system", "openelb-speaker-"+name), Spec: corev1.PodSpec{NodeName: name}}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		pod.Labels = map[string]string{"app": "openelb", "component": "speaker"}
		pod.Spec.Containers = []corev1.Container{{Name: "openelb-speaker", Image: "kubesphere/openelb-speaker:v0.6.0"}}
		ready := corev1.ConditionTrue
		if i < slices.Index(ranked, node) {
			ready = corev1.ConditionFalse
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		s.extra(pod)
	}
}

// announcedBy takes MetalLB away, and lets another program announce default/web, whose
// endpoint is on w1, from a node.
func announcedBy(t *testing.T, a announcer, node string, renewed time.Duration) *scene {
	t.Helper()
	s := newScene(t)
	s.Service(web).Local = false
	s.Speakers, s.Pools, s.Advertisements, s.Statuses, s.Events = nil, nil, nil, nil, nil
	s.run(a, node, renewed)
	s.answers(node)
	return s
}

// run adds a program and the node that it has chosen.
func (s *scene) run(a announcer, node string, renewed time.Duration) {
	text, err := os.ReadFile(filepath.Join("testdata", "announcers", a.manifest+".yaml"))
	require.NoError(s.t, err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		require.NoError(s.t, yaml.Unmarshal([]byte(document), &u.Object))
		s.extra(u)
	}
	for key, value := range a.annotations {
		s.annotate(key, value)
	}
	a.choose(s, node, s.now().Add(renewed))
	if a.onNIC {
		nic := s.link(node, "ens33")
		nic.Addrs = append(nic.Addrs, addrs(webVIP+"/32")...)
	}
}

// answers lets nodes answer, and the client keep the first.
func (s *scene) answers(nodes ...string) {
	var list []arpcheck.Responder
	for _, name := range nodes {
		list = append(list, from(name))
	}
	s.ask(webVIP, list...)
	s.cached(webVIP, nodes[0])
}

// What rules say of VIPs of other programs than MetalLB, by what these leave in the
// cluster.
func TestEvaluateOtherAnnouncers(t *testing.T) {
	t.Parallel()
	const told, wrong, stale = "info other-announcer@" + web, "error wrong-responder@" + webVIP, "error stale-neighbour@" + webVIP
	for name, a := range announcers() {
		for situation, row := range map[string]struct {
			chosen string
			edit   func(*scene)
			want   []string
			no     bool // not of this program
		}{
			"the chosen node answers": {"w1", func(*scene) {}, []string{told}, false},
			"another node answers":    {"w1", func(s *scene) { s.answers("w2") }, []string{told, wrong, stale}, false},
			"two answer": {"w1", func(s *scene) { s.answers("w1", "w2") },
				[]string{told, "error multiple-responders@" + webVIP, "error split-brain@" + webVIP}, false},
			"another node answered the client once": {"w1", func(s *scene) { s.cached(webVIP, "w3") }, []string{told, stale}, false},
			"another node's kernel answers too": {"w1", func(s *scene) { s.loose("w2"); s.answers("w1", "w2") },
				[]string{told, "error multiple-responders@" + webVIP, "error kernel-answers-vip@w2", "error strictarp-overridden@w2", "warning arp-announce-off@w2"}, false},
			"Local, and the node has the endpoint": {"w1", func(s *scene) { s.Service(web).Local = true }, []string{told}, false},
			"Local, and the endpoint is elsewhere": {"w2", func(s *scene) { s.Service(web).Local = true },
				[]string{told, "error local-policy-drop@" + webVIP}, a.heeds},
			"the VIP is on another node's NIC": {"w1", func(s *scene) {
				nic := s.link("w2", "ens33")
				nic.Addrs = append(nic.Addrs, addrs(webVIP+"/32")...)
				s.answers("w1", "w2")
			}, append([]string{told, "error multiple-responders@" + webVIP, "error vip-on-real-interface@w2"}, a.twoMasters()...), false},
		} {
			if row.no {
				continue
			}
			t.Run(name+"/"+situation, func(t *testing.T) {
				t.Parallel()
				s := announcedBy(t, a, row.chosen, 0)
				row.edit(s)
				found := strictarp.Evaluate(s.facts())
				if !assert.ElementsMatch(t, row.want, summaries(found)) {
					for _, f := range found {
						t.Log(f.Severity, f.Key(), f.Message)
					}
				}
				wellFormed(t, found)
				for _, f := range found {
					neverLoosens(t, f)
					switch f.Rule {
					case "other-announcer":
						assert.Equal(t, row.chosen, f.Node)
						assert.Contains(t, f.Message, a.because)
					case "wrong-responder":
						assert.Contains(t, f.Message, a.because)
					}
				}
			})
		}
	}
}

func neverLoosens(t *testing.T, f strictarp.Finding) {
	t.Helper()
	for _, r := range f.Remedies {
		for _, step := range r.Steps {
			assert.NotRegexp(t, `arp_ignore=0|arp_announce=[01]|strictARP: false`, step.String(), f.Key())
		}
	}
}

// A lease that ran out says nothing: who should answer is not known then.
func TestEvaluateOtherAnnouncersLeaseRanOut(t *testing.T) {
	t.Parallel()
	for name, a := range announcers() {
		if !a.ages {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := announcedBy(t, a, "w1", -time.Minute)
			s.answers("w2")
			for _, f := range strictarp.Evaluate(s.facts()) {
				assert.NotContains(t, []string{"wrong-responder", "stale-neighbour"}, f.Rule, f.Message)
				if f.Rule == "other-announcer" {
					assert.Empty(t, f.Node)
				}
			}
		})
	}
}

// Beside MetalLB each is a second announcer, and MetalLB's election counts.
func TestEvaluateOtherAnnouncersBesideMetalLB(t *testing.T) {
	t.Parallel()
	for name, a := range announcers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			a.onNIC = false
			s.run(a, "w2", 0)
			assert.Equal(t, []string{"warning second-announcer@" + web}, summaries(strictarp.Evaluate(s.facts())))
			s.answers("w2")
			assert.Contains(t, summaries(strictarp.Evaluate(s.facts())), "error wrong-responder@"+webVIP)
		})
	}
}

// An address on the NIC of a node where the announcer does not run was put there by
// something else, and is no second announcer.
func TestEvaluateOtherAnnouncersElsewhere(t *testing.T) {
	t.Parallel()
	s := announcedBy(t, announcers()["kube-vip"], "w1", 0)
	pod := &corev1.Pod{ObjectMeta: meta("kube-system", "kube-vip-ds-x"), Spec: corev1.PodSpec{NodeName: "w1"}}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Labels = map[string]string{"app.kubernetes.io/name": "kube-vip-ds"}
	pod.Spec.Containers = []corev1.Container{{Name: "kube-vip", Image: "ghcr.io/kube-vip/kube-vip:v1.0.0"}}
	s.extra(pod)
	nic := s.link("w2", "ens33")
	nic.Addrs = append(nic.Addrs, addrs(webVIP+"/32")...)
	s.answers("w1", "w2")
	found := summaries(strictarp.Evaluate(s.facts()))
	assert.Contains(t, found, "error vip-on-real-interface@w2")
	assert.NotContains(t, found, "error split-brain@"+webVIP)
}

// Where workloads were not observed, a program may serve the class.
func TestEvaluateClassWithoutWorkloads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.service("new", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/nobody")})
	f := s.facts()
	f.MetalLB.Speakers = nil
	i := slices.IndexFunc(strictarp.Evaluate(f), func(f strictarp.Finding) bool { return f.Subject == "default/new" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, strictarp.SeverityUnknown, strictarp.Evaluate(f)[i].Severity)
}
