package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

func refused() (*stage, error) {
	return nil, fmt.Errorf("user namespaces are switched off: %w", errors.ErrUnsupported)
}

// play runs the program in virtual time.
func play(t *testing.T, set settings, lab func() (*stage, error)) (code int, out, errOut string) {
	var o, e bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		code = run(t.Context(), set, &o, &e, lab)
	})
	return code, o.String(), e.String()
}

func TestSimulatedText(t *testing.T) {
	code, out, errOut := play(t, settings{soak: time.Minute, simulate: true}, nil)
	assert.Equal(t, exitOK, code, out)
	assert.Empty(t, errOut)
	assert.Contains(t, out, "Verdict: 26 of 26 expectations held (SIMULATED")
	assert.Contains(t, out, "60 of 60 connections succeeded")
	acts := 0
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80, line)
		if line[0] >= '1' && line[0] <= '9' {
			acts++
			assert.Contains(t, line, "[SIMULATED]")
		}
	}
	assert.Equal(t, 10, acts)
}

func TestSimulatedJSON(t *testing.T) {
	code, out, _ := play(t, settings{soak: 2 * time.Second, simulate: true, json: true}, nil)
	assert.Equal(t, exitOK, code)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.True(t, r.Simulated)
	assert.True(t, r.OK)
	require.Len(t, r.Acts, 10)
	assert.Len(t, r.Acts[3].Probes, 1)
	assert.Len(t, r.Acts[6].Samples, 2)
}

func TestRefusedLabIsSimulatedAndSaysSo(t *testing.T) {
	code, out, errOut := play(t, settings{}, refused)
	assert.Equal(t, exitSimulated, code)
	assert.Contains(t, errOut, "user namespaces are switched off")
	assert.Contains(t, errOut, "SIMULATED")
	assert.Contains(t, out, "[SIMULATED]")

	code, out, _ = play(t, settings{json: true}, refused)
	assert.Equal(t, exitSimulated, code)
	assert.Contains(t, out, `"simulated": true`)
	assert.Contains(t, out, "user namespaces are switched off")
}

func TestOtherFailuresAreErrors(t *testing.T) {
	code, out, errOut := play(t, settings{}, func() (*stage, error) { return nil, errors.New("no memory") })
	assert.Equal(t, exitError, code)
	assert.Empty(t, out)
	assert.Contains(t, errOut, "no memory")
}

func TestBrokenExpectationFails(t *testing.T) {
	code, out, _ := play(t, settings{}, func() (*stage, error) {
		s, err := newSimulation()
		s.nodes[1] = stubborn{s.nodes[1]}
		return s, err
	})
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "FAIL 1 of 3 nodes still answer")
}

// stubborn is a node that stays loose although it says otherwise.
type stubborn struct{ node }

func (s stubborn) SetSysctl(link string, param sysctl.Param, value int) error {
	if err := s.node.SetSysctl(link, param, value); err != nil {
		return err
	}
	return s.node.SetSysctl("eth0", "arp_ignore", 4) // reserved: answers
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var out, errOut bytes.Buffer
		began := time.Now()
		code := run(ctx, settings{simulate: true}, &out, &errOut, nil)
		assert.Equal(t, exitError, code)
		assert.Contains(t, errOut.String(), "interrupted")
		assert.Contains(t, out.String(), "Verdict: not finished")
		assert.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		bad  string
	}{
		{args: ""},
		{args: "--soak 60s -o json --simulate"},
		{args: "-o yaml", bad: "want text or json"},
		{args: "--soak -1s", bad: "--soak"},
		{args: "10.0.3.20", bad: "unexpected argument"},
		{args: "--nonsense", bad: "unknown flag"},
	} {
		_, err := parse(strings.Fields(c.args), new(bytes.Buffer))
		if c.bad == "" {
			assert.NoError(t, err, c.args)
		} else {
			assert.ErrorContains(t, err, c.bad, c.args)
		}
	}
}

func TestWrap(t *testing.T) {
	assert.Equal(t, "ok a b\n   c d\n", wrap("a b  c d", "ok ", 6))
	assert.Equal(t, "- verylongword\n", wrap("verylongword", "- ", 4))
	assert.Equal(t, "- \n", wrap("", "- ", 4))
}
