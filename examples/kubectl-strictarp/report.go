package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/strictarp/strictarp"
)

// report writes findings below what causes them.
func (p *page) report(findings []strictarp.Finding, missing []strictarp.Missing) {
	roots := group(findings)
	for _, r := range roots {
		p.root(r)
		p.WriteString("\n")
	}
	p.missing(missing)
	p.para(0, "", conclusion(summarise(findings), len(roots)))
	if len(missing) > 0 {
		p.para(0, "", fmt.Sprintf("Not observed: %s.", plural(len(missing), "thing")))
	}
}

func conclusion(s summary, causes int) string {
	total := s.Errors + s.Warnings + s.Infos
	if total == 0 && s.Unknowns == 0 {
		return "No fault was found."
	}
	if total == 0 {
		return fmt.Sprintf("No fault was found, but %s cannot be decided: see what to collect.", plural(s.Unknowns, "question"))
	}
	text := fmt.Sprintf("%s, %s, %s", plural(s.Errors, "error"), plural(s.Warnings, "warning"), plural(s.Infos, "note"))
	if s.Unknowns > 0 {
		text += fmt.Sprintf(", %s that cannot be decided", plural(s.Unknowns, "question"))
	}
	return text + fmt.Sprintf("; %s to begin with.", plural(causes, "cause"))
}

// root writes a cause with its cure and its consequences.
func (p *page) root(r root) {
	const indent = 2
	first := r.findings[0]
	p.head(0, first.Severity, first.Rule, p.names(r.subjects()), from(p.names(r.vantages())))
	p.messages(indent, r.kind)
	p.evidence(indent, r.kind)
	for i, remedy := range first.Remedies {
		if i > 0 && !p.wide {
			break
		}
		label := "Cure:"
		if i > 0 {
			label = "Or:"
		}
		p.para(indent, label, remedy.Summary)
		p.commands(indent+4, r.commands(i))
		if undo := texts(remedy.Undo); p.wide && len(undo) > 0 {
			p.para(indent+2, "", "To take it back:")
			p.commands(indent+4, undo)
		}
	}
	p.avoid(indent, r)
	p.consequences(indent, r)
}

func from(vantages string) string {
	if vantages == "" {
		return ""
	}
	return "seen from " + vantages
}

// messages writes what a kind says; of many alike only the first.
func (p *page) messages(indent int, k kind) {
	const most = 2
	var list []string
	for _, f := range k.findings {
		list = append(list, f.Message)
	}
	list = unique(list)
	for i, message := range list {
		if i == most && len(list) > most+1 && !p.wide {
			p.para(indent, "", fmt.Sprintf("... and so on for %d more.", len(list)-most))
			return
		}
		p.para(indent, "", message)
	}
}

func (p *page) evidence(indent int, k kind) {
	const most = 3
	var list []string
	for _, f := range k.findings {
		for _, e := range f.Evidence {
			text := e.Observed + " (" + e.Source
			if p.wide && !e.At.IsZero() {
				text += ", " + e.At.UTC().Format("2006-01-02 15:04:05Z")
			}
			list = append(list, text+")")
		}
	}
	list = unique(list)
	for i, text := range list {
		if i == most && !p.wide {
			p.para(indent, "", fmt.Sprintf("Seen: and %d more (-o wide).", len(list)-most))
			return
		}
		p.para(indent, "Seen:", text)
	}
}

// commands writes what is to be done; of very much only the beginning.
func (p *page) commands(indent int, lines []string) {
	const most = 12
	for i, line := range lines {
		if i == most && !p.wide {
			p.para(indent, "", fmt.Sprintf("... and %d more (-o wide).", len(lines)-most))
			return
		}
		if byHand, ok := strings.CutPrefix(line, manual); ok {
			p.para(indent, "By hand:", byHand)
		} else {
			p.lines(indent, line)
		}
	}
}

// manual begins the text of a step for people.
const manual = "manual: "

// avoid writes what does harm, once for each reason.
func (p *page) avoid(indent int, r root) {
	var whys []string
	steps := map[string][]string{}
	for _, k := range append([]kind{r.kind}, r.consequences...) {
		for _, f := range k.findings {
			for _, c := range f.Avoid {
				if !slices.Contains(steps[c.Why], c.Step) {
					whys = append(whys, c.Why)
					steps[c.Why] = append(steps[c.Why], c.Step)
				}
			}
		}
	}
	for _, why := range unique(whys) {
		for i, step := range steps[why] {
			steps[why][i] = strings.TrimPrefix(step, manual)
		}
		text := p.names(steps[why])
		if p.wide {
			text += ": " + why
		}
		p.para(indent, "Do not:", text)
	}
	if len(whys) > 0 && !p.wide {
		p.para(indent, "", "(-o wide says why not)")
	}
}

// consequences writes what follows from a cause, and what is to be done about it
// when that is cured.
func (p *page) consequences(indent int, r root) {
	if len(r.consequences) == 0 {
		return
	}
	p.para(indent, "", "From that follows:")
	var rows [][]string
	for _, k := range r.consequences {
		f := k.findings[0]
		about := p.names(k.subjects())
		if seen := from(p.names(k.vantages())); seen != "" {
			about += ", " + seen
		}
		rows = append(rows, []string{f.Severity.String(), f.Rule, about})
	}
	p.table(indent+2, []string{"SEVERITY", "RULE", "ABOUT"}, rows...)
	if p.wide {
		for _, k := range r.consequences {
			p.head(indent, k.findings[0].Severity, k.findings[0].Rule)
			p.messages(indent+2, k)
			p.evidence(indent+2, k)
		}
	}
	done := map[string]bool{strings.Join(r.commands(0), "\n"): true}
	for _, k := range r.consequences {
		lines := k.commands(0)
		text := strings.Join(lines, "\n")
		if len(lines) == 0 || done[text] || within(lines, r.commands(0)) {
			continue
		}
		done[text] = true
		p.para(indent, "Then:", k.findings[0].Remedies[0].Summary)
		p.commands(indent+4, lines)
	}
}

// within reports whether all lines are among others.
func within(lines, others []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool { return !slices.Contains(others, l) })
}

// missing writes what could not be observed, once for all places where it is for
// the same reason.
func (p *page) missing(missing []strictarp.Missing) {
	type why struct{ what, err, collect string }
	var order []why
	where := map[why][]string{}
	for _, m := range missing {
		err := m.Err
		if m.Where != "" {
			err = strings.ReplaceAll(err, m.Where, "...")
		}
		w := why{m.What, err, m.Collect}
		if where[w] == nil {
			order = append(order, w)
		}
		where[w] = append(where[w], m.Where)
	}
	const most = 10
	for i, w := range order {
		if i == most && !p.wide {
			p.para(0, "", fmt.Sprintf("... and %d more that could not be observed (-o wide).", len(order)-most))
			break
		}
		p.para(0, "Not observed:", fmt.Sprintf("%s of %s: %s", w.what, p.names(where[w]), w.err))
		if w.collect != "" {
			p.para(2, "To get it:", w.collect)
		}
	}
	if len(order) > 0 {
		p.WriteString("\n")
	}
}
