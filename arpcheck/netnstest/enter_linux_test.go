package netnstest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// run runs a program to its end.
func run(t *testing.T, mode, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	netnstest.New(t) // skips where there can be no lab
	cmd := command(mode, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	require.NoError(t, startWithoutCapability(cmd))
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func TestEnterPassesStreamsArgumentsAndExitCode(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := run(t, "copy", "some input\n", "a", "b c")
	assert.Equal(t, "some input\n", stdout)
	assert.Equal(t, "uid 0 args [\"a\" \"b c\"]\n", stderr)
	assert.Equal(t, 7, code)
}

func TestEnterPassesPanicOn(t *testing.T) {
	t.Parallel()
	_, stderr, code := run(t, "panic", "")
	assert.Equal(t, 1, strings.Count(stderr, "panic: on purpose"))
	assert.Equal(t, 2, code)
}

// start starts a program that says when it is ready; rest is what it prints
// later, which ends when every process that could print has ended.
func start(t *testing.T, mode string) (cmd *exec.Cmd, inner int, rest io.Reader) {
	t.Helper()
	netnstest.New(t)
	cmd = command(mode)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	cmd.Stdout = w
	require.NoError(t, startWithoutCapability(cmd))
	const patience = 20 * time.Second
	hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { hung.Stop() })
	require.NoError(t, w.Close())
	buffered := bufio.NewReader(r)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	line, err := buffered.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "ready %d", &inner)
	require.NoError(t, err, line)
	assert.NotEqual(t, cmd.Process.Pid, inner, "the program was run once more")
	return cmd, inner, buffered
}

func TestNothingIsLeftAfterSignals(t *testing.T) {
	for _, s := range deadly() {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			cmd, inner, rest := start(t, "wait")
			require.NoError(t, cmd.Process.Signal(s))
			require.Error(t, cmd.Wait())
			ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
			assert.True(t, ws.Signaled() && ws.Signal() == s, "it ended as the program did: %v", cmd.ProcessState)
			_, err := io.ReadAll(rest)
			require.NoError(t, err, "a process still holds standard output")
			// With its only process the namespaces end.
			require.Eventually(t, func() bool { return ended(t, inner) }, 10*time.Second, 5*time.Millisecond)
		})
	}
}

// ended reports whether a process has ended. Until its parent, or whoever
// adopted it, has looked, it is a zombie.
func ended(t *testing.T, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	require.NoError(t, err)
	return strings.Contains(string(stat), ") Z ")
}

func TestSignalIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	cmd, _, _ := start(t, "catch")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	assert.Equal(t, 5, cmd.ProcessState.ExitCode())
}

func TestRefusedNamesCauseAndCure(t *testing.T) {
	t.Parallel()
	stdout, _, code := run(t, "refuse", "")
	require.Zero(t, code, stdout)
	lines := strings.Split(stdout, "\n")
	require.GreaterOrEqual(t, len(lines), 3, stdout)
	assert.Contains(t, lines[0], "user.max_user_namespaces = 0")
	assert.Contains(t, lines[0], "to fix: sysctl -w user.max_user_namespaces=10000")
	assert.Equal(t, "true true", lines[1], "an UnavailableError and ErrUnsupported")
	assert.Equal(t, lines[0], lines[2], "NewSegment remembers")
}

func TestUnpreparedProgramIsTold(t *testing.T) {
	t.Parallel()
	stdout, _, code := run(t, "unprepared", "")
	require.Zero(t, code)
	assert.Contains(t, stdout, "call netnstest.Main in TestMain")
}

func TestSkipAndRequire(t *testing.T) {
	t.Parallel()
	args := []string{"-test.run=^TestHosts$", "-test.v"}
	stdout, _, code := run(t, "skip", "", args...)
	assert.Zero(t, code)
	assert.Contains(t, stdout, "--- SKIP: TestHosts")
	assert.Contains(t, stdout, "to fix: sysctl -w user.max_user_namespaces")
	stdout, _, code = run(t, "require", "", args...)
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, "--- FAIL: TestHosts")
	assert.Contains(t, stdout, "to fix: sysctl -w user.max_user_namespaces")
}
