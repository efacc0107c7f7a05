package arpcheck

import "time"

// SoakSummary sums up the samples of one Soak, however many: it is of bounded size.
// The zero SoakSummary is ready to use.
type SoakSummary struct {
	Samples int `json:"samples"`
	Skipped int `json:"skipped"` // samples that were left out

	Answered int `json:"answered"` // samples in which somebody answered
	Several  int `json:"several"`  // samples in which more than one MAC did
	// Silent counts samples in which nobody answered though nothing kept answers from
	// being heard; Unknown those in which something did.
	Silent  int `json:"silent"`
	Unknown int `json:"unknown"`
	// Flips counts how often another MAC was first than in the answered sample before.
	Flips int `json:"flips"`
	// LongestSilence is the longest time from a silent sample to the next that was not,
	// or to the last one.
	LongestSilence time.Duration `json:"longestSilence"`
	// MACs are those that answered, in the order in which they were first seen; at most
	// 512.
	MACs       []SoakMAC `json:"macs,omitempty"`
	Gratuitous int       `json:"gratuitous"` // frames

	Checks   int `json:"checks"`
	Failures int `json:"failures"`
	// FailuresWrongMAC are those during which the cache held a MAC that is not
	// expected: the reason is found. FailuresRightMAC are those with an expected one:
	// look elsewhere. For the rest it is not known, or there was no entry.
	FailuresWrongMAC int `json:"failuresWrongMAC"`
	FailuresRightMAC int `json:"failuresRightMAC"`
	// SuccessesWrongMAC are checks that succeeded in spite of a wrong MAC: the host
	// there serves, too.
	SuccessesWrongMAC int           `json:"successesWrongMAC"`
	MaxLatency        time.Duration `json:"maxLatency"` // of checks that succeeded
	sumLatency        time.Duration

	winner      MAC
	silentSince time.Time // zero if not silent
}

// SoakMAC is a MAC that answered in a Soak.
type SoakMAC struct {
	MAC      MAC `json:"mac"`
	Answered int `json:"answered"` // samples
	Won      int `json:"won"`      // samples in which it was first
}

// Add takes in a sample. Samples must come in order.
func (s *SoakSummary) Add(sample Sample) {
	s.Samples++
	s.Skipped += sample.Skipped
	s.Gratuitous += sample.Gratuitous()
	s.addARP(sample)
	s.addCheck(sample)
}

func (s *SoakSummary) addARP(sample Sample) {
	if !s.silentSince.IsZero() {
		s.LongestSilence = max(s.LongestSilence, sample.At.Sub(s.silentSince))
	}
	switch {
	case len(sample.ARP.Responders) > 0:
		s.Answered++
		s.silentSince = time.Time{}
		if len(sample.ARP.Responders) > 1 {
			s.Several++
		}
		if !s.winner.IsZero() && s.winner != sample.Winner {
			s.Flips++
		}
		s.winner = sample.Winner
		for _, r := range sample.ARP.Responders {
			s.addMAC(r.MAC, r.MAC == sample.Winner)
		}
	case !deaf(sample.ARP):
		s.Silent++
		if s.silentSince.IsZero() {
			s.silentSince = sample.At
		}
	default:
		s.Unknown++
		s.silentSince = time.Time{}
	}
}

// deaf reports whether answers may have been missed. A Soak makes up for few rounds
// by many samples.
func deaf(r Result) bool {
	for _, reason := range r.Reasons {
		if reason != TooFewRounds {
			return true
		}
	}
	return false
}

func (s *SoakSummary) addMAC(mac MAC, won bool) {
	i := 0
	for i < len(s.MACs) && s.MACs[i].MAC != mac {
		i++
	}
	if i == len(s.MACs) {
		if i >= DefaultMaxResponders {
			return
		}
		s.MACs = append(s.MACs, SoakMAC{MAC: mac})
	}
	s.MACs[i].Answered++
	if won {
		s.MACs[i].Won++
	}
}

func (s *SoakSummary) addCheck(sample Sample) {
	wrong := sample.Match == NeighbourStaleWrong
	switch {
	case !sample.Check.Ran:
		return
	case sample.Check.OK:
		s.sumLatency += sample.Check.Latency
		s.MaxLatency = max(s.MaxLatency, sample.Check.Latency)
		if wrong {
			s.SuccessesWrongMAC++
		}
	default:
		s.Failures++
		if wrong {
			s.FailuresWrongMAC++
		}
		if sample.Match == NeighbourFresh {
			s.FailuresRightMAC++
		}
	}
	s.Checks++
}

// Share is the part of the answered samples, from 0 to 1, in which a MAC was first.
func (s *SoakSummary) Share(mac MAC) float64 {
	for _, m := range s.MACs {
		if m.MAC == mac {
			return float64(m.Won) / float64(s.Answered)
		}
	}
	return 0
}

// MeanLatency is that of the checks that succeeded; 0 if none did.
func (s *SoakSummary) MeanLatency() time.Duration {
	if n := s.Checks - s.Failures; n > 0 {
		return s.sumLatency / time.Duration(n)
	}
	return 0
}
