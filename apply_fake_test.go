package strictarp_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/strictarp/strictarp"
)

// fakeSystem is what steps change, in memory: values by what they belong to.
type fakeSystem struct {
	values map[string]string
	log    []string // the steps that changed something, and restarts
	// before is called before a step is read or done, and may change the system as
	// somebody else would; an error ends it. after is called once it was done: an
	// error is the answer all the same.
	before func(moment string, s strictarp.Step) error
	after  func(s strictarp.Step) error
	// keeps returns what becomes of a value that is written; nil: it is kept.
	keeps func(s strictarp.Step) string
}

func objectOf(s strictarp.Step) string {
	return fmt.Sprintf("%s|%s|%s|%s", s.Action, s.Node, s.Namespace, s.Object)
}

func newFakeSystem(steps ...strictarp.Step) *fakeSystem {
	sys := &fakeSystem{values: map[string]string{}}
	for _, s := range steps {
		if s.Action != strictarp.RestartRollout {
			sys.values[objectOf(s)] = s.From
		}
	}
	return sys
}

func (sys *fakeSystem) Handles(s strictarp.Step) bool { return s.Object != "unhandled" }

func (sys *fakeSystem) Read(ctx context.Context, s strictarp.Step) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if sys.before != nil {
		if err := sys.before("read", s); err != nil {
			return "", err
		}
	}
	value, ok := sys.values[objectOf(s)]
	if !ok {
		return "", fmt.Errorf("read %s: %w", s.Object, fs.ErrNotExist)
	}
	return value, nil
}

func (sys *fakeSystem) Do(ctx context.Context, s strictarp.Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if sys.before != nil {
		if err := sys.before("do", s); err != nil {
			return err
		}
	}
	if s.Action == strictarp.RestartRollout {
		sys.log = append(sys.log, s.String())
		return nil
	}
	switch found := sys.values[objectOf(s)]; {
	case found == s.To:
		return nil
	case s.From != "" && found != s.From:
		return &strictarp.ConflictError{Step: s, Found: found}
	}
	value := s.To
	if s.Action == strictarp.ForgetNeighbour {
		value = strictarp.Absent
	}
	if sys.keeps != nil {
		value = sys.keeps(s)
	}
	sys.values[objectOf(s)] = value
	sys.log = append(sys.log, s.String())
	if sys.after != nil {
		return sys.after(s)
	}
	return nil
}

// undoMemory is an UndoStore in memory.
type undoMemory struct {
	data  []byte
	saves int
	// onSave is called before something is kept; an error ends it.
	onSave func(n int) error
	lose   bool // what is loaded is not what was saved
}

func (m *undoMemory) Save(data []byte) error {
	m.saves++
	if m.onSave != nil {
		if err := m.onSave(m.saves); err != nil {
			return err
		}
	}
	m.data = slices.Clone(data)
	return nil
}

func (m *undoMemory) Load() ([]byte, error) {
	if m.data == nil {
		return nil, fs.ErrNotExist
	}
	if m.lose {
		return []byte("{}"), nil
	}
	return slices.Clone(m.data), nil
}

func (m *undoMemory) plan() (strictarp.Plan, error) {
	return strictarp.ReadUndo(bytes.NewReader(m.data))
}

var (
	edit     = strictarp.Step{Action: strictarp.SetStrictARP, Namespace: "kube-system", Object: "configmap/kube-proxy", From: "false", To: "true"}
	restart  = strictarp.Step{Action: strictarp.RestartRollout, Namespace: "kube-system", Object: "daemonset/kube-proxy"}
	ignore   = strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: "1"}
	announce = strictarp.Step{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/all/arp_announce", From: "0", To: "2"}
	forget   = strictarp.Step{Action: strictarp.ForgetNeighbour, Node: "client", Object: "10.0.3.20 dev eth0", From: "06:75:02:33:d2:90"}
)

// cure is a plan with a step of each rank.
func cure() strictarp.Plan {
	return strictarp.Plan{
		Version: strictarp.PlanVersion, Steps: []strictarp.Step{edit, restart, ignore, announce, forget},
		Cures: []strictarp.Key{"kernel-answers-vip|w1|"},
	}
}

func outcomes(r strictarp.Report) []strictarp.Outcome {
	all := make([]strictarp.Outcome, len(r.Steps))
	for i, s := range r.Steps {
		all[i] = s.Outcome
	}
	return all
}
