package timeline

// Where a sign of the legend is, in a square of twelve.
const signX = 1

var signLane = lane{high: 12}

// signs explains what can be seen in the picture, with the marks that it is drawn with.
func (p picture) signs() []column {
	fault := "fault"
	if p.per > 1 {
		fault = "faults, in so many looks"
	}
	if p.per > maxSign {
		fault += ", or !! in more than 99"
	}
	draw := func(title string, mark func(c *column)) column {
		c := column{Title: title}
		mark(&c)
		return c
	}
	list := []column{
		draw(fault, func(c *column) { c.fault(&cell{looks: p.per, faulty: 1}, signX, signLane) }),
		draw("undecided", func(c *column) { p.item(c, itemUnsure, signX, signLane) }),
		draw("nobody answers", func(c *column) { p.item(c, itemSilent, signX, signLane) }),
		draw("skipped", func(c *column) { c.box(signX, signLane, "skip") }),
		draw("gratuitous frame", func(c *column) { c.events(&cell{gratuitous: 1}, signX, signLane) }),
		draw("another is first", func(c *column) { c.events(&cell{flips: 1}, signX, signLane) }),
	}
	for i := range p.hosts {
		if p.isUnexpected(i) {
			list = append(list, draw("not expected", func(c *column) {
				c.box(signX, signLane, "plain")
				c.path(signX, signLane, "notch", notchPath)
			}))
			break
		}
	}
	if p.check {
		list = append(list,
			draw("check succeeds; the higher, the slower: full height is "+latency(p.slowest)+", logarithmic", func(c *column) {
				c.check(&cell{checks: 1, slowest: p.slowest / 20}, signX, signLane, p.slowest)
			}),
			draw("check fails", func(c *column) { c.check(&cell{checks: 1, failed: 1}, signX, signLane, p.slowest) }))
	}
	if p.cache {
		list = append(list, draw("nothing cached", func(c *column) { p.held(c, &cell{uncached: 1}, signX, signLane) }))
	}
	return list
}
