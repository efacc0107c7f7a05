package arpcheck_test

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// station is a Host that says what it is told to.
type station struct {
	mu    sync.Mutex // guards what follows
	link  arpcheck.LinkState
	route arpcheck.Route
	err   error // of Link
	errOf error // of Route
}

func (s *station) Link() (arpcheck.LinkState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, s.err
}

func (s *station) Route(netip.Addr) (arpcheck.Route, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.route, s.errOf
}

// later changes what Link says after a time.
func (s *station) later(d time.Duration, link arpcheck.LinkState, err error) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.link, s.err = link, err
	})
}

func up(addrs ...netip.Addr) arpcheck.LinkState       { return arpcheck.LinkState{Up: true, Addrs: addrs} }
func reasons(rs ...arpcheck.Reason) []arpcheck.Reason { return rs }

// within returns a ctx that ends after a time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func parse(t *testing.T, frame []byte) arpwire.Packet {
	t.Helper()
	p, err := arpwire.Parse(frame)
	require.NoError(t, err)
	return p
}

// Every verdict and every reason, alone.
func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		name    string
		who     []arpcheck.MAC
		set     func(*testing.T, *wire, *arpcheck.Prober)
		timeout time.Duration
		want    arpcheck.Verdict
		reasons []arpcheck.Reason
		rounds  int
	}{
		{name: "nobody in 3 rounds", want: arpcheck.None, rounds: 3},
		{name: "nobody in 2 rounds", set: func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.Rounds = 2 },
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.TooFewRounds), rounds: 2},
		{name: "nobody in 1 round", set: func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.Rounds = 1 },
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.TooFewRounds), rounds: 1},
		{name: "nobody in 4 rounds", set: func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.Rounds = 4 },
			want: arpcheck.None, rounds: 4},
		{name: "one", who: []arpcheck.MAC{node(1)}, want: arpcheck.Single, rounds: 3},
		{name: "one in 1 round", who: []arpcheck.MAC{node(1)},
			set:  func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.Rounds = 1 },
			want: arpcheck.Single, rounds: 1},
		{name: "two", who: []arpcheck.MAC{node(1), node(2)}, want: arpcheck.Multiple, rounds: 3},
		{name: "nobody, and the kernel dropped a frame", set: dropInRound(1),
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.KernelDrops), rounds: 3},
		{name: "one, and the kernel dropped a frame", who: []arpcheck.MAC{node(1)}, set: dropInRound(3),
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.KernelDrops), rounds: 3},
		{name: "two, and the kernel dropped a frame", who: []arpcheck.MAC{node(1), node(2)}, set: dropInRound(2),
			want: arpcheck.Multiple, reasons: reasons(arpcheck.KernelDrops), rounds: 3},
		{name: "one, and the prober's host holds the target", who: []arpcheck.MAC{node(1)}, set: holdsTarget,
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.HeldHere), rounds: 3},
		{name: "nobody but the prober's host holds the target", set: holdsTarget,
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.HeldHere), rounds: 3},
		{name: "one, cut short", who: []arpcheck.MAC{node(1)}, timeout: 2 * time.Second,
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.CutShort), rounds: 1},
		{name: "two, cut short", who: []arpcheck.MAC{node(1), node(2)}, timeout: 2 * time.Second,
			want: arpcheck.Multiple, reasons: reasons(arpcheck.CutShort), rounds: 1},
		{name: "nobody, cut short", timeout: 4 * time.Second,
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.CutShort), rounds: 2},
		{name: "the queue stays full", set: func(_ *testing.T, w *wire, _ *arpcheck.Prober) {
			w.take = func(int) (int, error) { return 0, nil }
		}, want: arpcheck.Inconclusive, reasons: reasons(arpcheck.NotSent, arpcheck.TooFewRounds)},
		{name: "control silent", set: control(netip.MustParseAddr("10.0.3.1")),
			want: arpcheck.Inconclusive, reasons: reasons(arpcheck.ControlSilent), rounds: 3},
		{name: "one more MAC than is kept", who: []arpcheck.MAC{node(1), node(2), node(3)},
			set:  func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.MaxResponders = 2 },
			want: arpcheck.Multiple, reasons: reasons(arpcheck.TooManyReplies), rounds: 3},
		{name: "two MACs where one is kept", who: []arpcheck.MAC{node(1), node(2)},
			set:  func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.MaxResponders = 1 },
			want: arpcheck.Multiple, reasons: reasons(arpcheck.TooManyReplies), rounds: 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, row.who...)
				p := w.prober()
				if row.set != nil {
					row.set(t, w, p)
				}
				ctx := t.Context()
				if row.timeout > 0 {
					ctx = within(t, row.timeout)
				}
				r, err := p.Probe(ctx, vip)
				require.NoError(t, err)
				assert.Equal(t, row.want, r.Verdict)
				assert.Equal(t, row.reasons, r.Reasons)
				assert.Equal(t, row.rounds, r.Rounds)
			})
		})
	}
}

