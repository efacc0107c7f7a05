package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/strictarp/strictarp"
)

// report writes findings below what causes them.
func (p *page) report(findings []strictarp.Finding, missing []strictarp.Missing) {
	roots := strictarp.Roots(findings)
	for _, r := range roots {
		p.root(r)
		p.WriteString("\n")
	}
	p.missing(missing)
	p.para(0, "", conclusion(summarise(findings), len(roots)))
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
func (p *page) root(r strictarp.Root) {
	const indent = 2
	first := r.Causes[0]
	p.head(0, first.Severity, first.Rule, p.names(subjects(r.Causes)), from(p.names(r.Causes.Vantages())))
	p.messages(indent, r.Causes)
	p.evidence(indent, r.Causes)
	for i, remedy := range first.Remedies {
		if i > 0 && !p.wide {
			break
		}
		label := "Cure:"
		if i > 0 {
			label = "Or:"
		}
		p.para(indent, label, remedy.Summary)
		p.commands(indent+4, r.Causes, i)
		if undo := texts(remedy.Undo); p.wide && len(undo) > 0 {
			p.para(indent+2, "", "To take it back:")
			p.lines(indent+4, undo...)
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

// messages writes what a group says; of many alike only the first.
func (p *page) messages(indent int, g strictarp.Group) {
	var list []string
	for _, f := range g {
		list = append(list, f.Message)
	}
	p.some(indent, "", unique(list), "")
}

func (p *page) evidence(indent int, g strictarp.Group) {
	var list []string
	for _, f := range g {
		for _, e := range f.Evidence {
			if !p.wide && strings.Contains(strings.ToLower(f.Message), strings.ToLower(e.Observed)) {
				continue // it was just said
			}
			text := e.Observed + " (" + e.Source
			if p.wide && !e.At.IsZero() {
				text += ", " + e.At.UTC().Format("2006-01-02 15:04:05Z")
			}
			list = append(list, text+")")
		}
	}
	p.some(indent, "Seen:", unique(list), "Seen: ")
}

// few is how many alike are told without -o wide.
const few = 3

// some writes texts; of many only the first.
func (p *page) some(indent int, label string, list []string, rest string) {
	for i, text := range list {
		if i > 0 && len(list) > few && !p.wide {
			p.para(indent, "", fmt.Sprintf("%sand so on, %d more (-o wide).", rest, len(list)-i))
			return
		}
		p.para(indent, label, text)
	}
}

// commands writes the steps of a remedy of a group; of many only the first.
func (p *page) commands(indent int, g strictarp.Group, remedy int) {
	lines := commands(g, remedy)
	for i, line := range lines {
		if i >= few && len(g) > few && !p.wide {
			p.para(indent, "", fmt.Sprintf("and so on, %d more (-o wide).", len(lines)-i))
			return
		}
		if byHand, ok := strings.CutPrefix(line, manual); ok {
			p.para(indent, "By hand:", byHand)
		} else {
			p.lines(indent, line)
		}
	}
	if n := alsoOn(g, remedy); n > 0 {
		p.para(indent, "", fmt.Sprintf("and the same on %s.", plural(n, "other node")))
	}
}

// manual begins the text of a step for people.
const manual = "manual: "

// avoid writes what does harm, once for each reason.
func (p *page) avoid(indent int, r strictarp.Root) {
	var whys []string
	steps := map[string][]string{}
	for _, g := range append([]strictarp.Group{r.Causes}, r.Consequences...) {
		for _, f := range g {
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
func (p *page) consequences(indent int, r strictarp.Root) {
	if len(r.Consequences) == 0 {
		return
	}
	p.para(indent, "", "From that follows:")
	var rows [][]string
	for _, g := range r.Consequences {
		f := g[0]
		about := p.names(subjects(g))
		if seen := from(p.names(g.Vantages())); seen != "" {
			about += ", " + seen
		}
		rows = append(rows, []string{f.Severity.String(), f.Rule, about})
	}
	p.table(indent+2, []string{"SEVERITY", "RULE", "ABOUT"}, rows...)
	if p.wide {
		for _, g := range r.Consequences {
			p.head(indent, g[0].Severity, g[0].Rule)
			p.messages(indent+2, g)
			p.evidence(indent+2, g)
		}
	}
	done := map[string]bool{strings.Join(commands(r.Causes, 0), "\n"): true}
	for _, g := range r.Consequences {
		lines := commands(g, 0)
		text := strings.Join(lines, "\n")
		if len(lines) == 0 || done[text] || within(lines, commands(r.Causes, 0)) {
			continue
		}
		done[text] = true
		p.para(indent, "Then:", g[0].Remedies[0].Summary)
		p.commands(indent+4, g, 0)
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
		err := strings.ReplaceAll(m.Err, "\n", "; ") // joined errors
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
		what := w.what
		if places := p.names(where[w]); places != "" {
			what += " of " + places
		}
		p.para(0, "Not observed:", what+": "+w.err)
		if w.collect != "" {
			p.para(2, "To get it:", w.collect)
		}
	}
	if len(order) > 0 {
		p.WriteString("\n")
	}
}
