package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/e2e/process"
)

func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"SAYS=hello"}, Log: filepath.Join(t.TempDir(), "log")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	return p
}

func awaitLog(t *testing.T, p *process.Process, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.Tail(5), text) }, time.Minute, 10*time.Millisecond)
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := start(t, `trap 'echo bye; exit 3' TERM; echo $SAYS; while :; do sleep 0.1; done`)
	awaitLog(t, p, "hello")
	require.NoError(t, p.Failed())
	require.NoError(t, p.Stop())
	assert.Equal(t, "hello\nbye", p.Tail(5))
	require.ErrorContains(t, p.Failed(), "sh has ended: exit status 3")
	require.NoError(t, p.Stop(), "again")
	require.NoError(t, p.Kill())
}

func TestKill(t *testing.T) {
	t.Parallel()
	p := start(t, `trap '' TERM; echo $SAYS; while :; do sleep 0.1; done`)
	awaitLog(t, p, "hello")
	require.NoError(t, p.Kill())
	require.ErrorContains(t, p.Failed(), "signal: killed")
	assert.Equal(t, "hello", p.Tail(1))
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := process.Start(process.Spec{Path: "/no/such/program", Log: filepath.Join(t.TempDir(), "log")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "start program")
	_, err = process.Start(process.Spec{Path: "/bin/sh", Log: filepath.Join(t.TempDir(), "none", "log")})
	require.ErrorIs(t, err, os.ErrNotExist)
}
