package timeline_test

import (
	"bytes"
	"fmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/strictarp/strictarp/examples/internal/pagetest"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

var (
	vip   = netip.MustParseAddr("10.0.3.20")
	start = time.Date(2026, 12, 1, 11, 50, 0, 0, time.UTC)
)

func node(n byte) arpcheck.MAC { return arpcheck.MAC{2, 0, 0, 0, 0, n} }

// known knows nodes w1 to w3, of which w1 is to answer.
func known(mac arpcheck.MAC) timeline.Known {
	switch {
	case mac == node(1):
		return timeline.Known{Node: "w1", Right: timeline.Expected}
	case mac[5] <= 3:
		return timeline.Known{Node: fmt.Sprint("w", mac[5]), Right: timeline.Unexpected}
	}
	return timeline.Known{}
}

// sample is the nth sample of a soak, in which hosts answered in that order.
func sample(n int, every time.Duration, answered ...byte) arpcheck.Sample {
	at := start.Add(time.Duration(n) * every)
	s := arpcheck.Sample{N: n, At: at, Began: at, ARP: arpcheck.Result{
		Target: vip, Interface: "eth0", MAC: node(50), Vantage: "balancer", Started: at, Rounds: 1,
		Sender: arpcheck.Sender{Addr: netip.MustParseAddr("10.0.3.50")},
	}}
	for i, b := range answered {
		r := arpcheck.Responder{MAC: node(b), Replies: 1}
		if i == 0 {
			r.WonRounds = 1
			s.Winner = r.MAC
		}
		s.ARP.Responders = append(s.ARP.Responders, r)
	}
	return s
}

// checked adds a check and the cache's entry.
func checked(s arpcheck.Sample, cached byte, latency time.Duration, err string) arpcheck.Sample {
	s.Check = arpcheck.CheckResult{Ran: true, OK: err == "", Began: s.At, Latency: latency, Err: err}
	s.Cached = &arpcheck.Neighbour{Addr: vip, Link: "eth0"}
	if cached != 0 {
		s.Cached.MAC = node(cached)
		s.Match = arpcheck.NeighbourFresh
		if cached != 1 {
			s.Match = arpcheck.NeighbourStaleWrong
		}
	}
	return s
}

// announced adds gratuitous frames.
func announced(s arpcheck.Sample, by byte, frames int) arpcheck.Sample {
	s.Between = []arpcheck.Claim{{MAC: node(by), Kind: arpcheck.Announcement, Frames: frames, First: s.At, Last: s.At}}
	return s
}

// shown renders a timeline and reads the page.
func shown(t *testing.T, seen *timeline.Timeline, p timeline.Page) pagetest.Page {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, seen.WriteHTML(&b, p))
	return pagetest.Parse(t, &b)
}

