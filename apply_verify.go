package strictarp

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

const defaultEvery = 5 * time.Second

// Verification is what observing again showed after a plan was carried out. A
// look is good if the plan's Cures are gone and no finding of severity error or
// unknown is there that was not before: what cannot be decided any more is not
// taken for cured.
type Verification struct {
	Passed bool `json:"passed"`
	Looks  int  `json:"looks"` // how often it was observed
	// The rest is of the last look.
	Remaining []Key     `json:"remaining,omitempty"` // findings that were to be cured
	New       []Finding `json:"new,omitempty"`       // of severity error
	Undecided []Finding `json:"undecided,omitempty"` // of severity unknown
	Error     string    `json:"error,omitempty"`     // why it could not be observed
}

// VerifyError says that a plan was carried out and did not achieve what it was
// to.
type VerifyError struct {
	Verification Verification
	Err          error // of ApplyOptions.Verify; nil if that could look
}

func (e *VerifyError) Error() string {
	var what []string
	for _, k := range e.Verification.Remaining {
		what = append(what, "still there is "+oneLine(string(k)))
	}
	for _, f := range e.Verification.New {
		what = append(what, "new is "+oneLine(string(f.Key()))+": "+oneLine(f.Message))
	}
	for _, f := range e.Verification.Undecided {
		what = append(what, "it cannot be told: "+oneLine(f.Message))
	}
	if e.Err != nil {
		what = append(what, e.Err.Error())
	}
	return fmt.Sprintf("strictarp: verify a plan that was carried out, look %d: %s", e.Verification.Looks, strings.Join(what, "; "))
}

// Unwrap returns Err.
func (e *VerifyError) Unwrap() error { return e.Err }

// Verify observes whether a plan that was carried out, by whomever and however long
// ago, achieved what it was to, as Apply does in the end. It changes nothing. Of the
// plan only Cures and Known matter: against a zero Plan every finding of severity
// error or unknown speaks. Of the options only Verify, Settle, Soak, Every and
// Progress do.
//
// The Verification holds with an error too, which is a *VerifyError, matches ctx's
// cause, or matches fs.ErrInvalid if o.Verify is nil.
func Verify(ctx context.Context, p Plan, o ApplyOptions) (Verification, error) {
	if o.Verify == nil {
		return Verification{}, fmt.Errorf("strictarp: verify a plan: ApplyOptions.Verify is nil: nothing can be observed: %w", fs.ErrInvalid)
	}
	r := &application{ApplyOptions: o, plan: p}
	err := r.verify(ctx)
	return *r.report.Verification, err
}

// verify looks until it has been good for long enough, or is not in time. A
// fault that comes back after a good look fails at once; what is undecided has
// as long as it had at first.
func (r *application) verify(ctx context.Context) error {
	if r.Verify == nil {
		return nil
	}
	v := &Verification{}
	r.report.Verification = v
	began := time.Now()
	var firstGood time.Time
	lastGood := began
	for {
		err := r.lookAgain(ctx, v)
		if ctx.Err() != nil {
			return fmt.Errorf("strictarp: verify a plan that was carried out: interrupted and not verified: %w", context.Cause(ctx))
		}
		good := err == nil && v.good()
		now := time.Now()
		switch {
		case good && firstGood.IsZero():
			firstGood, lastGood = now, now
		case good:
			lastGood = now
		case v.bad() && !firstGood.IsZero(), now.Sub(lastGood) >= r.Settle:
			return &VerifyError{*v, err}
		}
		v.Passed = good && now.Sub(firstGood) >= r.Soak
		if r.Progress != nil {
			looked := *v
			r.Progress(Progress{Number: v.Looks, Looked: &looked})
		}
		if v.Passed {
			return nil
		}
		if pause(ctx, cmp.Or(r.Every, defaultEvery)) != nil {
			return fmt.Errorf("strictarp: verify a plan that was carried out: interrupted and not verified: %w", context.Cause(ctx))
		}
	}
}

func (r *application) lookAgain(ctx context.Context, v *Verification) error {
	findings, err := r.Verify(ctx)
	*v = Verification{Looks: v.Looks + 1}
	if err != nil {
		v.Error = err.Error()
		return err
	}
	for _, f := range findings {
		switch key := f.Key(); {
		case slices.Contains(r.plan.Cures, key):
			v.Remaining = append(v.Remaining, key)
		case slices.Contains(r.plan.Known, key):
		case f.Severity == SeverityError:
			v.New = append(v.New, f)
		case f.Severity == SeverityUnknown:
			v.Undecided = append(v.Undecided, f)
		}
	}
	return nil
}

func (v *Verification) bad() bool  { return len(v.Remaining) > 0 || len(v.New) > 0 }
func (v *Verification) good() bool { return !v.bad() && len(v.Undecided) == 0 }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
