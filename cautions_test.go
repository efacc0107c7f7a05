package strictarp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func steps(cautions ...strictarp.Caution) []string {
	var lines []string
	for _, c := range cautions {
		lines = append(lines, c.Step)
	}
	return lines
}

func TestCautionsNameTheirSteps(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("10.0.3.20")
	for _, c := range []struct {
		cautions []strictarp.Caution
		want     []string
	}{
		{strictarp.LoosenCautions("ens33", "eth0.100"), []string{
			"net.ipv4.conf.all.arp_ignore=0", "net.ipv4.conf.ens33.arp_ignore=0", "net.ipv4.conf.eth0/100.arp_ignore=0",
			"net.ipv4.conf.all.arp_announce=0", "net.ipv4.conf.ens33.arp_announce=0", "net.ipv4.conf.eth0/100.arp_announce=0",
			"net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.ens33.rp_filter=0", "net.ipv4.conf.eth0/100.rp_filter=0",
		}},
		{strictarp.LoosenCautions("", "../all", "a name that is too long"), []string{
			"net.ipv4.conf.all.arp_ignore=0", "net.ipv4.conf.all.arp_announce=0", "net.ipv4.conf.all.rp_filter=0",
		}},
		{strictarp.ARPFilterCautions("ens33"), []string{"net.ipv4.conf.all.arp_filter=1", "net.ipv4.conf.ens33.arp_filter=1"}},
		{strictarp.UselessSysctlCautions("kube-ipvs0"), []string{
			"net.ipv4.conf.default.arp_ignore=1", "net.ipv4.conf.default.arp_announce=2",
			"net.ipv4.conf.kube-ipvs0.arp_ignore=1", "net.ipv4.conf.kube-ipvs0.arp_announce=2",
		}},
		{[]strictarp.Caution{strictarp.StrictARPFalseCaution()}, []string{"strictARP: false"}},
		{[]strictarp.Caution{strictarp.BindVIPCaution(vip, "ens33")}, []string{"ip addr add 10.0.3.20/32 dev ens33"}},
		{[]strictarp.Caution{strictarp.DeleteHeldCaution(vip, "kube-ipvs0")}, []string{"ip addr del 10.0.3.20/32 dev kube-ipvs0"}},
		{[]strictarp.Caution{strictarp.StaticNeighbourCaution(vip, "eth0")}, []string{"ip neigh add 10.0.3.20 lladdr MAC dev eth0"}},
		{[]strictarp.Caution{strictarp.ExcludeLabelCaution("w1")}, []string{"kubectl label node w1 node.kubernetes.io/exclude-from-external-load-balancers=false"}},
		{[]strictarp.Caution{strictarp.RestartCaution("metallb-system", "daemonset/speaker")}, []string{"kubectl rollout restart daemonset/speaker -n metallb-system"}},
		{[]strictarp.Caution{strictarp.OneSuccessCaution()}, []string{"manual: call it healthy after one successful request"}},
	} {
		require.Equal(t, c.want, steps(c.cautions...))
		for _, caution := range c.cautions {
			assert.Regexp(t, `^[\x20-\x7e]{40,}[^.]$`, caution.Why, "a reason of one line without a full stop")
		}
	}
}

func sysctlStep(key, to string) strictarp.Step {
	return strictarp.Step{Action: strictarp.SetSysctl, Object: key, To: to}
}

func manual(text string) strictarp.Step {
	return strictarp.Step{Action: strictarp.DoByHand, Object: text}
}

func patch(to string) strictarp.Step {
	return strictarp.Step{Action: strictarp.PatchObject, Object: "configmap/kube-proxy", Namespace: "kube-system", To: to}
}

const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

