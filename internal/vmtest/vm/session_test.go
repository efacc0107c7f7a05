package vm_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// Events, short enough for tables.
var (
	ready = wire.Event{Kind: wire.Ready, Text: "6.1.0-test"}
	done  = wire.Event{Kind: wire.Done}
)

func start(p string) wire.Event { return wire.Event{Kind: wire.Start, Package: p} }

func output(p, text string) wire.Event { return wire.Event{Kind: wire.Output, Package: p, Text: text} }

func end(p string, exit int) wire.Event {
	return wire.Event{Kind: wire.End, Package: p, Exit: exit, Elapsed: 1500 * time.Millisecond}
}

// passing is all that a package says that passes.
func passing(p string) []wire.Event {
	return []wire.Event{start(p), output(p, "--- PASS: TestX (0.00s)"), output(p, "PASS"), end(p, 0)}
}

func all(parts ...any) []wire.Event {
	var list []wire.Event
	for _, p := range parts {
		switch p := p.(type) {
		case wire.Event:
			list = append(list, p)
		case []wire.Event:
			list = append(list, p...)
		}
	}
	return list
}

func text(t *testing.T, events ...wire.Event) string {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		require.NoError(t, wire.Send(&b, e))
	}
	return b.String()
}

// play runs a session of packages a and b with what comes out of a machine.
func play(t *testing.T, events []wire.Event, endErr error, console ...string) *vm.Session {
	t.Helper()
	s := vm.NewSession([]string{"a", "b"}, nil)
	for _, line := range console {
		s.Console(line)
	}
	for line := range strings.Lines(text(t, events...)) {
		s.Report(line)
	}
	s.End(endErr)
	return s
}

func TestSessionPasses(t *testing.T) {
	t.Parallel()
	s := play(t, all(ready, passing("a"), start("b"),
		output("b", "=== RUN   TestX"), output("b", "PASS"), output("b", "--- SKIP: TestY (0.00s)"), output("b", "    --- SKIP: TestX/sub (0.00s)"),
		output("b", "--- PASS: TestX (0.00s)"), output("b", "coverage: none"), end("b", 0), done), nil,
		"[    0.1] Linux version", "\x1b[2JSeaBIOS", "EXT4-fs error", "DEBUG: fine")
	assert.True(t, s.Passed())
	assert.Empty(t, s.Faults())
	assert.Equal(t, "6.1.0-test", s.Kernel())
	results := s.Results()
	require.Len(t, results, 2)
	for i, want := range []vm.Result{
		{Package: "a", Passed: true, Elapsed: 1500 * time.Millisecond, Tests: 1},
		{Package: "b", Passed: true, Elapsed: 1500 * time.Millisecond, Tests: 2, Skipped: []string{"TestY"}},
	} {
		got := results[i]
		assert.Equal(t, want, vm.Result{
			Package: got.Package, Passed: got.Passed, Why: got.Why, Elapsed: got.Elapsed, Tests: got.Tests, Skipped: got.Skipped,
		})
	}
}