// There is a column for every look, with its letters and signs from above.
func TestEveryLookIsAColumn(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known, node(1))
	looks := []arpcheck.Sample{
		checked(sample(0, time.Second, 1), 0, time.Millisecond, ""),
		checked(sample(1, time.Second, 2, 1), 2, time.Second, "refused"),
		sample(2, time.Second),
		announced(sample(3, time.Second, 1), 1, 2),
		sample(5, time.Second, 9, 8, 7, 6, 1),
	}
	looks[2].ARP.Reasons = []arpcheck.Reason{arpcheck.TooFewRounds}
	looks[4].Skipped = 1
	undecided := sample(6, time.Second)
	undecided.ARP.Reasons = []arpcheck.Reason{arpcheck.LinkDown}
	for _, s := range append(looks, undecided) {
		seen.Add(timeline.Look{Sample: s})
	}
	p := shown(t, seen, page(timeline.Bad))
	var signs []string
	for _, c := range p.Columns {
		signs = append(signs, c.Signs)
	}
	assert.Equal(t, []string{"A", "!BAB", "!", "!A", "", "!CDE+2", "??"}, signs, "fault, first, also, cached")
	assert.Contains(t, p.Columns[2].Boxes, "silent")
	assert.Contains(t, p.Columns[4].Boxes, "skip")
	assert.Equal(t, "11:50:01; WRONG: several hosts answer, unexpected host, check fails; answered by B w2, then A w1; cached B w2 (wrong); check failed; 1 flip; check: refused",
		p.Columns[1].Title)
	rows := p.Table("cells")
	require.Len(t, rows, len(p.Columns))
	assert.Equal(t, pagetest.Row{
		"Time (UTC)": "11:50:00", "Looks": "1", "Wrong": "", "Answered": "A w1", "Cached": "no entry", "Check": "ok in 1ms", "Events": "", "Notes": "",
	}, rows[0])
	assert.Equal(t, "1 flip, 2 gratuitous frames", rows[3]["Events"])
	assert.Equal(t, "announcement by 02:00:00:00:00:01", rows[3]["Notes"])
	assert.Equal(t, "0, 1 skipped", rows[4]["Looks"])
	assert.Equal(t, "undecided", rows[6]["Answered"])
	assert.Contains(t, rows[6]["Notes"], "no carrier")
	for figure, want := range map[string]string{
		"looks": "6", "with a fault": "4 !", "undecided": "1", "answered by several MACs": "2 !", "silent": "1 !", "gratuitous frames": "2", "skipped": "1",
		"checks failed": "1 of 2 !", "failed with a wrong MAC cached": "1 !", "flips of the first to answer": "3 !",
	} {
		assert.Equal(t, want, p.Figures[figure], figure)
	}
}

// The legend names all hosts, the expected ones first and though they are silent.
func TestLegend(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known, node(1))
	for n := range 1000 {
		by := byte(2)
		if n == 500 {
			by = 9
		}
		seen.Add(timeline.Look{Sample: sample(n, time.Second, by)})
	}
	rows := shown(t, seen, page(timeline.Bad)).Table("hosts")
	require.Len(t, rows, 3)
	for i, want := range []pagetest.Row{
		{"MAC": "02:00:00:00:00:01", "Node": "w1", "Should it answer?": "expected", "Looks answered": "0", "First in": "0 %"},
		{"MAC": "02:00:00:00:00:02", "Node": "w2", "Should it answer?": "not expected", "Looks answered": "999", "First in": "> 99 %"},
		{"MAC": "02:00:00:00:00:09", "Node": "not known", "Should it answer?": "not known", "Looks answered": "1", "First in": "< 1 %"},
	} {
		for title, text := range want {
			assert.Equal(t, text, rows[i][title], title)
		}
	}
}

// A flood of forged answers is shown as such, and the page stays a page.
func TestFlood(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known)
	for n := range 3000 {
		s := sample(n, time.Second)
		for i := range 40 {
			mac := arpcheck.MAC{6, byte(n >> 8), byte(n), byte(i)}
			s.ARP.Responders = append(s.ARP.Responders, arpcheck.Responder{MAC: mac, Replies: 1})
			s.Between = append(s.Between, arpcheck.Claim{MAC: mac, Kind: arpcheck.GratuitousReply, Frames: 1})
		}
		seen.Add(timeline.Look{Sample: s, Notes: []string{fmt.Sprint(n)}})
	}
	var b bytes.Buffer
	require.NoError(t, seen.WriteHTML(&b, page(timeline.Bad)))
	assert.Less(t, b.Len(), 3<<20)
	p := pagetest.Parse(t, &b)
	assert.Len(t, p.Table("hosts"), 16)
	assert.Contains(t, p.Columns[700].Signs, "+")
	assert.Contains(t, p.Table("cells")[700]["Answered"], "others")
	assert.Contains(t, seen.Line(false), "+ others")
}

