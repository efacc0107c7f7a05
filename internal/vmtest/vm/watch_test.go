package vm_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

var limits = vm.Limits{Boot: time.Minute, Package: 5 * time.Minute}

// machine is both ports of a machine, and how often it was killed.
type machine struct {
	*vm.Session
	console, reports *io.PipeWriter
	ctx              context.Context
	cancel           context.CancelCauseFunc
	watched          chan struct{}
	mu               sync.Mutex
	kills            int // guarded by mu
	began, ended     time.Time
}

// watchMachine watches a machine that runs packages a and b.
func watchMachine(t *testing.T) *machine {
	m := &machine{Session: vm.NewSession([]string{"a", "b"}, nil), watched: make(chan struct{}), began: time.Now()}
	var console, reports *io.PipeReader
	console, m.console = io.Pipe()
	reports, m.reports = io.Pipe()
	m.ctx, m.cancel = context.WithCancelCause(t.Context())
	go func() {
		defer close(m.watched)
		vm.Watch(m.ctx, m.Session, console, reports, limits, m.kill)
		m.ended = time.Now()
	}()
	return m
}

func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kills++
	m.off()
}

func (m *machine) off() {
	_ = m.console.Close() // a pipe's Close has no error
	_ = m.reports.Close()
}

// say sends events, each after a pause.
func (m *machine) say(t *testing.T, pause time.Duration, events ...wire.Event) {
	t.Helper()
	for _, e := range events {
		time.Sleep(pause)
		require.NoError(t, wire.Send(m.reports, e))
	}
}

func TestWatchToTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := watchMachine(t)
		_, err := m.console.Write([]byte("boots\r\nOops: at the very en"))
		require.NoError(t, err)
		// Each wait is as long as it may be, so every clock must start anew.
		m.say(t, limits.Boot-1, ready, start("a"))
		m.say(t, (limits.Package+wire.Grace)/2-1, output("a", "PASS"), end("a", 0))
		m.say(t, limits.Boot-1, start("b"))
		m.say(t, (limits.Package+wire.Grace)/2-1, output("b", "PASS"), end("b", 0))
		m.say(t, limits.Boot-1, done)
		time.Sleep(limits.Boot - 1)
		m.off()
		<-m.watched
		m.End(nil)
		assert.Zero(t, m.kills)
		for _, r := range m.Results() {
			assert.True(t, r.Passed, r.Why)
		}
		assert.Equal(t, []string{"the kernel reported a fault of its own (no package was running): Oops: at the very en"}, m.Faults(),
			"a line without its end counts")
	})
}

func TestWatchKeepsTheTime(t *testing.T) {
	t.Parallel()
	perPackage := limits.Package + wire.Grace
	for _, c := range []struct {
		name   string
		events []wire.Event
		after  time.Duration
		says   string
	}{
		{"boot", nil, limits.Boot, "starting up took longer than 1m0s"},
		{"before a", all(ready), limits.Boot, "going on to a took longer than 1m0s"},
		{"a", all(ready, start("a")), perPackage, "a took longer than 5m30s"},
		{"a, talking", all(ready, start("a"), output("a", "x")), perPackage, "a took longer than 5m30s"},
		{"before b", all(ready, passing("a")), limits.Boot, "going on to b took longer than 1m0s"},
		{"b", all(ready, passing("a"), start("b")), perPackage, "b took longer than 5m30s"},
		{"before done", all(ready, passing("a"), passing("b")), limits.Boot, "finishing took longer than 1m0s"},
		{"off", all(ready, passing("a"), passing("b"), done), limits.Boot, "switching off took longer than 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := watchMachine(t)
				m.say(t, 0, c.events...)
				<-m.watched
				m.End(errors.New("signal: killed"))
				assert.Equal(t, 1, m.kills)
				assert.Equal(t, c.after, m.ended.Sub(m.began))
				assert.Contains(t, m.Faults(), "the machine hangs: "+c.says)
				assert.False(t, m.Passed())
			})
		})
	}
}

// TestWatchOutputIsNoProgress has a package that writes without an end: only
// what it is doing starts the clock anew, not that it does something.
func TestWatchOutputIsNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := watchMachine(t)
		m.say(t, 0, ready, start("a"))
		line := []byte(text(t, output("a", "again")))
		for err := error(nil); err == nil; _, err = m.reports.Write(line) {
			time.Sleep(time.Second)
		}
		<-m.watched
		assert.Equal(t, 1, m.kills)
		assert.Equal(t, limits.Package+wire.Grace, m.ended.Sub(m.began))
	})
}

func TestWatchStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := watchMachine(t)
		m.say(t, time.Second, ready, start("a"))
		m.cancel(errors.New("interrupted"))
		<-m.watched
		assert.Equal(t, 1, m.kills)
		assert.Equal(t, 2*time.Second, m.ended.Sub(m.began))
		assert.Equal(t, []string{"stopped while a was under way: interrupted"}, m.Faults())
	})
}

// TestWatchReadsOnAfterKill has a machine whose last words come after it was
// given up, for either reason: they are in the session, and no clock runs any
// more.
func TestWatchReadsOnAfterKill(t *testing.T) {
	t.Parallel()
	for says, timeout := range map[string]time.Duration{"hangs": time.Hour, "stopped while": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := vm.NewSession([]string{"a"}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			console, consoleEnd := io.Pipe()
			kills := 0
			go func() {
				time.Sleep(100 * limits.Boot)
				_, _ = consoleEnd.Write([]byte("Kernel panic - not syncing")) // an error would show in the faults
				_ = consoleEnd.Close()
			}()
			vm.Watch(ctx, s, console, strings.NewReader(text(t, ready)), limits, func() { kills++ })
			assert.Equal(t, 1, kills)
			require.Len(t, s.Faults(), 2)
			assert.Contains(t, s.Faults()[0], says)
			assert.Contains(t, s.Faults()[1], "Kernel panic")
		})
	}
}

// TestWatchWithoutDone has a context that never ends.
func TestWatchWithoutDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := vm.NewSession([]string{"a"}, nil)
		reports, reportsEnd := io.Pipe()
		go func() {
			for _, e := range all(ready, start("a"), output("a", "PASS")) {
				time.Sleep(limits.Boot - 1)
				_ = wire.Send(reportsEnd, e) // an error would show in the results
			}
			time.Sleep(limits.Boot)
			_ = wire.Send(reportsEnd, end("a", 0))
			_ = wire.Send(reportsEnd, done)
			_ = reportsEnd.Close()
		}()
		vm.Watch(context.Background(), s, strings.NewReader(""), reports, limits, func() { t.Error("killed") })
		s.End(nil)
		assert.True(t, s.Passed(), "%v", s.Faults())
	})
}
