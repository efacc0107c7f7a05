package timeline

import (
	"fmt"
	"math"
	"time"
)

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
}

// Paths of marks, in a square of ten.
const (
	crossPath   = "M2 2L8 8M8 2L2 8"
	upPath      = "M2.5 1L5 7H0Z"
	diamondPath = "M7.5 1L10 4.5L7.5 8L5 4.5Z"
	notchPath   = "M6 0H10V4Z"
	cornerPath  = "M0 5.5V10H4.5Z"
	underPath   = "M1.5 9H8.5"
)

// column draws a cell.
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
			col.text(x, l, "on", more(len(items)-k))
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
	c.Texts = append(c.Texts, text{X: x + box/2, Y: l.top + l.high/2 + 3, Class: class, Text: s})
}

// more says how many hosts there are that have no room.
func more(n int) string {
	if n > 9 {
		return "+"
	}
	return fmt.Sprintf("+%d", n)
}

// maxSign is the largest number that can be read in a cell.
const maxSign = 99

// fault marks a cell in which something was wrong, with how many looks were.
func (c *column) fault(from *cell, x float64, l lane) {
	mark := fmt.Sprint(from.faulty)
	switch {
	case from.faulty > maxSign:
		mark = "!!"
	case from.looks == 1:
		mark = "!"
	}
	switch {
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
		col.path(x, l, "under", underPath)
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
