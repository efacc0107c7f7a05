package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// page is text for people. What it is given is escaped here and nowhere else.
type page struct {
	strings.Builder
	width int
	wide  bool // tell everything
	color bool
}

// minColumn is as narrow as a column of text gets, whatever the terminal.
const minColumn = 20

// para writes text in lines of the page's width, indented, behind a label.
func (p *page) para(indent int, label, text string) {
	text = safetext.Visible(text)
	width, hang := p.width-indent, ""
	if label != "" {
		text = label + " " + text
		width, hang = width-2, "  "
	}
	pad := strings.Repeat(" ", indent)
	for _, line := range wrap(text, max(width, minColumn)) {
		p.WriteString(pad + line + "\n")
		pad = strings.Repeat(" ", indent) + hang
	}
}

// lines writes what is to be copied, such as commands, without breaking it.
func (p *page) lines(indent int, lines ...string) {
	for _, line := range lines {
		for part := range strings.Lines(line) {
			p.WriteString(strings.Repeat(" ", indent) + safetext.Visible(strings.TrimRight(part, "\r\n")) + "\n")
		}
	}
}

// head writes a line that begins with a coloured word.
func (p *page) head(indent int, severity strictarp.Severity, rest ...string) {
	word := fmt.Sprintf("%-7s", severity)
	p.WriteString(strings.Repeat(" ", indent) + p.paint(colorOf(severity), word))
	for _, text := range rest {
		if text != "" {
			p.WriteString("  " + safetext.Visible(text))
		}
	}
	p.WriteString("\n")
}

func (p *page) paint(code, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func colorOf(s strictarp.Severity) string {
	switch s {
	case strictarp.SeverityError:
		return "1;31"
	case strictarp.SeverityWarning:
		return "33"
	case strictarp.SeverityInfo:
		return "36"
	}
	return "35"
}

// table writes rows below a title row. The last column is broken into lines so
// that the table is as wide as the page, as far as that goes.
func (p *page) table(indent int, title []string, rows ...[]string) {
	last := len(title) - 1
	left := p.width - indent
	all := append([][]string{title}, rows...)
	for column := range last {
		widest := 0
		for _, row := range all {
			widest = max(widest, utf8.RuneCountInString(safetext.Visible(row[column])))
		}
		left -= widest + 2
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, row := range all {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = safetext.Visible(cell)
		}
		lines := wrap(cells[last], max(left, minColumn))
		if len(lines) == 0 {
			lines = []string{""}
		}
		for i, line := range lines {
			if i == 1 {
				cells = make([]string, len(row))
			}
			cells[last] = line
			fmt.Fprintln(w, strings.Repeat(" ", indent)+strings.Join(cells, "\t"))
		}
	}
	_ = w.Flush() // a Builder takes everything
	for line := range strings.Lines(text.String()) {
		p.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// names joins names, of many only the first.
func (p *page) names(all []string) string {
	const most = 5
	if p.wide || len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most-1], ", "), len(all)-most+1)
}

// unique returns each text once, in the order in which they come first.
func unique(texts []string) []string {
	var list []string
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return slices.Clip(list)
}

func plural(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "s"):
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
