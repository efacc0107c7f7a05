package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// documentVersion is that of the JSON form of document.
const documentVersion = 1

// document is what -o json prints of findings; see the package comment.
type document struct {
	Version  int                 `json:"version"`
	Findings []findingDocument   `json:"findings"`
	Missing  []strictarp.Missing `json:"missing"`
	Summary  summary             `json:"summary"`
}

type findingDocument struct {
	Key      strictarp.Key       `json:"key"`
	Rule     string              `json:"rule"`
	Severity strictarp.Severity  `json:"severity"`
	Node     string              `json:"node"`
	Subject  strictarp.Subject   `json:"subject"`
	Vantage  string              `json:"vantage"`
	Message  string              `json:"message"`
	Evidence []evidenceDocument  `json:"evidence"`
	Causes   []strictarp.Key     `json:"causes"`
	Remedies []remedyDocument    `json:"remedies"`
	Avoid    []strictarp.Caution `json:"avoid"`
}

type evidenceDocument struct {
	Observed string    `json:"observed"`
	Source   string    `json:"source"`
	At       time.Time `json:"at,omitzero"`
}

type remedyDocument struct {
	Summary string   `json:"summary"`
	Text    []string `json:"text"`
	Undo    []string `json:"undo"`
}

type summary struct {
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Infos    int             `json:"infos"`
	Unknowns int             `json:"unknowns"`
	Roots    []strictarp.Key `json:"roots"`
}

func newDocument(findings []strictarp.Finding, missing []strictarp.Missing) document {
	d := document{
		Version: documentVersion, Findings: make([]findingDocument, len(findings)),
		Missing: append([]strictarp.Missing{}, missing...), Summary: summarise(findings),
	}
	for i, f := range findings {
		out := findingDocument{
			Key: f.Key(), Rule: f.Rule, Severity: f.Severity, Node: f.Node, Subject: f.Subject, Vantage: f.Vantage, Message: f.Message,
			Evidence: make([]evidenceDocument, len(f.Evidence)), Causes: append([]strictarp.Key{}, f.Causes...),
			Remedies: make([]remedyDocument, len(f.Remedies)), Avoid: append([]strictarp.Caution{}, f.Avoid...),
		}
		for j, e := range f.Evidence {
			out.Evidence[j] = evidenceDocument(e)
		}
		for j, r := range f.Remedies {
			out.Remedies[j] = remedyDocument{r.Summary, texts(r.Steps), texts(r.Undo)}
		}
		d.Findings[i] = out
	}
	return d
}

func texts(steps []strictarp.Step) []string {
	list := make([]string, len(steps))
	for i, s := range steps {
		list[i] = s.String()
	}
	return list
}

func summarise(findings []strictarp.Finding) summary {
	s := summary{Roots: []strictarp.Key{}}
	for _, f := range findings {
		switch f.Severity {
		case strictarp.SeverityError:
			s.Errors++
		case strictarp.SeverityWarning:
			s.Warnings++
		case strictarp.SeverityInfo:
			s.Infos++
		default:
			s.Unknowns++
		}
	}
	for _, r := range strictarp.Roots(findings) {
		for _, f := range r.Causes {
			s.Roots = append(s.Roots, f.Key())
		}
	}
	return s
}

// result is what a command has to say, for every format.
type result struct {
	text  func(p *page) // table and wide
	data  any           // json and yaml
	names []string      // name
	bad   bool          // exit code 1
}

// formats of -o.
func formats() []string { return []string{"table", "wide", "json", "yaml", "name"} }

// errFound means that all went well and there is something to find fault with.
var errFound = errors.New("there are findings")

// print writes a result in the format asked for.
func (a *app) print(r result) error {
	text, err := a.render(r)
	if err != nil {
		return err
	}
	if _, err := a.out.Write(text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if r.bad {
		return errFound
	}
	return nil
}

func (a *app) render(r result) ([]byte, error) {
	switch a.output {
	case "json":
		text, err := marshal(r.data, "    ")
		return escapeJSON(text), err
	case "yaml":
		return toYAML(r.data)
	case "name":
		var b strings.Builder
		for _, name := range r.names {
			b.WriteString(safetext.Visible(name) + "\n")
		}
		return []byte(b.String()), nil
	}
	p := &page{width: a.width, wide: a.output == "wide", color: a.colored(a.outTerminal)}
	r.text(p)
	return []byte(p.String()), nil
}

// colored says whether text is coloured that goes to a terminal, or does not
// (no-color.org).
func (a *app) colored(terminal bool) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

func marshal(data any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(data); err != nil {
		return nil, fmt.Errorf("write the result as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// toYAML writes what -o json does, field by field in the same order.
func toYAML(data any) ([]byte, error) {
	text, err := marshal(data, "")
	if err != nil {
		return nil, err
	}
	var node yaml.Node // JSON is YAML, but for some characters that YAML wants escaped
	if err := yaml.Unmarshal(escapeBasic(text), &node); err != nil {
		return nil, fmt.Errorf("write the result as YAML: %w", err)
	}
	restyle(&node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&node), e.Close()); err != nil {
		return nil, fmt.Errorf("write the result as YAML: %w", err)
	}
	return escapeYAML(b.Bytes()), nil
}

// restyle has YAML written as people do, with quotes only where they are needed,
// and around what escapeYAML escapes.
func restyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, safetext.Hides) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		restyle(child)
	}
}

// judged is the result of commands that find faults.
func (a *app) judged(findings []strictarp.Finding, missing []strictarp.Missing) result {
	least := strictarp.SeverityError
	if a.failOn == "warning" {
		least = strictarp.SeverityWarning
	}
	return result{
		text:  func(p *page) { p.report(findings, missing) },
		data:  newDocument(findings, missing),
		names: keys(findings),
		bad:   slices.ContainsFunc(findings, func(f strictarp.Finding) bool { return f.Severity >= least }),
	}
}

func keys(findings []strictarp.Finding) []string {
	list := make([]string, len(findings))
	for i, f := range findings {
		list[i] = string(f.Key())
	}
	return list
}
