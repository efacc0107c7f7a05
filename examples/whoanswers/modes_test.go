package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// play is what happens while the program runs for a while on a host in memory.
type play struct {
	args  string
	edit  func(*arpchecktest.Segment, []*arpchecktest.Host)
	later func(*arpchecktest.Segment, []*arpchecktest.Host) // 10.5 s after the start
	until time.Duration                                     // when it is interrupted; 0 for not at all
	code  int
}

// run returns what the program prints.
func (c play) run(t *testing.T) (code int, out, errOut string) {
	var o, e bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s, nodes, client := threeNodes(t)
		if c.edit != nil {
			c.edit(s, nodes)
		}
		if c.later != nil {
			time.AfterFunc(10500*time.Millisecond, func() { c.later(s, nodes) })
		}
		ctx := t.Context()
		if c.until > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.until)
			defer cancel()
		}
		code = run(ctx, strings.Fields("-i eth0 "+c.args), &o, &e, memory(client))
	})
	return code, o.String(), e.String()
}

// memory is the system of a host in memory.
func memory(h *arpchecktest.Host) system {
	return system{
		open: h.OpenOn,
		dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(address)
			if err == nil {
				_, err = h.Visit(ctx, to)
			}
			if err != nil {
				return nil, err
			}
			conn, _ := net.Pipe()
			return conn, nil
		},
		cache: func() (neighbours, error) { return cacheOf{h}, nil },
	}
}

type cacheOf struct{ *arpchecktest.Host }

func (c cacheOf) Get(link string, addr netip.Addr) (arpcheck.Neighbour, error) {
	mac, ok := c.Neighbour(addr)
	if !ok {
		return arpcheck.Neighbour{}, fmt.Errorf("no entry for %s: %w", addr, fs.ErrNotExist)
	}
	return arpcheck.Neighbour{Addr: addr, MAC: mac, Link: link, State: arpcheck.NeighbourReachable}, nil
}

func (cacheOf) Close() error { return nil }

// serve makes w1 announce the VIP and serve it.
func serve(s *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	announce(s, nodes)
	_ = nodes[0].Serve(netip.AddrPortFrom(vip, 80))
}

// failOver makes w2 announce and w1 silent.
func failOver(_ *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	nodes[0].SetFault(arpchecktest.Fault{Silent: true})
	_, _ = nodes[1].Announce(vip)
}

// outage makes w2's kernel answer, too, and before the announcer w1 does.
func outage(s *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	serve(s, nodes)
	_ = nodes[1].SetStrictARP(false)
}

func w2Strict(_ *arpchecktest.Segment, nodes []*arpchecktest.Host) { _ = nodes[1].SetStrictARP(true) }

// askAsVIP makes w2's kernel ask for the client under the VIP.
func askAsVIP(_ *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	_ = nodes[1].SendFrom(vip, netip.MustParseAddr("10.0.3.50"))
}

// The output of every mode, as it is in testdata. UPDATE_GOLDEN=1 writes it.
func TestOutput(t *testing.T) {
	const w1 = "--expect 02:00:00:00:00:01"
	for name, c := range map[string]play{
		"ask":                {args: "10.0.3.20", edit: loose, code: 1},
		"sweep":              {args: "--sweep 10.0.3.0/24", edit: loose, code: 1},
		"sweep-strict":       {args: "--sweep --rate 1000 " + w1 + " 10.0.3.20", edit: announce},
		"soak-fine":          {args: "--soak 30s 10.0.3.20", edit: announce},
		"soak-failover":      {args: "--soak 30s 10.0.3.20", edit: announce, later: failOver},
		"soak-unexpected":    {args: "--soak 30s " + w1 + " 10.0.3.20", edit: announce, later: failOver, code: 1},
		"soak-connect":       {args: "--soak 30s --connect 80 " + w1 + " 10.0.3.20", edit: serve},
		"soak-outage":        {args: "--soak 30s --every 2s --connect 80 " + w1 + " 10.0.3.20", edit: outage, later: w2Strict, code: 1},
		"soak-nothing-there": {args: "--soak 30s --every 2s --connect 80 10.0.3.20", edit: announce, code: 5},
		"soak-silent":        {args: "--soak 5s 10.0.3.20", edit: silent, code: 3},
		"soak-interrupted":   {args: "--soak 1h 10.0.3.20", edit: announce, until: 12300 * time.Millisecond},
		"watch-fine":         {args: "--watch 10.0.3.20", edit: announce, until: time.Minute},
		"watch-failover":     {args: "--watch " + w1 + " 10.0.3.20", edit: announce, later: failOver, until: time.Minute, code: 1},
		"watch-sender":       {args: "--watch 10.0.3.16-31", edit: loose, later: askAsVIP, until: time.Minute, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := c.run(t)
			assert.Equal(t, c.code, code)
			assert.Empty(t, errOut)
			compare(t, name, out)
		})
	}
}

func compare(t *testing.T, name, out string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), out)
}