// TestSessionFails has each way to fail by itself.
func TestSessionFails(t *testing.T) {
	t.Parallel()
	good := all(ready, passing("a"), passing("b"), done)
	cut := func(n int) []wire.Event { return good[:n] }
	for _, c := range []struct {
		name    string
		events  []wire.Event
		err     error
		console []string
		why     [2]string // of the packages, "" if they passed
		fault   string    // the beginning of one
	}{
		{"silence", nil, nil, nil, [2]string{"it was not run", "it was not run"}, "the machine stopped before it was done"},
		{"ends when ready", cut(1), nil, nil, [2]string{"it was not run", "it was not run"}, "the machine stopped before it was done"},
		{"ends within a", cut(4), nil, nil, [2]string{"the machine stopped while it was running", "it was not run"}, "the machine stopped before it was done"},
		{"ends between", cut(5), nil, nil, [2]string{"", "it was not run"}, "the machine stopped before it was done"},
		{"ends before done", cut(9), nil, nil, [2]string{}, "the machine stopped before it was done"},
		{"ends badly", good, errors.New("exit status 1"), nil, [2]string{}, "the machine did not stop in order: exit status 1"},
		{"exit status", all(ready, start("a"), output("a", "PASS"), end("a", 3), passing("b"), done), nil, nil, [2]string{"exit status 3"}, ""},
		{"no PASS", all(ready, start("a"), output("a", "xPASS"), end("a", 0), passing("b"), done), nil, nil, [2]string{"exit status 0, but without a line PASS"}, ""},
		{"killed", all(ready, start("a"), output("a", "PASS"), wire.Event{Kind: wire.End, Package: "a", Text: "signal: killed"}, passing("b"), done), nil, nil,
			[2]string{"signal: killed"}, ""},
		{"b not run", all(ready, passing("a"), done), nil, nil, [2]string{"", "it was not run"}, ""},
		{"PASS of another", all(ready, start("a"), output("b", "PASS"), end("a", 0), passing("b"), done), nil, nil,
			[2]string{"exit status 0, but without"}, `the machine's report has event "output" of package "b" out of order: this package is not running`},
		{"end of another", all(ready, start("a"), output("a", "PASS"), end("b", 0), end("a", 0), passing("b"), done), nil, nil, [2]string{}, "the machine's report has event \"end\""},
		{"wrong order", all(ready, passing("b"), passing("a"), done), nil, nil, [2]string{"", "it was not run"}, "the machine's report has event \"start\" of package \"b\" out of order: it is not its turn"},
		{"twice", all(ready, passing("a"), passing("b"), start("a"), done), nil, nil, [2]string{}, `the machine's report has event "start" of package "a"`},
		{"unknown package", all(ready, passing("a"), passing("b"), start("c"), done), nil, nil, [2]string{}, `the machine's report has event "start" of package "c"`},
		{"start within", all(ready, start("a"), start("b"), output("a", "PASS"), end("a", 0), passing("b"), done), nil, nil, [2]string{}, `the machine's report has event "start" of package "b" out of order: a is running`},
		{"done within", all(ready, start("a"), done, output("a", "PASS"), end("a", 0), passing("b"), done), nil, nil, [2]string{}, `the machine's report has event "done" of package "" out of order: a is running`},
		{"after done", all(good, output("b", "more")), nil, nil, [2]string{}, `the machine's report has event "output" of package "b" out of order: the machine was done`},
		{"ready twice", all(ready, good), nil, nil, [2]string{}, `the machine's report has event "ready" of package "" out of order: it was ready before`},
		{"never ready", good[1:], nil, nil, [2]string{"it was not run", "it was not run"}, `the machine's report has event "start" of package "a" out of order: it is not ready`},
		{"fatal", all(ready, passing("a"), passing("b"), wire.Event{Kind: wire.Fatal, Text: "mount"}, done), nil, nil, [2]string{}, "the machine could not be set up: mount"},
		{"fatal first", all(wire.Event{Kind: wire.Fatal, Text: "mount"}), nil, nil, [2]string{"it was not run", "it was not run"}, "the machine could not be set up: mount"},
		{"oops", good, nil, []string{"[   12.3] Oops: 0002 [#1] PREEMPT SMP"}, [2]string{}, "the kernel reported a fault of its own (no package was running): [   12.3] Oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := play(t, c.events, c.err, c.console...)
			assert.False(t, s.Passed())
			for i, r := range s.Results() {
				assert.Equal(t, c.why[i] == "", r.Passed, "%s: %s", r.Package, r.Why)
				assert.True(t, strings.HasPrefix(r.Why, c.why[i]), "%s: %q", r.Package, r.Why)
			}
			if c.fault == "" {
				assert.Empty(t, s.Faults())
				return
			}
			assert.Contains(t, strings.Join(s.Faults(), "\n"), c.fault)
		})
	}
}

func TestSessionOfNothingDoesNotPass(t *testing.T) {
	t.Parallel()
	s := vm.NewSession(nil, nil)
	for line := range strings.Lines(text(t, ready, done)) {
		s.Report(line)
	}
	s.End(nil)
	assert.False(t, s.Passed())
}

func TestSessionPassesOnlyInTheEnd(t *testing.T) {
	t.Parallel()
	s := vm.NewSession([]string{"a"}, nil)
	for line := range strings.Lines(text(t, all(ready, passing("a"), done)...)) {
		assert.False(t, s.Passed(), "before %s", line)
		s.Report(line)
	}
	assert.True(t, s.Passed())
}

// TestGarbage has lines in the report that are no events: nothing but events
// goes there, so something is wrong with the machine or its guest.
func TestGarbage(t *testing.T) {
	t.Parallel()
	for _, garbage := range []string{"", "PASS", "[    1.0] bridge: loaded", `{"kind":"do`, `{"kind":"pass"}`, "\x00\xff"} {
		s := vm.NewSession([]string{"a"}, nil)
		for line := range strings.Lines(text(t, all(ready, passing("a"))...)) {
			s.Report(line)
		}
		s.Report(garbage)
		s.Report(text(t, done))
		s.End(nil)
		assert.False(t, s.Passed(), "%q", garbage)
		assert.True(t, s.Results()[0].Passed)
		require.Len(t, s.Faults(), 1)
		assert.Contains(t, s.Faults()[0], "report is not readable", "%q", garbage)
	}
}

