package strictarp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/strictarp/strictarp/sysctl"
)

const (
	// maxParse is how much of a text is read, in bytes: a node with 65,536 routes
	// or neighbours prints some 8 MiB.
	maxParse = 32 << 20
	// maxWarned is how many lines are complained of one by one, and how much of one
	// is quoted, in bytes.
	maxWarned      = 100
	maxWarnedBytes = 200
)

// warnings are lines that could not be used.
type warnings struct {
	list []sysctl.Warning
	more int
}

func (w *warnings) add(number int, line, problem string) {
	if len(w.list) >= maxWarned {
		w.more++
		return
	}
	line = strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
	if len(line) > maxWarnedBytes {
		line = strings.ToValidUTF8(line[:maxWarnedBytes], "") + "..."
	}
	w.list = append(w.list, sysctl.Warning{Line: number, Text: line, Problem: problem})
}

// done returns the warnings, of which the last one counts those that are too
// many.
func (w *warnings) done(lines int) []sysctl.Warning {
	if w.more == 0 {
		return w.list
	}
	return append(w.list, sysctl.Warning{Line: lines, Problem: fmt.Sprintf("%d more lines could not be used", w.more)})
}

// eachLine calls line for every line of a text that is not empty.
func eachLine(r io.Reader, line func(number int, text string)) (lines int, err error) {
	limited := &io.LimitedReader{R: r, N: maxParse + 1}
	s := bufio.NewScanner(limited)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines++
		if text := withoutColours(s.Text()); strings.TrimSpace(text) != "" {
			line(lines, text)
		}
	}
	switch {
	case s.Err() != nil:
		return lines, fmt.Errorf("line %d: %w", lines+1, s.Err())
	case limited.N <= 0:
		return lines, fmt.Errorf("after line %d: %w of %d MiB", lines, ErrLimit, maxParse>>20)
	}
	return lines, nil
}

// words takes the words of a line one after the other.
type words []string

// next returns "" at the end.
func (w *words) next() string {
	if len(*w) == 0 {
		return ""
	}
	word := (*w)[0]
	*w = (*w)[1:]
	return word
}

func (w words) peek() string {
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

var errNotPrinted = errors.New("not as ip prints it")

// withoutColours takes out what "ip -c" paints with: ESC [ ... m (ECMA-48 SGR).
func withoutColours(text string) string {
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		if !found {
			return text
		}
		end := strings.IndexByte(after, 'm')
		if end < 0 || strings.Trim(after[:end], "0123456789;") != "" {
			return text
		}
		text = before + after[end+1:]
	}
}
