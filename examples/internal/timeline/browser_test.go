package timeline_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/examples/internal/pagetest"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

// site serves pages, and notes what else is asked for.
type site struct {
	*httptest.Server
	pages map[string][]byte

	mu    sync.Mutex // guards asked
	asked []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := s.pages[r.URL.Path]
	if !ok {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.String())
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write(page)
}

// stories returns pages of every kind, which are made once.
func stories(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := storiesOnce()
	require.NoError(t, err)
	return pages
}

var storiesOnce = sync.OnceValues(func() (map[string][]byte, error) {
	evil := page(timeline.Bad)
	evil.Findings = []timeline.Finding{{Severity: hostile, Rule: hostile, Message: hostile}}
	evil.Ended, evil.Expected, evil.Plan, evil.Text = hostile, hostile, hostile, hostile
	pages := map[string][]byte{}
	for name, s := range map[string]struct {
		seen *timeline.Timeline
		page timeline.Page
	}{
		"/split": {split(), page(timeline.Bad)}, "/quiet": {quiet(), page(timeline.Good)}, "/day": {day(), page(timeline.Bad)}, "/crowd": {crowd(), page(timeline.Bad)},
		"/hostile": {verified(), evil}, "/none": {timeline.New(0, known), page(timeline.Undecided)},
	} {
		var b bytes.Buffer
		if err := s.seen.WriteHTML(&b, s.page); err != nil {
			return nil, err
		}
		pages[name] = b.Bytes()
	}
	return pages, nil
})

