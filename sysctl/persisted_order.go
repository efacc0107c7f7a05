package sysctl

import (
	"slices"
	"strings"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
	"github.com/strictarp/strictarp/sysctl/internal/glob"
)

// Write is one write that a tool does.
type Write struct {
	Key   Key    `json:"key"`
	Value string `json:"value"`
	By    Source `json:"by"`
}

// entry is a line as a tool keeps it until it has read all of them.
type entry struct {
	pattern string
	value   string
	exclude bool
	name    string // how other lines have to name the key for the tool to see it is the same
	by      Source
}

// Writes returns what a tool would write, in its order, if keys are the
// settings that exist. It may write to a key more than once.
//
// Sources: parse_line and apply_all in src/sysctl/sysctl.c of systemd;
// parse_setting_line and write_setting_list in src/sysctl.c of procps-ng.
func (p Persisted) Writes(tool Tool, keys []Key) []Write {
	entries := p.entries(tool)
	if tool == SystemdSysctl {
		entries = replaced(entries)
	}
	exists := make(map[Key]bool, len(keys))
	for _, k := range keys {
		exists[k] = true
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(keys)))
	kept := newKept(tool, entries)
	var writes []Write
	for _, e := range entries {
		switch {
		case e.exclude:
		case !glob.Is(e.pattern):
			if exists[Key(e.pattern)] {
				writes = append(writes, Write{Key(e.pattern), e.value, e.by})
			}
		default:
			for _, k := range sorted {
				if glob.Match(e.pattern, string(k), glob.Path) && !kept.fromPatterns(e.spell(k)) {
					writes = append(writes, Write{k, e.value, e.by})
				}
			}
		}
	}
	return writes
}

// Winner returns the write that leaves its value in an existing key: the last
// one whose value the kernel does not refuse. It is false if there is none.
//
// It looks at the key alone. Two keys can change others: conf/all/forwarding,
// which is also ip_forward, sets every interface's, and conf/default those of
// interfaces that nobody has set; AtBoot knows.
func (p Persisted) Winner(tool Tool, k Key) (Write, bool) {
	writes := p.Writes(tool, []Key{k})
	for _, w := range slices.Backward(writes) {
		if !refused(w) {
			return w, true
		}
	}
	return Write{}, false
}

// refused reports whether the kernel is known to refuse a value.
func refused(w Write) bool {
	if _, _, ok := w.Key.conf(); !ok {
		return false
	}
	_, accepted := devconf.ParseWritten(w.Value)
	return !accepted
}

// spell returns a key that the entry's pattern matches as the tool finds it.
func (e entry) spell(k Key) string {
	if e.name == e.pattern {
		return string(k)
	}
	rest := strings.Split(string(k), "/")
	parts := strings.Split(e.name, "/")
	for i, part := range parts {
		if part != "" && part != "." {
			parts[i], rest = rest[0], rest[1:]
		}
	}
	return strings.Join(parts, "/")
}

func (p Persisted) entries(tool Tool) []entry {
	var entries []entry
	for _, f := range p.Files {
		if !slices.Contains(f.ReadBy, tool) {
			continue
		}
		for _, l := range f.Lines {
			if l.Only != "" && l.Only != tool {
				continue
			}
			e := entry{l.Pattern, l.Value, l.Exclude, l.Pattern, Source{f.Path, l.Number, l.Text, !l.Exclude && glob.Is(l.Pattern)}}
			if l.Spelling != "" && tool == ProcpsSysctl {
				e.name = l.Spelling
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// replaced does what systemd-sysctl does as it reads: a later line takes the
// place of one with the same name or pattern, at the end; unless it says the
// same, for then the earlier one stays where it is.
func replaced(entries []entry) []entry {
	last := map[string]int{} // where the pattern stands in entries
	dropped := make([]bool, len(entries))
	for i, e := range entries {
		if j, ok := last[e.pattern]; ok {
			if same := entries[j].exclude == e.exclude && entries[j].value == e.value; same {
				dropped[i] = true
				continue
			}
			dropped[j] = true
		}
		last[e.pattern] = i
	}
	var kept []entry
	for i, e := range entries {
		if !dropped[i] {
			kept = append(kept, e)
		}
	}
	return kept
}

// kept are the keys that patterns do not touch.
type kept struct {
	names    map[string]bool
	patterns []string
}

func newKept(tool Tool, entries []entry) kept {
	k := kept{names: map[string]bool{}}
	for _, e := range entries {
		k.names[e.name] = true
		if e.exclude && tool == ProcpsSysctl && glob.Is(e.pattern) {
			k.patterns = append(k.patterns, e.name)
		}
	}
	return k
}

func (k kept) fromPatterns(name string) bool {
	return k.names[name] || slices.ContainsFunc(k.patterns, func(p string) bool {
		// procps gives fnmatch no flags here, so that * matches slashes too.
		return glob.Match(p, name, glob.Flat)
	})
}
