package timeline

import (
	"fmt"
	"strings"
	"time"
)

// row says in words what a cell, or several alike, saw.
type row struct {
	ID       string // of the cell; empty for rows that join some
	When     string
	Looks    string
	Wrong    string // empty if nothing is
	Answered string
	Cached   string
	Check    string
	Events   string
	Notes    string
	Bad      bool
}

// maxSpells is how many rows tell what happened: more are read by nobody, and are in
// the table of cells.
const maxSpells = 200

// spells joins cells that follow each other and are alike. Beyond maxSpells they are
// summed up in one.
func (t *Timeline) spells() (first []row, rest cell) {
	var joined []cell
	for i, c := range t.cells {
		if last := len(joined) - 1; last >= 0 && t.cells[i-1].alike(c) {
			joined[last].merge(c)
		} else {
			joined = append(joined, c)
		}
	}
	for i := range joined {
		if i < maxSpells {
			first = append(first, t.row(&joined[i]))
		} else {
			rest.merge(joined[i])
		}
	}
	return first, rest
}

func (t *Timeline) rows() []row {
	rows := make([]row, len(t.cells))
	for i := range t.cells {
		rows[i] = t.row(&t.cells[i])
		rows[i].ID = fmt.Sprintf("cell-%d", i+1)
	}
	return rows
}

func (t *Timeline) row(c *cell) row {
	r := row{
		When: t.clock(c.from), Looks: fmt.Sprint(c.looks), Wrong: c.wrong(), Answered: t.answers(c), Cached: t.cache(c), Check: c.check(),
		Events: c.events(), Notes: c.said(), Bad: c.faulty > 0,
	}
	if c.to.After(c.from) {
		r.When += "–" + t.clock(c.to)
	}
	if c.skipped > 0 {
		r.Looks += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return r
}

// clock writes a time, with the day where there are several.
func (t *Timeline) clock(at time.Time) string {
	if len(t.cells) > 0 && dayOf(t.start) != dayOf(t.cells[len(t.cells)-1].to) {
		return at.UTC().Format("2 Jan " + t.layout())
	}
	return at.UTC().Format(t.layout())
}

// layout is that of a time of day, as fine as it takes.
func (t *Timeline) layout() string {
	if t.every%time.Second != 0 {
		return time.TimeOnly + ".000"
	}
	return time.TimeOnly
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// times says in how many looks something was so; nothing if in all of them.
func (c *cell) times(n int) string {
	if n == c.looks {
		return ""
	}
	return fmt.Sprintf(" %d×", n)
}

// wrong lists the faults.
func (c *cell) wrong() string {
	var list []string
	for kind, n := range c.faults {
		if n > 0 {
			list = append(list, faultNames[kind]+c.times(n))
		}
	}
	return strings.Join(list, ", ")
}

func (t *Timeline) answers(c *cell) string {
	var list []string
	rounds := 0
	for _, n := range c.won {
		rounds += n
	}
	for _, i := range t.answerers(c) {
		text := t.name(i) + c.times(c.answered[i])
		switch {
		case rounds <= 1 || c.won[i] == rounds:
		case c.won[i] == 0:
			text += " (never first)"
		default:
			text += fmt.Sprintf(" (first %d×)", c.won[i])
		}
		list = append(list, text)
	}
	if c.looks == 1 && len(list) > 1 {
		list = []string{strings.Join(list, ", then ")}
	}
	if c.silent > 0 {
		list = append(list, "nobody"+c.times(c.silent))
	}
	if c.unsure > 0 {
		list = append(list, "undecided"+c.times(c.unsure))
	}
	return strings.Join(list, ", ")
}

func (t *Timeline) cache(c *cell) string {
	var list []string
	for _, i := range t.holders(c) {
		text := t.name(i) + c.times(c.cached[i])
		if t.isUnexpected(i) {
			text += " (wrong)"
		}
		list = append(list, text)
	}
	if c.uncached > 0 {
		list = append(list, "no entry"+c.times(c.uncached))
	}
	return strings.Join(list, ", ")
}

func (c *cell) check() string {
	var list []string
	if c.failed > 0 {
		list = append(list, "failed"+c.times(c.failed))
	}
	if ok := c.checks - c.failed; ok > 0 {
		most := "in "
		if ok > 1 {
			most = "in at most "
		}
		list = append(list, "ok"+c.times(ok)+" "+most+latency(c.slowest))
	}
	return strings.Join(list, ", ")
}

// latency writes a time with three digits, as far as it has them.
func latency(d time.Duration) string {
	digit := time.Duration(1)
	for d/digit >= 1000 {
		digit *= 10
	}
	return d.Round(digit).String()
}

func (c *cell) events() string {
	var list []string
	if c.flips > 0 {
		list = append(list, plural(c.flips, "flip"))
	}
	if c.gratuitous > 0 {
		list = append(list, plural(c.gratuitous, "gratuitous frame"))
	}
	if c.doubled > 0 {
		list = append(list, "a host answers twice"+c.times(c.doubled))
	}
	return strings.Join(list, ", ")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func (c *cell) said() string {
	var list []string
	for _, n := range c.notes {
		list = append(list, n.text+c.times(n.n))
	}
	if c.otherNotes > 0 {
		list = append(list, fmt.Sprintf("other notes %d×", c.otherNotes))
	}
	return strings.Join(list, "; ")
}

// sentence is a row in one line, for those who hear the picture or point at it.
func (r row) sentence() string {
	text := r.When + ": " + r.Looks + " looks"
	if r.Looks == "1" {
		text = r.When
	}
	for _, part := range []struct{ label, text string }{
		{"WRONG: ", r.Wrong}, {"answered by ", r.Answered}, {"cached ", r.Cached}, {"check ", r.Check}, {"", r.Events}, {"", r.Notes},
	} {
		if part.text != "" {
			text += "; " + part.label + part.text
		}
	}
	return text
}
