package kubeproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Edited is a changed text. Its Change is all that differs, and what undoes it
// can be stored before anything is written.
type Edited struct {
	Text   []byte   `json:"text"`   // the whole new text
	Before []byte   `json:"before"` // the whole old text
	Change Splice   `json:"change"` // the zero Splice if nothing had to change
	At     Position `json:"at"`     // of the first changed byte; zero if there is none
}

// Changed reports whether the new text differs.
func (e Edited) Changed() bool { return e.Change != Splice{} }

// Diff returns the change as a unified diff with three lines of context, as
// patch takes it; empty if nothing changed.
func (e Edited) Diff(name string) string { return unifiedDiff(name, e.Before, e.Text) }

// Undo turns the new text back into the old one, or returns [ErrTextChanged].
func (e Edited) Undo(text []byte) ([]byte, error) { return e.Change.Reversed().Apply(text) }

// Splice is the replacement of some bytes of a text by others.
type Splice struct {
	Offset int    `json:"offset"` // in bytes from the text's begin
	Old    string `json:"old"`
	New    string `json:"new"`
}

// ErrTextChanged means that a text is not the one that a [Splice] was made for.
var ErrTextChanged = errors.New("kubeproxy: the text has changed since the edit was made: read it again and edit it anew")

// Reversed returns the Splice that undoes s.
func (s Splice) Reversed() Splice { return Splice{Offset: s.Offset, Old: s.New, New: s.Old} }

// Apply returns a copy of text with Old replaced. It returns [ErrTextChanged] if
// Old is not at Offset; callers who need more than that compare resource versions.
func (s Splice) Apply(text []byte) ([]byte, error) {
	if s.Offset < 0 || s.Offset > len(text) || !bytes.HasPrefix(text[s.Offset:], []byte(s.Old)) {
		return nil, ErrTextChanged
	}
	return slices.Concat(text[:s.Offset], []byte(s.New), text[s.Offset+len(s.Old):]), nil
}

// EditReason says why a text is not edited.
type EditReason string

// Reasons not to edit.
const (
	// EditInvalid: kube-proxy would refuse the text after the change as well.
	EditInvalid EditReason = "invalid"
	// EditRepeated: ipvs or strictARP is there more than once.
	EditRepeated EditReason = "repeated"
	// EditShared: the value comes from an anchor or a merge key, or serves as one,
	// so a change would reach further than meant or not take effect.
	EditShared EditReason = "shared"
	// EditUnusual: the text is written in a way in which no change was found that
	// leaves everything else as it is.
	EditUnusual EditReason = "unusual"
)

// EditError says why [Edit] leaves a text alone.
type EditError struct {
	Reason  EditReason
	At      Position
	Message string // what to do by hand
	Err     error  // a cause, if there is one
}

