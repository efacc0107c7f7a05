package strictarp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func avoided(f strictarp.Finding) string {
	var lines []string
	for _, c := range f.Avoid {
		lines = append(lines, c.Step)
	}
	return strings.Join(lines, "\n")
}

// The first seed: all nodes race to answer, the client has cached a wrong one; the
// cure is strictARP, a restart and a flush; one success is no proof.
func TestSeedRace(t *testing.T) {
	t.Parallel()
	const address = "192.0.2.240"
	findings := strictarp.Evaluate(readCase(t, "a01"))
	race := find(t, findings, "multiple-responders")
	assert.Equal(t, "3 hosts answer for 192.0.2.240: node-a, node-b, node-c.", race.Message)
	assert.Equal(t, "kernel-answers-vip", causes(race))
	assert.Equal(t, "The first answer for 192.0.2.240 changes host; rounds won: node-a 2, node-b 3, node-c 1.", find(t, findings, "responder-flapping").Message)
	assert.Contains(t, find(t, findings, "double-answer").Message, "(node-a, ens33)", "the announcer's kernel races its speaker")

	cached := find(t, findings, "stale-neighbour")
	assert.Equal(t, "The neighbour cache of proxy-vm holds 00:00:5e:00:53:0b (node-b, ens33) for 192.0.2.240, which is not the announcer's MAC.", cached.Message)
	assert.Contains(t, causes(cached), "multiple-responders")
	assert.Equal(t, "ip neigh del "+address+" dev eth0", cached.Remedies[0].String())
	assert.Contains(t, find(t, findings, "local-policy-drop").Message, "connections time out")

	root := find(t, findings, "strictarp-off")
	assert.Empty(t, root.Causes)
	for _, f := range findings {
		if f.Rule == "kernel-answers-vip" {
			assert.Equal(t, []strictarp.Key{root.Key()}, f.Causes)
		}
	}
	require.Len(t, root.Remedies, 1)
	assert.Equal(t, "strictARP: true\nkubectl rollout restart daemonset/kube-proxy -n kube-system", root.Remedies[0].String())

	// The soak: one request proves nothing, and restarted speakers only hide it.
	assert.Contains(t, avoided(race), "call it healthy after one successful request")
	assert.Contains(t, avoided(race), "kubectl rollout restart daemonset/speaker -n metallb-system")
	for _, c := range race.Avoid {
		if strings.Contains(c.Step, "one successful request") {
			assert.Contains(t, c.Why, "for a minute or more")
		}
	}
	rule, _ := strictarp.RuleByID("responder-flapping")
	assert.Contains(t, rule.Explain, "Verify over a minute or more")
}

// The second seed: the settings are right, nobody announces; what people blame is
// warned of.
func TestSeedSilence(t *testing.T) {
	t.Parallel()
	findings := strictarp.Evaluate(readCase(t, "a02"))
	silent := find(t, findings, "no-responder")
	assert.Equal(t, "Nobody answers for 192.0.2.240. Expected is node-b, by MetalLB's election for default/nginx-ingress. "+
		"The settings of the kernels that hold it are right and not the cause: do not loosen them.", silent.Message)
	assert.Equal(t, []strictarp.Key{"not-announced|default/nginx-ingress|"}, silent.Causes)
	assert.Empty(t, silent.Remedies)
	for _, step := range []string{"net.ipv4.conf.all.arp_ignore=0", "net.ipv4.conf.ens33.arp_ignore=0", "net.ipv4.conf.all.arp_announce=0", "net.ipv4.conf.all.rp_filter=0",
		"strictARP: false", "ip addr add 192.0.2.240/32 dev ens33"} {
		assert.Contains(t, avoided(silent), step)
	}
	next := find(t, findings, "not-announced")
	assert.Equal(t, "node-b", next.Node)
	assert.Contains(t, next.Message, "no status object and no log line shows that it does")
	assert.Contains(t, next.Remedies[0].String(), "read the log of the speaker on node-b")
	rule, _ := strictarp.RuleByID("not-announced")
	assert.Contains(t, rule.Explain, "arp_ignore 1, arp_announce 2 and rp_filter 1 are right and not the cause")
	for _, f := range findings {
		assert.Contains(t, []string{"no-responder", "not-announced"}, f.Rule)
	}
}
