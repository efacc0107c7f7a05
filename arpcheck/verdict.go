package arpcheck

import "net/netip"

// conclusiveSilence is how many silent rounds it takes to say that nobody
// answers: one lost frame, or two, must not look like silence.
const conclusiveSilence = 3

func (s *pass) results(targets []netip.Addr) []Result {
	results := make([]Result, 0, len(targets))
	for _, target := range targets {
		results = append(results, s.result(s.byAddr[target.Unmap()]))
	}
	return results
}

func (s *pass) result(t *track) Result {
	responders := make([]Responder, 0, len(t.responders))
	for i := range t.responders {
		responders = append(responders, t.responders[i].result(t.judged(), s.FastRounds, s.quality.Drops > 0))
	}
	return s.judge(t, responders)
}

// judge says what to make of a target for which these have answered.
func (s *pass) judge(t *track, responders []Responder) Result {
	r := Result{
		Target: t.target, Vantage: s.Vantage, Interface: s.Link, MAC: s.mac, Sender: t.sender,
		Started: s.started, Ended: s.ended, Rounds: t.rounds,
		Responders: responders, Claims: t.claims, Quality: s.quality,
	}
	r.Quality.Requests, r.Quality.OtherRequests = t.requests, t.otherRequests
	r.Quality.ExcessReplies, r.Quality.ExcessClaims = t.excess, t.excessClaims
	if s.control != nil {
		r.Control = &Control{Target: s.control.target, Answered: len(s.control.responders) > 0}
	}
	r.Reasons = s.reasons(t, &r)
	r.Verdict = verdict(&r)
	return r
}

// reasons are what keeps r from being conclusive.
func (s *pass) reasons(t *track, r *Result) []Reason {
	silent := len(r.Responders) == 0 && t.excess == 0
	var reasons []Reason
	for _, c := range []struct {
		holds  bool
		reason Reason
	}{
		{s.linkDown, LinkDown},
		{s.cut, CutShort},
		{r.Quality.Drops > 0, KernelDrops},
		{t.notSent, NotSent},
		{t.held, HeldHere},
		{t.excess > 0, TooManyReplies},
		{silent && r.Rounds < conclusiveSilence && !s.over(), TooFewRounds},
		{silent && r.Control != nil && !r.Control.Answered, ControlSilent},
	} {
		if c.holds {
			reasons = append(reasons, c.reason)
		}
	}
	return reasons
}

// verdict concludes. That several MACs answer stays true whatever else may have
// been missed; a reply in excess is by a MAC that is not kept.
func verdict(r *Result) Verdict {
	switch {
	case len(r.Responders) > 1, len(r.Responders) == 1 && r.Quality.ExcessReplies > 0:
		return Multiple
	case len(r.Reasons) > 0:
		return Inconclusive
	case len(r.Responders) == 1:
		return Single
	}
	return None
}
