package strictarp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// found returns the finding of a rule about a node of what a scene leads to.
func (s *scene) found(rule, node string) strictarp.Finding {
	s.t.Helper()
	for _, f := range strictarp.Evaluate(s.facts()) {
		if f.Rule == rule && (node == "" || f.Node == node) {
			return f
		}
	}
	require.Fail(s.t, "it is not found: "+rule)
	return strictarp.Finding{}
}

// Evidence is what was seen and not the conclusion again; a remedy's summary is the
// same for all nodes, so that those of 200 nodes are told as one.
func TestEvaluateTexts(t *testing.T) {
	t.Parallel()
	// What an object says stands in both: the evidence adds where.
	quoted := map[string]bool{"metallb-config-invalid": true, "two-service-proxies": true, "kubeproxy-config-invalid": true, "strictarp-ignored": true, "kubeproxy-config-ambiguous": true, "kubeproxy-nodes-differ": true}
	for _, rt := range ruleTests() {
		t.Run(rt.rule+"/"+rt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			rt.edit(s)
			for _, f := range strictarp.Evaluate(s.facts()) {
				for _, e := range f.Evidence {
					if len(e.Observed) > len("no answer") && !quoted[f.Rule] {
						assert.NotContains(t, strings.ToLower(f.Message), strings.ToLower(e.Observed), f.Key())
					}
				}
				for _, r := range f.Remedies {
					for name := range s.nodes {
						assert.NotRegexp(t, `\b`+name+`\b`, r.Summary, f.Key())
					}
				}
			}
		})
	}
}

func TestEvaluateAnnouncerMismatchSaysWhomToBelieve(t *testing.T) {
	t.Parallel()
	mismatch := func() *scene {
		s := newScene(t)
		s.Service(web).Local = false
		s.elect()
		s.Statuses[0].Node, s.Events = s.loser(), nil
		return s
	}
	s := mismatch()
	assert.Contains(t, s.found("announcer-mismatch", "").Message, "so the report is out of date.")
	s = mismatch()
	s.client.Probes, s.client.Neighbours = nil, nil
	assert.Contains(t, s.found("announcer-mismatch", "").Message, "Believe the wire: ask for the VIP, the node that answers announces it.")
}

func TestEvaluateLeftoverWording(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.config = configText("iptables", "false")
	for _, n := range s.nodes {
		s.runs(n, "iptables", "false")
	}
	f := s.found("leftover-kube-ipvs0", "w1")
	assert.Contains(t, f.Message, "still holds one address")
	assert.Contains(t, f.Message, "goes on answering for it, and nothing removes it.")
	assert.Equal(t, "on kube-ipvs0: "+webVIP, f.Evidence[0].Observed)
	s.hold("kube-ipvs0", "10.0.3.29/32")
	assert.Contains(t, s.found("leftover-kube-ipvs0", "w1").Message, "goes on answering for them, and nothing removes them.")
}

func TestEvaluateUselessSettingsAreEvidence(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.nodes["w2"].Sysctls.Interfaces["kube-ipvs0"] = values(1, 2)
	f := s.found("useless-sysctl", "w2")
	assert.Equal(t, "w2 has 2 settings that do nothing there.", f.Message)
	require.Len(t, f.Evidence, 2)
	assert.Equal(t, "net.ipv4.conf.kube-ipvs0.arp_announce=2: no request arrives on this device", f.Evidence[0].Observed)
}
