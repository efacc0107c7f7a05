package incident_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/e2e/cluster"
	"github.com/strictarp/strictarp/kubeproxy"
)

// TestIncident plays all scenarios one after the other on one cluster, which is
// strict from the end of the first on.
func TestIncident(t *testing.T) {
	l := newLab(t)
	defer l.print()
	l.play(t, "strictARP false", (*scene).incident)
	if testing.Short() {
		return
	}
	for _, c := range []struct {
		name string
		play func(*scene)
	}{
		{"undone: residue", (*scene).residue},
		{"edited, not restarted", (*scene).pending},
		{"loosened on w2", (*scene).overridden},
		{"poisoned by request", (*scene).poisoned},
		{"exclude label, value false", (*scene).excluded},
		{"no endpoint", (*scene).noEndpoint},
		{"interface missing", (*scene).missingInterface},
		{"bridge port", (*scene).bridgePort},
		{"speaker killed", (*scene).killedSpeaker},
		{"left ipvs for iptables", (*scene).leftover},
	} {
		l.play(t, c.name, c.play)
	}
}

// incident: nothing but strictARP is wrong, and four answers come for each request.
func (s *scene) incident() {
	s.answered(map[string]int{"w1": 6, "w2": 3, "w3": 3})
	require.NoError(s, s.Client.Learn(s.Node("w2")))
	_, err := s.Client.Get(s.Context())
	require.Error(s, err, "a client that cached w2 times out")
	require.ErrorIs(s, err, context.DeadlineExceeded)
	s.sees("multiple-responders@10.0.3.20", "kernel-answers-vip@w1", "kernel-answers-vip@w2", "kernel-answers-vip@w3",
		"strictarp-off", "local-policy-drop@10.0.3.20", "double-answer@10.0.3.20", "stale-neighbour@10.0.3.20")
	s.never("foreign-responder", "no-responder", "split-brain", "proxy-arp-responder", "announcer-mismatch")
	s.applies("strictarp-off", "stale-neighbour")
	s.heals()
}

// residue: to take the change back changes the text, and not the kernels.
func (s *scene) residue() {
	plan, err := s.Proxies().PlanUndo(s.Context(), s.Change(kubeproxy.StrictARPFalse))
	require.NoError(s, err)
	s.runs(plan)
	s.sees("strictarp-off", "strictarp-residue@w1", "strictarp-residue@w2", "strictarp-residue@w3")
	s.never("kernel-answers-vip", "multiple-responders")
	s.applies("strictarp-off")
	s.heals()
}

func (s *scene) runs(plan *kubeproxy.Plan) {
	s.Helper()
	for progress, err := range plan.Apply(s.Context()) {
		require.NoError(s, err)
		s.Logf("%s %s", progress.Step, progress.Node)
	}
}

// pending: the text says true and the processes do not, on kernels that are loose.
func (s *scene) pending() {
	require.NoError(s, s.EditProxies(s.Context(), told("strictARP: true", "strictARP: false")))
	require.NoError(s, s.RestartProxies(s.Context()))
	s.loosen("w1", "w2", "w3")
	require.NoError(s, s.EditProxies(s.Context(), told("strictARP: false", "strictARP: true")))
	s.sees("strictarp-pending@w1", "strictarp-pending@w2", "strictarp-pending@w3", "multiple-responders")
	s.never("strictarp-off")
	s.applies("strictarp-pending")
	s.heals()
}

func told(old, now string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, now, 1) }
}

// loosen does to kernels what a boot does.
func (s *scene) loosen(nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		require.NoError(s, s.Node(node).Sysctl("net/ipv4/conf/all/arp_ignore=0", "net/ipv4/conf/all/arp_announce=0"))
	}
}

// overridden: something set one kernel loose after kube-proxy made it strict.
func (s *scene) overridden() {
	s.loosen("w2")
	s.sees("strictarp-overridden@w2", "kernel-answers-vip@w2", "multiple-responders")
	s.never("strictarp-off", "kernel-answers-vip@w1", "kernel-answers-vip@w3", "double-answer")
	s.applies("strictarp-overridden")
	s.heals()
}

