package timeline_test

import (
	"os"
	"testing"

	"github.com/strictarp/strictarp/examples/internal/timeline"
)

func TestDemo(t *testing.T) {
	os.MkdirAll("/tmp/pages", 0o755)
	hostilePage := page(timeline.Bad)
	hostilePage.Findings = []timeline.Finding{{Severity: "error", Rule: "multiple-responders", Message: hostile}}
	hostilePage.Ended, hostilePage.Expected = hostile, hostile
	for name, c := range map[string]struct {
		t *timeline.Timeline
		p timeline.Page
	}{
		"split": {split(), page(timeline.Bad)}, "quiet": {quiet(), page(timeline.Good)}, "day": {day(), page(timeline.Bad)}, "hostile": {verified(), hostilePage},
		"empty": {timeline.New(0, known), page(timeline.Undecided)},
	} {
		f, err := os.Create("/tmp/pages/" + name + ".html")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.t.WriteHTML(f, c.p); err != nil {
			t.Fatal(err)
		}
		t.Log(name, c.t.Line(false))
		f.Close()
	}
}
