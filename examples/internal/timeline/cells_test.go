package timeline_test

import (
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/examples/internal/pagetest"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

// However long a soak is, its page stays small, and the cells are of times that people
// count in.
func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lasts, every time.Duration
		columns      int
		each         string
	}{
		{time.Second, time.Second, 1, "one look"},
		{16 * time.Minute, time.Second, 960, "one look"},
		{16*time.Minute + time.Second, time.Second, 481, "2s, which is 2 looks"},
		{time.Hour, time.Second, 900, "4s, which is 4 looks"},
		{24 * time.Hour, time.Second, 720, "2m, which is 120 looks"},
		{24 * time.Hour, 5 * time.Second, 288, "5m, which is 60 looks"},
		{7 * 24 * time.Hour, time.Second, 840, "12m, which is 720 looks"},
	} {
		seen := timeline.New(c.every, known, node(1))
		for n := range int(c.lasts / c.every) {
			seen.Add(timeline.Look{Sample: sample(n, c.every, 1)})
		}
		p := shown(t, seen, page(timeline.Good))
		assert.Len(t, p.Columns, c.columns, c.lasts)
		assert.Contains(t, pagetest.Text(p.Root), "A column is "+c.each, c.lasts)
		assert.Len(t, p.Table("spells"), 1, c.lasts)
		assert.Len(t, p.Table("cells"), c.columns, c.lasts)
		assert.Equal(t, (c.columns+29)/30, len(p.Parts), c.lasts)
	}
}

// A fault of one second in a day is seen, and so is what else happened beside it.
func TestOneFaultInADay(t *testing.T) {
	t.Parallel()
	p := shown(t, day(), page(timeline.Bad))
	at := 40_000 / 120
	assert.Equal(t, "2AB", p.Columns[at].Signs, "two flips: there and back")
	assert.Equal(t, "several hosts answer 1×, flapping 1×", p.Table("cells")[at]["Wrong"])
	assert.Equal(t, "A w1, B w2 1× (first 1×)", removeCount(p.Table("cells")[at]["Answered"]))
	spells := p.Table("spells")
	var wrong []string
	for _, s := range spells {
		wrong = append(wrong, s["Wrong"])
	}
	assert.Equal(t, []string{"", "several hosts answer 1×, flapping 1×", "", "nobody answers 4×, flapping 1×", ""}, wrong)
	assert.Equal(t, "1 Dec 11:50:00–1 Dec 22:55:59", spells[0]["Time (UTC)"])
}

var firstCount = regexp.MustCompile(`^(A w1) \(first \d+×\)`)

func removeCount(text string) string { return firstCount.ReplaceAllString(text, "$1") }

// An unexpected host is shown before the expected one, however rare it was.
func TestTheWorstOfACell(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known, node(1))
	for n := range 3600 {
		s := sample(n, time.Second, 1)
		switch n {
		case 1001:
			s = sample(n, time.Second, 2)
		case 2002:
			s = sample(n, time.Second)
		}
		seen.Add(timeline.Look{Sample: s})
	}
	p := shown(t, seen, page(timeline.Bad))
	assert.Equal(t, "2BA", p.Columns[1001/4].Signs)
	assert.Equal(t, "1A", p.Columns[2002/4].Signs)
	assert.Contains(t, p.Columns[2002/4].Boxes, "silent")
}

// Where looks are left out for hours, nothing grows without bound.
func TestLongGap(t *testing.T) {
	t.Parallel()
	seen := timeline.New(time.Second, known, node(1))
	seen.Add(timeline.Look{Sample: sample(0, time.Second, 1)})
	late := sample(1<<30, time.Second, 2)
	late.Skipped = 1<<30 - 1
	seen.Add(timeline.Look{Sample: late})
	p := shown(t, seen, page(timeline.Bad))
	assert.LessOrEqual(t, len(p.Columns), 960)
	assert.Equal(t, "1073741823", p.Figures["skipped"])
	skipped := 0
	for _, row := range p.Table("cells") {
		_, n := looksOf(t, row)
		skipped += n
	}
	assert.Equal(t, 1<<30-1, skipped)
}

var looks = regexp.MustCompile(`^(\d+)(?:, (\d+) skipped)?$`)

func looksOf(t *testing.T, row pagetest.Row) (seen, skipped int) {
	t.Helper()
	m := looks.FindStringSubmatch(row["Looks"])
	require.NotNil(t, m, row["Looks"])
	seen, _ = strconv.Atoi(m[1])
	skipped, _ = strconv.Atoi(m[2])
	return seen, skipped
}

var faultSign = regexp.MustCompile(`^(!|\d+)`)

// Whatever happened: each look and each fault is in one cell and in one spell, or in
// the row that sums up the spells that are left out.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for _, total := range []int{1, 700, 961, 2000, 5000} {
		for _, between := range []int{4, 5, 12, 155} { // looks from one fault to the next of its kind
			seen := timeline.New(time.Second, known, node(1))
			n, faults := 0, 0
			for i := range total {
				s := sample(n, time.Second, 1)
				switch i % between {
				case 0:
					s, faults = sample(n, time.Second), faults+1
				case 1:
					s, faults = sample(n, time.Second, 1, 3), faults+1
				case 2:
					s, faults = checked(s, 2, time.Second, "refused"), faults+1
				case 3:
					s = sample(n+5, time.Second, 1)
					s.Skipped, n = 5, n+5
				}
				seen.Add(timeline.Look{Sample: s})
				n++
			}
			p := shown(t, seen, page(timeline.Bad))
			assert.Equal(t, faults, marked(t, p), "%d looks, a fault in %d", total, between)
			for _, table := range []string{"cells", "spells"} {
				sum, skipped := 0, 0
				for _, row := range p.Table(table) {
					a, b := looksOf(t, row)
					sum, skipped = sum+a, skipped+b
				}
				assert.Equal(t, total, sum, table)
				assert.Equal(t, n-total, skipped, table)
			}
		}
	}
}

// marked returns how many faults the picture shows.
func marked(t *testing.T, p pagetest.Page) (sum int) {
	t.Helper()
	for _, c := range p.Columns {
		switch sign := faultSign.FindString(c.Signs); sign {
		case "":
		case "!":
			sum++
		default:
			n, err := strconv.Atoi(sign)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// The heap is flat however long a soak lasts.
func TestBounded(t *testing.T) {
	seen := timeline.New(time.Second, known, node(1))
	var after []uint64
	for n := range 400_000 {
		s := checked(sample(n, time.Second, byte(n%9), byte(n%5)), byte(n%3), time.Millisecond, "error "+strconv.Itoa(n))
		seen.Add(timeline.Look{Sample: s})
		if n%100_000 == 99_999 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			after = append(after, m.HeapAlloc)
		}
	}
	assert.Less(t, after[3], after[0]+4<<20, "%v", after)
	assert.Equal(t, 400_000, seen.Summary().Samples)
}

func BenchmarkAdd(b *testing.B) {
	seen := timeline.New(time.Second, known, node(1))
	s := checked(sample(0, time.Second, 1, 2), 1, time.Millisecond, "")
	for b.Loop() {
		s.N++
		s.At = s.At.Add(time.Second)
		seen.Add(timeline.Look{Sample: s})
	}
}