// poisoned: arp_ignore 1 alone is half a fix.
func (s *scene) poisoned() {
	require.NoError(s, s.Client.Forget())
	require.NoError(s, s.Node("w2").Sysctl("net/ipv4/conf/all/arp_announce=0"))
	s.answered(map[string]int{"w1": 3})
	asking, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- s.keepAsking(asking) }()
	s.sees("arp-announce-off@w2", "vip-in-request-sender@10.0.3.20", "stale-neighbour@10.0.3.20")
	s.never("multiple-responders", "kernel-answers-vip")
	cancel()
	require.NoError(s, <-done)
	s.applies("arp-announce-off", "strictarp-overridden", "stale-neighbour")
	s.heals()
}

// keepAsking has w2's kernel ask for the client in the name of the VIP.
func (s *scene) keepAsking(ctx context.Context) error {
	for {
		if err := s.Node("w2").AskInTheNameOfVIP(s.Client.Addr.Addr()); err != nil {
			return err
		}
		if !pause(ctx) {
			return nil
		}
	}
}

// excluded: the label counts, whatever its value.
func (s *scene) excluded() {
	const label = "node.kubernetes.io/exclude-from-external-load-balancers"
	value := "false"
	require.NoError(s, s.Label(s.Context(), "w1", label, &value))
	s.answered(map[string]int{})
	s.sees("node-excluded-from-lb", "no-responder@10.0.3.20")
	s.applies("node-excluded-from-lb")
	s.heals()
}

func (s *scene) noEndpoint() {
	require.NoError(s, s.Serve(s.Context(), false))
	s.answered(map[string]int{})
	s.sees("no-ready-endpoint", "no-responder@10.0.3.20")
	require.NoError(s, s.Serve(s.Context(), true))
	s.cure = "an endpoint that is ready"
	s.heals()
}

// missingInterface: a speaker that runs goes on; the next one is silent.
func (s *scene) missingInterface() {
	require.NoError(s, s.AnnounceOn(s.Context(), `["eth9"]`))
	s.sees("announcing-interface-missing")
	s.never("no-responder")
	require.NoError(s, s.RestartSpeakers(s.Context()))
	s.answered(map[string]int{})
	s.sees("announcing-interface-missing", "no-responder@10.0.3.20")
	require.NoError(s, s.AnnounceOn(s.Context(), `["`+cluster.NIC+`"]`))
	s.cure = "the L2Advertisement names " + cluster.NIC
	s.heals()
}

// bridgePort: a status names the port as if it worked.
func (s *scene) bridgePort() {
	require.NoError(s, s.Node("w1").AddBridgePort("br9", "port9"))
	require.NoError(s, s.AnnounceOn(s.Context(), `["port9"]`))
	require.NoError(s, s.RestartSpeakers(s.Context()))
	s.answered(map[string]int{})
	s.sees("announcing-interface-skipped", "no-responder@10.0.3.20")
	require.NoError(s, s.AnnounceOn(s.Context(), `["`+cluster.NIC+`"]`))
	require.NoError(s, s.Node("w1").DeleteLink("br9"))
	s.cure = "the L2Advertisement names " + cluster.NIC
	s.heals()
}

// killedSpeaker: what it reported stays.
func (s *scene) killedSpeaker() {
	require.NoError(s, s.KillSpeaker("w1"))
	s.answered(map[string]int{})
	statuses, err := s.MetalLB("servicel2statuses").List(s.Context(), listAll)
	require.NoError(s, err)
	assert.NotEmpty(s, statuses.Items, "the status is stale, and there")
	s.sees("no-responder@10.0.3.20")
	require.NoError(s, s.ReportSpeakerDown(s.Context(), "w1"))
	s.sees("no-speaker-on-node", "announcer-status-stale")
	require.NoError(s, s.RestartSpeakers(s.Context()))
	s.cure = "kubectl rollout restart daemonset/speaker -n metallb-system"
	s.heals()
}

// leftover: kube-proxy leaves its device behind, and the kernels answer.
func (s *scene) leftover() {
	require.NoError(s, s.EditProxies(s.Context(), told("mode: ipvs", "mode: iptables")))
	require.NoError(s, s.RestartProxies(s.Context()))
	s.loosen("w1", "w2", "w3")
	s.answered(map[string]int{"w1": 6, "w2": 3, "w3": 3})
	s.sees("leftover-kube-ipvs0@w1", "leftover-kube-ipvs0@w2", "leftover-kube-ipvs0@w3", "multiple-responders")
	for _, node := range s.Nodes {
		require.NoError(s, node.DeleteLink("kube-ipvs0"))
	}
	require.NoError(s, s.Client.Forget())
	s.cure = "ip link del kube-ipvs0"
	s.heals()
}
