package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/promtest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--what": "unknown flag", "x": "unexpected argument", "--every 1s": "want at least", "--npd --remedy": "exclude", "--undo --remedy": "exclude",
		"--kubeconfig /does/not/exist": "find the API server", "--undo --undo-dir /does/not/exist": "no directory",
	} {
		var out, errOut bytes.Buffer
		assert.Equal(t, exitError, run(t.Context(), strings.Fields(args), &out, &errOut), args)
		assert.Contains(t, errOut.String(), want)
		assert.Empty(t, out.String())
	}
	var out, errOut bytes.Buffer
	assert.Equal(t, exitOK, run(t.Context(), []string{"--help"}, &out, &errOut))
}

func TestVIPsFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.3.20\n  ::ffff:10.0.3.21 # that too\n\n#10.0.3.22": "[10.0.3.20 10.0.3.21] <nil>",
		"10.0.3.20\nx": `[10.0.3.20] line 2: "x" is no address`, "fd00::1": "[] line 1: fd00::1 is no unicast IPv4 address",
		"224.0.0.1": "[] line 1: 224.0.0.1 is no unicast IPv4 address", "": "[] <nil>",
	} {
		vips, err := parseVIPs(strings.NewReader(text))
		assert.Equal(t, want, fmt.Sprint(vips, " ", err))
	}
	var many strings.Builder
	for i := range 2 * maxVIPs {
		fmt.Fprintf(&many, "10.1.%d.%d\n", i/200, 1+i%200)
	}
	_, err := parseVIPs(strings.NewReader(many.String()))
	require.ErrorIs(t, err, strictarp.ErrLimit)

	name := filepath.Join(t.TempDir(), "vips")
	vips, known, missing := (&targets{file: name}).all("w1")
	assert.True(t, known)
	assert.Empty(t, vips)
	assert.Empty(t, missing, "there need not be one")
	require.NoError(t, os.WriteFile(name, []byte("10.0.3.20\n10.0.3.20\nx"), 0o600))
	vips, _, missing = (&targets{file: name}).all("w1")
	assert.Len(t, vips, 1)
	require.Len(t, missing, 1)
	assert.Contains(t, missing[0].Err, "line 3")
}

func FuzzVIPs(f *testing.F) {
	f.Add("10.0.3.20 # x\n\n1.2.3.4")
	f.Add("\x00::1%eth0")
	f.Fuzz(func(t *testing.T, text string) {
		vips, _ := parseVIPs(strings.NewReader(text))
		for _, v := range vips {
			assert.True(t, v.Is4())
		}
		assert.LessOrEqual(t, len(vips), maxVIPs+1)
	})
}

func service(name string, ips ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"large": strings.Repeat("x", 1000)}}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, ip := range ips {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return s
}

func TestServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		internal := service("internal", "10.0.3.30")
		internal.Spec.Type = corev1.ServiceTypeClusterIP // the fake does not select
		client := fake.NewClientset(service("web", "10.0.3.20", "fd00::20", "not an address", "127.0.0.1"), internal, service("pending"))
		changes := 0
		x := &targets{changed: func() { changes++ }}
		_, known, _ := x.all("w1")
		assert.True(t, known, "without Services there are none to wait for")
		done, err := x.watch(ctx, client)
		require.NoError(t, err)
		now := func() string {
			synctest.Wait()
			vips, known, missing := x.all("w1")
			assert.True(t, known)
			assert.Empty(t, missing)
			return fmt.Sprint(vips)
		}
		assert.Equal(t, "[10.0.3.20]", now())
		_, err = client.CoreV1().Services("shop").Update(ctx, service("web", "10.0.3.21"), metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "[10.0.3.21]", now())
		_, err = client.CoreV1().Services("shop").Update(ctx, service("web", "10.0.3.21"), metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.CoreV1().Services("shop").Delete(ctx, "web", metav1.DeleteOptions{}))
		assert.Equal(t, "[]", now())
		assert.Equal(t, 3, changes, "told of what matters only")
		cancel()
		done()
	})
	// Without an API server it does not wait for ever, and says so.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t)
		w.set(func() { w.outage = true })
		x := &targets{}
		begin := time.Now()
		done, err := x.watch(ctx, w.client)
		require.NoError(t, err)
		assert.Equal(t, firstSync, time.Since(begin))
		_, known, missing := x.all("w1")
		assert.False(t, known)
		assert.Len(t, missing, 1)
		cancel()
		done()
	})
}

func TestTransform(t *testing.T) {
	t.Parallel()
	got, err := onlyAddresses(service("web", "10.0.3.20"))
	require.NoError(t, err)
	assert.Empty(t, got.(*corev1.Service).Annotations)
	assert.Equal(t, []netip.Addr{vip}, addressesOf(got.(*corev1.Service)))
	other, err := onlyAddresses("x")
	require.NoError(t, err)
	assert.Equal(t, "x", other)
}

