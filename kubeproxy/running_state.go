package kubeproxy

import (
	"fmt"
	"time"
)

// ARP are the effective values of a node's settings on the interface of the
// VIPs' segment: the greater of conf/all and of the interface's.
type ARP struct {
	Ignore   int `json:"arpIgnore"`
	Announce int `json:"arpAnnounce"`
}

// Strict returns whether the kernel is silent about addresses of kube-ipvs0 and
// never asks in their name: arp_ignore 1, 2 or 8 (3 answers for addresses of
// global scope, other values count as 0: arp_ignore() in net/ipv4/arp.c) and
// arp_announce 2 (values above count as 0: arp_solicit() there).
func (a ARP) Strict() bool {
	return (a.Ignore == 1 || a.Ignore == 2 || a.Ignore == 8) && a.Announce == 2
}

func (a ARP) String() string {
	return fmt.Sprintf("arp_ignore %d, arp_announce %d", a.Ignore, a.Announce)
}

// State is how what kube-proxy is told, what it runs with and what its node's
// kernel does hang together.
type State string

// States. Where several hold, Judge returns the one that is to be mended first:
// they are in that order.
const (
	StateUnknown State = "" // facts are missing; the reason says which
	// StateNotApplicable: the configuration is for Windows nodes.
	StateNotApplicable State = "not-applicable"
	// StateRefused: kube-proxy will not start again with what it is told now.
	StateRefused State = "refused"
	// StateModeMismatch: it runs in another mode than it is told: it was not
	// restarted, or it fell back for want of kernel modules as old releases such as
	// 1.21 do; later ones exit instead.
	StateModeMismatch State = "mode-mismatch"
	// StatePending: it is told to be strict and not restarted since.
	StatePending State = "pending"
	// StatePendingOff: it is told not to be strict and not restarted since.
	StatePendingOff State = "pending-off"
	// StateOverridden: it runs strict, in mode ipvs, and the kernel is not: something
	// changed the settings after it started. It sets them at its start only.
	StateOverridden State = "overridden"
	// StateResidue: it does not run strict and the kernel is: it never takes back
	// what it once set. The next boot does.
	StateResidue State = "residue"
	// StateInForce: told, running and effective are all strict.
	StateInForce State = "in-force"
	// StateOff: neither told, running nor effective are strict.
	StateOff State = "off"
)

// Judgement is a State and why it is that.
type Judgement struct {
	State  State  `json:"state"`
	Reason string `json:"reason"` // one sentence for people
	// Inferred says that /configz was not seen: that the process runs with what it
	// is told follows from its start being later than the last change, or is assumed.
	Inferred bool `json:"inferred,omitempty"`
}

// Judge returns the state of one node. running and arp are nil if they were not
// observed. It does not look at Running's Args: who has only those gives the
// Config that they make as Running.Config.
func Judge(declared Config, running *Running, arp *ARP) Judgement {
	if declared.Windows {
		return Judgement{State: StateNotApplicable, Reason: "it is for Windows nodes, which have no kube-ipvs0"}
	}
	if declared.Refused != "" {
		return Judgement{State: StateRefused, Reason: "kube-proxy will not start again with this configuration: " + declared.Refused}
	}
	if running == nil {
		running = &Running{}
	}
	if mode := running.mode(); mode != "" && mode != declared.EffectiveMode() {
		return Judgement{State: StateModeMismatch, Reason: fmt.Sprintf(
			"kube-proxy runs in mode %q and is told %q: it was not restarted since, or fell back for want of kernel modules: see its log",
			mode, declared.EffectiveMode())}
	}
	strict, inferred, why := runsStrict(declared, running)
	j := judge(declared.Strict(), strict, why, arp)
	j.Inferred = inferred
	return j
}

// mode returns the mode that it runs in; empty if it was not observed.
func (r *Running) mode() Mode {
	if r.Mode == "" && r.Config != nil {
		return r.Config.EffectiveMode()
	}
	return r.Mode
}

// runsStrict returns whether the process runs strict, and how that is known:
// /configz says it, or else it read what is declared if it started after.
func runsStrict(declared Config, running *Running) (strict, inferred bool, why string) {
	if running.Config != nil {
		return running.Config.Strict(), false, "/configz says so"
	}
	if pending, known := startedBefore(running.Started, declared.Changed); known && pending {
		return !declared.Strict(), true, fmt.Sprintf("it started at %s, before the last change at %s",
			running.Started.Format(time.RFC3339), declared.Changed.Format(time.RFC3339))
	}
	return declared.Strict(), true, "it is assumed to run with what it is told: /configz was not seen"
}

func startedBefore(started, changed time.Time) (before, known bool) {
	return started.Before(changed), !started.IsZero() && !changed.IsZero()
}

func judge(told, runs bool, why string, arp *ARP) Judgement {
	switch {
	case told && !runs:
		return Judgement{State: StatePending, Reason: "kube-proxy is told strictARP true and does not run with it (" + why + "): restart it"}
	case runs && !told:
		return Judgement{State: StatePendingOff, Reason: "kube-proxy is not told strictARP true and still runs with it (" + why + "); a restart will not take back what it set"}
	case arp == nil:
		return Judgement{Reason: fmt.Sprintf("kube-proxy runs with strict %t (%s); the node's effective arp_ignore and arp_announce are missing", runs, why)}
	case runs && !arp.Strict():
		return Judgement{State: StateOverridden, Reason: fmt.Sprintf("kube-proxy runs with strictARP true (%s), yet the kernel has %s: something changed it since kube-proxy started", why, arp)}
	case !runs && arp.Strict():
		return Judgement{State: StateResidue, Reason: fmt.Sprintf("the kernel has %s although kube-proxy does not run strict (%s): it holds until the next boot", arp, why)}
	case runs:
		return Judgement{State: StateInForce, Reason: fmt.Sprintf("kube-proxy runs with strictARP true (%s) and the kernel has %s", why, arp)}
	}
	return Judgement{State: StateOff, Reason: fmt.Sprintf("kube-proxy does not run strict (%s) and the kernel has %s", why, arp)}
}
