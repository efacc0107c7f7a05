package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) { netnstest.Main(m) }

// A small run, to keep the harness working: the sweep and the floor are there,
// and arp-scan if this machine has it.
func TestRun(t *testing.T) {
	netnstest.New(t) // says what is missing
	var out strings.Builder
	require.NoError(t, run(t.Context(), config{targets: 20, nodes: 2, runs: 2}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.GreaterOrEqual(t, len(lines), 4, out.String())
	assert.Contains(t, lines[2], "floor")
	assert.Contains(t, lines[3], "arpcheck.Sweep")
	for _, line := range lines[2:] {
		assert.Contains(t, line, "100.00", "pairs found")
	}
}

func TestRunAsk(t *testing.T) {
	netnstest.New(t)
	var out strings.Builder
	require.NoError(t, run(t.Context(), config{targets: 100, nodes: 2, runs: 2, ask: true}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4, out.String())
	assert.Contains(t, lines[3], "arpcheck.AskAll")
	assert.Contains(t, lines[3], "100.00", "pairs found: more than the queue of a proxy holds")
}

func TestRunOnly(t *testing.T) {
	netnstest.New(t)
	var out strings.Builder
	require.NoError(t, run(t.Context(), config{targets: 20, nodes: 2, runs: 1, only: "Rounds"}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4, out.String())
	assert.Contains(t, lines[2], "floor")
	assert.ErrorContains(t, run(t.Context(), config{targets: 1, nodes: 1, runs: 1, only: "("}, &out), "-only")
}

func TestRunRefuses(t *testing.T) {
	for _, c := range []config{{nodes: 1, runs: 1}, {targets: 1, runs: 1}, {targets: 1, nodes: 1}, {targets: maxTargets + 1, nodes: 1, runs: 1}} {
		assert.ErrorContains(t, run(t.Context(), c, nil), "want at least one")
	}
}
