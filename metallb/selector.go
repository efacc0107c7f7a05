package metallb

import (
	"slices"
)

// Selector is a Kubernetes label selector. The zero Selector matches everything.
type Selector struct {
	Match       map[string]string `json:"matchLabels,omitempty"`
	Expressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is one expression of a Selector.
type Requirement struct {
	Key      string   `json:"key"`
	Operator Operator `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Operator is a Requirement's. The zero Operator, like any unknown one, matches
// nothing.
type Operator string

// Operators.
const (
	OperatorIn           Operator = "In"
	OperatorNotIn        Operator = "NotIn"
	OperatorExists       Operator = "Exists"
	OperatorDoesNotExist Operator = "DoesNotExist"
)

// Matches returns whether the labels satisfy all of the selector.
func (s Selector) Matches(labels Labels) bool {
	for key, want := range s.Match {
		if got, ok := labels[key]; !ok || got != want {
			return false
		}
	}
	for _, r := range s.Expressions {
		if !r.matches(labels) {
			return false
		}
	}
	return true
}

func (r Requirement) matches(labels Labels) bool {
	value, ok := labels[r.Key]
	switch r.Operator {
	case OperatorIn:
		return ok && slices.Contains(r.Values, value)
	case OperatorNotIn:
		return !ok || !slices.Contains(r.Values, value)
	case OperatorExists:
		return ok
	case OperatorDoesNotExist:
		return !ok
	}
	return false
}

func anyMatches(selectors []Selector, labels Labels) bool {
	return slices.ContainsFunc(selectors, func(s Selector) bool { return s.Matches(labels) })
}
