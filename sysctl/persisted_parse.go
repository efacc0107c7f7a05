package sysctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
	"github.com/strictarp/strictarp/sysctl/internal/glob"
)

// maxLine is how long a line may be, in bytes: 1 MiB, where systemd-sysctl gives
// a file up (LONG_LINE_MAX).
const maxLine = 1 << 20

// ParsePersisted reads a file in the format of sysctl.d(5) and sysctl.conf(5).
// Lines that neither tool understands are not errors but among the warnings, and
// so are lines that probably do not do what was meant. The error is that of
// reading, or matches bufio.ErrTooLong for a line of more than 1 MiB; what stands
// before is returned with it.
func ParsePersisted(r io.Reader) ([]Line, []Warning, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	var lines []Line
	var warnings []Warning
	number := 0
	for s.Scan() {
		number++
		text := strings.Trim(s.Text(), " \t\n\r\v\f")
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		line, problems := parseLine(text)
		if line != nil {
			line.Number = number
			lines = append(lines, *line)
		}
		for _, problem := range problems {
			warnings = append(warnings, Warning{Line: number, Text: text, Problem: problem})
		}
	}
	if err := s.Err(); err != nil {
		return lines, warnings, fmt.Errorf("sysctl: parse line %d: %w", number+1, err)
	}
	return lines, warnings, nil
}

// parseLine returns nil if neither tool understands the line.
func parseLine(text string) (*Line, []string) {
	key, value, assigned := strings.Cut(text, "=")
	key, dash := strings.CutPrefix(key, "-")
	l := &Line{Text: text, Value: strings.Trim(value, " \t\n\r\v\f"), Exclude: !assigned, MayFail: assigned && dash}
	if !assigned && !dash {
		return nil, []string{"not an assignment: both tools ignore it"}
	}
	var problems []string
	// After the dash, systemd-sysctl drops blanks and procps another dash.
	if trimmed := strings.TrimLeft(key, " \t\r\v\f"); trimmed != key && dash {
		key, l.Only = trimmed, SystemdSysctl
		problems = append(problems, "a blank after the dash: procps takes it for a part of the name")
	} else if dash && strings.HasPrefix(key, "-") {
		key, l.Only = key[1:], ProcpsSysctl
		problems = append(problems, "two dashes: systemd-sysctl takes the second for a part of the name")
	}
	var err error
	if l.Pattern, l.Spelling, err = normalise(strings.TrimRight(key, " \t\r\v\f")); err != nil {
		return nil, append(problems, err.Error())
	}
	return l, append(problems, l.check()...)
}

// normalise brings a key or pattern into slash notation as both tools do it
// before they, or the kernel, look it up: other than ParseKey it drops empty
// parts.
func normalise(key string) (pattern, spelling string, err error) {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		key = swapSeparators(key)
	}
	if strings.IndexByte(key, 0) >= 0 {
		return "", "", errors.New("the name has a NUL byte")
	}
	var parts []string
	for part := range strings.SplitSeq(key, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "", errors.New("the name has a part \"..\": both tools refuse it")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "", "", errors.New("there is no name")
	}
	if pattern = strings.Join(parts, "/"); pattern != key {
		spelling = key
	}
	return pattern, spelling, nil
}

// check returns what is suspicious about a line that can be understood.
func (l *Line) check() []string {
	var problems []string
	parts := strings.Split(l.Pattern, "/")
	conf := strings.HasPrefix(l.Pattern, confDir+"/")
	if conf && len(parts) > 5 {
		problems = append(problems, fmt.Sprintf("there is no such key: a dot within an interface's name is written as a slash here: %s.%s.%s",
			strings.ReplaceAll(confDir, "/", "."), strings.Join(parts[3:len(parts)-1], "/"), parts[len(parts)-1]))
	}
	if l.Spelling != "" {
		problems = append(problems, "a separator in front or twice: procps does not see that other lines name the same key")
	}
	if l.Exclude {
		if glob.Is(l.Pattern) {
			problems = append(problems, "an exclusion by a pattern: procps obeys it, systemd-sysctl only where the same pattern is assigned before")
		}
		return problems
	}
	if strings.HasSuffix(l.Value, `\`) {
		problems = append(problems, "lines are not continued: the backslash is part of the value")
	}
	if strings.ContainsAny(l.Pattern, "{}") && glob.Is(l.Pattern) {
		problems = append(problems, "braces: systemd-sysctl expands them, procps does not, and this program reads them as procps does")
	}
	number := conf && len(parts) == 5 && isParam(parts[4])
	_, accepted := devconf.ParseWritten(l.Value)
	switch {
	case number && !accepted:
		problems = append(problems, "the kernel refuses this value: want a number of 32 bits")
	case number && len(strings.Fields(l.Value)) > 1:
		problems = append(problems, "the kernel takes only the first number: comments stand on lines of their own")
	}
	return problems
}

func isParam(name string) bool {
	_, ok := devconf.Index(name)
	return ok
}
