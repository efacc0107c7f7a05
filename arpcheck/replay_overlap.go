package arpcheck

import (
	"slices"
	"time"
)

// maxRecent bounds the rounds that are kept apart although all may be answered
// yet.
const maxRecent = 64

// pastRound is a round of a replay whose requests may be answered yet.
type pastRound struct {
	at    time.Time
	asked requests
}

// open returns the requests that may be answered yet after a round that ended
// then: those of the round itself, however long ago, and of a replay also those
// of rounds before that are within the window.
func (t *track) open(until time.Time) requests {
	if t.horizon == 0 {
		return t.asked
	}
	t.recent = slices.DeleteFunc(t.recent, func(r pastRound) bool { return until.Sub(r.at) >= t.horizon })
	t.recent = append(t.recent, pastRound{t.askedAt, t.asked})
	if len(t.recent) > maxRecent {
		// Both count as open for as long as the later one is.
		t.recent[1].asked = sum(t.recent[0].asked, t.recent[1].asked)
		t.recent = slices.Delete(t.recent, 0, 1)
	}
	if len(t.recent) == 1 {
		return t.asked
	}
	t.overlap = true
	var all requests
	for _, r := range t.recent {
		all = sum(all, r.asked)
	}
	return all
}

func sum(a, b requests) requests {
	total := requests{own: a.own + b.own, others: a.others + b.others}
	for _, r := range []requests{a, b} {
		for mac, n := range r.directed {
			total.direct(mac, n)
		}
	}
	return total
}

// judged is how many rounds double answers may be of. Of a replay also those are
// judged whose window was not completed: nothing ended them but the capture.
func (t *track) judged() int {
	if t.horizon > 0 {
		return t.begun
	}
	return t.rounds
}
