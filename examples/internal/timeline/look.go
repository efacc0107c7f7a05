package timeline

import (
	"fmt"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
)

// fault is something that is wrong in a look.
type fault int

const (
	several    fault = iota // more than one host answers
	unexpected              // another host than expected answers
	silent                  // nobody answers
	failed                  // the check did
	flapping                // the first to answer changes, and not for the first time
	found                   // the program found fault
	faultKinds
)

var faultNames = [faultKinds]string{
	"several hosts answer", "unexpected host", "nobody answers", "check fails", "flapping", "findings",
}

// seen is what a look shows.
type seen struct {
	faults   [faultKinds]bool
	unsure   bool // nobody answered, and it cannot be told that nobody would
	silent   bool
	flip     bool
	answered []int // hosts, in the order of their answers
	won      counts
	cached   int // host, noEntry or notObserved
	notes    []string
}

func (s *seen) faulty() bool { return s.faults != [faultKinds]bool{} }

// Values of seen.cached.
const (
	noEntry     = -1
	notObserved = -2
)

// see finds out what a look shows, as a SoakSummary counts it.
func (t *Timeline) see(l Look) seen {
	before := t.sum
	t.sum.Add(l.Sample)
	s := seen{
		silent: t.sum.Silent > before.Silent, unsure: t.sum.Unknown > before.Unknown, flip: t.sum.Flips > before.Flips,
		notes: notesOf(l),
	}
	owners := map[any]bool{}
	for _, r := range l.ARP.Responders {
		i := t.meet(r.MAC)
		if !slices.Contains(s.answered, i) {
			s.answered = append(s.answered, i)
		}
		s.won[i] += r.WonRounds
		s.faults[unexpected] = s.faults[unexpected] || t.isUnexpected(i)
		owners[t.owner(r.MAC, i)] = true
	}
	if len(s.answered) > 0 && s.won == (counts{}) { // rounds are not told apart
		s.won[s.answered[0]] = 1
	}
	s.cached = t.cached(l) // after those who answer, whose letters come first
	s.faults[several] = len(owners) > 1
	s.faults[silent] = s.silent
	s.faults[failed] = l.Check.Ran && !l.Check.OK
	s.faults[flapping] = s.flip && t.sum.Flips > 1 // once may be a fail-over
	s.judge(l.Judged)
	return s
}

// owner is what counts as one host: a node, whatever NIC it answers from.
func (t *Timeline) owner(mac arpcheck.MAC, i int) any {
	if i < len(t.hosts) && t.hosts[i].known.Node != "" {
		return t.hosts[i].known.Node
	}
	return mac
}

func (s *seen) judge(j Judgement) {
	switch j {
	case Unjudged:
	case Bad:
		s.faults[found] = true
	default:
		s.faults, s.unsure = [faultKinds]bool{}, j == Undecided
	}
}

// cached returns the host of the neighbour cache's entry: the wrong one, if there was
// one before or after the check.
func (t *Timeline) cached(l Look) int {
	if l.Cached == nil {
		return notObserved
	}
	entry := l.Cached
	if b := l.CachedBefore; b != nil && !b.MAC.IsZero() && l.Match == arpcheck.NeighbourStaleWrong {
		if after := entry.MAC; after.IsZero() || t.known(after).Right == Expected {
			entry = b
		}
	}
	if entry.MAC.IsZero() {
		return noEntry
	}
	return t.meet(entry.MAC)
}

// notesOf is what a look says in words.
func notesOf(l Look) []string {
	var notes []string
	for _, reason := range l.ARP.Reasons {
		if reason != arpcheck.TooFewRounds { // of which there are as many as looks
			notes = append(notes, reason.Explain())
		}
	}
	if l.Check.Err != "" {
		notes = append(notes, "check: "+l.Check.Err)
	}
	if l.CacheError != "" {
		notes = append(notes, "neighbour cache: "+l.CacheError)
	}
	for _, list := range [][]arpcheck.Claim{l.Between, l.ARP.Claims} {
		for _, c := range list {
			notes = append(notes, fmt.Sprintf("%s by %s", c.Kind, c.MAC))
		}
	}
	notes = append(notes, l.Notes...)
	for i, n := range notes {
		notes[i] = short(n, maxNote)
	}
	return notes
}
