package arpcheck

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// What is kept of one target or responder, so that made-up frames cannot make a
// result grow without bound.
const (
	maxClaims       = 64
	maxFrameSources = 8
	maxLengths      = 8
	maxDirected     = 64
)

// track is the account of one target during a pass.
type track struct {
	target netip.Addr
	sender Sender
	held   bool   // by the prober's own host
	frame  []byte // the request

	begun         int // rounds
	rounds        int // whose window was completed
	requests      int
	otherRequests int
	notSent       bool
	responders    []responder
	index         map[[6]byte]int // MAC to responder
	excess        int             // replies of MACs that are not kept
	claims        []Claim
	excessClaims  int

	// This round:
	askedAt  time.Time // zero before the request is sent
	answered bool      // by anybody
	asked    requests

	before requests // in the round before, or less than a window before the pass

	// Of a replay, where rounds may be closer together than a window:
	horizon time.Duration // the window; 0 of a live pass
	recent  []pastRound   // those whose requests may be answered yet
	overlap bool          // there were several of these

	// Before the pass: requests of more than a window ago, and replies of less.
	long         requests
	recalled     int             // of our own, by passes that were cut short
	earlyReplies map[[6]byte]int // by MAC
}

// requests counts the requests that a responder may have answered. A reply does
// not say which it belongs to.
type requests struct {
	own      int
	others   int             // of other programs, to everybody
	directed map[[6]byte]int // to one MAC alone, mostly of other programs
}

func (r *requests) add(to [6]byte) {
	group := to[0]&1 == 1
	if group {
		r.others++
		return
	}
	r.direct(to, 1)
}

// direct counts requests to one MAC, or to everybody if there are too many.
func (r *requests) direct(to [6]byte, n int) {
	if len(r.directed) >= maxDirected {
		r.others += n
		return
	}
	if r.directed == nil {
		r.directed = make(map[[6]byte]int)
	}
	r.directed[to] += n
}

// byOthers is how many requests of other programs a MAC may have answered.
func (r *requests) byOthers(mac [6]byte) int { return r.others + r.directed[mac] }

// responder is a Responder with what is needed to bring it up to date.
type responder struct {
	Responder
	sum, squares float64 // of round-trip times, in ns
	samples      int

	replies  int  // this round
	owed     owed // at the beginning of this round
	doubtful int  // rounds with more replies than requests, unless some were late by a whole window
}

// owed is how many replies to requests of the round before may yet come. Those
// to our own had a whole window already.
type owed struct{ toOthers, toUs int }

// begin notes that a request was sent: this round's, or one to a MAC alone.
func (t *track) begin(at time.Time, to MAC, rounds bool) {
	t.requests++
	if !rounds {
		t.asked.add(to)
		return
	}
	t.begun++
	t.askedAt = at
	t.asked.own++
}

func (t *track) addResponder(mac [6]byte, at time.Time) int {
	if t.index == nil {
		t.index = make(map[[6]byte]int)
	}
	t.index[mac] = len(t.responders)
	t.responders = append(t.responders, responder{
		Responder: Responder{MAC: mac, First: at},
		owed:      t.owed(mac),
	})
	return len(t.responders) - 1
}

// owed is what a MAC that is new in this round owes. Replies before the pass are
// taken to answer the oldest requests.
func (t *track) owed(mac [6]byte) owed {
	answered := max(t.earlyReplies[mac]-t.long.byOthers(mac), 0)
	return owing(t.before.own+t.before.byOthers(mac)-answered, t.before.byOthers(mac))
}

// owing splits the replies that are missing after a round.
func owing(missing, byOthers int) owed {
	missing = max(missing, 0)
	toOthers := min(missing, byOthers)
	return owed{toOthers: toOthers, toUs: missing - toOthers}
}

// othersUnanswered is how many requests of others of the last round may be
// answered yet, by the MAC that has answered the fewest.
func (t *track) othersUnanswered() int {
	most := 0
	if len(t.responders) == 0 {
		most = t.before.others
	}
	for i := range t.responders {
		most = max(most, t.responders[i].owed.toOthers)
	}
	return most
}

func (t *track) earlyReply(mac [6]byte) {
	if t.earlyReplies == nil {
		t.earlyReplies = make(map[[6]byte]int)
	}
	if len(t.earlyReplies) < maxDirected || t.earlyReplies[mac] > 0 {
		t.earlyReplies[mac]++
	}
}

