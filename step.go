package strictarp

import (
	"strings"

	"github.com/strictarp/strictarp/sysctl"
)

// Action says what kind of step a Step is, and so what its fields mean.
type Action string

// Actions. Node is where a step is done; where none is named, it is done
// through the API server or on the host that the finding is about.
const (
	// SetSysctl writes a kernel setting. Object is its key, as sysctl.Key is
	// written; From and To are values.
	SetSysctl Action = "sysctl"
	// SetStrictARP edits kube-proxy's configuration. Object and Namespace name
	// the source, such as configmap/kube-proxy; From and To are true or false,
	// which is also what kube-proxy takes an absent field for.
	SetStrictARP Action = "strict-arp"
	// RestartRollout restarts the pods of a workload. Object is its kind and
	// name, such as daemonset/kube-proxy, in Namespace.
	RestartRollout Action = "rollout-restart"
	// RestartUnit restarts the systemd unit Object on Node.
	RestartUnit Action = "unit-restart"
	// SetAddress adds or removes an address. Object is the address and its
	// interface, such as "10.0.3.20/32 dev eth0"; From and To are Present or Absent.
	SetAddress Action = "address"
	// ForgetNeighbour removes an entry of a neighbour cache. Object is the
	// address and the interface, such as "10.0.3.20 dev eth0"; From is its MAC.
	ForgetNeighbour Action = "neighbour"
	// SetLabel sets or removes the label Object of Node. From and To are "="
	// and a value, or Absent.
	SetLabel Action = "label"
	// PatchObject changes a Kubernetes object by a JSON merge patch. Object is
	// its kind and name, in Namespace; To is the patch, From one that restores.
	PatchObject Action = "patch"
	// DoByHand is for people. Object says what to do.
	DoByHand Action = "manual"
)

// States of something that is either there or not.
const (
	Present = "present"
	Absent  = "absent"
)

// Step is one change of a Remedy.
type Step struct {
	Action    Action `json:"action"`
	Node      string `json:"node,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object"`
	From      string `json:"from,omitempty"` // what is there now; empty if not known
	To        string `json:"to,omitempty"`   // what it becomes
}

// String returns the step's canonical text, one line that is the same in every
// output: a setting with its new value, or a command as people would type it.
func (s Step) String() string {
	return strings.ReplaceAll(s.text(), "\n", " ")
}

func (s Step) text() string {
	switch s.Action {
	case SetSysctl:
		return sysctl.Key(s.Object).Dotted() + "=" + s.To
	case SetStrictARP:
		return "strictARP: " + s.To
	case RestartRollout:
		return "kubectl rollout restart " + s.Object + s.inNamespace()
	case RestartUnit:
		return "systemctl restart " + s.Object + " on " + s.Node
	case SetAddress:
		verb := "add "
		if s.To == Absent {
			verb = "del "
		}
		return "ip addr " + verb + s.Object
	case ForgetNeighbour:
		return "ip neigh del " + s.Object
	case SetLabel:
		value := s.To
		if value == Absent {
			value = "-"
		}
		return "kubectl label node " + s.Node + " " + s.Object + value
	case PatchObject:
		return "kubectl patch " + s.Object + s.inNamespace() + " --type merge -p '" + strings.ReplaceAll(s.To, "'", `'\''`) + "'"
	case DoByHand:
		return "manual: " + s.Object
	}
	return "manual: " + string(s.Action) + " " + s.Object + " " + s.To
}

func (s Step) inNamespace() string {
	if s.Namespace == "" {
		return ""
	}
	return " -n " + s.Namespace
}

func (s Step) restarts() bool {
	return s.Action == RestartRollout || s.Action == RestartUnit
}

// Undo returns the step that takes this one back. A restart is done again, for
// what is put back to be read. What cannot be worked out is left to people, by
// a step of action DoByHand. The second result is false if there is nothing to
// undo: a neighbour entry comes back when it is needed.
func (s Step) Undo() (Step, bool) {
	switch {
	case s.Action == ForgetNeighbour:
		return Step{}, false
	case s.restarts():
		return s, true
	case s.Action == DoByHand || s.From == "":
		return Step{Action: DoByHand, Node: s.Node, Namespace: s.Namespace, Object: "take back: " + strings.TrimPrefix(s.String(), "manual: ")}, true
	}
	s.From, s.To = s.To, s.From
	return s, true
}
