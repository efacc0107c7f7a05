package metallb

import (
	"strconv"
	"strings"
)

// logfmt reads key=value pairs, values quoted where they have spaces. A line
// without a pair is none.
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
		key := line[:end]
		value, rest := logfmtValue(line[end+1:])
		fields[key], line = value, rest
	}
	return fields, len(fields) > 0
}

func logfmtValue(s string) (value, rest string) {
	if strings.HasPrefix(s, `"`) {
		if quoted, err := strconv.QuotedPrefix(s); err == nil {
			if value, err = strconv.Unquote(quoted); err == nil {
				return value, s[len(quoted):]
			}
		}
	}
	rest = afterWord(s)
	return s[:len(s)-len(rest)], rest
}

// afterWord returns what follows the first word, which is not empty unless s
// starts with a space.
func afterWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[i:]
	}
	return ""
}