// dropInRound lets the kernel drop a frame after the request of a round.
func dropInRound(n int) func(*testing.T, *wire, *arpcheck.Prober) {
	return func(_ *testing.T, w *wire, _ *arpcheck.Prober) {
		w.drops = 7 // from before the pass: they mean nothing
		answer := w.onSend
		w.onSend = func(frame []byte) {
			answer(frame)
			if n--; n == 0 {
				w.mu.Lock()
				w.drops++
				w.mu.Unlock()
			}
		}
	}
}

func holdsTarget(_ *testing.T, _ *wire, p *arpcheck.Prober) {
	p.Host = &station{link: up(client, vip), route: arpcheck.Route{Local: true}}
}

func control(addr netip.Addr) func(*testing.T, *wire, *arpcheck.Prober) {
	return func(_ *testing.T, _ *wire, p *arpcheck.Prober) { p.Control = addr }
}

// A frame or two may be lost: one that answers only the third request is no
// silence, and three silent rounds say what the first two did not.
func TestOneLateAnswerIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func([]byte) {
			if len(w.sentFrames()) == 3 {
				w.later(time.Millisecond, toHost(reply(node(1), vip)))
			}
		}
		r := probe(t, w.prober())
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Equal(t, 1, r.Responders[0].Replies)
	})
}

// Drops of an earlier pass do not make a later one inconclusive.
func TestDropsAreThisPasss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		dropInRound(2)(t, w, p)
		first := probe(t, p)
		assert.EqualValues(t, 1, first.Quality.Drops)
		second := probe(t, p)
		assert.Zero(t, second.Quality.Drops)
		assert.Equal(t, arpcheck.Single, second.Verdict)
	})
}

func TestControl(t *testing.T) {
	gateway := netip.MustParseAddr("10.0.3.1")
	for _, row := range []struct {
		name     string
		control  netip.Addr
		answers  []netip.Addr
		verdict  arpcheck.Verdict
		reasons  []arpcheck.Reason
		answered bool
		asked    int // targets
	}{
		{"answered, target silent", gateway, []netip.Addr{gateway}, arpcheck.None, nil, true, 2},
		{"both answer", gateway, []netip.Addr{gateway, vip}, arpcheck.Single, nil, true, 2},
		{"silent, target answers", gateway, []netip.Addr{vip}, arpcheck.Single, nil, false, 2},
		{"both silent", gateway, nil, arpcheck.Inconclusive, reasons(arpcheck.ControlSilent), false, 2},
		{"is the target and silent", vip, nil, arpcheck.Inconclusive, reasons(arpcheck.ControlSilent), false, 1},
		{"is the target, as 4in6, and answers", netip.AddrFrom16(vip.As16()), []netip.Addr{vip}, arpcheck.Single, nil, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				p := w.prober()
				p.Control = row.control
				w.onSend = func(frame []byte) {
					if target := parse(t, frame).Target; slices.Contains(row.answers, target) {
						w.later(time.Millisecond, toHost(reply(node(1), target)))
					}
				}
				r := probe(t, p)
				assert.Equal(t, row.verdict, r.Verdict)
				assert.Equal(t, row.reasons, r.Reasons)
				assert.Equal(t, &arpcheck.Control{Target: row.control.Unmap(), Answered: row.answered}, r.Control)
				assert.Len(t, w.sentFrames(), 3*row.asked)
			})
		})
	}
}

// What a Result says of where, when and as whom it was asked.
func TestResultSaysWhereAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		p.Vantage = "client-1"
		begun := time.Now()
		r := probe(t, p)
		assert.Equal(t, vip, r.Target)
		assert.Equal(t, "client-1", r.Vantage)
		assert.Equal(t, "eth0", r.Interface)
		assert.Equal(t, own, r.MAC)
		assert.Equal(t, arpcheck.Sender{Addr: client, From: arpcheck.SenderGiven}, r.Sender)
		assert.Equal(t, begun, r.Started)
		assert.Equal(t, begun.Add(3*arpcheck.DefaultWait), r.Ended)
		assert.Nil(t, r.Control)
		assert.Equal(t, arpcheck.Quality{Requests: 3}, r.Quality)
	})
}

func TestReasonExplain(t *testing.T) {
	for _, r := range []arpcheck.Reason{
		arpcheck.LinkDown, arpcheck.CutShort, arpcheck.KernelDrops, arpcheck.NotSent,
		arpcheck.HeldHere, arpcheck.TooManyReplies, arpcheck.TooFewRounds, arpcheck.ControlSilent,
	} {
		assert.Greater(t, len(r.Explain()), len(r), "%s is not explained", r)
	}
	assert.Equal(t, "whatever", arpcheck.Reason("whatever").Explain())
}
