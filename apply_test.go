package strictarp_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

var errBroken = errors.New("connection reset by peer")

const (
	done     = strictarp.OutcomeDone
	already  = strictarp.OutcomeAlready
	skipped  = strictarp.OutcomeSkipped
	failed   = strictarp.OutcomeFailed
	conflict = strictarp.OutcomeConflict
	undone   = strictarp.OutcomeUndone
	planned  = strictarp.OutcomePlanned
)

// undoAll applies what the store keeps and requires that it succeeds.
func undoAll(t testing.TB, sys *fakeSystem, store *undoMemory) strictarp.Report {
	t.Helper()
	undo, err := store.plan()
	require.NoError(t, err)
	report, err := strictarp.Apply(context.Background(), undo, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}})
	require.NoError(t, err)
	return report
}

// withoutNeighbour leaves out what is not put back.
func withoutNeighbour(values map[string]string) map[string]string {
	values = maps.Clone(values)
	delete(values, objectOf(forget))
	return values
}

func TestApply(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	before := maps.Clone(sys.values)
	looks := 0
	var told []string
	report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{
		Executors: strictarp.Executors{sys}, Undo: store, Host: "admin",
		Verify: func(context.Context) ([]strictarp.Finding, error) {
			looks++
			assert.Equal(t, "2", sys.values[objectOf(announce)], "it looks once all is done")
			return nil, nil
		},
		Progress: func(p strictarp.Progress) {
			told = append(told, fmt.Sprint(p.Number, "/", p.Total, " ", p.Result.Outcome, p.Looked != nil))
		},
	})
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Outcome{done, done, done, done, done}, outcomes(report))
	assert.Equal(t, &strictarp.Verification{Passed: true, Looks: 1}, report.Verification)
	assert.Equal(t, []string{
		"strictARP: true", "kubectl rollout restart daemonset/kube-proxy -n kube-system",
		"net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2", "ip neigh del 10.0.3.20 dev eth0",
	}, sys.log)
	assert.Equal(t, []string{"1/5 donefalse", "2/5 donefalse", "3/5 donefalse", "4/5 donefalse", "5/5 donefalse", "1/0 true"}, told)
	assert.Equal(t, 1, looks)

	sys.log = nil
	report, err = strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Outcome{already, already, already, already, already}, outcomes(report))
	assert.Empty(t, sys.log, "a plan that was carried out changes nothing")

	undoAll(t, sys, store)
	assert.Equal(t, withoutNeighbour(before), withoutNeighbour(sys.values))
	assert.Equal(t, []string{
		"net.ipv4.conf.all.arp_announce=0", "net.ipv4.conf.all.arp_ignore=0",
		"strictARP: false", "kubectl rollout restart daemonset/kube-proxy -n kube-system",
	}, sys.log)
}

func TestApplyDryRun(t *testing.T) {
	t.Parallel()
	sys := newFakeSystem(cure().Steps...)
	sys.values[objectOf(ignore)] = "1"
	report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Outcome{planned, planned, already, planned, planned}, outcomes(report))
	assert.Empty(t, sys.log)
}

