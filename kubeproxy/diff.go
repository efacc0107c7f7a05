package kubeproxy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// unifiedDiff is for texts that differ in one place, so it has one hunk.
func unifiedDiff(name string, before, after []byte) string {
	const context = 3
	if bytes.Equal(before, after) {
		return ""
	}
	old, now := splitLines(before), splitLines(after)
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	start, end := max(0, head-context), max(0, tail-context)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n@@ -%s +%s @@\n", name, name, hunk(start, len(old)-end), hunk(start, len(now)-end))
	write := func(prefix string, lines []string) {
		for _, line := range lines {
			b.WriteString(prefix + line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(" ", old[start:head])
	write("-", old[head:len(old)-tail])
	write("+", now[head:len(now)-tail])
	write(" ", old[len(old)-tail:len(old)-end])
	return b.String()
}

func hunk(start, end int) string {
	if start == end { // no lines: diff names the line before them
		return fmt.Sprintf("%d,0", start)
	}
	return fmt.Sprintf("%d,%d", start+1, end-start)
}

func splitLines(text []byte) []string {
	return slices.Collect(strings.Lines(string(text)))
}