func TestHarmful(t *testing.T) {
	t.Parallel()
	for _, s := range []strictarp.Step{
		sysctlStep("net/ipv4/conf/all/arp_ignore", "0"),
		sysctlStep("net/ipv4/conf/eth0.100/arp_ignore", "2"),
		sysctlStep("net/ipv4/conf/ens33/arp_ignore", "3"),
		sysctlStep("net/ipv4/conf/ens33/arp_ignore", "4"),
		sysctlStep("net/ipv4/conf/all/arp_ignore", "8"),
		sysctlStep("net/ipv4/conf/all/arp_ignore", "9"),
		sysctlStep("net/ipv4/conf/all/arp_ignore", "-1"),
		sysctlStep("net/ipv4/conf/default/arp_ignore", "0"),
		sysctlStep("net/ipv4/conf/all/arp_ignore", "0x1"), // the kernel reads it; what is not plain is not offered
		sysctlStep("net/ipv4/conf/all/arp_ignore", ""),
		sysctlStep("net.ipv4.conf.all.arp_ignore", "0"),
		sysctlStep("net/ipv4/conf/all/arp_announce", "0"),
		sysctlStep("net/ipv4/conf/all/arp_announce", "1"),
		sysctlStep("net/ipv4/conf/all/arp_announce", "3"),
		sysctlStep("net/ipv4/conf/all/rp_filter", "0"),
		sysctlStep("net/ipv4/conf/ens33/arp_filter", "1"),
		sysctlStep("net/ipv4/conf/ens33/proxy_arp", "1"),
		sysctlStep("net/ipv4/conf/ens33/proxy_arp_pvlan", "1"),
		sysctlStep("net/ipv4/conf/ens33/drop_gratuitous_arp", "1"),
		sysctlStep("net/ipv4/conf/kube-ipvs0/arp_ignore", "1"),
		sysctlStep("net/ipv4/conf/../../x", "1"),
		{Action: strictarp.SetStrictARP, To: "false"},
		{Action: strictarp.SetStrictARP},
		{Action: strictarp.SetAddress, Object: "10.0.3.20/32 dev ens33", To: strictarp.Present},
		{Action: strictarp.SetAddress, Object: "10.0.3.20/32 dev ens33"}, // its text says "add"
		{Action: strictarp.SetLabel, Node: "w1", Object: excludeLabel, To: "=false"},
		{Action: strictarp.SetLabel, Node: "w1", Object: excludeLabel, To: "="},
		patch(`{"data":{"config.conf":"mode: ipvs\nipvs:\n  strictARP: false\n"}}`),
		patch(`{"data":{"config.conf":"{\"ipvs\":{\"strictARP\":false}}"}}`),
		patch(`{"metadata":{"labels":{"` + excludeLabel + `":"false"}}}`),
		manual("set net.ipv4.conf.all.arp_ignore = 0 in /etc/sysctl.d/90-x.conf"),
		manual("sysctl -w net.ipv4.conf.eth0/100.arp_announce=0"),
		manual("sysctl -w net/ipv4/conf/kube-ipvs0/arp_ignore=1"),
		manual("echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter"),
		manual("ip addr add 10.0.3.20/32 dev ens33"),
		manual("ip -4 a add 10.0.3.20/32 dev lo"),
		manual("ip address replace 10.0.3.20/32 dev lo"),
		manual("ip neigh add 10.0.3.20 lladdr 02:00:00:00:00:01 dev eth0"),
		manual("ip neighbor replace 10.0.3.20 lladdr 02:00:00:00:00:01 dev eth0"),
		manual("arp -s 10.0.3.20 02:00:00:00:00:01"),
		manual("start kube-proxy with --ipvs-strict-arp=false"),
		manual("kubectl label node w1 " + excludeLabel + "=false"),
		{Action: "other", Object: "strictARP: false"},
	} {
		why, bad := strictarp.Harmful(s)
		assert.True(t, bad, s)
		assert.NotEmpty(t, why, s)
	}
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, s := range []strictarp.Step{
		sysctlStep("net/ipv4/conf/all/arp_ignore", "1"),
		sysctlStep("net/ipv4/conf/eth0.100/arp_ignore", "1"),
		sysctlStep("net/ipv4/conf/default/arp_ignore", "1"), // in place of a larger one that is not strict
		sysctlStep("net/ipv4/conf/all/arp_announce", "2"),
		sysctlStep("net/ipv4/conf/ens33/rp_filter", "2"), // from 1, for clients whose route back differs
		sysctlStep("net/ipv4/conf/ens33/rp_filter", "1"),
		sysctlStep("net/ipv4/conf/all/arp_filter", "0"),
		sysctlStep("net/ipv4/conf/all/proxy_arp", "0"),
		sysctlStep("net/ipv4/ip_forward", "1"),
		sysctlStep("vm/swappiness", "10"),
		{Action: strictarp.SetStrictARP, From: "false", To: "true"},
		{Action: strictarp.SetAddress, Object: "10.0.3.20/32 dev ens33", From: strictarp.Present, To: strictarp.Absent},
		{Action: strictarp.ForgetNeighbour, Object: "10.0.3.20 dev eth0"},
		{Action: strictarp.RestartRollout, Namespace: "kube-system", Object: "daemonset/kube-proxy"},
		{Action: strictarp.RestartUnit, Node: "w1", Object: "kube-proxy"},
		{Action: strictarp.SetLabel, Node: "w1", Object: excludeLabel, From: "=false", To: strictarp.Absent},
		{Action: strictarp.SetLabel, Node: "w1", Object: "speaker", To: "=true"},
		patch(`{"data":{"config.conf":"mode: ipvs\nipvs:\n  strictARP: true\n"}}`),
		patch(`{"metadata":{"labels":{"` + excludeLabel + `":null}}}`),
		patch(`{"spec":{"interfaces":["ens33"]}}`),
		manual("set net.ipv4.conf.all.arp_ignore = 1 in /etc/sysctl.d/90-x.conf"),
		manual("ip link del kube-ipvs0"),
		manual("ip addr del 10.0.3.20/32 dev ens33"),
		manual("ip neigh del 10.0.3.20 dev eth0"),
		manual("take the line that sets arp_ignore out of /etc/sysctl.d/90-x.conf"),
		manual("kubectl label node w1 " + excludeLabel + "-"),
	} {
		why, bad := strictarp.Harmful(s)
		assert.False(t, bad, "%v: %s", s, why)
		assert.Empty(t, why, s)
	}
}

