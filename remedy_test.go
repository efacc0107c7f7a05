package strictarp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp"
)

func TestStep(t *testing.T) {
	t.Parallel()
	const exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	for text, c := range map[string]struct {
		step strictarp.Step
		undo string // canonical text; empty for nothing to undo
	}{
		"net.ipv4.conf.all.arp_ignore=1": {
			strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: "1"},
			"net.ipv4.conf.all.arp_ignore=0",
		},
		"net.ipv4.conf.eth0/100.arp_announce=2": {
			strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/eth0.100/arp_announce", From: "0", To: "2"},
			"net.ipv4.conf.eth0/100.arp_announce=0",
		},
		"net.ipv4.conf.eth0.arp_ignore=1": {
			strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/eth0/arp_ignore", To: "1"}, // From is not known
			"manual: take back: net.ipv4.conf.eth0.arp_ignore=1",
		},
		"strictARP: true": {
			strictarp.Step{Action: strictarp.SetStrictARP, Namespace: "kube-system", Object: "configmap/kube-proxy", From: "false", To: "true"},
			"strictARP: false",
		},
		"kubectl rollout restart daemonset/kube-proxy -n kube-system": {
			strictarp.Step{Action: strictarp.RestartRollout, Namespace: "kube-system", Object: "daemonset/kube-proxy"},
			"kubectl rollout restart daemonset/kube-proxy -n kube-system",
		},
		"systemctl restart kube-proxy.service on w1": {
			strictarp.Step{Action: strictarp.RestartUnit, Node: "w1", Object: "kube-proxy.service"},
			"systemctl restart kube-proxy.service on w1",
		},
		"ip addr del 10.0.3.20/32 dev eth0": {
			strictarp.Step{Action: strictarp.SetAddress, Node: "w1", Object: "10.0.3.20/32 dev eth0", From: strictarp.Present, To: strictarp.Absent},
			"ip addr add 10.0.3.20/32 dev eth0",
		},
		"ip neigh del 10.0.3.20 dev eth0": {
			strictarp.Step{Action: strictarp.ForgetNeighbour, Object: "10.0.3.20 dev eth0", From: "06:75:02:33:d2:90"},
			"",
		},
		"kubectl label node w1 " + exclude + "-": {
			strictarp.Step{Action: strictarp.SetLabel, Node: "w1", Object: exclude, From: "=false", To: strictarp.Absent},
			"kubectl label node w1 " + exclude + "=false",
		},
		"kubectl label node w2 " + exclude + "-": {
			strictarp.Step{Action: strictarp.SetLabel, Node: "w2", Object: exclude, From: "=", To: strictarp.Absent}, // without a value
			"kubectl label node w2 " + exclude + "=",
		},
		`kubectl patch l2advertisement/web -n metallb-system --type merge -p '{"spec":{"interfaces":["it'\''s"]}}'`: {
			strictarp.Step{
				Action: strictarp.PatchObject, Namespace: "metallb-system", Object: "l2advertisement/web",
				From: `{"spec":{"interfaces":null}}`, To: `{"spec":{"interfaces":["it's"]}}`,
			},
			`kubectl patch l2advertisement/web -n metallb-system --type merge -p '{"spec":{"interfaces":null}}'`,
		},
		"manual: ask who owns the device at 52:54:00:00:00:01, then unplug it": {
			strictarp.Step{Action: strictarp.DoByHand, Object: "ask who owns the device at 52:54:00:00:00:01,\nthen unplug it"},
			"manual: take back: ask who owns the device at 52:54:00:00:00:01, then unplug it",
		},
		"manual: unknown-action x y": {strictarp.Step{Action: "unknown-action", Object: "x", To: "y"}, "manual: take back: unknown-action x y"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, text, c.step.String())
			undo, ok := c.step.Undo()
			assert.Equal(t, c.undo != "", ok)
			if ok {
				assert.Equal(t, c.undo, undo.String())
				assert.Equal(t, c.step.Node, undo.Node)
			}
		})
	}
}

func TestNewRemedy(t *testing.T) {
	t.Parallel()
	edit := strictarp.Step{Action: strictarp.SetStrictARP, Namespace: "kube-system", Object: "configmap/kube-proxy", From: "false", To: "true"}
	restart := strictarp.Step{Action: strictarp.RestartRollout, Namespace: "kube-system", Object: "daemonset/kube-proxy"}
	ignore := strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: "1"}
	forget := strictarp.Step{Action: strictarp.ForgetNeighbour, Object: "10.0.3.20 dev eth0"}

	r := strictarp.NewRemedy("only the announcer answers", edit, restart, ignore, forget)
	assert.Equal(t, "only the announcer answers", r.Summary)
	assert.Equal(t, `strictARP: true
kubectl rollout restart daemonset/kube-proxy -n kube-system
net.ipv4.conf.all.arp_ignore=1
ip neigh del 10.0.3.20 dev eth0`, r.String())
	assert.Equal(t, `net.ipv4.conf.all.arp_ignore=0
strictARP: false
kubectl rollout restart daemonset/kube-proxy -n kube-system`, strictarp.Remedy{Steps: r.Undo}.String())

	assert.Empty(t, strictarp.NewRemedy("forgotten", forget).Undo)
	assert.Empty(t, strictarp.NewRemedy("nothing").Steps)
}