// What cannot be carried out is found before anything is changed.
func TestApplyChangesNothing(t *testing.T) {
	t.Parallel()
	sentinel := func(target error) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.ErrorIs(t, err, target) }
	}
	tests := map[string]struct {
		change func(*strictarp.Plan, *strictarp.ApplyOptions, *fakeSystem, *undoMemory)
		want   func(*testing.T, error)
		text   string
	}{
		"no executor": {
			func(p *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, _ *undoMemory) {
				p.Steps[4].Object = "unhandled"
			},
			sentinel(errors.ErrUnsupported), "add one for action neighbour",
		},
		"no undo": {
			func(_ *strictarp.Plan, o *strictarp.ApplyOptions, _ *fakeSystem, _ *undoMemory) { o.Undo = nil },
			sentinel(fs.ErrInvalid), "give an UndoFile",
		},
		"undo is not written": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, m *undoMemory) {
				m.onSave = func(int) error { return errBroken }
			},
			sentinel(errBroken), "nothing was changed",
		},
		"undo is not kept": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, m *undoMemory) {
				m.onSave = func(int) error { m.lose = true; return nil }
			},
			sentinel(strictarp.ErrNotKept), "other bytes were read back",
		},
		"undo is written once and not before the first step": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, m *undoMemory) {
				m.onSave = func(n int) error {
					if n == 2 {
						return errBroken
					}
					return nil
				}
			},
			sentinel(errBroken), "was not done",
		},
		"undo holds something else": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, m *undoMemory) {
				m.data = []byte("a letter")
			},
			sentinel(fs.ErrInvalid), "choose another",
		},
		"another version": {
			func(p *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, _ *undoMemory) { p.Version = 2 },
			sentinel(errors.ErrUnsupported), "want version 1",
		},
		"somebody else changed the last": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, sys *fakeSystem, _ *undoMemory) {
				sys.values[objectOf(announce)] = "1"
			},
			func(t *testing.T, err error) {
				var c *strictarp.ConflictError
				require.ErrorAs(t, err, &c)
				assert.Equal(t, "1", c.Found)
			}, "nothing was changed",
		},
		"the last cannot be read": {
			func(_ *strictarp.Plan, _ *strictarp.ApplyOptions, sys *fakeSystem, _ *undoMemory) {
				delete(sys.values, objectOf(announce))
			},
			sentinel(fs.ErrNotExist), "nothing was changed",
		},
		"harm": {
			func(p *strictarp.Plan, _ *strictarp.ApplyOptions, sys *fakeSystem, _ *undoMemory) {
				p.Steps[2].From, p.Steps[2].To = "1", "0"
			},
			func(t *testing.T, err error) {
				var h *strictarp.HarmfulError
				require.ErrorAs(t, err, &h)
			}, "it does harm",
		},
		"two steps of one object": {
			func(p *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, _ *undoMemory) {
				p.Steps[3] = p.Steps[2]
			},
			func(t *testing.T, err error) {
				var c *strictarp.ContradictionError
				require.ErrorAs(t, err, &c)
			}, "arp_ignore",
		},
		"a step for people": {
			func(p *strictarp.Plan, _ *strictarp.ApplyOptions, _ *fakeSystem, _ *undoMemory) {
				p.Steps[3].Action = strictarp.DoByHand
			},
			sentinel(fs.ErrInvalid), "Plan.Manual",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, sys, store := cure(), newFakeSystem(cure().Steps...), &undoMemory{}
			o := strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store, Rollback: true}
			tt.change(&p, &o, sys, store)
			before := maps.Clone(sys.values)
			_, err := strictarp.Apply(t.Context(), p, o)
			tt.want(t, err)
			require.ErrorContains(t, err, tt.text)
			assert.Equal(t, before, sys.values)
			assert.Empty(t, sys.log)
		})
	}
}

func TestApplyLeavesAloneWhatOthersChange(t *testing.T) {
	t.Parallel()
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
		sys.before = func(moment string, s strictarp.Step) error {
			if moment == "do" && s == edit {
				sys.values[objectOf(announce)] = "1"
			}
			return nil
		}
		report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store, Rollback: true})
		var c *strictarp.ConflictError
		require.ErrorAs(t, err, &c)
		assert.Equal(t, []strictarp.Outcome{undone, undone, undone, conflict, skipped}, outcomes(report))
		assert.Equal(t, "1", sys.values[objectOf(announce)])
		assert.Equal(t, "false", sys.values[objectOf(edit)])
	})
	t.Run("before it is taken back", func(t *testing.T) {
		t.Parallel()
		sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
		_, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
		require.NoError(t, err)
		sys.values[objectOf(announce)] = "1"
		delete(sys.values, objectOf(ignore))
		undo, err := store.plan()
		require.NoError(t, err)
		report, err := strictarp.Apply(t.Context(), undo, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}})
		var c *strictarp.ConflictError
		require.ErrorAs(t, err, &c)
		assert.Equal(t, []strictarp.Outcome{conflict, skipped, done, done}, outcomes(report))
		assert.Equal(t, "1", sys.values[objectOf(announce)])
		assert.Equal(t, "false", sys.values[objectOf(edit)])
	})
	t.Run("what was so before is not ours", func(t *testing.T) {
		t.Parallel()
		sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
		sys.values[objectOf(ignore)] = "1"
		before := withoutNeighbour(sys.values)
		report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
		require.NoError(t, err)
		assert.Equal(t, []strictarp.Outcome{done, done, already, done, done}, outcomes(report))
		undoAll(t, sys, store)
		assert.Equal(t, before, withoutNeighbour(sys.values))
	})
}

