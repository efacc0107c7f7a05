package strictarp

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/strictarp/strictarp/sysctl"
)

// PlanVersion is the version of the JSON form of Plan, and of undo files, that
// this package writes and the only one that it takes.
const PlanVersion = 1

// Plan is what is to be done, in order, as data: NewPlan makes one, people look
// at it, Apply carries it out.
type Plan struct {
	Version int    `json:"version"` // PlanVersion
	Steps   []Step `json:"steps"`
	// Manual are steps for people. Apply does not do them, and does not wait for
	// them.
	Manual []Step `json:"manual,omitempty"`
	// Undoes says that the plan takes changes back. It may loosen what was loose
	// before, and Apply does as much of it as can be done.
	Undoes bool `json:"undoes,omitempty"`
	// Cures are findings that are to be gone once Steps are done.
	Cures []Key `json:"cures,omitempty"`
	// Known are findings, of severity error or unknown, that were there when the
	// plan was made: to find them again says nothing against the plan.
	Known []Key `json:"known,omitempty"`
}

// HarmfulError is the error for a plan with a step that must not be done.
type HarmfulError struct {
	Step Step
	Why  string
}

func (e *HarmfulError) Error() string {
	return fmt.Sprintf("strictarp: plan %q: it does harm: %s: leave it out", e.Step, e.Why)
}

// ContradictionError is the error for a plan of which two steps want the same
// object to be different, or disagree about what is there.
type ContradictionError struct{ Steps [2]Step }

func (e *ContradictionError) Error() string {
	a, b := e.Steps[0], e.Steps[1]
	return fmt.Sprintf("strictarp: plan %s %q%s: one step changes it from %q to %q, another from %q to %q: pick remedies that agree, or observe again",
		a.Action, a.Object, a.place(), a.From, a.To, b.From, b.To)
}

// Undo returns the plan that takes p back as a whole. What takes back only what
// was really done is in the undo file that Apply keeps: see ReadUndo.
func (p Plan) Undo() Plan {
	undo := Plan{Version: PlanVersion, Undoes: true, Known: slices.Concat(p.Known, p.Cures)}
	for _, u := range inverse(p.Steps) {
		undo.add(u.step)
	}
	for _, s := range slices.Backward(p.Manual) {
		if back, ok := s.Undo(); ok {
			undo.add(back)
		}
	}
	return undo
}

// add puts a step where it belongs.
func (p *Plan) add(s Step) {
	if s.rank() == rankManual {
		p.Manual = append(p.Manual, s)
		return
	}
	p.Steps = append(p.Steps, s)
}

// String returns the canonical text of the steps, one a line, in their order,
// below a line that says where they are done.
func (p Plan) String() string {
	return p.text(func(s Step) string { return "  " + oneLine(s.String()) + "\n" })
}

// Preview returns the steps as String does, and below each that changes a value
// what becomes what, as a diff shows it. A value that is not known is "?".
func (p Plan) Preview() string {
	return p.text(func(s Step) string {
		text := "  " + oneLine(s.String()) + "\n"
		if s.restarts() || s.rank() == rankManual {
			return text
		}
		from, to := s.From, s.To
		if from == "" {
			from = "?"
		}
		if s.Action == ForgetNeighbour {
			to = Absent
		}
		return text + "    - " + oneLine(from) + "\n    + " + oneLine(to) + "\n"
	})
}

func (p Plan) text(line func(Step) string) string {
	var text strings.Builder
	place := ""
	for i, s := range slices.Concat(p.Steps, p.Manual) {
		at := "cluster"
		switch {
		case i >= len(p.Steps):
			at = "by hand"
		case s.Node != "":
			at = oneLine(s.Node)
		case s.rank() >= rankKernel || s.Action == RestartUnit:
			at = "this host"
		}
		if at != place {
			text.WriteString(at + ":\n")
		}
		place = at
		text.WriteString(line(s))
	}
	return text.String()
}

// oneLine makes text from a cluster harmless for a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// check returns why a plan cannot be applied as it is.
func (p Plan) check() error {
	if p.Version != PlanVersion {
		return fmt.Errorf("strictarp: a plan of version %d: %w: want version %d", p.Version, errors.ErrUnsupported, PlanVersion)
	}
	seen := map[target]Step{}
	for _, s := range p.Steps {
		if s.rank() == rankManual {
			return fmt.Errorf("strictarp: plan %q: it is for people: put it into Plan.Manual: %w", s, fs.ErrInvalid)
		}
		if other, ok := seen[s.target()]; ok {
			return &ContradictionError{[2]Step{other, s}}
		}
		seen[s.target()] = s
		if why, bad := harmful(s); bad && !p.Undoes {
			return &HarmfulError{s, why}
		}
	}
	return nil
}

// target is what a step changes. Of one target a plan has one step.
type target struct {
	action                  Action
	node, namespace, object string
}

func (s Step) target() target {
	object := s.Object
	if k, err := sysctl.ParseKey(object); err == nil && s.Action == SetSysctl {
		object = string(k)
	}
	return target{s.Action, s.Node, s.Namespace, object}
}

// place says where a step is done, for messages.
func (s Step) place() string {
	switch {
	case s.Node != "":
		return " on " + s.Node
	case s.Namespace != "":
		return " in " + s.Namespace
	}
	return ""
}

// rank orders the steps of a plan.
type rank int

const (
	rankConfiguration rank = iota
	rankRestart            // reads the configuration, and may set what is set next
	rankKernel
	rankNeighbour // last: what is asked for again is to be answered rightly
	rankManual
)

func (s Step) rank() rank {
	switch s.Action {
	case SetStrictARP, SetLabel, PatchObject:
		return rankConfiguration
	case RestartRollout, RestartUnit:
		return rankRestart
	case SetSysctl, SetAddress:
		return rankKernel
	case ForgetNeighbour:
		return rankNeighbour
	}
	return rankManual
}

// indexedStep is a step with the index of the one that it takes back.
type indexedStep struct {
	step  Step
	index int
}

// inverse returns what takes steps back: changes last first, and then the restarts
// in the order of steps, so that what is restarted reads what was put back.
func inverse(steps []Step) []indexedStep {
	var back, restarts []indexedStep
	for i := range steps {
		if steps[i].restarts() {
			restarts = append(restarts, indexedStep{steps[i], i})
		}
		j := len(steps) - 1 - i
		if undo, ok := steps[j].Undo(); ok && !steps[j].restarts() {
			back = append(back, indexedStep{undo, j})
		}
	}
	if len(back) == 0 {
		return nil // a restart alone leaves nothing to put back
	}
	return append(back, restarts...)
}
