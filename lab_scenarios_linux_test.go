package strictarp_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/sysctl"
)

// labScenario is a fault, how it is judged and mended, and what taking the cure
// back leads to.
type labScenario struct {
	name      string
	situation kubeproxytest.Situation
	prepare   func(*lab) error                           // what the situation lacks; nil: nothing
	suffer    func(*lab, *testing.T)                     // has the client get a wrong MAC; nil: the wire is right, for now
	errors    []string                                   // keys of all findings of severity error
	warnings  []string                                   // and some of those of severity warning
	picks     func([]strictarp.Finding) []strictarp.Pick // nil: what is best of all
	plan      string
	manual    *labOperator // who does what the plan has for people; nil: it has nothing

	// kept are the keys of errors that are there once the plan is taken back, if
	// these are others than before: kube-proxy does not take back what it set.
	kept []string
	// boots says that then the fault is there again once the nodes boot.
	boots bool
}

// labOperator is a person, whom the test plays.
type labOperator struct {
	left     []string // keys of errors that are there until it is done
	do, undo func(*lab) error
}

func labScenarios() []labScenario {
	wire := []string{
		"kernel-answers-vip|w1|", "kernel-answers-vip|w2|", "kernel-answers-vip|w3|",
		"local-policy-drop|10.0.3.20|client", "local-policy-drop|10.0.3.20|observer",
		"multiple-responders|10.0.3.20|observer", "stale-neighbour|10.0.3.20|client",
	}
	besides := []string{"arp-announce-off|w1|", "arp-announce-off|w2|", "arp-announce-off|w3|", "double-answer|10.0.3.20|observer"}
	leftovers := []string{"leftover-kube-ipvs0|w1|", "leftover-kube-ipvs0|w2|", "leftover-kube-ipvs0|w3|"}
	off := []string{"strictarp-off|kube-system/kube-proxy|"}
	return []labScenario{
		{
			name: "loose", suffer: (*lab).mislead,
			errors: slices.Concat(wire, off), warnings: besides,
			plan: `
cluster:
  strictARP: true
  kubectl rollout restart daemonset/kube-proxy -n kube-system
client:
  ip neigh del 10.0.3.20 dev eth0
`,
			kept: off, boots: true,
		},
		{
			// The kernels are set too, so that the undo file has their values.
			name: "loose, cured in the kernels too", suffer: (*lab).mislead,
			errors: slices.Concat(wire, off), warnings: besides,
			picks: pickSysctls("strictarp-off", "kernel-answers-vip", "stale-neighbour"),
			plan: `
cluster:
  strictARP: true
  kubectl rollout restart daemonset/kube-proxy -n kube-system
w1:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
w2:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
w3:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
client:
  ip neigh del 10.0.3.20 dev eth0
`,
		},
		{
			// Nothing is wrong on the wire until the nodes boot.
			name: "residue", situation: kubeproxytest.Residue,
			errors: off, warnings: []string{"strictarp-residue|w1|", "strictarp-residue|w2|", "strictarp-residue|w3|"},
			plan: `
cluster:
  strictARP: true
  kubectl rollout restart daemonset/kube-proxy -n kube-system
`,
		},
		{
			name: "pending", situation: kubeproxytest.Pending, suffer: (*lab).mislead,
			errors: slices.Concat(wire, []string{"strictarp-pending|w1|", "strictarp-pending|w2|", "strictarp-pending|w3|"}), warnings: besides,
			plan: `
cluster:
  kubectl rollout restart daemonset/kube-proxy -n kube-system
client:
  ip neigh del 10.0.3.20 dev eth0
`,
			// A restart cannot be taken back: what is read again says strictARP true.
			kept: []string{},
		},
		{
			name: "leftover", situation: kubeproxytest.Leftover, suffer: (*lab).mislead,
			errors: slices.Concat(wire, leftovers), warnings: besides,
			plan: `
w1:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
w2:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
w3:
  net.ipv4.conf.all.arp_ignore=1
  net.ipv4.conf.all.arp_announce=2
client:
  ip neigh del 10.0.3.20 dev eth0
by hand:
  manual: ip link del kube-ipvs0 on w1, or run kube-proxy --cleanup there
  manual: ip link del kube-ipvs0 on w2, or run kube-proxy --cleanup there
  manual: ip link del kube-ipvs0 on w3, or run kube-proxy --cleanup there
`,
			manual: &labOperator{left: leftovers, do: (*lab).removeDevices, undo: (*lab).holdVIP},
		},
		{
			name: "poisoned", situation: kubeproxytest.Strict, suffer: (*lab).poison,
			prepare: func(l *lab) error { return l.nodes[1].SetSysctl("all", sysctl.ARPAnnounce, 0) },
			errors: []string{
				"local-policy-drop|10.0.3.20|client", "stale-neighbour|10.0.3.20|client",
				"strictarp-overridden|w2|", "vip-in-request-sender|10.0.3.20|observer",
			},
			warnings: []string{"arp-announce-off|w2|"},
			plan: `
w2:
  net.ipv4.conf.all.arp_announce=2
client:
  ip neigh del 10.0.3.20 dev eth0
`,
		},
	}
}

// pickSysctls picks the best remedy of each finding of some rules, and for kernels
// that answer the one that sets them.
func pickSysctls(rules ...string) func([]strictarp.Finding) []strictarp.Pick {
	return func(findings []strictarp.Finding) []strictarp.Pick {
		var picks []strictarp.Pick
		for _, f := range findings {
			if !slices.Contains(rules, f.Rule) {
				continue
			}
			p := strictarp.Pick{Finding: f.Key()}
			if f.Rule == "kernel-answers-vip" {
				p.Remedy = slices.IndexFunc(f.Remedies, func(r strictarp.Remedy) bool { return r.Steps[0].Action == strictarp.SetSysctl })
			}
			picks = append(picks, p)
		}
		return picks
	}
}

func (l *lab) holdVIP() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.HoldVIP(vip))
	}
	return errors.Join(errs...)
}

func (l *lab) removeDevices() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.Do(func() error {
			link, err := netlink.LinkByName(netnstest.VIPDevice)
			if err != nil {
				return err
			}
			return netlink.LinkDel(link)
		}))
	}
	return errors.Join(errs...)
}
