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

// NewRemedy returns a remedy of the given steps with its Undo: changes are undone
// last first, and after them restarts are done again in the order of steps.
func NewRemedy(summary string, steps ...Step) Remedy {
	r := Remedy{Summary: summary, Steps: steps}
	for _, u := range inverse(steps) {
		r.Undo = append(r.Undo, u.step)
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