func TestKernelFaults(t *testing.T) {
	t.Parallel()
	for line, fault := range map[string]bool{
		"[   10.0] Kernel panic - not syncing: Attempted to kill init!":      true,
		"Oops: general protection fault, probably for non-canonical address": true,
		"BUG: kernel NULL pointer dereference, address: 0000000000000008":    true,
		"kernel BUG at net/core/dev.c:1!":                                    true,
		"Unable to handle kernel paging request":                             true,
		"INFO: task strictarp:42 blocked for more than 120 seconds.":         true,
		"DEBUG: on": false,
		"WHOOPS":    false,
		"[    0.0] clocksource: timekeeping watchdog on CPU1: marking as unstable": false,
	} {
		s := vm.NewSession([]string{"a"}, nil)
		s.Report(text(t, ready))
		s.Report(text(t, start("a")))
		s.Console(line)
		if !fault {
			assert.Empty(t, s.Faults(), line)
			continue
		}
		assert.Equal(t, []string{"the kernel reported a fault of its own (while a was running): " + line}, s.Faults())
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	s := vm.NewSession([]string{"a"}, nil)
	for i := range 1000 {
		s.Report(fmt.Sprint("garbage ", i))
	}
	require.Len(t, s.Faults(), 20)
	assert.Contains(t, s.Faults()[0], "garbage 0")
}

func TestOnLine(t *testing.T) {
	t.Parallel()
	var got []string
	s := vm.NewSession([]string{"a"}, func(line string) { got = append(got, line) })
	for _, e := range []wire.Event{ready, start("a"), output("a", "one"), output("b", "stray"), output("a", "two"), end("a", 0), output("a", "late")} {
		s.Report(text(t, e))
	}
	assert.Equal(t, []string{"one", "two"}, got)
}

func TestPrint(t *testing.T) {
	t.Parallel()
	events := all(ready, passing("a"), start("b"),
		output("b", "=== RUN   TestX"), output("b", "    x_test.go:1: why"), output("b", "    --- PASS: TestX/sub (0.00s)"), output("b", "--- FAIL: TestX (0.00s)"),
		output("b", "--- SKIP: TestY (0.00s)"), end("b", 1), done)
	failed := "ok  \ta\t1.500s\t1 tests\n" + "FAIL\tb\t1.500s\texit status 1\n"
	for _, c := range []struct {
		name    string
		s       *vm.Session
		verbose bool
		want    string
	}{
		{"failed", play(t, events, nil), false,
			"ok  \ta\t1.500s\t1 tests\n        x_test.go:1: why\n    --- FAIL: TestX (0.00s)\n    --- SKIP: TestY (0.00s)\nFAIL\tb\t1.500s\texit status 1\n"},
		{"failed, shown before", play(t, events, nil, "Out of memory"), true, failed + "The console's last lines:\n    Out of memory\n"},
		{"skipped", play(t, all(ready, passing("a"), start("b"), output("b", "--- SKIP: TestY (0.00s)"), output("b", "--- SKIP: TestZ (0.00s)"), output("b", "PASS"), end("b", 0), done), nil, "console"), false,
			"ok  \ta\t1.500s\t1 tests\nok  \tb\t1.500s\t2 tests, 2 of them skipped: TestY, TestZ\n"},
		{"the machine failed", play(t, all(ready, passing("a"), passing("b")), nil, "one\r", "\x1b[2Jtwo\ttabs"), false,
			"ok  \ta\t1.500s\t1 tests\nok  \tb\t1.500s\t1 tests\nFAIL\tmachine\tthe machine stopped before it was done\n" +
				"The console's last lines:\n    one\n    \uFFFD[2Jtwo\ttabs\n"},
	} {
		var b bytes.Buffer
		require.NoError(t, c.s.Print(&b, c.verbose))
		assert.Equal(t, c.want, b.String(), c.name)
	}
}

// TestPrintIsBounded floods the output and the console: the last lines stay,
// and it is said how many do not.
func TestPrintIsBounded(t *testing.T) {
	t.Parallel()
	s := vm.NewSession([]string{"a"}, nil)
	s.Report(text(t, ready))
	s.Report(text(t, start("a")))
	for i := range 100_000 {
		s.Console(fmt.Sprint("console ", i))
		if i >= 50_000 {
			s.Report(text(t, output("a", fmt.Sprint("line ", i))))
		}
	}
	s.End(nil)
	var b bytes.Buffer
	require.NoError(t, s.Print(&b, false))
	got := strings.Split(b.String(), "\n")
	assert.Equal(t, "(49600 lines before these)", got[0])
	assert.Equal(t, "    line 99600", got[1])
	assert.Equal(t, "    line 99999", got[400])
	assert.Contains(t, got[401], "FAIL\ta\t")
	assert.Contains(t, b.String(), "(99940 lines before these)\n    console 99940\n")
	assert.True(t, strings.HasSuffix(b.String(), "    console 99999\n"))
}
