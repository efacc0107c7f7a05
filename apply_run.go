package strictarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// look reads what is there before anything is changed, and finds all steps that
// cannot be done.
func (r *application) look(ctx context.Context) error {
	var errs []error
	for i := range r.record.Steps {
		if ctx.Err() != nil {
			return interrupted(ctx, "nothing was changed")
		}
		outcome, err := r.lookAt(ctx, i)
		if outcome != "" {
			r.report.Steps[i].Step, r.report.Steps[i].Outcome = r.record.Steps[i].Step, outcome
		}
		if err == nil {
			continue
		}
		r.report.Steps[i].Error = err.Error()
		errs = append(errs, err)
	}
	if r.plan.Undoes {
		r.left = errs
		return nil
	}
	if len(errs) > 0 {
		return fmt.Errorf("nothing was changed: %w", errors.Join(errs...))
	}
	return nil
}

// lookAt finds out whether a step is to be done. The outcome is empty if it is.
func (r *application) lookAt(ctx context.Context, i int) (Outcome, error) {
	e := &r.record.Steps[i]
	if e.restarts() {
		if e.State == stateDone {
			return OutcomeAlready, nil
		}
		return r.due(i), nil
	}
	found, err := r.executors[i].Read(ctx, e.Step)
	switch {
	case err != nil && r.plan.Undoes && errors.Is(err, fs.ErrNotExist):
		return OutcomeSkipped, nil
	case err != nil:
		return OutcomeFailed, fmt.Errorf("strictarp: read before %q%s: %w", e.Step, e.place(), err)
	case e.holds(found):
		if !e.ours() {
			e.State = stateAlready
		}
		return OutcomeAlready, nil
	case e.ours() && e.Kept != "" && e.Kept == found: // an earlier run's write was not kept
		return r.due(i), nil
	case !e.expects(found):
		return OutcomeConflict, &ConflictError{Step: e.Step, Found: found}
	}
	e.From = found // where it was not known: now it can be taken back
	e.State, e.Kept = statePending, ""
	return r.due(i), nil
}

func (r *application) due(i int) Outcome {
	r.pending[i] = true
	if r.DryRun {
		return OutcomePlanned
	}
	return ""
}

func interrupted(ctx context.Context, what string) error {
	return fmt.Errorf("strictarp: apply a plan: interrupted, %s: %w", what, context.Cause(ctx))
}

// forward does what is pending.
func (r *application) forward(ctx context.Context) error {
	if !slices.Contains(r.pending, true) {
		return errors.Join(r.left...)
	}
	if err := r.record.keep(r.Undo, true); err != nil {
		return fmt.Errorf("%w: nothing was changed", err)
	}
	errs := r.left
	changed := false
	for i := range r.record.Steps {
		e := &r.record.Steps[i]
		// A restart of an earlier run did not see what this one changed.
		if again := changed && e.restarts(); !r.pending[i] && !again {
			continue
		}
		if ctx.Err() != nil {
			errs = append(errs, interrupted(ctx, "the rest was not done: apply the plan again to go on, or what ReadUndo returns to go back"))
			break
		}
		outcome, err := r.do(ctx, i)
		changed = changed || outcome == OutcomeDone && e.rank() == rankConfiguration
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if !r.plan.Undoes || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, r.record.keep(r.Undo, false))...)
}

func (r *application) do(ctx context.Context, i int) (Outcome, error) {
	outcome, kept, err := r.attempt(ctx, i)
	e := &r.record.Steps[i]
	switch {
	case err == nil:
		e.State = stateDone
	case r.plan.Undoes && errors.Is(err, fs.ErrNotExist):
		outcome, err = OutcomeSkipped, nil
	case outcome == OutcomeConflict:
		e.State = statePending // nothing was changed
	}
	e.Kept = cmp.Or(kept, e.Kept)
	r.settle(i, outcome, err)
	return outcome, err
}

// attempt carries a step out. What the undo file says is right at every moment.
func (r *application) attempt(ctx context.Context, i int) (outcome Outcome, kept string, err error) {
	e := &r.record.Steps[i]
	if e.Kept != "" { // an earlier run's: begin where that began
		back := e.Step
		back.From, back.To = e.Kept, e.From
		if outcome, kept, err := attempt(ctx, r.executors[i], back); err != nil {
			return outcome, kept, err
		}
		e.State, e.Kept = statePending, ""
	}
	before := e.State
	e.State = stateStarted
	if err := r.record.keep(r.Undo, false); err != nil {
		e.State = before
		return OutcomeFailed, "", fmt.Errorf("%w: %q was not done", err, e.Step)
	}
	return attempt(ctx, r.executors[i], e.Step)
}

// back takes back what was done, as far as it can.
func (r *application) back(ctx context.Context) error {
	var errs []error
	for _, u := range r.record.inverse() {
		i := u.index
		err := r.takeBack(ctx, i, u.step)
		if err != nil {
			errs = append(errs, fmt.Errorf("take back %q: %w", r.record.Steps[i].Step, err))
			r.settle(i, r.report.Steps[i].Outcome, errs[len(errs)-1])
			continue
		}
		r.record.Steps[i].State, r.record.Steps[i].Kept = stateUndone, ""
		r.settle(i, OutcomeUndone, nil)
		errs = append(errs, r.record.keep(r.Undo, false))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("rolled back in part, what was not taken back is in the undo file: %w", err)
	}
	return nil
}

func (r *application) takeBack(ctx context.Context, i int, s Step) error {
	if s.rank() == rankManual {
		return fmt.Errorf("%w: what was there is not known: %s", errors.ErrUnsupported, s)
	}
	_, _, err := attempt(ctx, r.executors[i], s)
	if errors.Is(err, fs.ErrNotExist) { // gone, and so is what was changed
		return nil
	}
	return err
}
