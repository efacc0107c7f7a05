package strictarp_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func severe(rule string, s strictarp.Severity) strictarp.Finding {
	return strictarp.Finding{Rule: rule, Subject: "w1", Severity: s, Message: rule + " is there"}
}

func TestApplyVerifies(t *testing.T) {
	t.Parallel()
	const (
		good      = "good"
		still     = "still"     // what was to be cured
		fresh     = "fresh"     // an error that was not there before
		undecided = "undecided" // nobody can tell any more
		blind     = "blind"     // Verify fails
	)
	tests := map[string]struct {
		looks  []string // the last one is repeated
		settle time.Duration
		soak   time.Duration
		passed bool
		n      int
		took   time.Duration
		text   string
	}{
		"good at once":                    {looks: []string{good}, passed: true, n: 1},
		"still there":                     {looks: []string{still}, n: 1, text: "still there is kernel-answers-vip|w1|"},
		"something new":                   {looks: []string{fresh}, n: 1, text: "new is no-responder|w1|: no-responder is there"},
		"cannot be told":                  {looks: []string{undecided}, n: 1, text: "it cannot be told: node-not-observed is there"},
		"cannot look":                     {looks: []string{blind}, n: 1, text: "connection reset by peer"},
		"gone in time":                    {looks: []string{still, blind, good}, settle: 11 * time.Second, passed: true, n: 3, took: 10 * time.Second},
		"not gone in time":                {looks: []string{still}, settle: 11 * time.Second, n: 4, took: 15 * time.Second, text: "look 4"},
		"stays good":                      {looks: []string{good}, soak: time.Minute, passed: true, n: 13, took: time.Minute},
		"comes back":                      {looks: []string{good, good, still}, soak: time.Minute, settle: time.Hour, n: 3, took: 10 * time.Second, text: "still there"},
		"an undecided look is not enough": {looks: []string{good, undecided, good}, soak: 5 * time.Second, settle: 6 * time.Second, passed: true, n: 3, took: 10 * time.Second},
		"undecided for too long":          {looks: []string{good, undecided}, soak: time.Minute, settle: 6 * time.Second, n: 3, took: 10 * time.Second, text: "cannot be told"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys, n := newFakeSystem(cure().Steps...), 0
				before := withoutNeighbour(sys.values)
				p := cure()
				p.Known = []strictarp.Key{"leftover-kube-ipvs0|w1|"}
				verify := func(context.Context) ([]strictarp.Finding, error) {
					look := tt.looks[min(n, len(tt.looks)-1)]
					n++
					findings := []strictarp.Finding{severe("leftover-kube-ipvs0", strictarp.SeverityError), severe("arp-announce-off", strictarp.SeverityWarning)}
					switch look {
					case still:
						findings = append(findings, severe("kernel-answers-vip", strictarp.SeverityError))
					case fresh:
						findings = append(findings, severe("no-responder", strictarp.SeverityError))
					case undecided:
						findings = append(findings, severe("node-not-observed", strictarp.SeverityUnknown))
					case blind:
						return nil, errBroken
					}
					return findings, nil
				}
				began := time.Now()
				report, err := strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{
					Executors: strictarp.Executors{sys}, Undo: &undoMemory{}, Rollback: true,
					Verify: verify, Settle: tt.settle, Soak: tt.soak,
				})
				assert.Equal(t, tt.n, n)
				assert.Equal(t, tt.took, time.Since(began))
				assert.Equal(t, tt.passed, report.Verification.Passed)
				assert.Equal(t, tt.n, report.Verification.Looks)
				if tt.passed {
					require.NoError(t, err)
					assert.Equal(t, "1", sys.values[objectOf(ignore)])
					return
				}
				var failed *strictarp.VerifyError
				require.ErrorAs(t, err, &failed)
				require.ErrorContains(t, err, tt.text)
				assert.Equal(t, tt.looks[len(tt.looks)-1] == blind, errors.Is(err, errBroken))
				assert.Equal(t, before, withoutNeighbour(sys.values), "it is rolled back")
				assert.Equal(t, []strictarp.Outcome{undone, undone, undone, undone, done}, outcomes(report))
			})
		})
	}
}

func TestApplyWithoutRollbackStaysAsItIs(t *testing.T) {
	t.Parallel()
	sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
	report, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{
		Executors: strictarp.Executors{sys}, Undo: store,
		Verify: func(context.Context) ([]strictarp.Finding, error) {
			return []strictarp.Finding{severe("kernel-answers-vip", strictarp.SeverityError)}, nil
		},
	})
	var unverified *strictarp.VerifyError
	require.ErrorAs(t, err, &unverified)
	assert.Equal(t, []strictarp.Key{"kernel-answers-vip|w1|"}, unverified.Verification.Remaining)
	assert.Equal(t, []strictarp.Outcome{done, done, done, done, done}, outcomes(report))
	undo, err := store.plan()
	require.NoError(t, err)
	assert.Len(t, undo.Steps, 4)
	assert.Contains(t, undo.Known, strictarp.Key("kernel-answers-vip|w1|"), "it may be there again once all is taken back")
}

// Who ends a soak early keeps what was done, and the undo file.
func TestApplyIsInterruptedWhileItSoaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		report, err := strictarp.Apply(ctx, cure(), strictarp.ApplyOptions{
			Executors: strictarp.Executors{sys}, Undo: store, Rollback: true, Soak: time.Minute,
			Verify: func(context.Context) ([]strictarp.Finding, error) { return nil, nil },
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not verified")
		assert.False(t, report.Verification.Passed)
		assert.Equal(t, "1", sys.values[objectOf(ignore)])
		undo, err := store.plan()
		require.NoError(t, err)
		assert.Len(t, undo.Steps, 4)
	})
}

// A plan that somebody else carried out can be verified alone.
func TestVerify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := []strictarp.Finding{severe("kernel-answers-vip", strictarp.SeverityError), severe("leftover-kube-ipvs0", strictarp.SeverityError)}
		look := func(context.Context) ([]strictarp.Finding, error) { return found, nil }
		p := cure()
		p.Known = []strictarp.Key{found[1].Key()}
		var looks int
		o := strictarp.ApplyOptions{Verify: look, Soak: 20 * time.Second, Every: 10 * time.Second, Progress: func(strictarp.Progress) { looks++ }}

		v, err := strictarp.Verify(t.Context(), p, o)
		var failed *strictarp.VerifyError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, strictarp.Verification{Looks: 1, Remaining: []strictarp.Key{found[0].Key()}}, v)

		found, looks = found[1:], 0
		v, err = strictarp.Verify(t.Context(), p, o)
		require.NoError(t, err)
		assert.Equal(t, strictarp.Verification{Passed: true, Looks: 3}, v)
		assert.Equal(t, 3, looks)

		v, err = strictarp.Verify(t.Context(), strictarp.Plan{}, o)
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, found, v.New, "against no plan every error speaks")

		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		v, err = strictarp.Verify(ctx, p, o)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.False(t, v.Passed)
	})
	_, err := strictarp.Verify(t.Context(), cure(), strictarp.ApplyOptions{})
	require.ErrorIs(t, err, fs.ErrInvalid)
}
