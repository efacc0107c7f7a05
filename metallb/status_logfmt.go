package metallb

import (
	"strconv"
	"strings"
)

// logfmt reads key=value pairs, values quoted where they have spaces, up to a
// quoted value that does not end. A line without a pair is none.
func logfmt(line string) (logLine, bool) {
	fields := logLine{}
	for len(fields) < 256 {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			break
		}
		end := strings.IndexAny(line, "= \t")
		if end <= 0 || line[end] != '=' {
			line = afterWord(line)
			continue
		}
		value, rest, ok := logfmtValue(line[end+1:])
		if !ok {
			break
		}
		fields[line[:end]], line = value, rest
	}
	return fields, len(fields) > 0
}

func logfmtValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		rest = afterWord(s)
		return s[:len(s)-len(rest)], rest, true
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", false
	}
	value, err = strconv.Unquote(quoted)
	return value, s[len(quoted):], err == nil
}

// afterWord returns what follows the first word, which is not empty unless s
// starts with a space.
func afterWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[i:]
	}
	return ""
}
