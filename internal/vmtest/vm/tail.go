package vm

import (
	"regexp"
	"slices"
	"strings"
)

// tail keeps the last lines of what it is given, so that a program that never
// stops writing cannot fill the memory.
type tail struct {
	max     int // lines
	lines   []string
	dropped int
}

func (t *tail) add(line string) {
	if len(t.lines) >= 2*t.max { // move the rest rarely, not for every line
		t.dropped += len(t.lines) - t.max
		t.lines = append([]string(nil), t.lines[len(t.lines)-t.max:]...)
	}
	t.lines = append(t.lines, line)
}

// last returns the last max lines at most, and how many came before them.
func (t *tail) last(max int) (lines []string, before int) {
	cut := len(t.lines) - min(max, len(t.lines))
	return t.lines[cut:], t.dropped + cut
}

// without returns a tail without the lines that match.
func (t *tail) without(match *regexp.Regexp) *tail {
	return &tail{max: t.max, dropped: t.dropped, lines: slices.DeleteFunc(slices.Clone(t.lines), match.MatchString)}
}

// printable replaces what a terminal would act on, such as the escapes that a
// PC's firmware clears the screen with.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f):
			return r
		case r == '\r':
			return -1
		}
		return '\uFFFD'
	}, line)
}
