package kubeproxy

import (
	"path"
	"slices"
	"strings"
)

// proxyArgs finds kube-proxy's own arguments behind whatever starts it. In a
// shell's script the variables of env are expanded.
func proxyArgs(args []arg, env map[string]string) ([]arg, bool) {
	for i, a := range args {
		if isProxyProgram(a.text) {
			return args[i+1:], true
		}
		if baseName(a.text) == "hyperkube" && i+1 < len(args) && (args[i+1].text == "proxy" || args[i+1].text == "kube-proxy") {
			return args[i+2:], true
		}
		if strings.ContainsAny(a.text, " \t\n") && strings.Contains(a.text, "kube-proxy") {
			if found, ok := scriptArgs(a, env); ok {
				// What follows sh -c SCRIPT is $0, $1 and so on: kube-proxy has it only if
				// the script passes "$@" on.
				return passOn(found, args[i+1:]), true
			}
		}
	}
	return nil, false
}

func isProxyProgram(s string) bool {
	name := baseName(s)
	return name == "kube-proxy" || name == "kube-proxy.exe"
}

func baseName(s string) string { return path.Base(strings.ReplaceAll(s, `\`, "/")) }

// scriptArgs finds the command in a shell script that starts kube-proxy.
func scriptArgs(script arg, env map[string]string) ([]arg, bool) {
	for _, command := range shellCommands(script.text) {
		for i, w := range command {
			if isProxyProgram(w.text) {
				var args []arg
				for _, w := range command[i+1:] {
					args = append(args, arg{expandShell(w.text, env), script.at})
				}
				return args, true
			}
		}
	}
	return nil, false
}

func passOn(found, positional []arg) []arg {
	for i, a := range found {
		if a.text == "$@" || a.text == "$*" {
			if len(positional) > 0 {
				positional = positional[1:] // $0
			}
			return slices.Concat(found[:i], positional, found[i+1:])
		}
	}
	return found
}

// word is a word and where it begins in its script, in bytes.
type word struct {
	text   string
	offset int
}

// shellCommands splits a script into commands and these into words, with quotes
// and backslashes. It does not expand anything; redirections are left out.
func shellCommands(script string) [][]word {
	var commands [][]word
	var words []word
	length := len(script)
	end := func() {
		if len(words) > 0 {
			commands, words = append(commands, words), nil
		}
	}
	for len(script) > 0 {
		switch c := script[0]; {
		case c == '\n' || c == ';' || c == '|':
			end()
			script = script[1:]
		case c == '&' && !strings.HasPrefix(script, "&>"):
			end()
			script = script[1:]
		case c == ' ' || c == '\t' || c == '\r':
			script = script[1:]
		case strings.HasPrefix(script, "\\\n"):
			script = script[2:]
		case strings.HasPrefix(script, "\\\r\n"):
			script = script[3:]
		case c == '#':
			script = strings.TrimLeftFunc(script, func(r rune) bool { return r != '\n' })
		default:
			offset := length - len(script)
			text, rest, redirect := shellWord(script)
			script = rest
			if !redirect {
				words = append(words, word{text, offset})
			}
		}
	}
	end()
	return commands
}

// shellWord cuts the first word off. A redirection's target belongs to it.
func shellWord(s string) (text, rest string, redirect bool) {
	var b strings.Builder
	i := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '\\' && strings.HasPrefix(s[i+1:], "\n"):
			i += 2
		case c == '\\' && strings.HasPrefix(s[i+1:], "\r\n"):
			i += 3
		case c == '\\' && i+1 < len(s):
			b.WriteByte(s[i+1])
			i += 2
		case c == '\'':
			quoted, _, _ := strings.Cut(s[i+1:], "'")
			b.WriteString(quoted)
			i += min(len(quoted)+2, len(s)-i)
		case c == '"':
			quoted, n := doubleQuoted(s[i+1:])
			b.WriteString(quoted)
			i += n + 1
		case c == '>' || c == '<':
			redirect = true
			i++
			for i < len(s) && strings.IndexByte(">&< ", s[i]) >= 0 {
				i++
			}
		case strings.IndexByte(" \t\r\n;|&", c) >= 0 && (c != '&' || !strings.HasPrefix(s[i:], "&>")):
			return b.String(), s[i:], redirect
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), "", redirect
}

func doubleQuoted(s string) (text string, length int) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), i + 1
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), len(s)
}

// expandKubernetes replaces $(NAME) as the kubelet does: an unknown name stays
// as it is and $$(NAME) is a literal (third_party/forked/golang/expansion).
func expandKubernetes(s string, env map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		value, known := env[name]
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteString("$")
			s = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && known:
			b.WriteString(value)
			s = after
		default:
			b.WriteString("$")
			s = rest
		}
	}
}

// expandShell replaces $NAME and ${NAME} of known variables.
func expandShell(s string, env map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after := variable(rest)
		if value, known := env[name]; known && name != "" {
			b.WriteString(value)
			s = after
		} else {
			b.WriteString("$")
			s = rest
		}
	}
}

// variable cuts NAME or {NAME} off.
func variable(s string) (name, rest string) {
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		if name, rest, ok = strings.Cut(inner, "}"); ok {
			return name, rest
		}
		return "", s
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}