func TestLinkFor(t *testing.T) {
	t.Parallel()
	facts := (&world{}).facts()
	p := prober{node: "w1"}
	far := netip.MustParseAddr("192.0.2.7")
	assert.Equal(t, "eth0", p.linkFor(facts, vip))
	assert.Empty(t, p.linkFor(facts, far))
	facts.Routes = append(facts.Routes,
		strictarp.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth2", Metric: 200},
		strictarp.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth1", Metric: 100, Gateway: netip.MustParseAddr("10.0.4.1")})
	assert.Equal(t, "eth1", p.linkFor(facts, far), "a pool of no node's subnet")
	assert.Equal(t, "10.0.4.1", gatewayOf(facts, "eth1").String())
	assert.False(t, gatewayOf(facts, "eth0").IsValid())
	p.link = "br0"
	assert.Equal(t, "br0", p.linkFor(facts, vip))
}

// TestLabels: what others can choose is in no metric.
func TestLabels(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	m.observed(strictarp.NodeFacts{}, []strictarp.Finding{{Rule: "hostile", Subject: "hostile"}, {Rule: "kernel-answers-vip", Subject: "hostile", Severity: strictarp.SeverityError}}, 1)
	m.probed(strictarp.Vantage{Probes: []arpcheck.Result{{Verdict: "hostile", Interface: "hostile", Reasons: []arpcheck.Reason{"hostile", arpcheck.KernelDrops}}, {Verdict: arpcheck.Single}}})
	m.called("publish", errors.New("hostile"))
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, text := get("/metrics")
	assert.Equal(t, http.StatusOK, code)
	for _, line := range []string{
		`strictarp_agent_findings{rule="kernel-answers-vip",severity="error"} 1`, `strictarp_agent_probed_vips{verdict="single"} 1`, `strictarp_agent_probe_reasons{reason="kernel-drops"} 1`,
		`strictarp_agent_api_calls_total{call="publish",result="failure"} 1`, `strictarp_agent_observations_total{result="failure"} 1`,
	} {
		assert.Contains(t, text, line)
	}
	assert.NotContains(t, text, "hostile")
	code, _ = get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	m.ready()
	code, _ = get("/readyz")
	assert.Equal(t, http.StatusOK, code)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics()
		get := func() int {
			w := httptest.NewRecorder()
			m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			return w.Code
		}
		m.alive()
		assert.Equal(t, http.StatusOK, get())
		time.Sleep(stuck + time.Second)
		assert.Equal(t, http.StatusServiceUnavailable, get())
		m.alive()
		assert.Equal(t, http.StatusOK, get())
	})
}

// TestRBAC: the roles of the manifests grant what the agent calls, and nothing else.
func TestRBAC(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/base/agent-rbac.yaml")
	require.NoError(t, err)
	events, err := os.ReadFile("../deploy/alone/events-rbac.yaml")
	require.NoError(t, err)
	granted := map[string]int{}
	for doc := range strings.SplitSeq(string(text)+"\n---\n"+string(events), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		require.NoError(t, yaml.Unmarshal([]byte(doc), &role))
		for _, rule := range role.Rules {
			for _, r := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[verb+" "+r] = 1
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done, err := (&targets{}).watch(ctx, w.client)
		require.NoError(t, err)
		stop := w.start()
		w.pass(2 * time.Minute)
		w.set(func() { w.strict = 1 })
		w.pass(2 * time.Minute)
		stop()
		cancel()
		done()
		called := map[string]int{}
		for call := range w.verbs {
			called[call] = 1
		}
		called["watch services"] = 1 // by another chain of the fake's reactors
		assert.Equal(t, called, granted)
	})
}

func TestMonitoring(t *testing.T) {
	t.Parallel()
	const dir = "../deploy/monitoring"
	promtest.Check(t, dir, newMetrics().registry, "strictarp_agent_")
	rules := promtest.Rules(t, dir, "strictarp_agent_findings")
	require.NotEmpty(t, rules)
	for _, rule := range rules {
		assert.True(t, seenAlone(rule), "no agent ever finds %s", rule)
	}
	m := newMetrics()
	m.observed(strictarp.NodeFacts{}, []strictarp.Finding{{Rule: "kernel-answers-vip"}}, 1)
	m.probed(strictarp.Vantage{Probes: []arpcheck.Result{{Verdict: arpcheck.Inconclusive, Reasons: []arpcheck.Reason{arpcheck.HeldHere}}}})
	m.called("publish", nil)
	m.remedies.WithLabelValues(result(true)).Inc()
	promtest.Lint(t, m.handler())
}

// A pass that could open no socket is none.
func TestProbed(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	says := func(line string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		assert.Contains(t, w.Body.String(), "\nstrictarp_agent_last_probe_timestamp_seconds "+line+"\n")
	}
	m.probed(strictarp.Vantage{At: time.Unix(7, 0)})
	says("0")
	m.probed(strictarp.Vantage{At: time.Unix(7, 0), Probes: []arpcheck.Result{{Verdict: arpcheck.Single}}})
	says("7")
}
