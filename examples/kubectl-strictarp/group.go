package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/strictarp/strictarp"
)

// kind is findings that say the same of several nodes or addresses: of one rule
// and severity, with the same remedies.
type kind struct {
	findings []strictarp.Finding
}

// root is a kind of findings that no other finding explains, with all that follows
// from them.
type root struct {
	kind
	consequences []kind
	severity     strictarp.Severity // the worst of all
}

// group puts consequences below what causes them, through any number of steps, so
// that a cause is read once; the most severe first. Of findings that only explain
// each other the first is taken for the cause.
func group(findings []strictarp.Finding) []root {
	index := map[strictarp.Key]int{}
	for i, f := range slices.Backward(findings) {
		index[f.Key()] = i
	}
	var causes []strictarp.Finding
	below := map[string][]strictarp.Finding{} // by what the cause is like
	for i, f := range findings {
		if at := origin(findings, index, i); at == i {
			causes = append(causes, f)
		} else {
			like := likeness(findings[at])
			below[like] = append(below[like], f)
		}
	}
	var roots []root
	for _, k := range kinds(causes) {
		r := root{kind: k, severity: k.findings[0].Severity}
		follows := below[likeness(k.findings[0])]
		r.consequences = kinds(follows)
		for _, f := range follows {
			r.severity = max(r.severity, f.Severity)
		}
		roots = append(roots, r)
	}
	slices.SortStableFunc(roots, func(a, b root) int { return cmp.Compare(b.severity, a.severity) })
	return roots
}

// origin returns the index of what a finding goes back to, itself if to nothing.
func origin(findings []strictarp.Finding, index map[strictarp.Key]int, from int) int {
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
func firstOrigin(findings []strictarp.Finding, index map[strictarp.Key]int, from int) int {
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

// kinds puts like findings together, in the order in which each kind comes first.
func kinds(findings []strictarp.Finding) []kind {
	var list []kind
	at := map[string]int{}
	for _, f := range findings {
		like := likeness(f)
		i, ok := at[like]
		if !ok {
			i = len(list)
			at[like] = i
			list = append(list, kind{})
		}
		list[i].findings = append(list[i].findings, f)
	}
	return list
}

// likeness is equal for findings of a kind: what their remedies do is the same but
// for the node or address.
func likeness(f strictarp.Finding) string {
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

// subjects names what a kind is about, each once.
func (k kind) subjects() []string {
	var list []string
	for _, f := range k.findings {
		list = append(list, string(f.Subject))
	}
	return unique(list)
}

// vantages names where a kind was seen from.
func (k kind) vantages() []string {
	var list []string
	for _, f := range k.findings {
		if f.Vantage != "" {
			list = append(list, f.Vantage)
		}
	}
	return unique(list)
}

// commands are the lines of the kind's remedy of an index, each with where it is
// to be done if that is not plain.
func (k kind) commands(remedy int) []string {
	var list []string
	for _, f := range k.findings {
		if remedy >= len(f.Remedies) {
			continue
		}
		for _, s := range f.Remedies[remedy].Steps {
			list = append(list, command(f, s))
		}
	}
	return unique(list)
}

// command is a step with the host that it is done on. Of a setting of many nodes
// the finding says which, so that the line is the same for all.
func command(f strictarp.Finding, s strictarp.Step) string {
	switch s.Action {
	case strictarp.SetSysctl, strictarp.SetAddress:
		if s.Node != "" && s.Node != f.Node {
			return s.String() + "   # on " + s.Node
		}
	case strictarp.ForgetNeighbour:
		return s.String() + "   # on " + cmp.Or(s.Node, f.Vantage, f.Node)
	}
	return s.String()
}

// alsoOn returns on how many nodes besides the first the commands are to be given
// that are the same for all.
func (k kind) alsoOn(remedy int) int {
	nodes := map[string]bool{}
	for _, f := range k.findings {
		if remedy < len(f.Remedies) {
			for _, s := range f.Remedies[remedy].Steps {
				if s.Action == strictarp.SetSysctl {
					nodes[cmp.Or(s.Node, f.Node)] = true
				}
			}
		}
	}
	return max(len(nodes)-1, 0)
}
