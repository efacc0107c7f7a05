package arpcheck

import (
	"math"
	"time"
)

const (
	// frameMemory is what an ARP reply takes of a socket's receive buffer in
	// Linux, whose skb is as large as the smallest a driver allocates.
	frameMemory = 832
	// defaultCapacity is what net.core.rmem_default of most kernels has room for.
	defaultCapacity = 212992 / frameMemory
	// backlogLength is how many received frames wait for a processor at most
	// (net.core.netdev_max_backlog); what is beyond is lost without being counted
	// by the socket. Switches have queues of that order too.
	backlogLength = 1000

	// minTimeout is as short as a reply is waited for before it is taken for
	// missing: a scheduler's delay.
	minTimeout = time.Millisecond
	// busyTimeout is waited where most replies are missing: on a busy machine the
	// kernel delivers them from a thread that has to wait for its turn.
	busyTimeout = 5 * time.Millisecond
	// firstTimeout is waited while nobody has answered yet.
	firstTimeout = 20 * time.Millisecond
)

// window says how many requests may be open, which is counted in the replies
// that are expected to them: the receive buffer, the backlog of the kernel and
// queues on the way hold so many and no more. It learns that from the replies.
type window struct {
	budget    float64    // replies that may be expected at once
	worst     float64    // replies that could come at once, if all were answered by as many as any
	full      [2]float64 // budget and worst if nothing was dropped
	requests  float64    // requests that nobody has answered yet: slow start and congestion avoidance as of RFC 5681
	threshold float64    // where it grows slowly

	mean    float64 // replies to a request, moving average
	most    float64 // replies to a request, the most there were lately
	learned bool    // a request was waited for to its end and was answered

	open        int     // requests that have had fewer replies than most
	silent      int     // of them, those that had no reply yet
	outstanding float64 // replies expected of them

	srtt, rttvar time.Duration // RFC 6298
	measured     bool
}

// newWindow leaves half of every queue free: others use them too.
func newWindow(capacity int) window {
	frames := max(capacity, 4)
	budget, worst := float64(min(frames, backlogLength))/2, float64(frames)/2
	return window{
		budget: budget, worst: worst, full: [2]float64{budget, worst},
		requests: 1, threshold: maxFlights, most: 1,
	}
}

// room reports whether one more request may be sent to everybody, after others of
// this batch that are not open yet.
func (w *window) room(batch int, expected, ofBatch float64) bool {
	open := w.open + batch
	return open == 0 || float64(w.silent+batch) < w.requests && float64(open+1)*w.most <= w.worst &&
		w.roomAlone(expected, ofBatch)
}

// roomAlone is room for a request to one host.
func (w *window) roomAlone(expected, ofBatch float64) bool {
	return w.outstanding+ofBatch == 0 || w.outstanding+ofBatch+expected <= w.budget
}

// busy reports whether so many replies are to come that it takes them a while.
func (w *window) busy() bool { return w.outstanding > w.full[0]/2 }

// begin notes that a request is open.
func (w *window) begin(expected float64) {
	w.open++
	w.silent++
	w.outstanding += expected
}

// beginAlone notes a request to one host, and endAlone that it is over.
func (w *window) beginAlone() { w.outstanding++ }
func (w *window) endAlone()   { w.outstanding = max(w.outstanding-1, 0) }

// reply notes the n-th reply to a request that is open.
func (w *window) reply(expected float64, n int) {
	w.outstanding = max(w.outstanding-min(max(expected-float64(n-1), 0), 1), 0)
	if n == 1 {
		w.silent--
		w.grow()
	}
	w.atLeast(n)
}

// atLeast notes that there were as many replies to a request.
func (w *window) atLeast(n int) { w.most = max(w.most, float64(n)) }

// end notes that a request is not waited for any longer, after a number of replies.
func (w *window) end(expected float64, replies int, expired bool) {
	w.open--
	w.outstanding = max(w.outstanding-max(expected-float64(replies), 0), 0)
	// Silence where replies are usual may be the network's: no reason to hurry.
	if replies == 0 {
		w.silent--
		if w.mean < 0.5 {
			w.grow()
		}
	}
	if !w.learned { // the first says most of the others
		w.mean = float64(replies)
	}
	w.learned = w.learned || expired && replies > 0
	if 2*float64(replies) < w.most { // or one target with made-up responders would hold up all others
		w.most = max(w.most-w.most/64, 1)
	}
	const recovery = 1. / 16 // replies for each request
	w.budget, w.worst = min(w.budget+recovery, w.full[0]), min(w.worst+recovery, w.full[1])
	const weight = 16
	w.mean += (float64(replies) - w.mean) / weight
}

// complete reports whether a request with as many replies has had all, as far as
// is known.
func (w *window) complete(replies int) bool { return w.learned && float64(replies) >= w.most }

func (w *window) grow() {
	if w.requests < w.threshold {
		w.requests = min(w.requests+1, maxFlights)
		return
	}
	w.requests = min(w.requests+1/w.requests, maxFlights)
}

// dropped notes that the kernel dropped frames.
func (w *window) dropped() {
	w.threshold = max(w.requests/2, 1)
	w.requests = w.threshold
	w.budget, w.worst = max(w.budget/2, 1), max(w.worst/2, 1)
}

// rtt takes a round-trip time. What takes longer than any answer but a proxy's
// says nothing of the network.
func (w *window) rtt(d time.Duration) {
	switch {
	case d < 0 || d > lateAnswer:
	case !w.measured:
		w.srtt, w.rttvar, w.measured = d, d/2, true
	default:
		w.rttvar += ((d - w.srtt).Abs() - w.rttvar) / 4
		w.srtt += (d - w.srtt) / 8
	}
}

// timeout is how long a request waits for its next reply, after it had some.
func (w *window) timeout(expected float64, replies int) time.Duration {
	switch {
	case !w.measured:
		return firstTimeout
	case 2*float64(replies) < math.Floor(expected): // more likely delayed than missing
		return max(w.srtt+4*w.rttvar, busyTimeout)
	}
	return max(w.srtt+4*w.rttvar, minTimeout)
}