// Error names the place and what to do.
func (e *EditError) Error() string {
	s := "kubeproxy: do not edit strictARP: " + e.Message
	if e.At.Line > 0 {
		s += fmt.Sprintf(" (line %d)", e.At.Line)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *EditError) Unwrap() error { return e.Err }

// Edit sets strictARP to want in a KubeProxyConfiguration and changes nothing
// else: one scalar is replaced, or a field is inserted or removed. Comments, order,
// quotes, indentation, line ends, a BOM, JSON and further documents stay as they
// are. [StrictARPUnset] removes the field. The text of a ConfigMap's key is edited
// as it is.
//
// The result has been read again: kube-proxy accepts it, its strictARP is want
// and every other field is what it was. If there is no such change, Edit returns
// an [EditError]. A text that has the wanted value already comes back unchanged.
func Edit(text []byte, want StrictARP) (Edited, error) {
	unchanged := Edited{Text: bytes.Clone(text), Before: bytes.Clone(text)}
	if want != StrictARPUnset && want != StrictARPFalse && want != StrictARPTrue {
		return unchanged, fmt.Errorf("kubeproxy: edit strictARP: %q is none of true, false and unset", clip(string(want)))
	}
	c, err := Parse(text, ParseOptions{})
	if err != nil {
		return unchanged, &EditError{Reason: EditInvalid, At: c.RefusedAt, Message: "the text cannot be read: mend it first", Err: err}
	}
	if c.Refused == "" && c.StrictARP == want {
		return unchanged, nil
	}
	e := newEditor(text, want)
	if err := e.refuse(); err != nil {
		return unchanged, err
	}
	return e.first(c)
}

// editor looks for a change of text.
type editor struct {
	text   []byte
	doc    document
	want   StrictARP
	starts []int // offsets of the lines
	eol    string
}

func newEditor(text []byte, want StrictARP) *editor {
	e := &editor{text: text, want: want, doc: parseDocument(text), eol: "\n"}
	e.starts = lineStarts(text)
	if i := bytes.IndexAny(text, "\r\n"); i >= 0 && text[i] == '\r' {
		e.eol = "\r"
		if bytes.HasPrefix(text[i:], []byte("\r\n")) {
			e.eol = "\r\n"
		}
	}
	return e
}

// refuse tells why the text is not to be edited at all.
func (e *editor) refuse() error {
	root := e.doc.root
	if root == nil || root.Kind != yaml.MappingNode || !utf8.Valid(e.text) {
		return &EditError{Reason: EditUnusual, Message: "the text is not a mapping in UTF-8: edit it by hand"}
	}
	section := direct(root, "ipvs")
	if section.node == nil && field(root, "ipvs").node != nil {
		return shared(root, "ipvs comes from a merge key")
	}
	value := direct(section.node, "strictARP")
	if value.node == nil && field(section.node, "strictARP").node != nil {
		return shared(section.node, "strictARP comes from a merge key")
	}
	for _, m := range []struct {
		in   *yaml.Node
		name string
	}{{root, "ipvs"}, {section.node, "strictARP"}} {
		if at, repeated := repeats(m.in, m.name); repeated {
			return &EditError{Reason: EditRepeated, At: at, Message: m.name + " is there more than once: delete all but one"}
		}
	}
	for _, n := range []*yaml.Node{root, section.node, value.node} {
		if n != nil && (n.Kind == yaml.AliasNode || aliased(root, n)) {
			return shared(n, "the value is shared by an anchor")
		}
	}
	return nil
}

func shared(n *yaml.Node, what string) error {
	return &EditError{Reason: EditShared, At: Position{n.Line, n.Column}, Message: what + ": edit it by hand, where it does not reach further than meant"}
}

func repeats(n *yaml.Node, name string) (Position, bool) {
	count, at := 0, Position{}
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Value == name {
			count++
			at = Position{key.Line, key.Column}
		}
	}
	return at, count > 1
}

func aliased(root, n *yaml.Node) bool {
	if n.Anchor == "" {
		return false
	}
	if root.Kind == yaml.AliasNode {
		return root.Alias == n
	}
	return slices.ContainsFunc(root.Content, func(child *yaml.Node) bool { return aliased(child, n) })
}

// first returns the first change that leaves everything else as it is.
func (e *editor) first(before Config) (Edited, error) {
	failed := &EditError{Reason: EditUnusual, Message: "no small change of this text sets it: edit it by hand"}
	for _, s := range e.candidates() {
		text, err := s.Apply(e.text)
		if err != nil || !e.same(text) {
			continue
		}
		c, err := Parse(text, ParseOptions{})
		switch {
		case err != nil:
		case c.Refused != "":
			if before.Refused != "" { // its places are the ones that the caller sees
				c = before
			}
			failed = &EditError{Reason: EditInvalid, At: c.RefusedAt, Message: "kube-proxy would not start with this text: " + c.Refused}
		case c.StrictARP == e.want:
			return Edited{Text: text, Before: bytes.Clone(e.text), Change: s, At: e.position(s.Offset)}, nil
		}
	}
	return Edited{Text: bytes.Clone(e.text), Before: bytes.Clone(e.text)}, failed
}

// same reports whether a text has the other fields and documents of this one.
func (e *editor) same(text []byte) bool {
	before, err := e.rest(e.text, e.doc)
	if err != nil {
		return false
	}
	after, err := e.rest(text, parseDocument(text))
	return err == nil && reflect.DeepEqual(before, after)
}

// rest is what a text says apart from strictARP. A section without other fields
// counts as none.
func (e *editor) rest(text []byte, doc document) ([]any, error) {
	data, syntax := toJSON(text)
	if syntax != nil {
		return nil, syntax
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	section, isMap := root["ipvs"].(map[string]any)
	delete(section, "strictARP")
	if _, ok := root["ipvs"]; ok && (root["ipvs"] == nil || isMap && len(section) == 0) {
		delete(root, "ipvs")
	}
	rest := []any{root}
	for _, other := range doc.others {
		text, err := yamlOf(other)
		if err != nil {
			return nil, err
		}
		rest = append(rest, string(text))
	}
	return rest, nil
}
