package strictarp

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Pick chooses a remedy of a finding.
type Pick struct {
	Finding Key `json:"finding"`
	Remedy  int `json:"remedy"` // its index in Remedies
}

// NewPlan returns the plan that carries out the remedies picked. Without picks, or
// if they are nil, that is the best remedy of each finding of severity warning or
// error that has any; picks that are empty and not nil are none, and the plan has no
// steps. Executors.Picks picks what given executors can do.
//
// Findings are all that there are: Apply's verification tells from them what is
// new. Steps that remedies share are done once. Configuration comes first, then
// restarts, then what the kernels keep, and the forgetting of neighbours last;
// within these, node by node. A step that names no node though it is done on one
// is done where its finding is: on its Node, or, for a neighbour cache, at its
// Vantage.
//
// The error is a *HarmfulError, a *ContradictionError, or matches fs.ErrNotExist
// for a pick that there is not.
func NewPlan(findings []Finding, picks ...Pick) (Plan, error) {
	chosen, err := choose(findings, picks)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Version: PlanVersion, Steps: []Step{}}
	b := planBuilder{plan: &p, at: map[target]*Step{}}
	for _, c := range chosen {
		if err := b.remedy(c.finding, c.remedy); err != nil {
			return Plan{}, err
		}
	}
	for _, s := range b.steps {
		p.add(*s)
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Node, b.Node))
	})
	p.Cures = withConsequences(findings, b.cured)
	for _, f := range findings {
		if f.Severity == SeverityError || f.Severity == SeverityUnknown {
			p.Known = append(p.Known, f.Key())
		}
	}
	return p, p.check()
}

type chosenRemedy struct {
	finding Finding
	remedy  Remedy
}

func choose(findings []Finding, picks []Pick) ([]chosenRemedy, error) {
	var chosen []chosenRemedy
	if picks == nil {
		for _, f := range findings {
			if f.Severity >= SeverityWarning && len(f.Remedies) > 0 {
				chosen = append(chosen, chosenRemedy{f, f.Remedies[0]})
			}
		}
		return chosen, nil
	}
	for _, pick := range picks {
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Key() == pick.Finding })
		switch {
		case i < 0:
			return nil, fmt.Errorf("strictarp: plan a cure of %s: there is no such finding: %w", pick.Finding, fs.ErrNotExist)
		case pick.Remedy < 0 || pick.Remedy >= len(findings[i].Remedies):
			return nil, fmt.Errorf("strictarp: plan a cure of %s: remedy %d of %d: %w", pick.Finding, pick.Remedy, len(findings[i].Remedies), fs.ErrNotExist)
		}
		chosen = append(chosen, chosenRemedy{findings[i], findings[i].Remedies[pick.Remedy]})
	}
	return chosen, nil
}

// planBuilder joins remedies.
type planBuilder struct {
	plan  *Plan
	steps []*Step
	at    map[target]*Step
	cured []Key
}

func (b *planBuilder) remedy(f Finding, r Remedy) error {
	whole := true
	for _, s := range r.Steps {
		s.Node = s.nodeFor(f)
		if why, bad := harmful(s); bad {
			return &HarmfulError{s, why}
		}
		s.Object = s.target().object
		whole = whole && s.rank() != rankManual
		other, ok := b.at[s.target()]
		if !ok {
			b.at[s.target()] = &s
			b.steps = append(b.steps, &s)
			continue
		}
		if err := other.join(s); err != nil {
			return err
		}
	}
	// What people have to do is not done yet when a plan is verified.
	if whole && len(r.Steps) > 0 {
		b.cured = append(b.cured, f.Key())
	}
	return nil
}

// nodeFor returns where a step of a remedy of f is done.
func (s Step) nodeFor(f Finding) string {
	switch s.Action {
	case SetSysctl, SetAddress, RestartUnit:
		return cmp.Or(s.Node, f.Node, f.Vantage)
	case ForgetNeighbour:
		return cmp.Or(s.Node, f.Vantage, f.Node)
	}
	return s.Node
}

// join makes s one with another step of the same target.
func (s *Step) join(o Step) error {
	if s.To != o.To {
		return &ContradictionError{[2]Step{*s, o}}
	}
	switch {
	case s.From == o.From:
	case s.Action == ForgetNeighbour: // seen at two moments: either entry is to go
		s.From = ""
	case s.From != "" && o.From != "":
		return &ContradictionError{[2]Step{*s, o}}
	default:
		s.From = cmp.Or(s.From, o.From)
	}
	return nil
}

// withConsequences adds findings of which all causes are cured, and theirs.
func withConsequences(findings []Finding, cured []Key) []Key {
	is := map[Key]bool{}
	for _, k := range cured {
		is[k] = true
	}
	for grown := true; grown; {
		grown = false
		for _, f := range findings {
			all := len(f.Causes) > 0 && !slices.ContainsFunc(f.Causes, func(k Key) bool { return !is[k] })
			if all && !is[f.Key()] {
				is[f.Key()], grown = true, true
			}
		}
	}
	var keys []Key
	for _, f := range findings {
		if is[f.Key()] && !slices.Contains(keys, f.Key()) {
			keys = append(keys, f.Key())
		}
	}
	return keys
}
