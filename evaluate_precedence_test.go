package strictarp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// evaluated returns the findings of an edited scene.
func evaluated(t *testing.T, edit func(*scene)) []strictarp.Finding {
	t.Helper()
	s := newScene(t)
	edit(s)
	found := strictarp.Evaluate(s.facts())
	wellFormed(t, found)
	return found
}

// find returns the first finding of a rule.
func find(t *testing.T, findings []strictarp.Finding, rule string) strictarp.Finding {
	t.Helper()
	i := slices.IndexFunc(findings, func(f strictarp.Finding) bool { return f.Rule == rule })
	require.GreaterOrEqual(t, i, 0, "no %s among %v", rule, summaries(findings))
	return findings[i]
}

func causes(f strictarp.Finding) string {
	var list []string
	for _, c := range f.Causes {
		rule, _, _ := strings.Cut(string(c), "|")
		list = append(list, rule)
	}
	return strings.Join(slices.Compact(list), " ")
}

// A router with proxy ARP is neither a second host nor a stranger for the addresses
// that it answers for, and it is one for others.
func TestPrecedenceProxyARP(t *testing.T) {
	t.Parallel()
	proxied := func(s *scene) {
		s.AddService("default/api", "10.0.3.21", "w1").Local = true
		s.Announce("default/api", "w1", "ens33")
		s.hold("kube-ipvs0", "10.0.3.21/32")
		s.ask("10.0.3.21", from("w1"), from("stranger"))
		s.ask(canary, from("router"))
		s.ask(webVIP, from("router"))
	}
	assert.ElementsMatch(t, []string{"error proxy-arp-responder@" + webVIP, "error multiple-responders@10.0.3.21", "error foreign-responder@10.0.3.21",
		"error pool-overlaps-node@metallb-system/pool"}, summaries(evaluated(t, proxied)))

	found := evaluated(t, func(s *scene) {
		s.nodes["w2"].Sysctls.Interfaces["ens33"]["proxy_arp"] = 1
		s.ask(canary, from("w2"))
		a, b := from("w1"), from("w2")
		a.WonRounds, b.WonRounds = 3, 1
		s.ask(webVIP, a, b)
	})
	assert.ElementsMatch(t, []string{"error proxy-arp-responder@" + webVIP, "error local-policy-drop@" + webVIP, "warning responder-flapping@" + webVIP,
		"warning proxy-arp-on-node@w2"}, summaries(found))
	assert.Equal(t, "proxy-arp-on-node", causes(find(t, found, "proxy-arp-responder")))
	assert.Equal(t, "proxy-arp-responder", causes(find(t, found, "responder-flapping")))
	assert.Equal(t, "proxy-arp-responder", causes(find(t, found, "local-policy-drop")))
	assert.Equal(t, "net.ipv4.conf.ens33.proxy_arp=0", find(t, found, "proxy-arp-responder").Remedies[0].String())
}

// A key that kube-proxy does not read is ignored; what is left is ambiguous.
func TestPrecedenceIgnored(t *testing.T) {
	t.Parallel()
	both := evaluated(t, func(s *scene) { s.config += "strictARP: true\nfoo: bar\n" })
	assert.ElementsMatch(t, []string{"warning strictarp-ignored@" + kubeProxyMap, "warning kubeproxy-config-ambiguous@" + kubeProxyMap}, summaries(both))
	assert.Contains(t, find(t, both, "strictarp-ignored").Message, "strictARP")
	assert.NotContains(t, find(t, both, "kubeproxy-config-ambiguous").Message, "strictARP")
	one := evaluated(t, func(s *scene) { s.config += "strictARP: true\n" })
	assert.Equal(t, []string{"warning strictarp-ignored@" + kubeProxyMap}, summaries(one))
}

// MetalLB's order decides which reason is the cause; later ones are named.
func TestPrecedenceSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*scene)
		want []string // the cause first
	}{
		{"endpoints before labels", func(s *scene) {
			s.Service(web).Endpoints[0].NotReady = true
			for _, n := range s.Nodes {
				n.Excluded = true
			}
		}, []string{"no-ready-endpoint", "node-excluded-from-lb"}},
		{"the pool before all", func(s *scene) {
			s.Pools[0].Addresses = []string{"10.0.3.30/32"}
			s.Service(web).Endpoints[0].NotReady = true
		}, []string{"no-pool-for-address", "no-ready-endpoint"}},
		{"local endpoints before speakers", func(s *scene) {
			s.Node("w2").Labels = map[string]string{"lb": "yes"}
			s.Advertisements[0].NodeSelectors = []map[string]string{{"lb": "yes"}}
			s.RemoveSpeaker("w2")
		}, []string{"no-local-endpoint", "no-speaker-on-node"}},
		{"speakers before labels", func(s *scene) {
			s.RemoveSpeaker("w1")
			s.Node("w1").Excluded = true
		}, []string{"no-speaker-on-node", "node-excluded-from-lb"}},
		{"advertisements before local endpoints", func(s *scene) {
			s.Advertisements[0].Pools = []string{"other"}
			s.Service(web).Endpoints[0].Node = "w9"
		}, []string{"no-l2-advertisement", "no-local-endpoint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := evaluated(t, func(s *scene) {
				c.edit(s)
				s.quiet()
			})
			for i, rule := range c.want {
				f := find(t, found, rule)
				assert.Equal(t, i == 0, f.Severity == strictarp.SeverityError, "%s: %s", rule, f.Message)
				assert.Equal(t, i > 0, strings.Contains(f.Message, "not the first reason"), f.Message)
			}
			silent := find(t, found, "no-responder")
			assert.ElementsMatch(t, c.want, strings.Fields(causes(silent)))
			assert.Contains(t, silent.Message, "The reason: ")
		})
	}
}