func TestInBrowser(t *testing.T) {
	t.Parallel()
	b := pagetest.OpenBrowser(t)
	s := &site{pages: stories(t)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	for name, text := range s.pages {
		want := pagetest.Parse(t, bytes.NewReader(text))
		b.Load(s.URL + name)
		b.Size(1280, 900)
		var shown struct {
			Title, Verdict string
			Columns        int
			Resources      []string
			Scripts        int
		}
		b.Eval(&shown, `return {
			title: document.title, verdict: document.getElementById("verdict-word").textContent,
			columns: document.querySelectorAll("g.column").length, scripts: document.querySelectorAll("script, img, iframe, object, link").length,
			resources: performance.getEntriesByType("resource").map(e => e.name)}`)
		assert.Equal(t, want.Title, shown.Title, "%s: nothing has run", name)
		assert.Equal(t, want.Verdict, shown.Verdict)
		assert.Len(t, want.Columns, shown.Columns)
		assert.Empty(t, shown.Resources, name)
		assert.Zero(t, shown.Scripts, name)
		for _, width := range []int{1280, 768, 390, 320} {
			b.Size(width, 900)
			assert.LessOrEqual(t, overflow(b), 0.0, "%s at %d pixels: parts that do not fit scroll by themselves", name, width)
		}
	}
	s.mu.Lock()
	assert.Empty(t, s.asked, "a page asks for nothing")
	s.mu.Unlock()
	saveShots(t, b, s)
}

// overflow is by how many pixels the page is wider than the screen.
func overflow(b *pagetest.Browser) (pixels float64) {
	b.Eval(&pixels, `return document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	return pixels
}

// What the policy forbids does not happen even where somebody gets markup into a page.
func TestPolicyInBrowser(t *testing.T) {
	t.Parallel()
	b := pagetest.OpenBrowser(t)
	text := stories(t)["/split"]
	const inject = `<script>document.title = "owned"</script><img src="/image" onerror="document.title = 'owned'"><style>body { color: rgb(1, 2, 3) }</style><link rel="stylesheet" href="/sheet"><iframe src="/frame"></iframe>`
	s := &site{pages: map[string][]byte{"/": bytes.Replace(text, []byte("<main>"), []byte("<main>"+inject), 1)}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	b.Load(s.URL + "/")
	var shown struct {
		Title, Color, Card string
	}
	b.Eval(&shown, `return {title: document.title, color: getComputedStyle(document.body).color,
		card: getComputedStyle(document.querySelector(".figures div")).borderRadius}`)
	assert.Contains(t, shown.Title, "10.0.3.20")
	assert.NotEqual(t, "rgb(1, 2, 3)", shown.Color)
	assert.Equal(t, "6px", shown.Card, "its own style applies")
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(t, s.asked)
}

// Keys of WebDriver.
const (
	tab   = "\uE004"
	enter = "\uE007"
)

// All that can be worked with can be reached by the keyboard.
func TestKeyboardInBrowser(t *testing.T) {
	t.Parallel()
	b := pagetest.OpenBrowser(t)
	s := &site{pages: stories(t)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	b.Load(s.URL + "/split")
	var reached []string
	for range 4 {
		b.Press(tab)
		var at string
		b.Eval(&at, `const e = document.activeElement; return e.tagName + " " + (e.getAttribute("aria-labelledby") || e.textContent)`)
		reached = append(reached, at)
	}
	assert.Equal(t, []string{"DIV hosts", "A the table of columns", "DIV spells", "SUMMARY Show 300 rows, of one look each"}, reached)
	b.Press(enter)
	var height float64
	b.Eval(&height, `return document.getElementById("cell-300").getBoundingClientRect().height`)
	assert.Positive(t, height, "the table is open")
}

// contrasts returns, of all texts, the least contrast to what is behind them (WCAG 2.2,
// 1.4.3), by what they are.
const contrasts = `
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgb = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => { const f = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 255]; };
	const least = {};
	const note = (what, value) => { least[what] = Math.min(least[what] ?? 99, value); };
	for (const e of document.querySelectorAll("h1, h2, p, dt, dd, li, th, td, a, strong, code, summary"))
		if (e.textContent.trim()) note(e.tagName + "." + (e.className || e.parentElement.className), ratio(rgb(getComputedStyle(e).color), behind(e)));
	for (const e of document.querySelectorAll("svg text")) {
		const box = e.classList.contains("on") ? [...e.parentElement.querySelectorAll("rect")].find(r =>
			Math.abs(r.x.baseVal.value + r.width.baseVal.value / 2 - e.x.baseVal[0].value) < 1 && r.y.baseVal.value < e.y.baseVal[0].value && e.y.baseVal[0].value < r.y.baseVal.value + r.height.baseVal.value + 1) : null;
		note("svg." + e.getAttribute("class") + "." + (box ? box.getAttribute("class") : ""), ratio(rgb(getComputedStyle(e).fill), box ? rgb(getComputedStyle(box).fill) : behind(e)));
	}
	return {least, paper: getComputedStyle(document.body).backgroundColor};`

func TestContrastInBrowser(t *testing.T) {
	t.Parallel()
	b := pagetest.OpenBrowser(t)
	s := &site{pages: stories(t)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	papers := map[string]bool{}
	for name := range s.pages {
		b.Load(s.URL + name)
		for _, scheme := range []string{"light", "dark"} {
			b.Prefers(scheme)
			var seen struct {
				Least map[string]float64
				Paper string
			}
			b.Eval(&seen, contrasts)
			papers[scheme+seen.Paper] = true
			require.NotEmpty(t, seen.Least)
			for what, ratio := range seen.Least {
				assert.GreaterOrEqual(t, ratio, 4.5, "%s, %s: %s", name, scheme, what)
			}
		}
	}
	assert.Len(t, papers, 2, "light and dark: %v", papers)
}

var pdfPage = regexp.MustCompile(`/Type ?/Page\b`)

func TestPrintInBrowser(t *testing.T) {
	t.Parallel()
	b := pagetest.OpenBrowser(t)
	s := &site{pages: stories(t)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	for name, most := range map[string]int{"/quiet": 3, "/day": 4, "/hostile": 4, "/none": 1} {
		b.Load(s.URL + name)
		b.Prefers("dark") // paper is light all the same
		pdf := b.Print()
		pages := len(pdfPage.FindAll(pdf, -1))
		assert.Positive(t, pages, name)
		assert.LessOrEqual(t, pages, most, name)
		if dir := os.Getenv("PAGES"); dir != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o600))
		}
	}
}

// saveShots keeps pages and pictures of them where PAGES says, to be looked at.
func saveShots(t *testing.T, b *pagetest.Browser, s *site) {
	dir := os.Getenv("PAGES")
	if dir == "" {
		return
	}
	for name, text := range s.pages {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".html"), text, 0o600))
		b.Load(s.URL + name)
		for _, scheme := range []string{"light", "dark"} {
			b.Prefers(scheme)
			for _, width := range []int{1280, 390} {
				b.Size(width, 1700)
				shot := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
				require.NoError(t, os.WriteFile(shot, b.Screenshot(), 0o600))
			}
		}
	}
}
