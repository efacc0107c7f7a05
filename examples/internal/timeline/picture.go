package timeline

import (
	"fmt"
	"time"
)

// Sizes of the picture, in its own units: pixels where there is room. A part fits on
// the screen of a telephone.
const (
	perPart   = 30 // cells; with one look a second, half a minute
	pitch     = 11 // from one cell to the next
	box       = 10
	labels    = 46 // for the names of lanes
	axisHigh  = 13
	laneHigh  = 13
	checkHigh = 20
	maxAlso   = 3 // lanes for those who answered, too
)

// part is a piece of the picture: some cells beside each other, in lanes.
type part struct {
	ID            string
	Wide, High    int
	Shown         int // width in pixels
	Label         string
	Lanes, Clocks []text
	Cells         []column
}

// picture lays out all cells.
type picture struct {
	*Timeline
	also    int // lanes
	cache   bool
	check   bool
	slowest time.Duration
	rows    []row
}

func (t *Timeline) picture(rows []row) picture {
	p := picture{Timeline: t, rows: rows, slowest: 10 * time.Millisecond} // or more: else the quick would look slow
	for i := range t.cells {
		c := &t.cells[i]
		p.also = min(maxAlso, max(p.also, len(p.items(c))-1))
		p.cache = p.cache || c.uncached > 0 || len(t.holders(c)) > 0
		p.check = p.check || c.checks > 0
		p.slowest = max(p.slowest, c.slowest)
	}
	return p
}

// Values of items besides hosts.
const (
	itemSilent = -1 - iota
	itemUnsure
)

// items are what is to be seen of a cell's answers, the worst first.
func (p picture) items(c *cell) []int {
	var list []int
	if c.silent > 0 {
		list = append(list, itemSilent)
	}
	if c.unsure > 0 && len(p.answerers(c)) == 0 {
		list = append(list, itemUnsure)
	}
	return append(list, p.answerers(c)...)
}

// lane is where a lane begins, and how high it is.
type lane struct {
	name      string
	top, high float64
}

// lanes are, from above: faults, events, first, also, cached, check.
func (p picture) lanes() (lanes []lane, high int) {
	first := "first"
	if p.per > 1 {
		first = "answers"
	}
	lanes = []lane{{name: "fault"}, {name: "event"}, {name: first}}
	for i := range p.also {
		name := ""
		if i == 0 {
			name = "also"
		}
		lanes = append(lanes, lane{name: name})
	}
	if p.cache {
		lanes = append(lanes, lane{name: "cached"})
	}
	if p.check {
		lanes = append(lanes, lane{name: "check", high: checkHigh})
	}
	high = axisHigh
	for i := range lanes {
		if lanes[i].high == 0 {
			lanes[i].high = laneHigh
		}
		lanes[i].top = float64(high)
		high += int(lanes[i].high)
	}
	return lanes, high
}

func (p picture) parts() []part {
	var parts []part
	lanes, high := p.lanes()
	for begin := 0; begin < len(p.cells); begin += perPart {
		end := min(begin+perPart, len(p.cells))
		s := part{ID: fmt.Sprintf("part-%d", len(parts)+1), Wide: labels + perPart*pitch, High: high, Label: p.partLabel(begin, end)}
		s.Shown = s.Wide
		switch { // little to see is shown large
		case len(p.cells) <= perPart:
			s.Shown *= 2
		case len(p.cells) <= 2*perPart:
			s.Shown = s.Shown * 3 / 2
		}
		for _, l := range lanes {
			s.Lanes = append(s.Lanes, text{X: labels - 4, Y: l.top + l.high/2 + 3, Class: "lane", Text: l.name})
		}
		for i := begin; i < end; i++ {
			x := float64(labels + (i-begin)*pitch)
			if (i-begin)%(perPart/3) == 0 {
				s.Clocks = append(s.Clocks, text{X: x, Y: axisHigh - 4, Class: "clock", Text: p.tick(i)})
			}
			s.Cells = append(s.Cells, p.column(i, x, lanes))
		}
		parts = append(parts, s)
	}
	return parts
}

// tick is the time above a cell; where a part begins on another day than the one
// before, with the day.
func (p picture) tick(i int) string {
	at := p.cells[i].from.UTC()
	switch {
	case i%perPart == 0 && i > 0 && dayOf(at) != dayOf(p.cells[i-perPart].from):
		return at.Format("2 Jan 15:04")
	case time.Duration(p.per)*p.every >= time.Minute:
		return at.Format("15:04")
	}
	return at.Format(p.layout())
}

// partLabel says what a part shows to those who do not see it.
func (p picture) partLabel(begin, end int) string {
	var all cell
	for i := begin; i < end; i++ {
		all.merge(p.cells[i])
	}
	return p.row(&all).sentence()
}