// strictarp-off tells of the configuration, strictarp-residue of the kernel.
func TestPrecedenceResidue(t *testing.T) {
	t.Parallel()
	found := evaluated(t, func(s *scene) { s.off() })
	assert.Equal(t, "strictARP: true\nkubectl rollout restart daemonset/kube-proxy -n kube-system", find(t, found, "strictarp-residue").Remedies[0].String())
	assert.Equal(t, find(t, found, "strictarp-off").Remedies, find(t, found, "strictarp-residue").Remedies)
}

// MACs are mapped to nodes first. An announcer that is dead or gone is wrong or
// foreign, not right.
func TestPrecedenceAnnouncerGone(t *testing.T) {
	t.Parallel()
	cluster := func(s *scene) {
		s.Service(web).Local = false
		s.Service(web).Endpoints = []*metallbtest.Endpoint{{Node: "w2"}, {Node: "w3"}}
		s.elect()
	}
	t.Run("its speaker is dead", func(t *testing.T) {
		t.Parallel()
		found := evaluated(t, func(s *scene) {
			cluster(s)
			was := s.Statuses[0].Node
			s.RemoveSpeaker(was)
			s.Events = nil
		})
		assert.ElementsMatch(t, []string{"error wrong-responder@" + webVIP, "error stale-neighbour@" + webVIP, "warning announcer-status-stale@" + web}, summaries(found))
	})
	t.Run("its node is gone", func(t *testing.T) {
		t.Parallel()
		found := evaluated(t, func(s *scene) {
			cluster(s)
			was := s.Statuses[0].Node
			s.RemoveNode(was)
			delete(s.nodes, was)
			s.Events, s.client.Neighbours = nil, nil
		})
		assert.ElementsMatch(t, []string{"error foreign-responder@" + webVIP, "error pool-overlaps-node@metallb-system/pool", "warning announcer-status-stale@" + web}, summaries(found))
	})
	t.Run("it answers by two NICs", func(t *testing.T) {
		t.Parallel()
		found := evaluated(t, func(s *scene) {
			s.nic("w2", "ens34")
			s.ask(webVIP, from("w2"), from("w2/ens34"))
			s.cached(webVIP, "w2/ens34")
		})
		assert.ElementsMatch(t, []string{"error wrong-responder@" + webVIP, "info same-node-many-macs@" + webVIP, "error stale-neighbour@" + webVIP, "error local-policy-drop@" + webVIP}, summaries(found))
	})
}

// What one address of a shared VIP's Services wants, its subjects tell too.
func TestEvaluateSharedSubject(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	api := s.AddService("default/api", webVIP, "w1")
	api.Local, api.Ports = true, []int32{81}
	s.Announce("default/api", "w1", "ens33")
	f := s.facts()
	want := []string{"error shared-ip-conflict@" + web}
	assert.Equal(t, want, summaries(strictarp.Evaluate(f)))
	assert.Equal(t, want, summaries(strictarp.Evaluate(f, webVIP)))
	assert.Equal(t, want, summaries(strictarp.Evaluate(f, web)))
	assert.Empty(t, strictarp.Evaluate(f, "w1"))
}

// A vantage is named where others saw something else.
func TestEvaluateVantages(t *testing.T) {
	t.Parallel()
	found := evaluated(t, func(s *scene) {
		s.loose("w2")
		other := &strictarp.Vantage{Name: "other", Source: "packet socket", Links: []strictarp.Link{{Name: "eth0", MAC: mac("w8"), Up: true, Addrs: addrs("10.0.3.58/24")}}}
		probed(other, webVIP, from("w2"), from("w1"))
		s.others = append(s.others, other)
	})
	assert.Equal(t, "other", find(t, found, "multiple-responders").Vantage)
	assert.Equal(t, "other", find(t, found, "local-policy-drop").Vantage)
	claimed := evaluated(t, func(s *scene) { claim(s.client, arpcheck.Request, webVIP, "w2", "10.0.3.50", "") })
	assert.Equal(t, "client", find(t, claimed, "vip-in-request-sender").Vantage)
	assert.Equal(t, "w2", find(t, claimed, "vip-in-request-sender").Node)
}