// The program's judgement is what counts where it has one.
func TestJudged(t *testing.T) {
	t.Parallel()
	seen := timeline.New(0, known)
	for i, j := range []timeline.Judgement{timeline.Good, timeline.Bad, timeline.Undecided} {
		seen.Add(timeline.Look{Sample: sample(i, 10*time.Second, 1, 2), Judged: j, Notes: []string{"why: because"}})
	}
	p := shown(t, seen, page(timeline.Undecided))
	assert.Equal(t, "1 !", p.Figures["with a fault"])
	assert.Equal(t, "1", p.Figures["undecided"])
	rows := p.Table("cells")
	assert.Empty(t, rows[0]["Wrong"])
	assert.Contains(t, rows[1]["Wrong"], "findings")
	assert.Empty(t, rows[2]["Wrong"])
	assert.Equal(t, "A w1, then B w2, undecided", rows[2]["Answered"])
	assert.Equal(t, "why: because", rows[1]["Notes"])
	assert.Equal(t, "Undecided", p.Verdict)
}

// Two NICs of one node are one host.
func TestNICsOfANode(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, func(arpcheck.MAC) timeline.Known { return timeline.Known{Node: "w1", Right: timeline.Expected} })
	seen.Add(timeline.Look{Sample: sample(0, time.Second, 1, 2)})
	p := shown(t, seen, page(timeline.Good))
	assert.Equal(t, "0", p.Figures["with a fault"])
	assert.Equal(t, "A w1, then B w1", p.Table("cells")[0]["Answered"])
}

// That another is first once may be a fail-over; again and again it is a fault.
func TestFlapping(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, func(arpcheck.MAC) timeline.Known { return timeline.Known{} })
	for n, by := range []byte{1, 1, 2, 2, 1} {
		seen.Add(timeline.Look{Sample: sample(n, time.Second, by)})
	}
	rows := shown(t, seen, page(timeline.Bad)).Table("cells")
	assert.Equal(t, "1 flip", rows[2]["Events"])
	assert.Empty(t, rows[2]["Wrong"])
	assert.Equal(t, "flapping", rows[4]["Wrong"])
}

// Whichever entry was wrong, the one before the check or the one after, is shown.
func TestCachedBefore(t *testing.T) {
	t.Parallel()
	s := checked(sample(0, time.Second, 1), 1, time.Millisecond, "")
	s.CachedBefore = &arpcheck.Neighbour{Addr: vip, Link: "eth0", MAC: node(2)}
	s.Match = arpcheck.NeighbourStaleWrong
	seen := timeline.New(time.Second, known, node(1))
	seen.Add(timeline.Look{Sample: s})
	assert.Equal(t, "B w2 (wrong)", shown(t, seen, page(timeline.Good)).Table("cells")[0]["Cached"])
}

func TestLine(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known, node(1))
	assert.Empty(t, seen.Line(true))
	skipped := announced(checked(sample(4, time.Second, 1), 0, 1234567*time.Nanosecond, ""), 1, 2)
	skipped.Skipped = 1
	for _, c := range []struct {
		look timeline.Look
		want string
	}{
		{timeline.Look{Sample: sample(0, time.Second, 1)}, "11:50:00  A  02:00:00:00:00:01 w1"},
		{timeline.Look{Sample: checked(sample(1, time.Second, 2, 1), 2, 0, "refused")},
			"11:50:01  B  02:00:00:00:00:02 w2 +A  cached B  flip  ! several hosts answer; unexpected host; check fails; check: refused"},
		{timeline.Look{Sample: sample(2, time.Second)}, "11:50:02  × nobody answers"},
		{timeline.Look{Sample: skipped}, "11:50:04  A  02:00:00:00:00:01 w1  check 1.23ms  cached -  2 gratuitous frames  flip  1 skipped  ! flapping; announcement by 02:00:00:00:00:01"},
		{timeline.Look{Sample: sample(5, time.Second, 1), Judged: timeline.Undecided, Notes: []string{"x: \x1b[2J\n" + hostile}},
			"11:50:05  A  02:00:00:00:00:01 w1 ? undecided  " + `x: \x1b[2J\n</title><script>document.title='owned'</script><img src=x onerror="document.title='owned'">' "\u202egnp.exe\n\x1b[2J`},
	} {
		seen.Add(c.look)
		assert.Equal(t, c.want, seen.Line(false))
		colored := seen.Line(true)
		assert.Contains(t, colored, "\x1b[")
		assert.Equal(t, c.want, regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(colored, ""), "only colors are added")
	}
}
