// Package timeline shows what a soak saw, look by look: as a page of HTML that needs
// nothing beside it, and as lines on a terminal. However long a soak lasts, a Timeline
// is of bounded size and forgets no fault: looks are put together in cells, and each
// cell counts what was wrong in it.
package timeline

import (
	"time"

	"github.com/strictarp/strictarp/arpcheck"
)

// maxCells is how many cells there are at most: on a wide screen a picture of ten
// rows, and a page below a megabyte. An hour of a look each second takes 900.
const maxCells = 960

// perCell is how many looks a cell may take, so that with one each second cells are
// of times that people count in. Beyond the last it doubles.
var perCell = [...]int{1, 2, 4, 12, 60, 120, 360, 720, 3600}

// Judgement is what a program makes of a look, or of a whole soak.
type Judgement int

// Judgements, from good to bad.
const (
	Unjudged  Judgement = iota // of a look: it speaks for itself
	Good                       // as it should be
	Undecided                  // it cannot be told
	Bad
)

// Look is one sample of a soak.
type Look struct {
	arpcheck.Sample
	// Judged overrules what the sample looks like. A program that judges by more than
	// the sample sets it, and says in Notes what it found.
	Judged Judgement
	Notes  []string
}

// Known is what is known of a host by its MAC.
type Known struct {
	Node  string // empty if not known
	Right Right
}

// Right says whether a host is to answer. The zero Right means that it is not known.
type Right int

// Values of Right.
const (
	Maybe Right = iota
	Expected
	Unexpected
)

var rightNames = [...]string{Maybe: "not known", Expected: "expected", Unexpected: "not expected"}

// String returns it in words.
func (r Right) String() string { return rightNames[r] }

// Timeline is what a soak of one address saw. It is made by New, and may not be used
// from several goroutines.
type Timeline struct {
	every   time.Duration
	known   func(arpcheck.MAC) Known
	hosts   []host
	index   map[arpcheck.MAC]int // of hosts
	sum     arpcheck.SoakSummary
	cells   []cell
	per     int // looks in a cell
	faulty  int
	unsure  int
	start   time.Time
	last    Look
	shown   seen            // by the last look
	vantage arpcheck.Result // of the first look that asked, for where it did
}

// New returns a Timeline of looks that are due each time that every is over; 0 if a
// look begins when the one before is done. Known tells about a MAC; it is asked again
// while it does not know the node. The MACs expected come first in the legend, also
// if they are never seen.
func New(every time.Duration, known func(arpcheck.MAC) Known, expected ...arpcheck.MAC) *Timeline {
	t := &Timeline{every: every, known: known, index: map[arpcheck.MAC]int{}, per: 1}
	for _, mac := range expected {
		t.meet(mac)
	}
	return t
}

// Summary sums up the samples.
func (t *Timeline) Summary() *arpcheck.SoakSummary { return &t.sum }

// Add takes in a look. They must come in order: its N grows.
func (t *Timeline) Add(l Look) {
	if t.sum.Samples == 0 {
		t.start = l.At.Add(-time.Duration(l.N) * t.every)
	}
	if t.vantage.Interface == "" {
		t.vantage = l.ARP
	}
	s := t.see(l)
	t.last, t.shown = l, s
	if s.faulty() {
		t.faulty++
	} else if s.unsure {
		t.unsure++
	}
	c := t.cellOf(l)
	if c.looks == 0 {
		c.from = l.At
	}
	c.to = l.At
	c.add(l, s)
}

// cellOf returns the cell of a look, with those before it, and makes cells larger if
// there are too many.
func (t *Timeline) cellOf(l Look) *cell {
	for l.N/t.per >= maxCells {
		t.enlarge()
	}
	for i := len(t.cells); i <= l.N/t.per; i++ {
		at := l.At
		if t.every > 0 {
			at = t.start.Add(time.Duration(i*t.per) * t.every)
		}
		t.cells = append(t.cells, cell{from: at, to: at})
	}
	t.skip(l)
	return &t.cells[l.N/t.per]
}

// skip counts looks that were left out in the cells in which they were due.
func (t *Timeline) skip(l Look) {
	for n := max(0, l.N-l.Skipped); n < l.N; {
		end := min(l.N, (n/t.per+1)*t.per)
		t.cells[n/t.per].skipped += end - n
		n = end
	}
}

// enlarge puts neighbouring cells together.
func (t *Timeline) enlarge() {
	next := 2 * t.per
	for _, per := range perCell {
		if per > t.per {
			next = per
			break
		}
	}
	factor := next / t.per
	larger := make([]cell, 0, len(t.cells)/factor+1)
	for i, c := range t.cells {
		if i%factor == 0 {
			larger = append(larger, c)
		} else {
			larger[len(larger)-1].merge(c)
		}
	}
	t.cells, t.per = larger, next
}
