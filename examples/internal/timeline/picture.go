package timeline

import (
	"fmt"
	"math"
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

// column is a cell as it is drawn.
type column struct {
	Title string
	Boxes []shape
	Paths []path
	Texts []text
}

// shape is a rectangle.
type shape struct {
	X, Y, W, H float64
	Class      string
}

// path is a mark, whose path begins at X, Y.
type path struct {
	X, Y  float64
	Class string
	D     string
}

// text is a word, or less.
type text struct {
	X, Y  float64
	Class string
	Text  string
	Long  bool // squeezed into a cell
}

// Paths of marks, in a square of ten.
const (
	crossPath   = "M2 2L8 8M8 2L2 8"
	upPath      = "M2.5 1L5 7H0Z"
	diamondPath = "M7.5 1L10 4.5L7.5 8L5 4.5Z"
	notchPath   = "M6 0H10V4Z"
	cornerPath  = "M0 5.5V10H4.5Z"
	stripePath  = "M0 4L4 0M0 9L9 0M3 10L10 3M7.5 10L10 7.5"
)

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

func (p picture) column(i int, x float64, lanes []lane) column {
	c := &p.cells[i]
	col := column{Title: p.rows[i].sentence()}
	col.fault(c, x, lanes[0])
	col.events(c, x, lanes[1])
	items := p.items(c)
	rows := lanes[2 : 3+p.also]
	for k, l := range rows {
		switch {
		case k == 0 && c.looks == 0:
			col.box(x, l, "skip")
		case k >= len(items):
		case k == len(rows)-1 && len(items) > len(rows):
			col.box(x, l, "more")
			col.text(x, l, "on", fmt.Sprintf("%d+", len(items)-k))
		default:
			p.item(&col, items[k], x, l)
		}
	}
	rest := lanes[3+p.also:]
	if p.cache {
		p.held(&col, c, x, rest[0])
		rest = rest[1:]
	}
	if p.check {
		col.check(c, x, rest[0], p.slowest)
	}
	return col
}

func (c *column) box(x float64, l lane, class string) {
	c.Boxes = append(c.Boxes, shape{x, l.top + 1, box, l.high - 2, class})
}

func (c *column) path(x float64, l lane, class, d string) {
	c.Paths = append(c.Paths, path{x, l.top + (l.high-box)/2, class, d})
}

func (c *column) text(x float64, l lane, class, s string) {
	c.Texts = append(c.Texts, text{X: x + box/2, Y: l.top + l.high/2 + 3, Class: class, Text: s, Long: len(s) > 2})
}

// fault marks a cell in which something was wrong, with how many looks were.
func (c *column) fault(from *cell, x float64, l lane) {
	mark := "!"
	switch {
	case from.faulty > 0 && from.looks > 1:
		mark = fmt.Sprint(from.faulty)
		fallthrough
	case from.faulty > 0:
		c.box(x, l, "bad")
		c.text(x, l, "on", mark)
	case from.unsure > 0:
		c.box(x, l, "unsure")
		c.text(x, l, "on", "?")
	case from.looks > 0:
		c.Boxes = append(c.Boxes, shape{x, l.top + l.high/2, box, 1, "calm"})
	}
}

func (c *column) events(from *cell, x float64, l lane) {
	if from.gratuitous > 0 {
		c.path(x, l, "gratuitous", upPath)
	}
	if from.flips > 0 {
		c.path(x, l, "flip", diamondPath)
	}
	if from.skipped > 0 && from.looks > 0 {
		c.Boxes = append(c.Boxes, shape{x, l.top + l.high - 2, box, 2, "skipped"})
	}
}

func (p picture) item(col *column, item int, x float64, l lane) {
	switch item {
	case itemSilent:
		col.box(x, l, "silent")
		col.path(x, l, "cross", crossPath)
	case itemUnsure:
		col.box(x, l, "unsure")
		col.text(x, l, "on", "?")
	default:
		p.host(col, item, x, l)
	}
}

func (p picture) host(col *column, i int, x float64, l lane) {
	col.box(x, l, hostClass(i))
	if i >= maxHosts/2 && i < maxHosts {
		col.path(x, l, "stripe", stripePath)
	}
	if p.isUnexpected(i) {
		col.path(x, l, "notch", notchPath)
	}
	col.text(x, l, "on", letter(i))
}

func hostClass(i int) string {
	if i >= maxHosts {
		return "more"
	}
	return fmt.Sprintf("h%d", i%(maxHosts/2))
}

func (p picture) held(col *column, c *cell, x float64, l lane) {
	held := p.holders(c)
	switch {
	case len(held) > 0:
		p.host(col, held[0], x, l)
		if len(held) > 1 {
			col.path(x, l, "corner", cornerPath)
		}
	case c.uncached > 0:
		col.Boxes = append(col.Boxes, shape{x + 3, l.top + l.high/2, 4, 1.5, "none"})
	}
}

// check draws failures as such, and else the slowest success on a logarithmic scale,
// since a SYN that is sent again takes a thousand times as long.
func (c *column) check(from *cell, x float64, l lane, slowest time.Duration) {
	switch {
	case from.failed > 0:
		c.box(x, l, "bad")
		c.path(x, l, "failed", crossPath)
	case from.checks > 0:
		const least = 50 * time.Microsecond
		share := math.Log(float64(max(from.slowest, least))/float64(least)) / math.Log(float64(max(slowest, 2*least))/float64(least))
		high := 2 + share*(l.high-4)
		c.Boxes = append(c.Boxes, shape{x, l.top + l.high - 1 - high, box, high, "ok"})
	}
}