// answer records a reply. Only the first of a MAC in a round gives a round-trip
// time: a second one may answer somebody else's request.
func (t *track) answer(r *responder, f *Frame, p arpwire.Packet) {
	r.Replies++
	r.replies++
	r.Last = f.At
	if !t.answered {
		t.answered = true
		r.WonRounds++
	}
	rtt := f.At.Sub(t.askedAt)
	// In a replay it may answer a request to one host alone, long after a round's.
	if r.replies == 1 && !t.askedAt.IsZero() && (t.horizon == 0 || rtt <= t.horizon) {
		r.addRTT(rtt)
	}
	r.addSource(p.Src)
	r.addLength(f.Length)
}

func (t *track) claim(mac MAC, kind Kind, at time.Time) {
	for i := range t.claims {
		if c := &t.claims[i]; c.MAC == mac && c.Kind == kind {
			c.Frames++
			c.Last = at
			return
		}
	}
	if len(t.claims) >= maxClaims {
		t.excessClaims++
		return
	}
	t.claims = append(t.claims, Claim{MAC: mac, Kind: kind, Frames: 1, First: at, Last: at})
}

// endRound closes the account of a round that lasted until then.
func (t *track) endRound(complete bool, until time.Time) {
	if complete && !t.askedAt.IsZero() {
		t.rounds++
	}
	open := t.open(until)
	for i := range t.responders {
		t.responders[i].endRound(t.asked, open, !t.overlap)
	}
	t.before, t.asked = open, requests{}
	t.long, t.earlyReplies = requests{}, nil
	t.askedAt, t.answered = time.Time{}, false
}

// endRound closes the account of a round, in which a MAC may answer once for
// each request that has gone out. After it those that are open may be answered
// yet. That an answer is late is doubtful if it had a whole window.
func (r *responder) endRound(asked, open requests, doubtful bool) {
	allowed := asked.own + asked.byOthers(r.MAC) + r.owed.toOthers
	switch {
	case r.replies > allowed+r.owed.toUs:
		r.DoubleAnswers++
	case r.replies > allowed && doubtful:
		r.doubtful++
	}
	byOthers := open.byOthers(r.MAC)
	r.owed = owing(min(allowed+r.owed.toUs-r.replies, open.own+byOthers), byOthers)
	r.replies = 0
}

// result is the Responder without what overlapping rounds leave open.
func (r *responder) result(rounds int, overlapping, dropped bool) Responder {
	out := r.Responder
	// A MAC that answers twice in one round does not answer late in another.
	if out.DoubleAnswers > 0 {
		out.DoubleAnswers += r.doubtful
	}
	out.conclude(rounds, overlapping, dropped)
	return out
}

// conclude concludes from the rounds in which it answered doubly.
func (r *Responder) conclude(rounds int, overlapping, dropped bool) {
	if overlapping {
		r.WonRounds, r.DoubleAnswers = 0, 0
	}
	// Frames that were dropped may have been requests of other programs.
	r.DoubleAnswer = r.DoubleAnswers > 0 && 2*r.DoubleAnswers >= rounds && !dropped
}

func (r *responder) addRTT(rtt time.Duration) {
	if rtt < 0 {
		return // it answers an earlier request of somebody else
	}
	if r.samples == 0 || rtt < r.RTT.Min {
		r.RTT.Min = rtt
	}
	r.RTT.Max = max(r.RTT.Max, rtt)
	r.samples++
	r.sum += float64(rtt)
	r.squares += float64(rtt) * float64(rtt)
	n := float64(r.samples)
	mean := r.sum / n
	r.RTT.Mean = time.Duration(mean)
	r.RTT.StdDev = time.Duration(math.Sqrt(max(r.squares/n-mean*mean, 0)))
}

func (r *responder) addSource(mac MAC) {
	if mac != r.MAC && len(r.FrameSources) < maxFrameSources && !slices.Contains(r.FrameSources, mac) {
		r.FrameSources = append(r.FrameSources, mac)
	}
}

func (r *responder) addLength(length int) {
	for i := range r.Lengths {
		if r.Lengths[i].Length == length {
			r.Lengths[i].Frames++
			return
		}
	}
	if len(r.Lengths) < maxLengths {
		r.Lengths = append(r.Lengths, LengthCount{Length: length, Frames: 1})
	}
}
