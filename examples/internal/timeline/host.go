package timeline

import (
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// maxHosts is how many hosts have a letter and a look of their own: eight colors,
// plain and underlined. More answer only where somebody forges answers, and are shown
// together.
const maxHosts = 16

// counts is how often each host did something; the last is of all others.
type counts [maxHosts + 1]int

// host is a MAC that answered, or is cached.
type host struct {
	mac   arpcheck.MAC
	known Known
}

// meet returns the index of a host.
func (t *Timeline) meet(mac arpcheck.MAC) int {
	i, met := t.index[mac]
	if !met {
		if len(t.hosts) == maxHosts {
			return maxHosts
		}
		i = len(t.hosts)
		t.index[mac] = i
		t.hosts = append(t.hosts, host{mac: mac})
	}
	if h := &t.hosts[i]; h.known.Node == "" {
		h.known = t.known(mac)
	}
	return i
}

// isUnexpected reports whether it is known that a host is not to answer.
func (t *Timeline) isUnexpected(i int) bool {
	return i < len(t.hosts) && t.hosts[i].known.Right == Unexpected
}

// letter names a host in the picture and on a terminal.
func letter(i int) string {
	if i == maxHosts {
		return "+"
	}
	return string(rune('A' + i))
}

// name names a host to people: its letter, and its node or else its MAC.
func (t *Timeline) name(i int) string {
	switch {
	case i >= len(t.hosts):
		return letter(maxHosts) + " others"
	case t.hosts[i].known.Node != "":
		return letter(i) + " " + short(t.hosts[i].known.Node, maxName)
	}
	return letter(i) + " " + t.hosts[i].mac.String()
}

// Characters of foreign text that are shown at most: names of Kubernetes have 253, and
// nobody reads more of an error.
const (
	maxName = 60
	maxNote = 300
)

// short makes foreign text visible and cuts it.
func short(text string, most int) string {
	if len(text) > 4*most { // as many bytes as most characters can have
		text = text[:4*most]
	}
	runes := []rune(safetext.Visible(text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}
