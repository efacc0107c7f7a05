package timeline

import (
	"cmp"
	"slices"
	"time"
)

// cell is what some looks that follow each other saw.
type cell struct {
	from, to       time.Time // of the first and last look
	looks, skipped int
	order          []int  // who answered, if it is one look
	won, answered  counts // rounds, looks
	cached         counts // looks
	uncached       int    // looks at the cache that found no entry
	silent, unsure int    // looks
	flips          int
	gratuitous     int // frames
	doubled        int // looks in which a host answered twice
	checks, failed int
	slowest        time.Duration // of checks that succeeded
	faults         [faultKinds]int
	faulty         int // looks
	notes          []note
	otherNotes     int // further texts
}

// note is a text, and in how many looks it was so.
type note struct {
	text string
	n    int
}

// maxNotes is how many texts a cell keeps; a soak that fails says the same again and
// again.
const maxNotes = 4

func (c *cell) add(l Look, s seen) {
	c.looks++
	c.order = nil
	if c.looks == 1 {
		c.order = s.answered
	}
	for _, i := range s.answered {
		c.answered[i]++
	}
	for i, n := range s.won {
		c.won[i] += n
	}
	switch s.cached {
	case notObserved:
	case noEntry:
		c.uncached++
	default:
		c.cached[s.cached]++
	}
	c.silent += one(s.silent)
	c.unsure += one(s.unsure)
	c.flips += one(s.flip)
	c.gratuitous += l.Gratuitous()
	for _, r := range l.ARP.Responders {
		if r.DoubleAnswer {
			c.doubled++
			break
		}
	}
	if l.Check.Ran {
		c.checks++
		c.failed += one(!l.Check.OK)
		if l.Check.OK {
			c.slowest = max(c.slowest, l.Check.Latency)
		}
	}
	for kind, is := range s.faults {
		c.faults[kind] += one(is)
	}
	c.faulty += one(s.faulty())
	for _, text := range s.notes {
		c.note(note{text, 1})
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (c *cell) note(n note) {
	i := slices.IndexFunc(c.notes, func(have note) bool { return have.text == n.text })
	switch {
	case i >= 0:
		c.notes[i].n += n.n
	case len(c.notes) < maxNotes:
		c.notes = append(c.notes, n)
	default:
		c.otherNotes += n.n
	}
}

// merge takes in the cell that follows.
func (c *cell) merge(next cell) {
	switch {
	case next.looks == 0 && !c.from.IsZero():
	case c.looks == 0:
		c.from, c.to, c.order = next.from, next.to, next.order
	default:
		c.to, c.order = next.to, nil
	}
	for i := range c.won {
		c.won[i] += next.won[i]
		c.answered[i] += next.answered[i]
		c.cached[i] += next.cached[i]
	}
	for kind := range c.faults {
		c.faults[kind] += next.faults[kind]
	}
	c.slowest = max(c.slowest, next.slowest)
	for _, sum := range []struct {
		to  *int
		add int
	}{
		{&c.looks, next.looks}, {&c.skipped, next.skipped}, {&c.uncached, next.uncached},
		{&c.silent, next.silent}, {&c.unsure, next.unsure}, {&c.flips, next.flips},
		{&c.gratuitous, next.gratuitous}, {&c.doubled, next.doubled}, {&c.checks, next.checks},
		{&c.failed, next.failed}, {&c.faulty, next.faulty}, {&c.otherNotes, next.otherNotes},
	} {
		*sum.to += sum.add
	}
	c.notes = slices.Clone(c.notes) // which a cell that it was copied from may share
	for _, n := range next.notes {
		c.note(n)
	}
}

// alike reports whether two cells tell the same story, whatever the counts and events.
// Where several hosts answer it does not matter who, nor who is first: that changes
// from look to look.
func (c *cell) alike(d cell) bool {
	if (c.looks > 0) != (d.looks > 0) || (c.unsure > 0) != (d.unsure > 0) || (c.uncached > 0) != (d.uncached > 0) {
		return false
	}
	for kind := range c.faults {
		if fault(kind) == flapping && c.faults[several] > 0 {
			continue
		}
		if (c.faults[kind] > 0) != (d.faults[kind] > 0) {
			return false
		}
	}
	for i := range c.answered {
		if (c.cached[i] > 0) != (d.cached[i] > 0) || c.faults[several] == 0 && (c.answered[i] > 0) != (d.answered[i] > 0) {
			return false
		}
	}
	return true
}

// answerers returns who answered: the first to answer of a single look first, and of
// several looks the worst.
func (t *Timeline) answerers(c *cell) []int {
	if c.looks == 1 {
		return c.order
	}
	return c.hostsBy(&c.answered, func(a, b int) int {
		if t.isUnexpected(a) != t.isUnexpected(b) {
			return one(t.isUnexpected(b)) - one(t.isUnexpected(a))
		}
		return cmp.Compare(c.won[b], c.won[a])
	})
}

// holders returns who was cached, the worst first.
func (t *Timeline) holders(c *cell) []int {
	return c.hostsBy(&c.cached, func(a, b int) int { return one(t.isUnexpected(b)) - one(t.isUnexpected(a)) })
}

// hostsBy returns the hosts that are counted, in an order.
func (c *cell) hostsBy(n *counts, order func(a, b int) int) []int {
	var list []int
	for i := range n {
		if n[i] > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, order)
	return list
}
