package arpcheck_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

func TestLinkDownBefore(t *testing.T) {
	for name, host := range map[string]arpcheck.Host{
		"down or without carrier": &station{},
		"gone":                    &station{err: fmt.Errorf("%w: it is gone", arpcheck.ErrLinkDown)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				p := w.prober()
				p.Host = host
				begun := time.Now()
				r := probe(t, p)
				assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
				assert.Contains(t, r.Reasons, arpcheck.LinkDown)
				assert.Zero(t, r.Rounds)
				assert.Empty(t, w.sentFrames())
				assert.Zero(t, time.Since(begun), "there is nothing to wait for")
			})
		})
	}
}

// Without a Host it is Send that tells.
func TestSendSaysLinkDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.take = func(int) (int, error) { return 0, fmt.Errorf("send: %w", arpcheck.ErrLinkDown) }
		r := probe(t, w.prober())
		assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
		assert.Contains(t, r.Reasons, arpcheck.LinkDown)
		assert.Zero(t, r.Quality.Requests)
	})
}

// What was taken before the link went down counts.
func TestSendSaysLinkDownInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		w.take = func(int) (int, error) { return 3, arpcheck.ErrLinkDown }
		results, err := w.prober().ProbeAll(t.Context(), addrs(5))
		require.NoError(t, err)
		for i, r := range results {
			want := 0
			if i < 3 {
				want = 1
			}
			assert.Equal(t, want, r.Quality.Requests, "target %d", i)
			assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
			assert.Contains(t, r.Reasons, arpcheck.LinkDown)
			assert.Zero(t, r.Rounds)
		}
	})
}

// A link that goes down ends the pass at once; what was seen is kept.
func TestLinkGoesDown(t *testing.T) {
	for _, row := range []struct {
		name    string
		who     []arpcheck.MAC
		verdict arpcheck.Verdict
	}{
		{"one had answered", []arpcheck.MAC{node(1)}, arpcheck.Inconclusive},
		{"two had answered", []arpcheck.MAC{node(1), node(2)}, arpcheck.Multiple},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, row.who...)
				time.AfterFunc(2*time.Second, w.goDown)
				begun := time.Now()
				r := probe(t, w.prober())
				assert.Equal(t, 2*time.Second, time.Since(begun))
				assert.Equal(t, row.verdict, r.Verdict)
				assert.Equal(t, reasons(arpcheck.LinkDown), r.Reasons)
				assert.Equal(t, 1, r.Rounds)
				assert.Equal(t, row.who, macs(r))
			})
		})
	}
}

// A link that is found down only at the end has been down for who knows how long.
func TestLinkIsDownAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &station{link: up(client)}
		p := answering(time.Millisecond, node(1)).prober()
		p.Host = host
		host.later(4*time.Second, arpcheck.LinkState{}, nil)
		r := probe(t, p)
		assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
		assert.Equal(t, reasons(arpcheck.LinkDown), r.Reasons)
	})
}

func TestLinkGoesDownOnASegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		time.AfterFunc(2*time.Second, func() { _ = from.SetLink("eth0", false) })
		r := probe(t, p)
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		assert.Equal(t, reasons(arpcheck.LinkDown), r.Reasons)

		r = probe(t, p)
		assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
		assert.Contains(t, r.Reasons, arpcheck.LinkDown)

		require.NoError(t, from.SetLink("eth0", true))
		r = probe(t, p)
		assert.Equal(t, arpcheck.Multiple, r.Verdict, "the Prober is usable again")
		assert.Empty(t, r.Reasons)
	})
}

// A Prober is kept: what the link did since the last pass is over.
func TestLinkWasDownBetweenPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		require.Empty(t, probe(t, p).Reasons)
		require.NoError(t, from.SetLink("eth0", false))
		require.NoError(t, from.SetLink("eth0", true))
		r := probe(t, p)
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		assert.Empty(t, r.Reasons)
		assert.Equal(t, 3, r.Rounds)
	})
}

// brokenConn answers with what a test sets, and fails the test instead of being
// asked for ever.
type brokenConn struct {
	arpcheck.Conn
	send     func() (int, error)
	receive  func() (int, error)
	deadline error
	drops    func() (uint64, error)
	calls    int
}

// tooManyCalls is far more than any of these passes needs.
const tooManyCalls = 100_000

var errForEver = errors.New("the engine would have gone on for ever")

func (c *brokenConn) count() error {
	if c.calls++; c.calls > tooManyCalls {
		return errForEver
	}
	return nil
}

func (c *brokenConn) Send(frames [][]byte) (int, error) {
	if c.send == nil {
		return c.Conn.Send(frames)
	}
	return c.send()
}

func (c *brokenConn) Receive(frames []arpcheck.Frame) (int, error) {
	if err := c.count(); err != nil {
		return 0, err
	}
	if c.receive == nil {
		return c.Conn.Receive(frames)
	}
	return c.receive()
}

func (c *brokenConn) SetReadDeadline(t time.Time) error {
	if c.deadline != nil {
		return c.deadline
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *brokenConn) Drops() (uint64, error) {
	if c.drops == nil {
		return c.Conn.Drops()
	}
	return c.drops()
}

// A Conn that fails, or does not keep its promises, is a clear error, or at
// least an end. The text says what was tried.
func TestConnMisbehaves(t *testing.T) {
	broken := errors.New("it is broken")
	dropsCalls := 0
	for _, row := range []struct {
		name string
		conn brokenConn
		want error
		says string
	}{
		{"Send fails", brokenConn{send: func() (int, error) { return 0, broken }}, broken, "send requests"},
		{"Receive fails", brokenConn{receive: func() (int, error) { return 0, broken }}, broken, "receive"},
		{"SetReadDeadline fails", brokenConn{deadline: broken}, broken, "deadline"},
		{"Drops fails", brokenConn{drops: func() (uint64, error) { return 0, broken }}, broken, "dropped frames"},
		{"Drops fails at the end", brokenConn{drops: func() (uint64, error) {
			if dropsCalls++; dropsCalls > 1 {
				return 0, broken
			}
			return 0, nil
		}}, broken, "dropped frames"},
		{"Receive returns nothing and no error", brokenConn{receive: func() (int, error) { return 0, nil }}, nil, "receive"},
		{"Receive says again and again that the link is down", brokenConn{
			receive: func() (int, error) { return 0, arpcheck.ErrLinkDown }}, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			conn := row.conn
			conn.Conn = newWire()
			p := &arpcheck.Prober{Conn: &conn, MAC: own, Link: "eth0", Sender: client, Wait: time.Millisecond}
			_, err := p.Probe(t.Context(), vip)
			require.NotErrorIs(t, err, errForEver)
			if row.want != nil {
				require.ErrorIs(t, err, row.want)
			}
			if row.says != "" {
				require.ErrorContains(t, err, row.says)
				require.ErrorContains(t, err, "eth0")
			}
		})
	}
}

// What a Receive returned together with an error is accounted for.
func TestFramesWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		conn := &withError{wire: w}
		w.onSend = func([]byte) { w.later(time.Millisecond, toHost(reply(node(1), vip))) }
		p := w.prober()
		p.Conn = conn
		r := probe(t, p)
		assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
		assert.Contains(t, r.Reasons, arpcheck.LinkDown)
	})
}

// withError says with the first frame that the link is down.
type withError struct{ *wire }

func (c *withError) Receive(frames []arpcheck.Frame) (int, error) {
	n, err := c.wire.Receive(frames)
	if n > 0 {
		err = arpcheck.ErrLinkDown
	}
	return n, err
}
