package kubeproxy

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

var bom = []byte("\ufeff")

// lineStarts counts lines as the YAML decoder does, whose positions are used:
// YAML 1.1 has more line breaks than LF and CRLF.
func lineStarts(text []byte) []int {
	first := 0
	if bytes.HasPrefix(text, bom) {
		first = len(bom)
	}
	starts := []int{first}
	for i := first; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		switch r {
		case '\r':
			if i < len(text) && text[i] == '\n' {
				i++
			}
			starts = append(starts, i)
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i)
		}
	}
	return starts
}

// offset is where a node begins; -1 if that is not in the text.
func (e *editor) offset(n *yaml.Node) int {
	if n == nil || n.Line < 1 || n.Line > len(e.starts) {
		return -1
	}
	at := e.starts[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(e.text[at:])
		if size == 0 {
			return -1
		}
		at += size
	}
	return at
}

func (e *editor) position(offset int) Position {
	line := sort.SearchInts(e.starts, offset+1)
	if line == 0 {
		return Position{Line: 1, Column: 1}
	}
	return Position{Line: line, Column: utf8.RuneCount(e.text[e.starts[line-1]:offset]) + 1}
}

// token is the place of a scalar without its anchor.
func (e *editor) token(n *yaml.Node) (offset int, text string, ok bool) {
	at := e.skipAnchor(n)
	if at < 0 || n.Kind != yaml.ScalarNode {
		return 0, "", false
	}
	text = n.Value
	switch n.Style {
	case 0:
	case yaml.DoubleQuotedStyle:
		text = `"` + text + `"`
	case yaml.SingleQuotedStyle:
		text = "'" + text + "'"
	default: // a tag, or a literal of several lines
		return 0, "", false
	}
	return at, text, bytes.HasPrefix(e.text[at:], []byte(text))
}

func (e *editor) skipAnchor(n *yaml.Node) int {
	at := e.offset(n)
	if at < 0 || n.Anchor == "" {
		return at
	}
	rest, ok := bytes.CutPrefix(e.text[at:], []byte("&"+n.Anchor))
	if !ok {
		return -1
	}
	return len(e.text) - len(bytes.TrimLeft(rest, " \t"))
}

// candidates lists changes, the nicest first; not all need be right.
func (e *editor) candidates() []Splice {
	root := e.doc.root
	section := direct(root, "ipvs")
	value := direct(section.node, "strictARP")
	switch {
	case value.node != nil && e.want == StrictARPUnset:
		return e.remove(section.node, value)
	case value.node != nil:
		return e.replace(value)
	case section.node == nil:
		return e.addSection()
	case section.node.Kind == yaml.MappingNode:
		return e.addField(section)
	}
	return e.fillSection(section)
}

func (e *editor) replace(value member) []Splice {
	at, old, ok := e.token(value.node)
	if !ok {
		return nil
	}
	if old == "" { // nothing behind the colon
		return []Splice{{at, "", " " + string(e.want)}}
	}
	return []Splice{{at, old, string(e.want)}}
}

func (e *editor) remove(section *yaml.Node, value member) []Splice {
	keyAt := e.offset(value.key)
	valueAt, old, ok := e.token(value.node)
	if keyAt < 0 || !ok {
		return nil
	}
	if section.Style&yaml.FlowStyle == 0 {
		start := e.starts[value.key.Line-1]
		return []Splice{{start, string(e.text[start:e.nextLine(valueAt)]), ""}}
	}
	end := valueAt + len(old)
	for i := 0; i+2 < len(section.Content); i += 2 { // up to the next field
		if section.Content[i] == value.key {
			next := e.offset(section.Content[i+2])
			if next < keyAt {
				return nil
			}
			return []Splice{{keyAt, string(e.text[keyAt:next]), ""}}
		}
	}
	before := bytes.TrimRight(e.text[:keyAt], " \t\r\n") // from the comma before it, if there is one
	if start := len(before) - 1; start >= 0 && before[start] == ',' {
		return []Splice{{start, string(e.text[start:end]), ""}}
	}
	return []Splice{{keyAt, string(e.text[keyAt:end]), ""}}
}

