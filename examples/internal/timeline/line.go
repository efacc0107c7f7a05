package timeline

import (
	"fmt"
	"strings"
	"time"
)

// colors are those of hosts on a terminal, after the letters; red is for faults.
var colors = [...]string{"34", "33", "32", "35", "36", "37"}

// Line tells the last look in one line, for somebody who watches a terminal: the host
// that was first by its letter in the page, MAC and node, in its color, then the
// others, the check, the cache, and what is wrong.
func (t *Timeline) Line(color bool) string {
	p := paint(color)
	l, s := t.last, t.shown
	if t.sum.Samples == 0 {
		return ""
	}
	line := l.At.UTC().Format(time.TimeOnly) + " "
	for k, i := range s.answered {
		if k == 0 {
			line += t.hostLine(p, i)
		} else {
			line += " +" + p.host(i, letter(i))
		}
	}
	if s.silent {
		line += p.text("31", " × nobody answers")
	}
	if s.unsure {
		line += p.text("33", " ? undecided")
	}
	if l.Check.Ran && l.Check.OK {
		line += "  check " + latency(l.Check.Latency)
	}
	switch s.cached {
	case notObserved:
	case noEntry:
		line += "  cached -"
	default:
		line += "  cached " + p.host(s.cached, letter(s.cached))
	}
	if n := l.Gratuitous(); n > 0 {
		line += "  " + plural(n, "gratuitous frame")
	}
	if s.flip {
		line += "  flip"
	}
	if l.Skipped > 0 {
		line += fmt.Sprintf("  %d skipped", l.Skipped)
	}
	return line + t.faultLine(p)
}

func (t *Timeline) hostLine(p paint, i int) string {
	if i >= len(t.hosts) {
		return p.host(i, " "+t.name(i)+" ")
	}
	text := p.host(i, " "+letter(i)+" ") + " " + t.hosts[i].mac.String()
	if node := t.hosts[i].known.Node; node != "" {
		text += " " + short(node, maxName)
	}
	return text
}

// faultLine says what is wrong, in words.
func (t *Timeline) faultLine(p paint) string {
	var wrong []string
	for kind, is := range t.shown.faults {
		if is && fault(kind) != silent { // which the line begins with
			wrong = append(wrong, faultNames[kind])
		}
	}
	wrong = append(wrong, t.shown.notes...)
	switch {
	case len(wrong) == 0:
		return ""
	case t.shown.faulty():
		return "  " + p.text("1;31", "! "+strings.Join(wrong, "; "))
	}
	return "  " + strings.Join(wrong, "; ")
}

// paint colors text, or does not.
type paint bool

func (p paint) text(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// host shows a letter, or more of a host, as a sign in its color.
func (p paint) host(i int, text string) string { return p.text("1;7;"+colors[i%len(colors)], text) }
