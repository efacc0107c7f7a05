package strictarp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/strictarp/strictarp/sysctl"
)

// ErrNotKept means that a step was done without an error and something else than
// what was written was read back.
var ErrNotKept = sysctl.ErrNotKept

// ApplyOptions say how a plan is applied.
type ApplyOptions struct {
	Executors Executors
	// Undo keeps what takes the changes back: it is written, and read back, before
	// the first change, and again before each. It may be nil for a dry run and for
	// a plan that undoes.
	Undo UndoStore
	Host string // the machine that Apply runs on, for who reads the undo file; may be empty
	// DryRun only looks what each step would do.
	DryRun bool
	// Verify observes again and evaluates. Nil: nothing is verified. See Verification.
	Verify func(ctx context.Context) ([]Finding, error)
	// Settle is how long the first look that is good may take, and how long a look
	// may be undecided later on; 0 allows no look that is not good. A kube-proxy
	// takes some seconds to set what it is told, an unattended neighbour cache about
	// a minute to ask again.
	Settle time.Duration
	Soak   time.Duration // for how long looks have to stay good; 0: one good look is enough
	// Every is the time from the end of a look to the next; 5 s if 0: as long as a
	// speaker goes on announcing after a failover, so that looks are not all of one
	// such moment.
	Every time.Duration
	// Rollback takes everything back if a step or the verification fails. If ctx
	// is done nothing is taken back: the undo file does it later. A plan that undoes
	// is never taken back.
	Rollback bool
	// Progress is told what is done, when it is done. It may be nil.
	Progress func(Progress)
}

// Progress is something that Apply did.
type Progress struct {
	// Result is of a step; its Outcome is empty if this is a look of the verification.
	Result StepResult `json:"result,omitzero"`
	Number int        `json:"number"` // the step's, or the look's, from 1
	Total  int        `json:"total"`  // steps of the plan; 0 for a look
	// Looked is how the verification stands; nil if this is a step.
	Looked *Verification `json:"looked,omitempty"`
}

// Outcome says what became of a step.
type Outcome string

// Outcomes.
const (
	OutcomePlanned  Outcome = "planned"  // it would be done: of a dry run
	OutcomeDone     Outcome = "done"     // and read back, if there is something to read
	OutcomeAlready  Outcome = "already"  // it was so without it
	OutcomeConflict Outcome = "conflict" // somebody else changed it, and it was left alone
	OutcomeFailed   Outcome = "failed"   // what is there now is not known
	OutcomeSkipped  Outcome = "skipped"  // it was not come to, or what it was to restore is gone
	OutcomeUndone   Outcome = "undone"   // done, wholly or in part, and taken back
)

// StepResult is what became of a step.
type StepResult struct {
	Step    Step    `json:"step"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"` // why it, or taking it back, failed
}

// Report is what Apply did.
type Report struct {
	Steps        []StepResult  `json:"steps"`                  // those of the plan, in its order
	Verification *Verification `json:"verification,omitempty"` // nil if it was not come to
}

// Apply carries a plan out, and changes nothing in any other case.
//
// Before the first change every step has an executor, what is there has been
// read, and the undo file is written. Each step is done only if what is there is
// its From, and is read back. A step whose To is there already is left alone, so
// that to apply a plan again finishes what was interrupted; with the same Undo it
// is also known then what the earlier run changed, and the file takes back both.
//
// Apply stops at the first step that fails. A plan that undoes is done as far as
// possible instead: what somebody else changed is left alone, and what is gone,
// as the settings of an interface that was removed, needs no restoring. To put
// kube-proxy's configuration back does not loosen kernels: kube-proxy sets what is
// strict and never takes it back, so that nodes stay strict until they boot (see
// kubeproxy.PlanUndo).
//
// The Report holds in any case, with an error too. The error matches
// errors.ErrUnsupported if a step has no executor, *HarmfulError,
// *ContradictionError, *ConflictError, ErrNotKept, *VerifyError, fs.ErrExist if
// Undo holds what takes another plan back, what executors say, or ctx's cause.
// With Rollback it also holds what could not be taken back.
func Apply(ctx context.Context, p Plan, o ApplyOptions) (Report, error) {
	r, err := newApplication(p, o)
	if err != nil {
		return Report{}, err
	}
	if err := r.look(ctx); err != nil {
		return r.report, err
	}
	if o.DryRun {
		return r.report, nil
	}
	err = r.forward(ctx)
	if err == nil {
		err = r.verify(ctx)
	}
	if err != nil && o.Rollback && !p.Undoes && ctx.Err() == nil {
		err = errors.Join(err, r.back(ctx))
	}
	return r.report, err
}

// application is a run of Apply.
type application struct {
	ApplyOptions
	plan      Plan
	executors []Executor
	record    undoRecord // its Steps are the plan's
	report    Report     // likewise
	pending   []bool     // which of the steps are to be done, by what look found
	left      []error    // why steps of a plan that undoes are left alone
}

func newApplication(p Plan, o ApplyOptions) (*application, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Undo == nil && !o.DryRun && !p.Undoes {
		return nil, fmt.Errorf("strictarp: apply a plan: ApplyOptions.Undo is nil: nothing would take the changes back: give an UndoFile: %w", fs.ErrInvalid)
	}
	executors, err := o.Executors.all(p.Steps)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	r := &application{ApplyOptions: o, plan: p, executors: executors, pending: make([]bool, len(p.Steps))}
	if r.record, err = newRecord(p, o); err != nil {
		return nil, err
	}
	r.report.Steps = make([]StepResult, len(p.Steps))
	for i, e := range r.record.Steps {
		r.report.Steps[i] = StepResult{Step: e.Step, Outcome: OutcomeSkipped}
	}
	return r, nil
}

// settle notes what became of a step.
func (r *application) settle(i int, outcome Outcome, err error) {
	result := &r.report.Steps[i]
	result.Step, result.Outcome = r.record.Steps[i].Step, outcome
	if err != nil {
		result.Error = err.Error()
	}
	if r.Progress != nil {
		r.Progress(Progress{Result: *result, Number: i + 1, Total: len(r.report.Steps)})
	}
}
