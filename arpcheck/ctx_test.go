package arpcheck_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

func TestContextDoneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.prober().Probe(ctx, vip)
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "eth0")
		assert.Empty(t, w.sentFrames())

		expired, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		_, err = w.prober().Probe(expired, vip)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, w.sentFrames())
	})
}

// A ctx that ends in a window ends the pass at once; what was seen is kept.
func TestContextEndsInAWindow(t *testing.T) {
	for _, row := range []struct {
		name   string
		after  time.Duration
		rounds int
	}{
		{"in the first", 700 * time.Millisecond, 0},
		{"before the first answer", time.Microsecond, 0},
		{"in the second", 2 * time.Second, 1},
		{"in the last", 4400 * time.Millisecond, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				begun := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(row.after, cancel)
				r, err := w.prober().Probe(ctx, vip)
				require.NoError(t, err)
				assert.Equal(t, row.after, time.Since(begun), "time it took")
				assert.Equal(t, begun.Add(row.after), r.Ended)
				assert.Equal(t, row.rounds, r.Rounds)
				assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
				assert.Contains(t, r.Reasons, arpcheck.CutShort)
				if row.after > time.Millisecond {
					assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
				}
			})
		})
	}
}

// A ctx that ends just as the pass does has cut nothing short.
func TestContextEndsWithThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		r, err := w.prober().Probe(within(t, 3*arpcheck.DefaultWait+time.Nanosecond), vip)
		require.NoError(t, err)
		assert.Equal(t, arpcheck.Single, r.Verdict)
	})
}

// With many targets ctx is looked at between batches, too: within one read.
func TestContextEndsWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWire()
		w.onSend = func([]byte) {
			cancel()
			synctest.Wait() // so that the engine has been told
		}
		results, err := w.prober().ProbeAll(ctx, addrs(1000))
		require.NoError(t, err)
		require.Len(t, results, 1000)
		assert.LessOrEqual(t, len(w.sentFrames()), 16, "requests sent after ctx had ended")
		assert.Equal(t, arpcheck.Inconclusive, results[999].Verdict)
	})
}

// What waits to be read when ctx ends was seen.
func TestContextEndsWithAnAnswerWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWire()
		w.onSend = func([]byte) {
			w.deliver(toHost(reply(node(1), vip)), toHost(reply(node(2), vip)))
			cancel()
		}
		r, err := w.prober().Probe(ctx, vip)
		require.NoError(t, err)
		assert.Equal(t, []arpcheck.MAC{node(1), node(2)}, macs(r))
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		assert.Equal(t, reasons(arpcheck.CutShort), r.Reasons)
	})
}

// While frames come without end, ctx and the window end a pass all the same.
func TestFloodDoesNotHoldUpThePass(t *testing.T) {
	const window = 10 * time.Millisecond // of real time: nothing ever waits here
	endless := &endlessConn{Conn: newWire(), frame: toHost(reply(node(1), vip))}
	p := &arpcheck.Prober{Conn: endless, MAC: own, Link: "eth0", Sender: client, Wait: window, Rounds: 1}
	r := probe(t, p)
	assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
	assert.Equal(t, 1, r.Rounds)

	p.Wait = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	r, err := p.Probe(ctx, vip)
	require.NoError(t, err)
	assert.Contains(t, r.Reasons, arpcheck.CutShort)
}

// endlessConn always has frames.
type endlessConn struct {
	arpcheck.Conn
	frame arpcheck.Frame
}

func (c *endlessConn) Receive(frames []arpcheck.Frame) (int, error) {
	for i := range frames {
		frames[i] = c.frame
		frames[i].At = time.Now()
	}
	return len(frames), nil
}

// What was left of a ctx that ended does not end the next pass.
func TestProberIsUsableAfterContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := p.Probe(ctx, vip)
		require.NoError(t, err)
		cancel()
		begun := time.Now()
		assert.Equal(t, arpcheck.Single, probe(t, p).Verdict)
		assert.Equal(t, 3*arpcheck.DefaultWait, time.Since(begun))
		assert.True(t, w.deadline.IsZero(), "a deadline was left on the Conn")
	})
}

// Two goroutines on one Prober take turns: a pass begins when the other ended.
func TestProbesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		results := make(chan arpcheck.Result, 2)
		begun := time.Now()
		for range 2 {
			go func() { results <- probe(t, p) }()
		}
		first, second := <-results, <-results
		assert.Equal(t, begun, first.Started)
		assert.False(t, second.Started.Before(first.Ended), "passes overlap")
		assert.Equal(t, 2*3*arpcheck.DefaultWait, time.Since(begun))
		for _, r := range []arpcheck.Result{first, second} {
			assert.Equal(t, arpcheck.Single, r.Verdict)
			assert.Equal(t, 3, r.Responders[0].Replies)
		}
	})
}

func TestContextEndsWhileWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answering(time.Millisecond, node(1))
		p := w.prober()
		first := make(chan arpcheck.Result)
		go func() { first <- probe(t, p) }()
		synctest.Wait()
		begun := time.Now()
		_, err := p.Probe(within(t, time.Second), vip)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "another probe")
		assert.Equal(t, time.Second, time.Since(begun))
		assert.Equal(t, arpcheck.Single, (<-first).Verdict, "the pass that ran was disturbed")
		assert.Equal(t, arpcheck.Single, probe(t, p).Verdict, "the turn was not given back")
	})
}

func TestCloseWhileProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		p := w.prober()
		errs := make(chan error, 2)
		for range 2 { // one runs, one waits for its turn
			go func() {
				_, err := p.Probe(t.Context(), vip)
				errs <- err
			}()
		}
		time.Sleep(time.Second)
		begun := time.Now()
		require.NoError(t, p.Close())
		for range 2 {
			err := <-errs
			require.ErrorIs(t, err, net.ErrClosed)
			assert.ErrorContains(t, err, "eth0")
		}
		assert.Zero(t, time.Since(begun), "Close did not end what waited")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		host := &closingHost{}
		p := w.prober()
		p.Host = host
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		assert.Equal(t, 1, host.closed, "times that Host was closed")
		_, err := p.Probe(t.Context(), vip)
		require.ErrorIs(t, err, net.ErrClosed)
		assert.ErrorContains(t, err, "eth0")
		_, err = p.Resolve(t.Context(), vip)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = p.ProbeAll(t.Context(), nil)
		require.ErrorIs(t, err, net.ErrClosed)
		assert.Empty(t, w.sentFrames())
	})
}

type closingHost struct {
	station
	closed int
}

func (h *closingHost) Close() error {
	h.closed++
	return nil
}