// nextLine is where the line behind an offset begins, or the text's end.
func (e *editor) nextLine(offset int) int {
	i := sort.SearchInts(e.starts, offset+1)
	if i == len(e.starts) {
		return len(e.text)
	}
	return e.starts[i]
}

// lineAfter inserts lines behind the one of an offset.
func (e *editor) lineAfter(offset int, lines ...string) Splice {
	block := strings.Join(lines, e.eol)
	if at := sort.SearchInts(e.starts, offset+1); at < len(e.starts) {
		return Splice{e.starts[at], "", block + e.eol}
	}
	return Splice{len(e.text), "", e.eol + block}
}

func (e *editor) addField(section member) []Splice {
	n := section.node
	if n.Style&yaml.FlowStyle != 0 {
		return e.addFlow(n, "strictARP", string(e.want))
	}
	keyAt, firstAt := e.offset(section.key), e.offset(n.Content[0])
	if keyAt < 0 || firstAt < 0 {
		return nil
	}
	start := e.starts[n.Content[0].Line-1]
	line := string(e.text[start:firstAt]) + "strictARP: " + string(e.want)
	return []Splice{e.lineAfter(keyAt, line), {start, "", line + e.eol}}
}

// addFlow inserts a field at the begin of a flow mapping, spaced as the one that
// follows it is.
func (e *editor) addFlow(n *yaml.Node, name, value string) []Splice {
	at := e.skipAnchor(n)
	if at < 0 || at >= len(e.text) || e.text[at] != '{' {
		return nil
	}
	if len(n.Content) == 0 {
		return []Splice{{at + 1, "", e.pair(name, value)}}
	}
	first := e.offset(n.Content[0])
	if first <= at {
		return nil
	}
	gap := string(e.text[at+1 : first])
	if strings.Contains(gap, "#") || gap == "" && !e.compact() {
		gap = " "
	}
	return []Splice{{first, "", e.pair(name, value) + "," + gap}}
}

func (e *editor) pair(name, value string) string {
	switch {
	case e.compact():
		return `"` + name + `":` + value
	case e.doc.joined:
		return `"` + name + `": ` + value
	}
	return name + ": " + value
}

// compact reports whether the text is JSON without a space behind the colon.
func (e *editor) compact() bool {
	if !e.doc.joined || len(e.doc.root.Content) < 2 {
		return false
	}
	at := e.offset(e.doc.root.Content[1])
	return at > 0 && e.text[at-1] == ':'
}

// fillSection is for ipvs: null, ~ or nothing.
func (e *editor) fillSection(section member) []Splice {
	at, old, ok := e.token(section.node)
	keyAt := e.offset(section.key)
	if !ok || keyAt < 0 {
		return nil
	}
	flow := "{" + e.pair("strictARP", string(e.want)) + "}"
	if old != "" {
		return []Splice{{at, old, flow}}
	}
	return []Splice{e.lineAfter(keyAt, e.indent(1)+"strictARP: "+string(e.want)), {at, "", " " + flow}}
}

func (e *editor) addSection() []Splice {
	root := e.doc.root
	if root.Style&yaml.FlowStyle != 0 {
		return e.addFlow(root, "ipvs", "{"+e.pair("strictARP", string(e.want))+"}")
	}
	lines := []string{e.indent(0) + "ipvs:", e.indent(1) + "strictARP: " + string(e.want)}
	var list []Splice
	for _, name := range []string{"mode", "kind", "apiVersion"} { // beside what belongs to it
		if m := direct(root, name); m.node != nil && e.offset(m.node) >= 0 {
			list = append(list, e.lineAfter(e.offset(m.node), lines...))
		}
	}
	return append(list, Splice{e.starts[root.Content[0].Line-1], "", strings.Join(lines, e.eol) + e.eol})
}

// indent is the indentation of a depth as the text has it, or two spaces.
func (e *editor) indent(depth int) string {
	root := e.doc.root
	base := root.Content[0].Column - 1
	if root.Line == root.Content[0].Line { // the two differ behind a question mark
		base = root.Column - 1
	}
	step := 2
	for i := 1; i < len(root.Content); i += 2 {
		n := root.Content[i]
		if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0 && n.Content[0].Column-1 > base {
			step = n.Content[0].Column - 1 - base
			break
		}
	}
	return strings.Repeat(" ", base+depth*step)
}
