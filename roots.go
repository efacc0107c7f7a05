package strictarp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Group is findings that say the same of several nodes or addresses: of one rule
// and severity, with the same remedies but for the node or address. There is at
// least one.
type Group []Finding

// Root is findings that no other finding explains, with all that follows from
// them: to mend it mends those.
type Root struct {
	Causes       Group    `json:"causes"`
	Consequences []Group  `json:"consequences,omitempty"`
	Severity     Severity `json:"severity"` // the worst of all
}

// Roots puts findings below their root causes, so that of a fault with a hundred
// consequences people read the cause first and once. It follows Causes through any
// number of steps. Every finding is in one Root, once: one that has several root
// causes is with the first of them; of findings that only explain each other the
// first is taken for the cause. Roots are sorted by their Severity, the worst
// first, and are else in the order of the findings, as Evaluate returns them.
func Roots(findings []Finding) []Root {
	index := map[Key]int{}
	for i, f := range slices.Backward(findings) {
		index[f.Key()] = i
	}
	var causes []Finding
	below := map[string][]Finding{} // by what the cause is like
	for i, f := range findings {
		if at := origin(findings, index, i); at == i {
			causes = append(causes, f)
		} else {
			like := likeness(findings[at])
			below[like] = append(below[like], f)
		}
	}
	var roots []Root
	for _, g := range groups(causes) {
		follows := below[likeness(g[0])]
		r := Root{Causes: g, Consequences: groups(follows), Severity: g[0].Severity}
		for _, f := range follows {
			r.Severity = max(r.Severity, f.Severity)
		}
		roots = append(roots, r)
	}
	slices.SortStableFunc(roots, func(a, b Root) int { return cmp.Compare(b.Severity, a.Severity) })
	return roots
}

// origin returns the index of what a finding goes back to, itself if to nothing.
func origin(findings []Finding, index map[Key]int, from int) int {
	for {
		next := firstOrigin(findings, index, from)
		if next == from {
			return from
		}
		from = next // of a circle, which something else may lead to
	}
}

// firstOrigin returns the first of all that a finding follows from that follows
// from nothing; if there is none, the first of all that it follows from.
func firstOrigin(findings []Finding, index map[Key]int, from int) int {
	const none = math.MaxInt
	seen := map[int]bool{from: true}
	first, origin := none, none
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		explained := false
		for _, key := range findings[i].Causes {
			cause, ok := index[key]
			if !ok || cause == i {
				continue
			}
			explained = true
			first = min(first, cause)
			if !seen[cause] {
				seen[cause] = true
				queue = append(queue, cause)
			}
		}
		if !explained {
			origin = min(origin, i)
		}
	}
	if origin != none {
		return origin
	}
	return first
}

// groups puts like findings together, in the order in which each group comes first.
func groups(findings []Finding) []Group {
	var list []Group
	at := map[string]int{}
	for _, f := range findings {
		like := likeness(f)
		i, ok := at[like]
		if !ok {
			i = len(list)
			at[like] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], f)
	}
	return list
}

// likeness is equal for findings of a group: what their remedies do is the same but
// for the node or address.
func likeness(f Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %s", f.Rule, f.Severity)
	for _, r := range f.Remedies {
		b.WriteString(" remedy")
		for _, s := range r.Steps {
			object := s.Object
			for _, own := range []string{string(f.Subject), f.Node} {
				if own != "" {
					object = strings.ReplaceAll(object, own, "\x00")
				}
			}
			node := s.Node
			if node == f.Node || node == f.Vantage {
				node = "\x00"
			}
			fmt.Fprintf(&b, " %q %q %q %q %q", s.Action, node, s.Namespace, object, s.To)
		}
	}
	return b.String()
}

// Subjects names what the findings are about, each once, in their order.
func (g Group) Subjects() []Subject {
	return once(g, func(f Finding) Subject { return f.Subject })
}

// Nodes names the nodes that the findings are about or that are at fault, each
// once, in their order.
func (g Group) Nodes() []string { return once(g, func(f Finding) string { return f.Node }) }

// Vantages names from where the findings were seen, each once, in their order.
func (g Group) Vantages() []string { return once(g, func(f Finding) string { return f.Vantage }) }

// once returns what is not empty of each finding, each once.
func once[T ~string](findings []Finding, of func(Finding) T) []T {
	var list []T
	seen := map[T]bool{"": true}
	for _, f := range findings {
		if text := of(f); !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}
