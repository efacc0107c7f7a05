package strictarp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// applyFaults are ways in which a step goes wrong.
var applyFaults = map[string]func(sys *fakeSystem, at strictarp.Step, cancel func()){
	"reading fails": func(sys *fakeSystem, at strictarp.Step, _ func()) {
		reads := 0
		sys.before = func(moment string, s strictarp.Step) error {
			if s == at && moment == "read" {
				if reads++; reads == 2 { // the first is before anything is changed
					return errBroken
				}
			}
			return nil
		}
	},
	"it is not done": func(sys *fakeSystem, at strictarp.Step, _ func()) {
		tries := 0
		sys.before = func(moment string, s strictarp.Step) error {
			if s == at && moment == "do" {
				if tries++; tries > 1 { // a restart is the same step both ways
					return nil
				}
				return errBroken
			}
			return nil
		}
	},
	"it is done, and an error is the answer": func(sys *fakeSystem, at strictarp.Step, _ func()) {
		sys.after = func(s strictarp.Step) error {
			if s == at {
				return errBroken
			}
			return nil
		}
	},
	"something else is read back": func(sys *fakeSystem, at strictarp.Step, _ func()) {
		sys.keeps = func(s strictarp.Step) string {
			switch {
			case s == at && s.Action == strictarp.ForgetNeighbour:
				return s.From // the kernel has learnt it anew
			case s == at:
				return "7"
			}
			return s.To
		}
	},
	"cancelled before": func(sys *fakeSystem, at strictarp.Step, cancel func()) {
		sys.before = func(moment string, s strictarp.Step) error {
			if s == at && moment == "do" {
				cancel()
				return context.Canceled
			}
			return nil
		}
	},
	"cancelled after": func(sys *fakeSystem, at strictarp.Step, cancel func()) {
		sys.after = func(s strictarp.Step) error {
			if s == at {
				cancel()
			}
			return nil
		}
	},
}

// Whatever goes wrong at whatever step: what the undo file says leads back, and
// to apply the plan again leads to its end.
func TestApplyEveryFault(t *testing.T) {
	t.Parallel()
	for name, fault := range applyFaults {
		for i, at := range cure().Steps {
			if at.Action == strictarp.RestartRollout && name != "it is not done" && name != "cancelled before" {
				continue // nothing is read, and restarts are not kept
			}
			for _, then := range []string{"back", "again", "rollback"} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, i, then), func(t *testing.T) {
					t.Parallel()
					faultAt(t, fault, at, then, strings.HasPrefix(name, "cancelled"))
				})
			}
		}
	}
}

func faultAt(t *testing.T, fault func(*fakeSystem, strictarp.Step, func()), at strictarp.Step, then string, cancelled bool) {
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	before := withoutNeighbour(sys.values)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fault(sys, at, cancel)
	o := strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store, Rollback: then == "rollback"}
	report, err := strictarp.Apply(ctx, cure(), o)
	if cancelled {
		require.ErrorIs(t, err, context.Canceled)
	} else {
		require.Error(t, err)
	}
	assert.NotContains(t, outcomes(report), conflict)
	sys.before, sys.after, sys.keeps = nil, nil, nil
	switch {
	case then == "rollback" && !cancelled:
		assert.NotContains(t, outcomes(report), done, "what can be taken back is")
		assert.Equal(t, before, withoutNeighbour(sys.values))
		undo, err := store.plan()
		require.NoError(t, err)
		assert.Empty(t, undo.Steps, "nothing is left to take back")
	case then == "again":
		_, err = strictarp.Apply(t.Context(), cure(), o)
		require.NoError(t, err)
		for _, s := range cure().Steps {
			if s.Action != strictarp.RestartRollout && s.Action != strictarp.ForgetNeighbour {
				assert.Equal(t, s.To, sys.values[objectOf(s)])
			}
		}
		undoAll(t, sys, store)
		assert.Equal(t, before, withoutNeighbour(sys.values), "both runs are taken back")
	default:
		undoAll(t, sys, store)
		assert.Equal(t, before, withoutNeighbour(sys.values))
	}
}
