package strictarp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Executor carries out steps of one kind, in one place. Apply calls one method
// at a time.
type Executor interface {
	// Handles returns whether it carries out such steps. It changes nothing and
	// does not wait.
	Handles(s Step) bool
	// Read returns what is there now, as the step would say it: s.To or s.From
	// themselves where it means the same, and Absent where there is nothing. It is
	// not called for restarts.
	Read(ctx context.Context, s Step) (string, error)
	// Do carries the step out if what is there is s.From, or whatever is there if
	// that is empty. If it is neither s.From nor s.To the error is a *ConflictError
	// and nothing was changed; if it is s.To already, nothing is done.
	Do(ctx context.Context, s Step) error
}

// Executors are what Apply has to carry steps out. The first one that handles a
// step does it.
type Executors []Executor

// For returns the executor of a step. The error matches errors.ErrUnsupported if
// there is none.
func (e Executors) For(s Step) (Executor, error) {
	for _, x := range e {
		if x.Handles(s) {
			return x, nil
		}
	}
	return nil, fmt.Errorf("strictarp: %q%s: no executor carries it out: %w: add one for action %s, or leave the step out and do it by hand",
		s, s.place(), errors.ErrUnsupported, s.Action)
}

// Can reports whether there is an executor of a step.
func (e Executors) Can(s Step) bool {
	return slices.ContainsFunc(e, func(x Executor) bool { return x.Handles(s) })
}

// Picks chooses for NewPlan, of each finding of severity warning or error, the best
// remedy of which every step is carried out by one of the executors or by people.
// Elsewhere are findings that have remedies and none such: they are to be mended
// from where there are other executors. Picks are never nil, so that NewPlan does
// not take none for all.
func (e Executors) Picks(findings []Finding) (picks []Pick, elsewhere []Key) {
	picks = []Pick{}
	for _, f := range findings {
		if f.Severity < SeverityWarning || len(f.Remedies) == 0 {
			continue
		}
		i := slices.IndexFunc(f.Remedies, func(r Remedy) bool {
			return !slices.ContainsFunc(r.Steps, func(s Step) bool {
				s.Node, s.Object = s.nodeFor(f), s.target().object
				return s.rank() != rankManual && !e.Can(s)
			})
		})
		if i < 0 {
			elsewhere = append(elsewhere, f.Key())
		} else {
			picks = append(picks, Pick{f.Key(), i})
		}
	}
	return picks, elsewhere
}

// all returns the executor of each step, or an error that names every step that
// has none.
func (e Executors) all(steps []Step) ([]Executor, error) {
	chosen := make([]Executor, len(steps))
	var errs []error
	for i, s := range steps {
		var err error
		chosen[i], err = e.For(s)
		errs = append(errs, err)
	}
	return chosen, errors.Join(errs...)
}

// ConflictError is the error for a step that finds something else than it
// expects: somebody changed it since. Nothing was changed.
type ConflictError struct {
	Step  Step
	Found string
	Err   error // what whoever changes it said; nil if it was not asked
}

func (e *ConflictError) Error() string {
	text := fmt.Sprintf("strictarp: %q%s: it is %q and not %q: somebody else changed it, and it was left alone: observe again and decide anew",
		e.Step, e.Step.place(), e.Found, e.Step.From)
	if e.Err != nil {
		text += ": " + strings.TrimSpace(e.Err.Error())
	}
	return text
}

// Unwrap returns Err.
func (e *ConflictError) Unwrap() error { return e.Err }

// holds returns whether what an executor read is what the step is to achieve. A
// neighbour entry with another MAC is not the one that was to be forgotten.
func (s Step) holds(found string) bool {
	if s.Action == ForgetNeighbour {
		return found == Absent || s.From != "" && found != s.From
	}
	return found == s.To
}

// expects returns whether what an executor read is what the step is to change.
func (s Step) expects(found string) bool { return s.From == "" || s.From == found }

// attempt carries a step out. kept is what is there instead of what was to be
// there, if the error is that.
func attempt(ctx context.Context, x Executor, s Step) (outcome Outcome, kept string, err error) {
	if s.restarts() {
		if err := x.Do(ctx, s); err != nil {
			return OutcomeFailed, "", fmt.Errorf("strictarp: %q: %w", s, err)
		}
		return OutcomeDone, "", nil
	}
	found, err := x.Read(ctx, s)
	switch {
	case err != nil:
		return OutcomeFailed, "", fmt.Errorf("strictarp: read before %q%s: %w", s, s.place(), err)
	case s.holds(found):
		return OutcomeAlready, "", nil
	case !s.expects(found):
		return OutcomeConflict, "", &ConflictError{Step: s, Found: found}
	}
	if err := x.Do(ctx, s); err != nil {
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			return OutcomeConflict, "", err
		}
		return OutcomeFailed, "", fmt.Errorf("strictarp: %q%s: %w", s, s.place(), err)
	}
	found, err = x.Read(ctx, s)
	switch {
	case err != nil:
		return OutcomeFailed, "", fmt.Errorf("strictarp: %q%s: done, but not confirmed: %w", s, s.place(), err)
	case !s.holds(found):
		if s.Action != ForgetNeighbour { // which the kernel learnt anew
			kept = found
		}
		return OutcomeFailed, kept, fmt.Errorf("strictarp: %q%s: %w: %q was read back", s, s.place(), ErrNotKept, found)
	}
	return OutcomeDone, "", nil
}
