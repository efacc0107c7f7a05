package arpchecktest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// The contract holds in a bubble, and outside of one too.
func TestConnContract(t *testing.T) {
	for _, c := range arpchecktest.ConnChecks() {
		t.Run(c.Name, func(t *testing.T) {
			c.Run(t, wire(t))
			synctest.Test(t, func(t *testing.T) { c.Run(t, wire(t)) })
		})
	}
}

// broken is a Conn with a flaw in what it receives or in its deadlines.
type broken struct {
	arpcheck.Conn
	after    func(frames []arpcheck.Frame, err error) error
	ignore   func(deadline time.Time) bool
	stubborn bool // looks at the deadline first
	deadline time.Time
}

func (b *broken) Receive(frames []arpcheck.Frame) (int, error) {
	if b.stubborn && !b.deadline.IsZero() && !time.Now().Before(b.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := b.Conn.Receive(frames)
	if b.after != nil {
		err = b.after(frames[:n], err)
	}
	return n, err
}

func (b *broken) SetReadDeadline(t time.Time) error {
	if b.ignore != nil && b.ignore(t) {
		return nil
	}
	b.deadline = t
	return b.Conn.SetReadDeadline(t)
}

type dropping struct{ arpcheck.Conn }

func (dropping) Drops() (uint64, error) { return 1, nil }

// Every check finds the flaw it is there for.
func TestChecksFindFlaws(t *testing.T) {
	each := func(change func(*arpcheck.Frame)) func(arpcheck.Conn) arpcheck.Conn {
		return func(c arpcheck.Conn) arpcheck.Conn {
			return &broken{Conn: c, after: func(frames []arpcheck.Frame, err error) error {
				for k := range frames {
					change(&frames[k])
				}
				return err
			}}
		}
	}
	instead := func(is error) func(arpcheck.Conn) arpcheck.Conn {
		return func(c arpcheck.Conn) arpcheck.Conn {
			return &broken{Conn: c, after: func(_ []arpcheck.Frame, err error) error {
				if errors.Is(err, is) {
					return io.EOF
				}
				return err
			}}
		}
	}
	flaws := map[string]func(arpcheck.Conn) arpcheck.Conn{
		"frames arrive as they were sent": each(func(f *arpcheck.Frame) { f.Length++ }),
		"unicast is for one host": each(func(f *arpcheck.Frame) {
			if f.Type == arpcheck.ToHost {
				f.Type = arpcheck.ToOther
			}
		}),
		"a VLAN tag is taken off": each(func(f *arpcheck.Frame) { f.VLAN = 0 }),
		"others' frames are outgoing, the Conn's own are not seen": each(func(f *arpcheck.Frame) {
			if f.Type == arpcheck.Outgoing {
				f.Type = arpcheck.ToBroadcast
			}
		}),
		"frames of one batch do not share memory": func(c arpcheck.Conn) arpcheck.Conn {
			return &broken{Conn: c, after: func(frames []arpcheck.Frame, err error) error {
				for k := range frames {
					frames[k].Data = frames[0].Data
				}
				return err
			}}
		},
		"frames that wait are returned past the deadline": func(c arpcheck.Conn) arpcheck.Conn {
			return &broken{Conn: c, stubborn: true}
		},
		"the deadline ends a Receive that waits":         instead(os.ErrDeadlineExceeded),
		"a deadline set later ends a Receive that waits": instead(os.ErrDeadlineExceeded),
		"Close ends a Receive that waits":                instead(net.ErrClosed),
		"nothing is dropped without need":                func(c arpcheck.Conn) arpcheck.Conn { return dropping{c} },
		"without a deadline Receive waits for a frame": func(c arpcheck.Conn) arpcheck.Conn {
			return &broken{Conn: c, ignore: time.Time.IsZero}
		},
	}
	for _, check := range arpchecktest.ConnChecks() {
		t.Run(check.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flaw := flaws[check.Name]
				require.NotNil(t, flaw)
				w := wire(t)
				w.Conn, w.Beside, w.Far = flaw(w.Conn), flaw(w.Beside), flaw(w.Far)
				assert.True(t, fails(t, func(tb testing.TB) { check.Run(tb, w) }))
			})
		})
	}
	assert.Len(t, flaws, len(arpchecktest.ConnChecks()))
}

// recorder is a testing.TB that remembers whether the test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

// fails reports whether a test fails.
func fails(t *testing.T, test func(testing.TB)) bool {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.failed
}
