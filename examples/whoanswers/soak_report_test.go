package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/examples/internal/pagetest"
)

const expectW1 = "--expect 02:00:00:00:00:01"

// A soak leaves a page however it ends.
func TestReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play
		verdict string
		looks   string
		text    string
	}{
		"fine": {play{args: "--soak 30s --connect 80 " + expectW1 + " 10.0.3.20", edit: serve}, "Good", "30", "Fine: no address"},
		"outage": {play{args: "--soak 30s --every 2s --connect 80 " + expectW1 + " 10.0.3.20", edit: outage, later: w2Strict, code: 1},
			"Not good", "15", "several MACs or by an unexpected one. Clients keep whichever is first."},
		"failover":    {play{args: "--soak 30s 10.0.3.20", edit: announce, later: failOver}, "Good", "30", "Fine"},
		"silent":      {play{args: "--soak 5s 10.0.3.20", edit: silent, code: 3}, "Not good", "5", "Nobody answers"},
		"interrupted": {play{args: "--soak 1h 10.0.3.20", edit: announce, until: 12300 * time.Millisecond}, "Good", "12", "It was interrupted after 12s"},
		"json":        {play{args: "--soak 5s -o json 10.0.3.20", edit: announce}, "Good", "5", "Fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "soak.html")
			c.args += " --report " + file
			code, out, errOut := c.run(t)
			assert.Equal(t, c.code, code)
			assert.Empty(t, errOut)
			assert.NotEmpty(t, out)
			p := pagetest.Read(t, file)
			assert.Equal(t, c.verdict, p.Verdict)
			assert.Contains(t, p.Text, c.text)
			assert.Equal(t, c.looks, p.Figures["looks"])
			assert.Len(t, p.Table("cells"), len(p.Columns))
			assert.Contains(t, p.Facts["Asked"], "on eth0 as 10.0.3.50")
		})
	}
}

// What the page says of an outage is what was on the wire.
func TestReportOfAnOutage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soak.html")
	c := play{args: "--soak 30s --every 2s --connect 80 " + expectW1 + " --report " + file + " 10.0.3.20", edit: outage, later: w2Strict, code: 1}
	code, _, _ := c.run(t)
	require.Equal(t, c.code, code)
	p := pagetest.Read(t, file)
	assert.Equal(t, "every 2s for 30s, with a connect to TCP port 80", p.Facts["How"])
	assert.Equal(t, "02:00:00:00:00:01, as --expect says", p.Facts["Expected"])
	hosts := p.Table("hosts")
	require.Len(t, hosts, 2)
	assert.Equal(t, "expected", hosts[0]["Should it answer?"])
	assert.Equal(t, "02:00:00:00:00:02", hosts[1]["MAC"])
	assert.Equal(t, "40 %", hosts[1]["First in"])
	cells := p.Table("cells")
	require.Len(t, cells, 15)
	assert.Equal(t, "B 02:00:00:00:00:02, then A 02:00:00:00:00:01", cells[0]["Answered"])
	assert.Equal(t, "several hosts answer, unexpected host, check fails", cells[0]["Wrong"])
	assert.Empty(t, cells[14]["Wrong"])
	assert.Equal(t, "6 !", p.Figures["with a fault"])
	assert.Equal(t, "1 of 15 !", p.Figures["checks failed"])
}

// brokenPipe takes some lines and no more.
type brokenPipe struct{ lines int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.lines--; b.lines < 0 {
		return 0, errors.New("the reader has gone")
	}
	return len(p), nil
}

// A soak that fails leaves a page with what it saw, and says that it failed.
func TestReportOfAFailure(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soak.html")
	synctest.Test(t, func(t *testing.T) {
		s, nodes, client := threeNodes(t)
		announce(s, nodes)
		var errOut bytes.Buffer
		args := strings.Fields("-i eth0 --soak 1h -o json --report " + file + " 10.0.3.20")
		assert.Equal(t, exitError, run(t.Context(), args, &brokenPipe{7}, &errOut, memory(client)))
		assert.Contains(t, errOut.String(), "the reader has gone")
	})
	p := pagetest.Read(t, file)
	assert.Equal(t, "Undecided", p.Verdict)
	assert.Contains(t, p.Text, "It ended after 8s by an error: the reader has gone")
	assert.Equal(t, "8", p.Figures["looks"])
}

// That a page cannot be written is found out at once.
func TestReportCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, file := range []string{os.DevNull, t.TempDir(), filepath.Join(t.TempDir(), "none", "soak.html")} {
		code, out, errOut := play{args: "--soak 1h --report " + file + " 10.0.3.20", edit: announce}.run(t)
		assert.Equal(t, exitError, code)
		assert.Empty(t, out, "nothing was asked")
		assert.Contains(t, errOut, "--report: write a page")
	}
}

func TestReportUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--report x 10.0.3.20":                    "--report goes with --soak only",
		"--soak 5s --report= 10.0.3.20":           "--report takes a file",
		"--soak 5s --color blue 10.0.3.20":        "want auto, always or never",
		"--color never 10.0.3.20":                 "--color goes with --soak only",
		"--soak 5s --report x --pcap x 10.0.3.20": "name the same file",
	} {
		code, _, errOut := play{args: args, edit: announce}.run(t)
		assert.Equal(t, exitError, code)
		assert.Contains(t, errOut, want)
	}
}

// On a terminal there is a line for every sample, in color unless somebody minds.
func TestSoakOnATerminal(t *testing.T) {
	t.Parallel()
	colors := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for args, colored := range map[string]bool{"": true, "--color never ": false, "--color always ": true} {
		var out bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			s, nodes, client := threeNodes(t)
			outage(s, nodes)
			sys := memory(client)
			sys.terminal, sys.colored = true, true
			time.AfterFunc(3500*time.Millisecond, func() { w2Strict(s, nodes) })
			var errOut bytes.Buffer
			assert.Equal(t, exitWrong, run(context.Background(), strings.Fields("-i eth0 --soak 6s "+args+expectW1+" 10.0.3.20"), &out, &errOut, sys))
			assert.Empty(t, errOut.String())
		})
		assert.Equal(t, colored, colors.MatchString(out.String()), args)
		lines := strings.Split(colors.ReplaceAllString(out.String(), ""), "\n")
		require.Greater(t, len(lines), 6)
		assert.Equal(t, "00:00:00  B  02:00:00:00:00:02 +A  ! several hosts answer; unexpected host", lines[0])
		assert.Equal(t, "00:00:05  A  02:00:00:00:00:01", lines[5])
		assert.Empty(t, lines[6], "then comes the summary")
	}
}
