package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/examples/internal/pagetest"
)

// cached is a neighbour cache that has one MAC for everything.
type cached arpcheck.MAC

func (c cached) Get(link string, addr netip.Addr) (arpcheck.Neighbour, error) {
	return arpcheck.Neighbour{Addr: addr, MAC: arpcheck.MAC(c), Link: link, State: arpcheck.NeighbourStale}, nil
}

func (cached) Forget(string, netip.Addr) error { return errors.ErrUnsupported }

// reportFile is where a test writes a page: where PAGES says, to be looked at.
func reportFile(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PAGES"); dir != "" {
		return filepath.Join(dir, "verify-"+strings.ReplaceAll(t.Name(), "/", "-")+".html")
	}
	return filepath.Join(t.TempDir(), "verify.html")
}

// split is good for four looks, and then w2's kernel answers, too.
func split(nodes []*arpchecktest.Host) {
	time.AfterFunc(40*time.Second, func() { _ = nodes[1].SetStrictARP(false) })
}

func TestVerifyReport(t *testing.T) {
	t.Parallel()
	file := reportFile(t)
	r := askedOn(t, split, func(ctx context.Context, w *world, _ *arpchecktest.Host) context.Context {
		w.neighbours = cached{2, 0, 0, 0, 0, 2}
		return ctx
	}, "verify", "10.0.3.20", "--soak", "2m", "--report", file)
	assert.Equal(t, exitFound, r.code, r.out+r.err)
	p := pagetest.Read(t, file)
	assert.Equal(t, "Not good", p.Verdict)
	assert.Contains(t, p.Text, "Not verified: look 5 at 10.0.3.20 was not good.")
	assert.Equal(t, "until it was good for 2m, a look 5s after the one before", p.Facts["How"])
	assert.Contains(t, p.Facts["Expected"], "w1, by metallb for default/web")
	hosts := p.Table("hosts")
	require.Len(t, hosts, 2)
	assert.Equal(t, "w1", hosts[0]["Node"])
	assert.Equal(t, "expected", hosts[0]["Should it answer?"])
	assert.Equal(t, "w2", hosts[1]["Node"])
	assert.Equal(t, "not expected", hosts[1]["Should it answer?"])
	cells := p.Table("cells")
	require.Len(t, cells, 5)
	assert.Equal(t, "A w1", cells[0]["Answered"])
	assert.Empty(t, cells[0]["Wrong"])
	assert.Equal(t, "B w2 (wrong)", cells[0]["Cached"])
	assert.Regexp(t, `^[AB] w[12]( \(first \d×\))?, then [AB] w[12] \(.*first.*\)$`, cells[4]["Answered"], "in three rounds")
	assert.Equal(t, "several hosts answer, unexpected host, findings", cells[4]["Wrong"])
	assert.Contains(t, cells[4]["Notes"], "multiple-responders: ")
	assert.Contains(t, pagetest.Text(p.Root), "Findings of the last look")
}

func TestVerifyReportGood(t *testing.T) {
	t.Parallel()
	file := reportFile(t)
	r := asked(t, strict, "verify", "10.0.3.20", "--soak", "30s", "--report", file)
	assert.Equal(t, exitClean, r.code, r.out+r.err)
	p := pagetest.Read(t, file)
	assert.Equal(t, "Good", p.Verdict)
	assert.Contains(t, p.Text, "Verified: 10.0.3.20 was good for 30s")
	assert.Equal(t, "0", p.Figures["with a fault"])
	assert.Equal(t, fmt.Sprint(len(p.Columns)), p.Figures["looks"])
}

// An interrupted run, and one that cannot ask, leave a page all the same.
func TestVerifyReportEndedEarly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verify.html")
	r := askedOn(t, strict, func(ctx context.Context, w *world, client *arpchecktest.Host) context.Context {
		asked := 0
		w.open = func(link string) (*arpcheck.Prober, error) {
			if asked++; asked > 3 {
				return nil, os.ErrPermission
			}
			return client.OpenOn(link)
		}
		return ctx
	}, "verify", "10.0.3.20", "--soak", "1h", "--report", file)
	assert.Equal(t, exitError, r.code)
	assert.Contains(t, r.err, "permission denied")
	p := pagetest.Read(t, file)
	assert.Equal(t, "Undecided", p.Verdict)
	assert.Contains(t, p.Text, "It ended after 4 looks: ")
	assert.Equal(t, "1", p.Figures["undecided"])
	assert.Contains(t, p.Table("cells")[3]["Notes"], "permission denied")

	r = askedOn(t, strict, func(ctx context.Context, w *world, client *arpchecktest.Host) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		w.open = func(link string) (*arpcheck.Prober, error) {
			time.AfterFunc(7*time.Second, cancel)
			return client.OpenOn(link)
		}
		return ctx
	}, "verify", "10.0.3.20", "--soak", "1h", "--report", file)
	assert.Equal(t, exitError, r.code)
	p = pagetest.Read(t, file)
	assert.Equal(t, "Undecided", p.Verdict)
	assert.Contains(t, p.Text, "interrupted and not verified")
	assert.Equal(t, "1", p.Figures["looks"])
}

// That a page cannot be written is found out before anything is asked.
func TestVerifyReportCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, file := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none", "verify.html")} {
		r := asked(t, func([]*arpchecktest.Host) {}, "verify", "10.0.3.20", "--report", file)
		assert.Equal(t, exitError, r.code)
		assert.Empty(t, r.out)
		assert.Contains(t, r.err, "--report: write a page")
	}
}

// Who waits at a terminal sees a line for every look.
func TestVerifyOnATerminal(t *testing.T) {
	t.Parallel()
	for color, want := range map[string]string{
		"never":  "00:00:09  A  02:00:00:00:00:01 w1\n",
		"always": "00:00:09 \x1b[1;7;34m A \x1b[0m 02:00:00:00:00:01 w1\n",
	} {
		r := askedOn(t, strict, func(ctx context.Context, w *world, _ *arpchecktest.Host) context.Context {
			w.errTerminal = true
			return ctx
		}, "verify", "10.0.3.20", "--soak", "10s", "--color", color)
		assert.Equal(t, exitClean, r.code)
		assert.Contains(t, r.err, want)
	}
}
