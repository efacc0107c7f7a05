package strictarp_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func curable(rule, subject string, steps ...strictarp.Step) strictarp.Finding {
	f := strictarp.Finding{Rule: rule, Severity: strictarp.SeverityError, Subject: strictarp.Subject(subject)}
	if len(steps) > 0 {
		f.Remedies = []strictarp.Remedy{strictarp.NewRemedy("mended", steps...)}
	}
	return f
}

func onNode(node string, s strictarp.Step) strictarp.Step {
	s.Node = node
	return s
}

func TestNewPlanOrders(t *testing.T) {
	t.Parallel()
	w1 := curable("kernel-answers-vip", "w1", edit, restart, onNode("", ignore), announce)
	w1.Node = "w1"
	stale := curable("stale-neighbour", "10.0.3.20", onNode("", forget))
	stale.Node, stale.Vantage = "w2", "client"
	consequence := curable("multiple-responders", "10.0.3.20")
	consequence.Causes = []strictarp.Key{"kernel-answers-vip|w1|", "kernel-answers-vip|w2|"}
	p, err := strictarp.NewPlan([]strictarp.Finding{
		consequence,
		stale,
		curable("kernel-answers-vip", "w2", edit, restart, onNode("w2", ignore), onNode("w2", announce)),
		w1,
		curable("foreign-responder", "10.0.3.21", strictarp.Step{Action: strictarp.DoByHand, Object: "unplug it"}),
		{Rule: "node-not-observed", Severity: strictarp.SeverityUnknown, Subject: "w3"},
		{Rule: "useless-sysctl", Severity: strictarp.SeverityInfo, Subject: "w1", Remedies: []strictarp.Remedy{strictarp.NewRemedy("tidy", onNode("w9", ignore))}},
	})
	require.NoError(t, err)
	assert.Equal(t, `cluster:
  strictARP: true
  kubectl rollout restart daemonset/kube-proxy -n kube-system
w1:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
w2:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
client:
  ip neigh del 10.0.3.20 dev eth0
by hand:
  manual: unplug it
`, p.String())
	assert.Equal(t, []strictarp.Key{
		"multiple-responders|10.0.3.20|", "stale-neighbour|10.0.3.20|client", "kernel-answers-vip|w2|", "kernel-answers-vip|w1|",
	}, p.Cures, "what people have to do is not cured by the plan")
	assert.Contains(t, p.Known, strictarp.Key("node-not-observed|w3|"))
	assert.Contains(t, p.Known, strictarp.Key("foreign-responder|10.0.3.21|"))

	assert.Equal(t, `w2:
  net.ipv4.conf.all.arp_announce=0
  net.ipv4.conf.all.arp_ignore=0
w1:
  net.ipv4.conf.all.arp_announce=0
  net.ipv4.conf.all.arp_ignore=0
cluster:
  strictARP: false
  kubectl rollout restart daemonset/kube-proxy -n kube-system
by hand:
  manual: take back: unplug it
`, p.Undo().String())
	assert.True(t, p.Undo().Undoes)
	assert.Subset(t, p.Undo().Known, p.Cures)

	data, err := json.Marshal(p)
	require.NoError(t, err)
	var back strictarp.Plan
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, p, back)
}

func TestNewPlanPicks(t *testing.T) {
	t.Parallel()
	f := curable("kernel-answers-vip", "w1", edit, restart)
	f.Remedies = append(f.Remedies, strictarp.NewRemedy("by sysctl", ignore, announce))
	other := curable("kernel-answers-vip", "w2", onNode("w2", ignore))
	all := []strictarp.Finding{f, other}

	p, err := strictarp.NewPlan(all, strictarp.Pick{Finding: f.Key(), Remedy: 1})
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Step{ignore, announce}, p.Steps)
	assert.Equal(t, []strictarp.Key{f.Key()}, p.Cures)
	assert.Equal(t, []strictarp.Key{f.Key(), other.Key()}, p.Known)

	for _, pick := range []strictarp.Pick{{Finding: "x||"}, {Finding: f.Key(), Remedy: 2}, {Finding: f.Key(), Remedy: -1}} {
		_, err := strictarp.NewPlan(all, pick)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	p, err = strictarp.NewPlan(nil)
	require.NoError(t, err)
	assert.Empty(t, p.Steps)
	assert.Empty(t, p.String())
}

// No picks mean all that can be mended, and empty ones that nothing is.
func TestNewPlanNilAndEmptyPicks(t *testing.T) {
	t.Parallel()
	all := []strictarp.Finding{curable("kernel-answers-vip", "w1", ignore)}
	for name, c := range map[string]struct {
		picks []strictarp.Pick
		want  []strictarp.Step
	}{
		"nil":   {nil, []strictarp.Step{ignore}},
		"empty": {[]strictarp.Pick{}, []strictarp.Step{}},
	} {
		p, err := strictarp.NewPlan(all, c.picks...)
		require.NoError(t, err)
		assert.Equal(t, c.want, p.Steps, name)
		assert.Contains(t, p.Known, all[0].Key(), name)
	}
}

// only carries out steps of one action on one node.
type only struct {
	strictarp.Executor
	action strictarp.Action
	node   string
}

func (x only) Handles(s strictarp.Step) bool { return s.Action == x.action && s.Node == x.node }

