package main

import (
	"cmp"

	"github.com/strictarp/strictarp"
)

// commands are the lines of a remedy of findings that are alike, by its index, each
// with where it is to be done if that is not plain.
func commands(g strictarp.Group, remedy int) []string {
	var list []string
	for _, f := range g {
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
func alsoOn(g strictarp.Group, remedy int) int {
	nodes := map[string]bool{}
	for _, f := range g {
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

// subjects names what findings are about.
func subjects(g strictarp.Group) []string {
	var list []string
	for _, s := range g.Subjects() {
		list = append(list, string(s))
	}
	return list
}
