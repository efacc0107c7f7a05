package arpcheck

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// DefaultAskWait is the window of a round of Ask. A host that is asked alone
// answers at once, also by proxy ARP (arp_process in net/ipv4/arp.c), so this is
// many times what an answer takes, even of a host that was asleep.
const DefaultAskWait = 500 * time.Millisecond

// AnswersState says whether a host answers. The zero AnswersState means that it
// was not asked.
type AnswersState string

// States of answering.
const (
	Answers        AnswersState = "answers"
	Silent         AnswersState = "silent"  // 3 requests to it alone were not answered
	AnswersUnknown AnswersState = "unknown" // Result.Reasons says why
)

// Answer is what one host said to a question that was sent to it alone.
type Answer struct {
	Node    MAC          `json:"node"` // who was asked
	Answers AnswersState `json:"answers"`
	// Double is set if it answers each question more than once: its kernel and an
	// announcer both do, or a driver duplicates frames.
	Double bool `json:"double,omitempty"`
	// Others are MACs that answered though they were not asked, in order: other
	// interfaces of the same host, or whoever a switch or relay sent it to as well.
	Others []MAC  `json:"others,omitempty"`
	Result Result `json:"result"` // the pass, with all replies
}

// Ask asks one host by unicast whether it answers for an address: does this node
// answer? It works where a network suppresses broadcasts, and disturbs nobody
// else. A host that answers by proxy ARP is found out at once, where a broadcast
// draws its answer after up to 0.8 s, or not at all from a full queue. Whether a
// kernel answers follows from the same settings as for a broadcast; MetalLB's
// speaker answers too.
//
// The Prober's settings count but for To and Control; Wait is DefaultAskWait if
// it is 0. Errors are those of ProbeAll, and ErrBadTarget for a node that is no
// unicast MAC or the prober's own, to which nobody can send a frame.
func (p *Prober) Ask(ctx context.Context, target netip.Addr, node MAC) (Answer, error) {
	if err := p.checkNode(node); err != nil {
		return Answer{}, fmt.Errorf("arpcheck: ask %s for %s on %s: %w", node, target, p.Link, err)
	}
	r, err := p.probeAs(ctx, target, askAlone(node))
	if err != nil {
		return Answer{}, err
	}
	return answerOf(node, r), nil
}

// AskAll asks one host by unicast for which of many targets it answers: Ask for each
// of them, at the speed of a Sweep. Answers to the first requests are there within
// milliseconds; as with Ask, a target is asked Prober.Rounds times before its Answer
// is yielded, in no particular order. Errors are those of Sweep.Run and of Ask, and
// come once and last.
//
// The Prober is taken until the loop over the answers ends.
func (p *Prober) AskAll(ctx context.Context, targets iter.Seq[netip.Addr], node MAC) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		err := p.checkNode(node)
		if err == nil {
			err = p.takeTurn(ctx)
		}
		if err != nil {
			yield(Answer{}, fmt.Errorf("arpcheck: ask %s on %s: %w", node, p.Link, err))
			return
		}
		defer p.endTurn()
		p.as(askAlone(node), func(q *Prober) {
			for r, err := range q.Sweep(ctx, targets) {
				var a Answer
				if err == nil {
					a = answerOf(node, r)
				}
				if !yield(a, err) {
					return
				}
			}
		})
	}
}

// checkNode refuses what is not the MAC of one other host.
func (p *Prober) checkNode(node MAC) error {
	own := p.MAC
	if p.Host != nil {
		if link, err := p.Host.Link(); err == nil && !link.MAC.IsZero() {
			own = link.MAC
		}
	}
	if node.IsZero() || node[0]&1 == 1 || node == own {
		return fmt.Errorf("%w: ask the MAC of one other host", ErrBadTarget)
	}
	return nil
}

// askAlone makes a Prober ask one host.
func askAlone(node MAC) func(*Prober) {
	return func(q *Prober) {
		q.To, q.Control = node, netip.Addr{}
		if q.Wait == 0 {
			q.Wait = DefaultAskWait
		}
	}
}

func answerOf(node MAC, r Result) Answer {
	a := Answer{Node: node, Answers: AnswersUnknown, Result: r}
	for _, responder := range r.Responders {
		if responder.MAC == node || slices.Contains(responder.FrameSources, node) {
			a.Answers = Answers
			a.Double = a.Double || responder.DoubleAnswer
			continue
		}
		a.Others = append(a.Others, responder.MAC)
	}
	if a.Answers != Answers && (r.Verdict == None || r.Verdict == Single) {
		a.Answers = Silent
	}
	return a
}

// probeAs probes a target with other settings than the Prober's. The copy takes
// part in the Prober's turns and memory.
func (p *Prober) probeAs(ctx context.Context, target netip.Addr, change func(*Prober)) (Result, error) {
	if err := p.takeTurn(ctx); err != nil {
		return Result{}, fmt.Errorf("arpcheck: probe on %s: %w", p.Link, err)
	}
	defer p.endTurn()
	return p.probeInTurn(ctx, target, change)
}

// probeInTurn is probeAs for who has the turn.
func (p *Prober) probeInTurn(ctx context.Context, target netip.Addr, change func(*Prober)) (r Result, err error) {
	p.as(change, func(q *Prober) {
		var results []Result
		if results, err = q.ProbeAll(ctx, []netip.Addr{target}); err == nil {
			r = results[0]
		}
	})
	return r, err
}

// as uses the Prober with other settings, for who has the turn.
func (p *Prober) as(change func(*Prober), use func(q *Prober)) {
	q := &Prober{
		Conn: p.Conn, Host: p.Host, MAC: p.MAC, Link: p.Link, Vantage: p.Vantage, Sender: p.Sender, To: p.To,
		Rounds: p.Rounds, Wait: p.Wait, Interval: p.Interval, FastRounds: p.FastRounds, Control: p.Control,
		MaxResponders: p.MaxResponders, leftover: p.leftover, lastDrops: p.lastDrops,
	}
	change(q)
	defer func() { p.leftover, p.lastDrops = q.leftover, q.lastDrops }()
	use(q)
}
