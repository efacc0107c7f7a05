package arpcheck

// Reason says why a probe is inconclusive, or would be if several MACs had not
// answered.
type Reason string

// Reasons.
const (
	LinkDown       Reason = "link-down"        // the interface was down or without carrier
	CutShort       Reason = "cut-short"        // ctx ended before the last window did
	KernelDrops    Reason = "kernel-drops"     // the kernel dropped frames that were not read fast enough
	NotSent        Reason = "not-sent"         // the interface's queue stayed full
	HeldHere       Reason = "held-here"        // the prober's own host holds the target
	TooManyReplies Reason = "too-many-replies" // more MACs answer than are kept
	TooFewRounds   Reason = "too-few-rounds"   // nobody answers, in fewer than 3 rounds
	ControlSilent  Reason = "control-silent"   // nobody answers, nor does the control address
)

var reasonTexts = map[Reason]string{
	LinkDown:       "the interface is down or has no carrier",
	CutShort:       "the probe was ended before its last window was over",
	KernelDrops:    "the kernel dropped frames because they were not read fast enough; probe again, or fewer targets at a time",
	NotSent:        "requests could not be sent because the interface's queue stayed full",
	HeldHere:       "the host that probes holds the address itself and cannot see its own kernel's answer; probe from another host",
	TooManyReplies: "more MACs answer than are kept",
	TooFewRounds:   "nobody answers, but it takes 3 silent rounds to be sure",
	ControlSilent:  "nobody answers, but the control address does not answer either, so answers may not arrive here at all",
}

// Explain returns the reason in words, with what to do where that helps. It is
// the reason itself if it is not one of the constants.
func (r Reason) Explain() string {
	if text, ok := reasonTexts[r]; ok {
		return text
	}
	return string(r)
}