func TestExecutorsPick(t *testing.T) {
	t.Parallel()
	byHand := strictarp.Step{Action: strictarp.DoByHand, Object: "unplug it"}
	either := curable("kernel-answers-vip", "w1", edit, restart)
	either.Remedies = append(either.Remedies, strictarp.NewRemedy("by sysctl", ignore, announce, byHand))
	here := curable("arp-announce-off", "w1", onNode("", announce)) // done where it is found
	here.Node = "w1"
	away := curable("kernel-answers-vip", "w2", onNode("w2", ignore))
	people := curable("foreign-responder", "10.0.3.21", byHand)
	note := curable("useless-sysctl", "w1", ignore)
	note.Severity = strictarp.SeverityInfo
	findings := []strictarp.Finding{either, here, away, people, note, curable("no-responder", "10.0.3.20")}

	x := strictarp.Executors{only{action: strictarp.SetSysctl, node: "w1"}}
	assert.True(t, x.Can(ignore))
	assert.False(t, x.Can(onNode("w2", ignore)))
	assert.False(t, x.Can(edit))
	picks, elsewhere := x.Picks(findings)
	assert.Equal(t, []strictarp.Pick{{Finding: either.Key(), Remedy: 1}, {Finding: here.Key()}, {Finding: people.Key()}}, picks)
	assert.Equal(t, []strictarp.Key{away.Key()}, elsewhere)
	p, err := strictarp.NewPlan(findings, picks...)
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Step{ignore, announce}, p.Steps)
	assert.Equal(t, []strictarp.Step{byHand}, p.Manual)

	picks, elsewhere = strictarp.Executors(nil).Picks([]strictarp.Finding{away})
	assert.Equal(t, []strictarp.Pick{}, picks, "not nil, which means all")
	assert.Equal(t, []strictarp.Key{away.Key()}, elsewhere)
}

func TestNewPlanJoins(t *testing.T) {
	t.Parallel()
	unknown, dotted := ignore, ignore
	unknown.From, dotted.Object = "", "net.ipv4.conf.all.arp_ignore"
	elsewhere := forget
	elsewhere.From = "5a:6d:65:27:bd:f8"
	p, err := strictarp.NewPlan([]strictarp.Finding{
		curable("a", "x", unknown, forget), curable("b", "x", dotted, elsewhere),
	})
	require.NoError(t, err)
	either := forget
	either.From = ""
	assert.Equal(t, []strictarp.Step{ignore, either}, p.Steps)
}

func TestNewPlanRefuses(t *testing.T) {
	t.Parallel()
	change := func(s strictarp.Step, from, to string) strictarp.Step {
		s.From, s.To = from, to
		return s
	}
	t.Run("harm", func(t *testing.T) {
		t.Parallel()
		for _, s := range []strictarp.Step{
			change(ignore, "1", "0"), change(edit, "true", "false"),
			{Action: strictarp.SetAddress, Node: "w1", Object: "10.0.3.20/32 dev eth0", From: strictarp.Absent, To: strictarp.Present},
			{Action: strictarp.DoByHand, Object: "sysctl -w net.ipv4.conf.all.arp_ignore=0"},
		} {
			_, err := strictarp.NewPlan([]strictarp.Finding{curable("no-responder", "10.0.3.20", s)})
			var harmful *strictarp.HarmfulError
			require.ErrorAs(t, err, &harmful, "%s", s)
			assert.Equal(t, s, harmful.Step)
			require.ErrorContains(t, err, "it does harm")
		}
	})
	t.Run("contradictions", func(t *testing.T) {
		t.Parallel()
		mode := strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/eth0/rp_filter", From: "1", To: "2"}
		for _, s := range []strictarp.Step{change(mode, "1", "1"), change(mode, "0", "2")} {
			_, err := strictarp.NewPlan([]strictarp.Finding{curable("a", "w1", mode), curable("b", "w1", s)})
			var contradiction *strictarp.ContradictionError
			require.ErrorAs(t, err, &contradiction)
			assert.Equal(t, [2]strictarp.Step{mode, s}, contradiction.Steps)
			require.ErrorContains(t, err, "on w1")
		}
	})
}

func TestPlanPreview(t *testing.T) {
	t.Parallel()
	unknown := announce
	unknown.From = ""
	hostile := strictarp.Step{Action: strictarp.DoByHand, Node: "w1", Object: "\x1b[2Jclear\r"}
	p := strictarp.Plan{Steps: []strictarp.Step{edit, restart, ignore, unknown, forget, onNode("", forget)}, Manual: []strictarp.Step{hostile}}
	assert.Equal(t, `cluster:
  strictARP: true
    - false
    + true
  kubectl rollout restart daemonset/kube-proxy -n kube-system
w1:
  net.ipv4.conf.all.arp_ignore=1
    - 0
    + 1
  net.ipv4.conf.all.arp_announce=2
    - ?
    + 2
client:
  ip neigh del 10.0.3.20 dev eth0
    - 06:75:02:33:d2:90
    + absent
this host:
  ip neigh del 10.0.3.20 dev eth0
    - 06:75:02:33:d2:90
    + absent
by hand:
  manual: �[2Jclear�
`, p.Preview())
}