// What a run has recorded is judged in the same way when it is replayed.
func TestRecordAndReplay(t *testing.T) {
	for name, c := range map[string]struct {
		play
		replay string
		again  int
	}{
		"replay-ask":    {play{args: "10.0.3.20", edit: loose, code: 1}, "10.0.3.20", 1},
		"replay-strict": {play{args: "10.0.3.20", edit: announce}, "", 0},
		"replay-sweep":  {play{args: "--sweep 10.0.3.16/28 --control 10.0.3.11", edit: announce}, "10.0.3.16/28", 0},
		"replay-other":  {play{args: "10.0.3.20", edit: announce}, "10.0.3.21", 4},
		"replay-soak":   {play{args: "--soak 5s 10.0.3.20", edit: silent, code: 3}, "", 3},
		"replay-watch":  {play{args: "--watch 10.0.3.20", edit: loose, later: askAsVIP, until: time.Minute, code: 1}, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "arp.pcapng")
			c.args += " --pcap " + file
			code, _, errOut := c.run(t)
			require.Equal(t, c.code, code, errOut)
			var out, errs bytes.Buffer
			args := append([]string{"--replay", file}, strings.Fields(c.replay)...)
			assert.Equal(t, c.again, run(t.Context(), args, &out, &errs, system{}))
			assert.Empty(t, errs.String())
			compare(t, name, strings.ReplaceAll(out.String(), file, "FILE"))
		})
	}
}

func TestReplayOfTcpdump(t *testing.T) {
	capture := filepath.Join("..", "..", "arpcheck", "testdata", "arp_race_client.pcap")
	var out, errOut bytes.Buffer
	assert.Equal(t, exitWrong, run(t.Context(), []string{"--replay", capture, "10.0.3.20"}, &out, &errOut, system{}))
	assert.Empty(t, errOut.String())
	assert.Contains(t, out.String(), "answers twice")

	out.Reset()
	assert.Equal(t, exitWrong, run(t.Context(), []string{"--replay", capture, "-o", "json"}, &out, &errOut, system{}))
	var got struct {
		arpcheck.Capture
		ExitCode int
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, exitWrong, got.ExitCode)
	assert.Equal(t, arpcheck.Multiple, got.Results[0].Verdict)

	whole, err := os.ReadFile(capture)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.pcap")
	require.NoError(t, os.WriteFile(cut, whole[:len(whole)-5], 0o600))
	out.Reset()
	assert.Equal(t, exitError, run(t.Context(), []string{"--replay", cut}, &out, &errOut, system{}))
	assert.Contains(t, out.String(), "multiple", "what stands before the cut")
	assert.Contains(t, errOut.String(), "unexpected EOF")
}

// JSON of what goes on for long is one object a line, the last with the exit code.
func TestJSONLines(t *testing.T) {
	for _, c := range []play{
		{args: "--soak 10s -o json 10.0.3.20", edit: loose, code: 1},
		{args: "--watch -o json 10.0.3.20", edit: loose, later: askAsVIP, until: time.Minute, code: 1},
	} {
		code, out, errOut := c.run(t)
		assert.Equal(t, c.code, code)
		assert.Empty(t, errOut)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Greater(t, len(lines), 1)
		for i, line := range lines {
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			_, last := got["exitCode"]
			assert.Equal(t, i == len(lines)-1, last)
		}
	}
}

func TestModeErrors(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"--sweep --watch 10.0.3.20":            "--sweep and --watch do not go together",
		"--soak 1s --replay x 10.0.3.20":       "--soak and --replay do not go together",
		"--rate 5 10.0.3.20":                   "--rate goes with --sweep only",
		"--sweep --rate -5 10.0.3.20":          "--rate is negative",
		"--connect 80 10.0.3.20":               "--connect goes with --soak only",
		"--every 1s --watch 10.0.3.20":         "--every goes with --soak only",
		"--soak 0s 10.0.3.20":                  "take a time",
		"--soak 1m --every -1s 10.0.3.20":      "take a time",
		"--soak nonsense 10.0.3.20":            "invalid",
		"--soak 1m 10.0.3.20-21":               "one address, and 2",
		"--soak 1m":                            "no address",
		"--soak 1m 127.0.0.1":                  "not an address that ARP can ask for",
		"--watch 127.0.0.1":                    "not an address that ARP can ask for",
		"--watch --control 10.0.3.1 10.0.3.20": "--control does not go with --watch",
		"--replay x":                           "--interface does not go with --replay",
		"--sweep 10.0.0.0/8":                   "more than 65536",
		"--pcap " + dir + " 10.0.3.20":         "--pcap",
		"--pcap " + dir + "/no/such 10.0.3.20": "no such",
		"--sweep 10.0.3.20 127.0.0.1":          "not an address that ARP can ask for",
	} {
		t.Run(args, func(t *testing.T) {
			code, out, errOut := play{args: args}.run(t)
			assert.Equal(t, exitError, code)
			assert.Contains(t, errOut, want)
			if !strings.Contains(args, "--watch 127") {
				assert.Empty(t, out)
			}
		})
	}
	var out, errOut bytes.Buffer
	assert.Equal(t, exitError, run(t.Context(), []string{"--replay", filepath.Join(dir, "none")}, &out, &errOut, system{}))
	assert.Contains(t, errOut.String(), "no such file")
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("not a capture"), 0o600))
	assert.Equal(t, exitError, run(t.Context(), []string{"--replay", text}, &out, &errOut, system{}))
	assert.Contains(t, errOut.String(), "neither a pcap nor a pcapng file")
	assert.Empty(t, out.String())
}

func TestHelp(t *testing.T) {
	var out, help bytes.Buffer
	assert.Zero(t, run(t.Context(), []string{"--help"}, &out, &help, system{}))
	assert.Empty(t, out.String())
	compare(t, "help", help.String())
}
