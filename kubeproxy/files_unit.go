package kubeproxy

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// unitDirs are where systemd looks for units; the first that has a name wins
// (systemd.unit(5)).
func unitDirs() []string {
	return []string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}
}

// unitLine is a setting of a unit or a drop-in.
type unitLine struct {
	key, value string // continued lines with their backslashes
	file       string
	number     int // of the line where it begins
}

// unitLines reads the [Service] section. Comments between continued lines are
// skipped (systemd.syntax(7)); they are blanked, so that lines can be counted.
func unitLines(text, file string) []unitLine {
	var list []unitLine
	section, continued := "", false
	number := 0
	for line := range strings.Lines(text) {
		number++
		body := strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(body)
		switch {
		case strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";"):
			if continued && len(list) > 0 {
				list[len(list)-1].value += "\\\n"
			}
			continue
		case continued:
			if len(list) > 0 {
				list[len(list)-1].value += body + "\n"
			}
		case strings.HasPrefix(trimmed, "["):
			section = trimmed
		case section == "[Service]":
			if key, value, ok := strings.Cut(body, "="); ok {
				list = append(list, unitLine{strings.TrimSpace(key), value + "\n", file, number})
			}
		}
		continued = strings.HasSuffix(body, `\`)
	}
	for i := range list {
		list[i].value = strings.TrimSuffix(list[i].value, "\n")
	}
	return list
}

// unit is a unit's settings with its drop-ins' behind them.
type unit struct {
	lines []unitLine
	read  func(name string) ([]byte, bool) // for environment files; nil for none
}

// parseUnit reads the last command that starts kube-proxy; an empty ExecStart
// takes back those before it.
func parseUnit(u unit, o ParseOptions) (CommandLine, bool) {
	var start unitLine
	env := map[string]string{}
	for _, l := range u.lines {
		switch l.key {
		case "ExecStart":
			if strings.Contains(l.value, "proxy") || strings.TrimSpace(l.value) == "" {
				start = l
			}
		case "Environment":
			maps.Copy(env, assignments(l.value))
		case "EnvironmentFile":
			u.environmentFile(strings.TrimSpace(l.value), env)
		}
	}
	args, ok := proxyArgs(unitArgs(start, env), env)
	if !ok {
		return CommandLine{}, false
	}
	line := parseFlags(args, o)
	line.Config.Source.Path = start.file
	return line, true
}

// unitArgs splits a command. $NAME as a word of its own becomes several, ${NAME}
// does not (systemd.service(5)).
func unitArgs(l unitLine, env map[string]string) []arg {
	var args []arg
	value := strings.TrimLeft(l.value, " \t@-:+!")
	offset := len(l.value) - len(value)
	for _, command := range shellCommands(value) {
		for _, w := range command {
			line := l.number + strings.Count(l.value[:offset+w.offset], "\n")
			begin := strings.LastIndexByte(l.value[:offset+w.offset], '\n') + 1
			place := Position{Line: line}
			if begin > 0 {
				place.Column = offset + w.offset - begin + 1
			}
			if name, ok := strings.CutPrefix(w.text, "$"); ok && env[name] != "" {
				for _, part := range strings.Fields(env[name]) {
					args = append(args, arg{part, place})
				}
				continue
			}
			args = append(args, arg{expandShell(w.text, env), place})
		}
	}
	return args
}

func assignments(text string) map[string]string {
	env := map[string]string{}
	for _, command := range shellCommands(text) {
		for _, w := range command {
			if name, value, ok := strings.Cut(w.text, "="); ok {
				env[name] = value
			}
		}
	}
	return env
}

func (u unit) environmentFile(name string, env map[string]string) {
	if u.read == nil {
		return
	}
	if text, ok := u.read(strings.TrimPrefix(strings.TrimPrefix(name, "-"), "/")); ok {
		maps.Copy(env, assignments(string(text)))
	}
}

// units finds systemd units named after kube-proxy, with their drop-ins.
func (n *nodeFiles) units() {
	main := map[string]string{}               // unit to file
	dropIns := map[string]map[string]string{} // unit to file name to file
	for _, dir := range slices.Backward(unitDirs()) {
		for _, file := range n.list(dir, "proxy.service") {
			main[path.Base(file)] = file
		}
		for _, d := range n.list(dir, "proxy.service.d") {
			name := strings.TrimSuffix(path.Base(d), ".d")
			if dropIns[name] == nil {
				dropIns[name] = map[string]string{}
			}
			for _, file := range n.list(d, ".conf") {
				dropIns[name][path.Base(file)] = file
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(main)) {
		u := unit{read: n.read}
		files := []string{main[name]}
		for _, dropIn := range slices.Sorted(maps.Keys(dropIns[name])) {
			files = append(files, dropIns[name][dropIn])
		}
		for _, file := range files {
			if text, ok := n.read(file); ok {
				u.lines = append(u.lines, unitLines(string(text), "/"+file)...)
			}
		}
		if line, ok := parseUnit(u, n.options); ok {
			service := strings.TrimSuffix(name, ".service")
			n.add(line, Source{Kind: SourceSystemdUnit, Name: service, Path: line.Config.Source.Path, Workload: "unit/" + service})
		}
	}
}
