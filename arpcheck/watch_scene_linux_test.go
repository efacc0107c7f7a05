package arpcheck_test

import "testing"

func labScene(t *testing.T) scene {
	nodes, from := lab(t, 3)
	s := scene{from: from}
	for _, n := range nodes {
		s.nodes = append(s.nodes, n)
	}
	return s
}
