package netnstest

import (
	"errors"
	"fmt"
)

// UnavailableError says why no lab can be built here and what would change
// that. It matches errors.ErrUnsupported, and Err.
type UnavailableError struct {
	Cause string // what stands in the way
	Cure  string // what to do
	Err   error  // what failed; may be nil
}

// Error names cause and cure.
func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("netnstest: no network namespaces here: %s; to fix: %s", e.Cause, e.Cure)
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// Is reports whether target is errors.ErrUnsupported.
func (e *UnavailableError) Is(target error) bool { return target == errors.ErrUnsupported }

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }
