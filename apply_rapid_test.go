package strictarp_test

import (
	"context"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp"
)

// drawPlan draws a plan and a system, on which some steps are done already and
// some values are not known to the plan.
func drawPlan(t *rapid.T) (strictarp.Plan, *fakeSystem) {
	p := strictarp.Plan{Version: strictarp.PlanVersion}
	sys := newFakeSystem()
	for i := range rapid.IntRange(1, 7).Draw(t, "steps") {
		s := strictarp.Step{
			Action: rapid.SampledFrom([]strictarp.Action{strictarp.SetSysctl, strictarp.PatchObject, strictarp.RestartRollout}).Draw(t, "action"),
			Node:   rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "node"),
			Object: "net/core/o" + strconv.Itoa(i),
		}
		if s.Action != strictarp.RestartRollout {
			s.From, s.To = "from", "to"
			sys.values[objectOf(s)] = rapid.SampledFrom([]string{"from", "from", "to"}).Draw(t, "is")
			if rapid.Bool().Draw(t, "unknown") {
				s.From = ""
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p, sys
}

// breaks makes something go wrong at the nth thing that is done.
func breaks(sys *fakeSystem, store *undoMemory, n int, how string, cancel func()) {
	count := 0
	now := func() bool { count++; return count == n }
	switch how {
	case "reading":
		sys.before = func(moment string, _ strictarp.Step) error {
			if moment == "read" && now() {
				return errBroken
			}
			return nil
		}
	case "doing":
		sys.before = func(moment string, _ strictarp.Step) error {
			if moment == "do" && now() {
				return errBroken
			}
			return nil
		}
	case "answer":
		sys.after = func(strictarp.Step) error {
			if now() {
				return errBroken
			}
			return nil
		}
	case "not kept":
		sys.keeps = func(s strictarp.Step) string {
			if now() {
				return "other"
			}
			return s.To
		}
	case "undo file":
		store.onSave = func(int) error {
			if now() {
				return errBroken
			}
			return nil
		}
	case "cancelled":
		sys.after = func(strictarp.Step) error {
			if now() {
				cancel()
			}
			return nil
		}
	}
}

// To apply and to undo is to have done nothing, whatever went wrong in between
// and however often it is tried; and to apply until it works is to have done all.
func TestApplyAndUndoIsIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, sys := drawPlan(t)
		store := &undoMemory{}
		before := maps.Clone(sys.values)
		rollback := rapid.Bool().Draw(t, "rollback")
		for range rapid.IntRange(0, 3).Draw(t, "failing runs") {
			ctx, cancel := context.WithCancel(context.Background())
			how := rapid.SampledFrom([]string{"reading", "doing", "answer", "not kept", "undo file", "cancelled"}).Draw(t, "how")
			breaks(sys, store, rapid.IntRange(1, 20).Draw(t, "when"), how, cancel)
			_, _ = strictarp.Apply(ctx, p, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store, Rollback: rollback})
			cancel()
			sys.before, sys.after, sys.keeps, store.onSave = nil, nil, nil, nil
		}
		if rapid.Bool().Draw(t, "finish") {
			_, err := strictarp.Apply(context.Background(), p, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
			require.NoError(t, err)
			for _, s := range p.Steps {
				require.True(t, s.To == "" || sys.values[objectOf(s)] == s.To, "%s", s)
			}
		}
		if store.data == nil {
			require.Equal(t, before, sys.values, "nothing was kept, so nothing was changed")
			return
		}
		undo, err := store.plan()
		require.NoError(t, err)
		_, err = strictarp.Apply(context.Background(), undo, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}})
		require.NoError(t, err)
		require.Equal(t, before, sys.values)
	})
}

// The undo of a plan's undo is the plan, but for restarts, which come last.
func TestPlanUndoTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, _ := drawPlan(t)
		changes := []strictarp.Step{}
		for i := range p.Steps {
			if p.Steps[i].Action != strictarp.RestartRollout {
				p.Steps[i].From = "from"
				changes = append(changes, p.Steps[i])
			}
		}
		twice := p.Undo().Undo()
		require.Empty(t, twice.Manual)
		if len(changes) == 0 {
			require.Empty(t, p.Undo().Steps, "restarts alone leave nothing to put back")
			return
		}
		require.Len(t, twice.Steps, len(p.Steps))
		require.Equal(t, changes, twice.Steps[:len(changes)])
	})
}