// What cannot be taken back stays in the undo file, and the rest is taken back.
func TestApplyRollsBackWhatItCan(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	extra := onNode("w2", ignore)
	sys.values[objectOf(extra)] = "0"
	p := cure()
	p.Steps = append(p.Steps, extra)
	report, err := strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{
		Executors: strictarp.Executors{sys}, Undo: store, Rollback: true,
		Verify: func(context.Context) ([]strictarp.Finding, error) {
			sys.values[objectOf(announce)] = "1"
			delete(sys.values, objectOf(extra)) // with its interface
			return nil, errBroken
		},
	})
	var c *strictarp.ConflictError
	require.ErrorAs(t, err, &c)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "what was not taken back is in the undo file")
	assert.Equal(t, []strictarp.Outcome{undone, undone, undone, done, done, undone}, outcomes(report))
	assert.Contains(t, report.Steps[3].Error, "take back")
	assert.Equal(t, "1", sys.values[objectOf(announce)])
	assert.Equal(t, "0", sys.values[objectOf(ignore)])
	undo, err := store.plan()
	require.NoError(t, err)
	require.Len(t, undo.Steps, 1)
	assert.Equal(t, "net.ipv4.conf.all.arp_announce=0", undo.Steps[0].String())
}

// A kube-proxy that is restarted strict sets what later steps are to set.
func TestApplyTakesBackWhatARestartDid(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	before := withoutNeighbour(sys.values)
	sys.before = func(moment string, s strictarp.Step) error {
		if moment == "do" && s == restart && sys.values[objectOf(edit)] == "true" {
			sys.values[objectOf(ignore)], sys.values[objectOf(announce)] = "1", "2"
		}
		return nil
	}
	report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Outcome{done, done, already, already, done}, outcomes(report))
	undoAll(t, sys, store)
	assert.Equal(t, before, withoutNeighbour(sys.values))
}

func TestApplyFindsOutFrom(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	p := cure()
	p.Steps = p.Steps[2:]
	p.Steps[0].From = ""
	_, err := strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store})
	require.NoError(t, err)
	undo, err := store.plan()
	require.NoError(t, err)
	assert.Empty(t, undo.Manual)
	undoAll(t, sys, store)
	assert.Equal(t, "0", sys.values[objectOf(ignore)])
}

// A step that was reverted between two runs is done again, and so is the
// restart that was to read it.
func TestApplyAgainAfterARevert(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	o := strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store}
	_, err := strictarp.Apply(t.Context(), cure(), o)
	require.NoError(t, err)
	sys.values[objectOf(edit)] = "false"
	report, err := strictarp.Apply(t.Context(), cure(), o)
	require.NoError(t, err)
	assert.Equal(t, []strictarp.Outcome{done, done, already, already, already}, outcomes(report))
}

func TestApplyKeepsTheUndoOfAnotherPlan(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	first, second := cure(), cure()
	first.Steps, second.Steps = first.Steps[:2], second.Steps[2:]
	o := strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store}
	_, err := strictarp.Apply(t.Context(), first, o)
	require.NoError(t, err)
	_, err = strictarp.Apply(t.Context(), second, o)
	require.ErrorIs(t, err, fs.ErrExist)
	assert.Equal(t, "0", sys.values[objectOf(ignore)])

	o.Undo = &undoMemory{}
	o.Rollback = true
	o.Verify = func(context.Context) ([]strictarp.Finding, error) { return nil, errBroken }
	_, err = strictarp.Apply(t.Context(), second, o)
	require.ErrorIs(t, err, errBroken)
	o.Verify = nil
	sys.values[objectOf(edit)] = "false"
	_, err = strictarp.Apply(t.Context(), first, o)
	require.NoError(t, err, "a file in which all is undone may be used again")
}
