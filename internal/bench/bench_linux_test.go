package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) {
	babbleIfAsked()
	netnstest.Main(m)
}

// rows runs what is configured and returns the rows of its table.
func rows(t *testing.T, c config) []string {
	t.Helper()
	netnstest.New(t) // says what is missing
	var out strings.Builder
	require.NoError(t, run(t.Context(), c, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Greater(t, len(lines), 2, out.String())
	return lines[2:]
}

// Small runs, to keep the harness working: all who can find everything do.
func TestSweep(t *testing.T) {
	all := rows(t, config{what: "sweep", targets: 20, nodes: 2, runs: 2})
	require.GreaterOrEqual(t, len(all), 4)
	assert.Contains(t, all[0], "floor")
	assert.Contains(t, all[1], "arpcheck.Sweep")
	for _, row := range all {
		assert.Contains(t, row, "100.00", "pairs found")
	}
}

func TestSweepPeers(t *testing.T) {
	all := rows(t, config{what: "sweep", targets: 8, nodes: 1, runs: 1, peers: true, only: "mdlayher|gopacket|nmap|arping"})
	require.GreaterOrEqual(t, len(all), 3)
	for _, row := range all {
		assert.NotContains(t, row, " 0.00 ", "with one node and few targets each finds something")
	}
}

func TestAsk(t *testing.T) {
	all := rows(t, config{what: "sweep", targets: 100, nodes: 2, runs: 2, ask: true})
	require.Len(t, all, 2)
	assert.Contains(t, all[1], "arpcheck.AskAll")
	assert.Contains(t, all[1], "100.00", "pairs found: more than the queue of a proxy holds")
}

func TestOnly(t *testing.T) {
	all := rows(t, config{what: "sweep", targets: 20, nodes: 2, runs: 1, only: "Rounds"})
	require.Len(t, all, 2)
	assert.Contains(t, all[0], "floor")
}

// The subjects without a size: each contender finds the same.
func TestNode(t *testing.T) {
	for what, most := range map[string]int{"sysctls": 7, "device": 6, "election": 3} {
		t.Run(what, func(t *testing.T) {
			all := rows(t, config{what: what, runs: 1})
			assert.InDelta(t, most, len(all), 1, "a program may not be installed")
			for _, row := range all {
				assert.Contains(t, row, "100.00")
			}
		})
	}
}

func TestWatch(t *testing.T) {
	all := rows(t, config{what: "watch", runs: 1, listen: 100 * time.Millisecond})
	require.Len(t, all, 2)
	for _, row := range all {
		assert.Contains(t, row, "100.00", "addresses seen")
	}
}

func TestGoals(t *testing.T) {
	netnstest.New(t)
	small := config{what: "sweep", targets: 10, nodes: 1, only: "^arpcheck"}
	var out strings.Builder
	require.NoError(t, runGoals(t.Context(), 1, []goal{
		{small, "none is missed", "arpcheck", "", missing, 0},
		{small, "faster than light", "arpcheck", "floor", duration, 1e-9},
		{small, "beside what is not there", "arpcheck", "fping", duration, 1},
	}, &out))
	assert.Regexp(t, `(?m)^ *0 +0 +met +none is missed$`, out.String())
	assert.Regexp(t, `(?m)missed by .* faster than light$`, out.String())
	assert.Regexp(t, `(?m)not measured +beside what is not there$`, out.String())
	for _, g := range goals {
		assert.Contains(t, subjects, g.what, g.text)
	}
}

func TestRefuses(t *testing.T) {
	for want, c := range map[string]config{
		"targets, 1 nodes: want at least": {what: "sweep", nodes: 1, runs: 1},
		"0 nodes: want at least":          {what: "sweep", targets: 1, runs: 1},
		"0 turns":                         {what: "sweep", targets: 1, nodes: 1},
		"65535 targets":                   {what: "sweep", targets: maxTargets + 1, nodes: 1, runs: 1},
		"-only":                           {what: "sweep", targets: 1, nodes: 1, runs: 1, only: "("},
		"nothing that is measured":        {what: "sweeps", runs: 1},
	} {
		assert.ErrorContains(t, run(t.Context(), c, nil), want)
	}
}