// What is warned of is not offered either, except restarts and what depends on
// the finding.
func TestWarnedOfIsHarmful(t *testing.T) {
	t.Parallel()
	vip := netip.MustParseAddr("10.0.3.20")
	cautions := append(strictarp.LoosenCautions("ens33"), strictarp.ARPFilterCautions("ens33")...)
	cautions = append(cautions, strictarp.StrictARPFalseCaution(), strictarp.BindVIPCaution(vip, "ens33"),
		strictarp.StaticNeighbourCaution(vip, "eth0"), strictarp.ExcludeLabelCaution("w1"))
	for _, c := range cautions {
		why, bad := strictarp.Harmful(manual(c.Step))
		assert.True(t, bad, c.Step)
		assert.Equal(t, c.Why, why, "%s: the same reason", c.Step)
	}
}

func FuzzHarmful(f *testing.F) {
	for _, seed := range []string{
		"net.ipv4.conf.all.arp_ignore=0", "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter", "strictARP: false", "ip addr add 10.0.3.20/32 dev lo",
		excludeLabel + "=false", "arp -s 10.0.3.20 02:00:00:00:00:01", "kube-ipvs0.arp_ignore=1", "rp_filter=99999999999", "",
	} {
		f.Add(seed, "0")
	}
	f.Fuzz(func(t *testing.T, text, to string) {
		for _, action := range []strictarp.Action{strictarp.SetSysctl, strictarp.PatchObject, strictarp.DoByHand, "other"} {
			s := strictarp.Step{Action: action, Object: text, To: to}
			why, bad := strictarp.Harmful(s)
			require.Equal(t, bad, why != "", "a reason if and only if it is harmful")
			if action == strictarp.DoByHand && strings.Contains(text, "net.ipv4.conf.all.arp_ignore=0 ") {
				require.True(t, bad, text)
			}
		}
	})
}
