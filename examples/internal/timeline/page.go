package timeline

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/netip"
	"strings"
	"time"
)

// Page is what a page says beside the timeline. Its texts may be foreign.
type Page struct {
	Program string     // which made it, such as "whoanswers"
	Target  netip.Addr // the address that was asked for
	Verdict Judgement
	Text    string // the verdict in words
	// Ended says why the soak ended before its time, such as an error or that it was
	// interrupted; empty if it did not.
	Ended    string
	Plan     string // how it was asked, such as "every 1s for 10m"
	Expected string // who should answer, and who says so; empty if that is not known
	Findings []Finding
	Made     time.Time // now
}

// Finding is a conclusion of the program.
type Finding struct {
	Severity string // error, warning, info or unknown
	Rule     string
	Message  string
}

//go:embed page.gohtml
var pageSource string

//go:embed page.css
var style string

// view is what the template shows.
type view struct {
	Page
	Policy   string // Content-Security-Policy
	Style    template.CSS
	Word     string // the verdict in a word
	Class    string
	Asked    string
	When     string
	Figures  []figure
	Hosts    []hostRow
	Parts    []part
	Span     string // what a cell is
	Many     bool   // a cell has several looks
	HasCache bool
	HasCheck bool
	Signs    []column
	Spells   []row
	Rest     *row // spells that are left out
	Rows     []row
}

// figure is a number that sums up.
type figure struct {
	Value, Label string
	Bad          bool
}

// hostRow tells of a host in the legend.
type hostRow struct {
	Sign      column
	MAC, Node string
	Right     string
	Wrong     bool
	Answered  int
	Share     string
}

// WriteHTML writes a page that needs no other file and no network, whose policy
// forbids scripts and requests, and in which all text is only text.
func (t *Timeline) WriteHTML(w io.Writer, p Page) error {
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	if err := page.Execute(w, t.view(p)); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	return nil
}

func (t *Timeline) view(p Page) view {
	p.Text, p.Ended, p.Plan, p.Expected = short(p.Text, maxText), short(p.Ended, maxText), short(p.Plan, maxText), short(p.Expected, maxText)
	findings := make([]Finding, 0, len(p.Findings))
	for _, f := range p.Findings[:min(len(p.Findings), maxSpells)] {
		findings = append(findings, Finding{short(f.Severity, maxName), short(f.Rule, maxName), short(f.Message, maxText)})
	}
	p.Findings = findings
	hash := sha256.Sum256([]byte(style))
	v := view{
		Page: p, Style: template.CSS(style), // our own
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'",
		Asked:  t.asked(), When: t.when(), Figures: t.figures(), Rows: t.rows(),
		Span: t.span(), Many: t.per > 1,
	}
	v.Word, v.Class = verdictWord(p.Verdict)
	picture := t.picture(v.Rows)
	v.Parts, v.Signs, v.Hosts, v.HasCache, v.HasCheck = picture.parts(), picture.signs(), picture.legend(), picture.cache, picture.check
	spells, rest := t.spells()
	v.Spells = spells
	if rest.looks+rest.skipped > 0 {
		r := t.row(&rest)
		v.Rest = &r
	}
	return v
}

// maxText is how many characters of a text of the program are shown.
const maxText = 1000

func verdictWord(j Judgement) (word, class string) {
	switch j {
	case Good:
		return "Good", "good"
	case Bad:
		return "Not good", "bad"
	}
	return "Undecided", "unsure"
}

// asked says who asked.
func (t *Timeline) asked() string {
	v := t.vantage
	if v.Interface == "" {
		return ""
	}
	text := "on " + short(v.Interface, maxName)
	if v.Sender.Addr.IsValid() {
		text += " as " + v.Sender.Addr.String()
	}
	text += " (" + v.MAC.String() + ")"
	if v.Vantage != "" {
		text += " from " + short(v.Vantage, maxName)
	}
	return text
}

func (t *Timeline) when() string {
	if len(t.cells) == 0 {
		return "no look was completed"
	}
	last := t.cells[len(t.cells)-1].to
	return fmt.Sprintf("%s to %s UTC, %s", t.start.UTC().Format(time.DateTime), last.UTC().Format(time.DateTime), Brief(last.Sub(t.start).Round(time.Second)))
}

// span says what a cell is.
func (t *Timeline) span() string {
	switch {
	case t.per == 1:
		return "one look"
	case t.every == 0:
		return fmt.Sprintf("%d looks", t.per)
	}
	return fmt.Sprintf("%s, which is %d looks", Brief(time.Duration(t.per)*t.every), t.per)
}

// all is all cells in one.
func (t *Timeline) all() (all cell) {
	for _, c := range t.cells {
		all.merge(c)
	}
	return all
}

func (t *Timeline) figures() []figure {
	s, faults := &t.sum, t.all().faults
	list := []figure{
		{fmt.Sprint(s.Samples), "looks", false},
		{fmt.Sprint(t.faulty), "with a fault", t.faulty > 0},
		{fmt.Sprint(t.unsure), "undecided", false},
		{fmt.Sprint(s.Several), "answered by several MACs", faults[several] > 0},
		{fmt.Sprint(s.Flips), "flips of the first to answer", faults[flapping] > 0},
		{fmt.Sprint(s.Silent), "silent", faults[silent] > 0},
		{s.LongestSilence.Round(10 * time.Millisecond).String(), "longest silence", faults[silent] > 0},
		{fmt.Sprint(s.Gratuitous), "gratuitous frames", false},
		{fmt.Sprint(s.Skipped), "skipped", false},
	}
	if s.Checks > 0 {
		list = append(list,
			figure{fmt.Sprintf("%d of %d", s.Failures, s.Checks), "checks failed", s.Failures > 0},
			figure{fmt.Sprint(s.FailuresWrongMAC), "failed with a wrong MAC cached", s.FailuresWrongMAC > 0},
			figure{fmt.Sprint(s.FailuresRightMAC), "failed with the expected one", false},
		)
		if s.Failures < s.Checks {
			list = append(list, figure{latency(s.MeanLatency()), "mean of checks that succeed", false}, figure{latency(s.MaxLatency), "slowest of them", false})
		}
	}
	return list
}

func (p picture) legend() []hostRow {
	all := p.all()
	rounds := 0
	for _, n := range all.won {
		rounds += n
	}
	rows := make([]hostRow, 0, len(p.hosts))
	for i, h := range p.hosts {
		sign := column{Title: letter(i)}
		p.host(&sign, i, signX, signLane)
		rows = append(rows, hostRow{
			Sign: sign, Wrong: p.isUnexpected(i), MAC: h.mac.String(), Node: short(h.known.Node, maxName), Right: h.known.Right.String(),
			Answered: all.answered[i], Share: percent(all.won[i], rounds),
		})
	}
	return rows
}

// percent never rounds to none or all what is not.
func percent(n, all int) string {
	switch {
	case all == 0 || n == 0:
		return "0 %"
	case n < all && 100*n < all:
		return "< 1 %"
	case n < all && 100*n > 99*all:
		return "> 99 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(all))
}

// Brief writes 2m for 2m0s.
func Brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
