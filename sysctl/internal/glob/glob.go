// Package glob matches names with patterns as the C library does, which is what
// the tools that read sysctl.d use: path.Match of the standard library knows
// neither [!a] nor that a bracket without its end stands for itself.
package glob

import "strings"

// Is reports whether a text is a pattern, as both tools decide it.
func Is(s string) bool { return strings.ContainsAny(s, "*?[") }

// Mode is a way to treat slashes and dots.
type Mode bool

const (
	// Path is glob(3): a slash, and a dot at the beginning of a part, are
	// matched only by themselves.
	Path Mode = true
	// Flat is fnmatch(3) without flags: they are as any other.
	Flat Mode = false
)

// Match reports whether a name matches a pattern. It takes time proportional to
// the product of their lengths, whatever they are.
func Match(pattern, name string, m Mode) bool {
	p, n := 0, 0
	star, resume := -1, 0 // the last * and what of the name it does not cover yet
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			if !(m.hidden(name, n)) {
				star, resume = p, n
				p++
				continue
			}
		} else if p < len(pattern) && n < len(name) {
			if next, ok := one(pattern, p, name, n, m); ok {
				p, n = next, n+1
				continue
			}
		}
		// Let the last * cover one byte more; never a slash in a path.
		if star < 0 || resume >= len(name) || m == Path && name[resume] == '/' {
			return false
		}
		resume++
		p, n = star+1, resume
	}
	return true
}

// hidden reports whether a dot at n has to be matched by itself.
func (m Mode) hidden(name string, n int) bool {
	return m == Path && n < len(name) && name[n] == '.' && (n == 0 || name[n-1] == '/')
}

// one matches one byte of the name and returns where the pattern goes on.
func one(pattern string, p int, name string, n int, m Mode) (next int, ok bool) {
	c := name[n]
	wild := !m.hidden(name, n) && (m == Flat || c != '/')
	switch pattern[p] {
	case '?':
		return p + 1, wild
	case '[':
		if next, in, ok := bracket(pattern, p, c); ok {
			return next, in && wild
		}
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == c
}

// bracket matches a byte with the set that begins at p. It is not ok if the set
// has no end: then the bracket stands for itself.
func bracket(pattern string, p int, c byte) (next int, in, ok bool) {
	i := p + 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, in != negated, true
		}
		if class, end, ok := class(pattern, i); ok {
			in = in || class(c)
			i = end
			continue
		}
		low, after := literal(pattern, i)
		high := low
		if after+1 < len(pattern) && pattern[after] == '-' && pattern[after+1] != ']' {
			high, after = literal(pattern, after+1)
		}
		in = in || low <= c && c <= high
		i = after
	}
	return 0, false, false
}

// literal returns the byte at i, without a backslash before it, and what follows.
func literal(pattern string, i int) (c byte, next int) {
	if pattern[i] == '\\' && i+1 < len(pattern) {
		i++
	}
	return pattern[i], i + 1
}

// class returns the character class that begins at i, such as [:digit:].
func class(pattern string, i int) (in func(byte) bool, end int, ok bool) {
	if !strings.HasPrefix(pattern[i:], "[:") {
		return nil, 0, false
	}
	name, _, found := strings.Cut(pattern[i+2:], ":]")
	if !found {
		return nil, 0, false
	}
	in, ok = map[string]func(byte) bool{
		"digit": func(c byte) bool { return '0' <= c && c <= '9' },
		"lower": func(c byte) bool { return 'a' <= c && c <= 'z' },
		"upper": func(c byte) bool { return 'A' <= c && c <= 'Z' },
		"alpha": alpha,
		"alnum": func(c byte) bool { return alpha(c) || '0' <= c && c <= '9' },
	}[name]
	return in, i + 2 + len(name) + 2, ok
}

func alpha(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
