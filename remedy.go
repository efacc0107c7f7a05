package strictarp

import "strings"

// Remedy is a way to mend a finding, as data: nothing is changed until a person
// or a program carries the steps out.
type Remedy struct {
	Summary string `json:"summary"` // what it achieves, in one sentence
	Steps   []Step `json:"steps"`   // in the order in which they are to be done
	// Undo is what to do, in order, to be back where it began. It is known
	// before the first step is done.
	Undo []Step `json:"undo,omitempty"`
}

// NewRemedy returns a remedy of the given steps with its Undo: changes are
// undone last first, and after them restarts are done again in the order of
// steps, so that what is restarted reads what was put back.
func NewRemedy(summary string, steps ...Step) Remedy {
	r := Remedy{Summary: summary, Steps: steps}
	var restarts []Step
	for i := range steps {
		if s := steps[i]; s.restarts() {
			restarts = append(restarts, s)
		}
		if s := steps[len(steps)-1-i]; !s.restarts() {
			if undo, ok := s.Undo(); ok {
				r.Undo = append(r.Undo, undo)
			}
		}
	}
	if len(r.Undo) > 0 { // a restart alone leaves nothing to put back
		r.Undo = append(r.Undo, restarts...)
	}
	return r
}

// String returns the canonical text of the remedy: one line a step.
func (r Remedy) String() string {
	lines := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}
