package guest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/guest"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

const fakeEnv = "STRICTARP_FAKE_TEST" // what this program is to do as a test program

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeEnv); mode != "" {
		os.Exit(fakeTest(mode))
	}
	os.Exit(m.Run())
}

func fakeTest(mode string) int {
	switch mode {
	case "fail":
		fmt.Println("FAIL")
		return 3
	case "ways":
		dir, err := os.Getwd()
		fmt.Println(dir, err, os.Args[1:], len(os.Environ()))
		fmt.Fprintln(os.Stderr, "to stderr")
		fmt.Print("\nno end")
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // or it exits with 0
	case "hang":
		fmt.Println("hangs with a child")
		if startSelf("sleep", os.Stdout) != nil {
			return 3
		}
		time.Sleep(time.Hour)
	case "leave":
		if startSelf("sleep", os.Stdout) != nil {
			return 3
		}
	case "sleep":
		fmt.Println("child", os.Getpid())
		time.Sleep(time.Hour)
	}
	return 0
}

// startSelf starts this program in another mode, and leaves it.
func startSelf(mode string, out *os.File) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{fakeEnv + "=" + mode}
	cmd.Stdout = out
	return cmd.Start()
}

// run runs one package in this mode and returns its events without the times.
func run(t *testing.T, mode string, plan wire.Plan, ctx context.Context) []wire.Event {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if plan.Linger == 0 {
		plan.Linger = time.Minute
	}
	plan.Env = []string{fakeEnv + "=" + mode}
	plan.Packages = []wire.Package{{Path: "a", Dir: "/", Binary: self}}
	if mode == "none" {
		plan.Packages[0].Binary = "/no/such/program"
	}
	var b bytes.Buffer
	require.NoError(t, guest.RunPackages(ctx, plan, &b))
	var events []wire.Event
	for line := range strings.Lines(b.String()) {
		e, err := wire.Parse([]byte(line))
		require.NoError(t, err)
		assert.Equal(t, "a", e.Package)
		assert.Equal(t, e.Kind == wire.End, e.Elapsed > 0)
		e.Package, e.Elapsed = "", 0
		events = append(events, e)
	}
	return events
}

func TestRunPackages(t *testing.T) {
	t.Parallel()
	start, out := wire.Event{Kind: wire.Start}, func(s string) wire.Event { return wire.Event{Kind: wire.Output, Text: s} }
	for _, c := range []struct {
		mode string
		want []wire.Event
	}{
		{"good", []wire.Event{start, {Kind: wire.End}}},
		{"fail", []wire.Event{start, out("FAIL"), {Kind: wire.End, Exit: 3}}},
		{"ways", []wire.Event{
			start, out("/ <nil> [-test.timeout=1m0s -test.v] 1"), out("to stderr"), out(""), out("no end"), {Kind: wire.End},
		}},
		{"signal", []wire.Event{start, {Kind: wire.End, Exit: -1, Text: "signal: killed"}}},
		{"none", []wire.Event{start, {Kind: wire.End, Exit: -1, Text: "fork/exec /no/such/program: no such file or directory"}}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, run(t, c.mode, wire.Plan{Timeout: time.Minute, Args: []string{"-test.v"}}, t.Context()))
		})
	}
}

// TestHang has a program that does not end by itself, with a child that holds
// its output: both are killed.
func TestHang(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	events := run(t, "hang", wire.Plan{Timeout: time.Minute}, ctx)
	assert.Less(t, time.Since(began), 15*time.Second, "nothing is waited for once all is killed")
	assert.Equal(t, wire.Event{Kind: wire.End, Exit: -1, Text: "killed: it did not end by itself after its timeout of 1m0s"}, events[len(events)-1])
	assert.Contains(t, events, wire.Event{Kind: wire.Output, Text: "hangs with a child"})
}

// TestTimeout has a timeout so far in the past that only the grace is too.
func TestTimeout(t *testing.T) {
	t.Parallel()
	events := run(t, "hang", wire.Plan{Timeout: time.Second - wire.Grace/2}, t.Context())
	assert.Contains(t, events[len(events)-1].Text, "killed: ")
}

// TestLeftBehind has a program that ends well, but leaves a child that holds
// its output.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	events := run(t, "leave", wire.Plan{Timeout: time.Minute, Linger: time.Second}, t.Context())
	assert.Equal(t, wire.Event{Kind: wire.End, Exit: -1, Text: "a process that it left behind held its output for 1s"}, events[len(events)-1])
	var pid int
	_, err := fmt.Sscanf(events[1].Text, "child %d", &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestRunPackagesInOrder(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	plan := wire.Plan{Timeout: time.Minute, Linger: time.Minute, Env: []string{fakeEnv + "=fail"}, Packages: []wire.Package{
		{Path: "a", Dir: "/", Binary: self}, {Path: "b", Dir: "/", Binary: self},
	}}
	var b bytes.Buffer
	require.NoError(t, guest.RunPackages(t.Context(), plan, &b))
	var order []string
	for line := range strings.Lines(b.String()) {
		e, err := wire.Parse([]byte(line))
		require.NoError(t, err)
		order = append(order, string(e.Kind)+" "+e.Package)
	}
	assert.Equal(t, []string{"start a", "output a", "end a", "start b", "output b", "end b"}, order, "one failure does not keep the rest from running")
}

// unplugged takes left writes.
type unplugged struct{ left int }

var errUnplugged = errors.New("unplugged")

func (u *unplugged) Write(p []byte) (int, error) {
	if u.left--; u.left < 0 {
		return 0, errUnplugged
	}
	return len(p), nil
}

func TestReportsUnplugged(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for n := range 3 { // start, output, end
		plan := wire.Plan{Timeout: time.Minute, Linger: time.Minute, Env: []string{fakeEnv + "=fail"}, Packages: []wire.Package{{Path: "a", Dir: "/", Binary: self}}}
		err := guest.RunPackages(t.Context(), plan, &unplugged{n})
		require.ErrorIs(t, err, errUnplugged, "%d writes", n)
		assert.ErrorContains(t, err, "run a: ")
	}
}
