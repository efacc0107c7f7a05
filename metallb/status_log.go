package metallb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// SpeakerLog is what the log of one speaker says about its announcements, at its
// end: what an earlier line says is dropped when a later one takes it back or
// tells of a restart.
type SpeakerLog struct {
	Node   string `json:"node,omitempty"`   // set by the caller: where the speaker runs
	Source string `json:"source,omitempty"` // set by the caller: such as a file's name

	First time.Time `json:"first,omitzero"` // of the first line with a time
	Last  time.Time `json:"last,omitzero"`  // of the last one
	Lines int       `json:"lines"`
	// Skipped are lines that are longer than 1 MiB or no log lines of a speaker.
	Skipped int `json:"skipped,omitempty"`
	// Dropped are facts beyond the first 4096 of each kind.
	Dropped int `json:"dropped,omitempty"`

	// Version is what it says that it starts as; Started is when. Without Started
	// the log begins later, and what was said before is not known.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`

	Announced  []LogAnnouncement `json:"announced,omitempty"`  // and not withdrawn
	Withdrawn  []LogAnnouncement `json:"withdrawn,omitempty"`  // and not announced again
	Responders []string          `json:"responders,omitempty"` // interfaces with an ARP responder, sorted
	// Scans are failures of the scan for interfaces, which ends at the first one:
	// interfaces that come after it in the kernel's order are not seen, and no
	// responder is made for them (updateInterfaces of internal/layer2/announcer.go).
	Scans []LogFailure `json:"scans,omitempty"`
	// Sockets are failures to open the raw socket of an ARP responder, of
	// interfaces where it did not work later.
	Sockets []LogFailure `json:"sockets,omitempty"`
	// Statuses are failures to write a ServiceL2Status: what it says is then old.
	Statuses []LogFailure `json:"statuses,omitempty"`
	// Interfaces are announcements that were given up because no interface of the
	// L2Advertisement exists.
	Interfaces []LogFailure `json:"interfaces,omitempty"`
}

// LogAnnouncement is the begin or end of an announcement in layer-2 mode.
type LogAnnouncement struct {
	// Service is namespace/name. Since MetalLB 0.13 lines name the addresses only,
	// and Services that share one cannot be told apart.
	Service string       `json:"service,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	At      time.Time    `json:"at,omitzero"`
	Reason  string       `json:"reason,omitempty"` // why it was withdrawn
}

// LogFailure is a failure that the log tells of, repetitions counted.
type LogFailure struct {
	Interface  string    `json:"interface,omitempty"`
	Service    string    `json:"service,omitempty"` // namespace/name
	Err        string    `json:"err"`
	Permission bool      `json:"permission,omitempty"` // it lacks the right to do it
	First      time.Time `json:"first,omitzero"`
	Last       time.Time `json:"last,omitzero"`
	Count      int       `json:"count"`
}

const (
	maxLogLine  = 1 << 20 // bytes: MetalLB logs its whole configuration in one line
	maxLogFacts = 4096    // of each kind: a node announces fewer Services
	maxLogText  = 1024    // bytes kept of a text
)

// ParseSpeakerLog reads a speaker's log, of MetalLB 0.9 to 0.16: lines of JSON or
// logfmt, also with the prefixes of kubectl logs --timestamps and --prefix and of
// a container runtime's files. It keeps at most what SpeakerLog says, however
// long the log is. The error is the reader's; what was read until then is
// returned with it.
func ParseSpeakerLog(r io.Reader) (SpeakerLog, error) {
	p := logParser{}
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, whole, err := readLine(br, maxLogLine)
		if len(line) > 0 || !whole {
			p.line(line, whole)
		}
		if errors.Is(err, io.EOF) {
			return p.result(), nil
		}
		if err != nil {
			return p.result(), fmt.Errorf("metallb: read the speaker's log after %d lines: %w", p.log.Lines, err)
		}
	}
}

// readLine returns the next line without its end; whole is false if it is longer
// than limit and was thrown away.
func readLine(br *bufio.Reader, limit int) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := br.ReadSlice('\n')
		if whole && len(line)+len(part) > limit {
			line, whole = nil, false
		}
		if whole {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), whole, err
	}
}

type logParser struct {
	log        SpeakerLog
	responders map[string]bool
}

func (p *logParser) result() SpeakerLog {
	p.log.Responders = nil
	for name := range p.responders {
		p.log.Responders = append(p.log.Responders, name)
	}
	slices.Sort(p.log.Responders)
	return p.log
}

func (p *logParser) line(line []byte, whole bool) {
	p.log.Lines++
	fields, ok := logFields(string(line))
	if !whole || !ok {
		p.log.Skipped++
		return
	}
	if at := fields.time(); !at.IsZero() {
		if p.log.First.IsZero() {
			p.log.First = at
		}
		p.log.Last = at
	}
	p.fact(fields)
}

// fact goes by the keys that the lines have had since 0.9; only levels and
// callers changed.
func (p *logParser) fact(f logLine) {
	at := f.time()
	event, op := f.text("event"), f.text("op")
	iface, service, failure := f.text("interface"), f.text("service"), f.text("error")
	switch {
	case strings.HasPrefix(f.text("msg"), "MetalLB speaker starting"):
		*p = logParser{log: SpeakerLog{First: p.log.First, Last: p.log.Last, Lines: p.log.Lines, Skipped: p.log.Skipped, Dropped: p.log.Dropped,
			Version: strings.TrimPrefix(f.text("version"), "v"), Started: at}}
	case event == "serviceAnnounced" && f.layer2():
		p.announced(&p.log.Announced, &p.log.Withdrawn, LogAnnouncement{Service: service, IPs: f.ips(), At: at})
	case event == "serviceWithdrawn" && f.layer2():
		p.announced(&p.log.Withdrawn, &p.log.Announced, LogAnnouncement{Service: service, IPs: f.ips(), At: at, Reason: f.text("reason")})
	case event == "createARPResponder":
		p.respond(iface)
	case event == "deleteARPResponder":
		delete(p.responders, iface)
	case op == "createARPResponder":
		p.failed(&p.log.Sockets, LogFailure{Interface: iface, Err: failure, Permission: lacksPermission(failure), Last: at})
	case op == "getAddresses" || op == "getInterfaces":
		p.failed(&p.log.Scans, LogFailure{Interface: iface, Err: failure, Permission: lacksPermission(failure), Last: at})
	case op == "SetBalancer" && strings.Contains(f.text("msg"), "interfaces used to announce"):
		p.failed(&p.log.Interfaces, LogFailure{Service: service, Err: f.text("msg"), Last: at})
	case f.text("controller") == "servicel2status" && failure != "":
		p.failed(&p.log.Statuses, LogFailure{Service: f.reconciled(), Err: failure, Permission: lacksPermission(failure), Last: at})
	}
}

func (p *logParser) respond(iface string) {
	if p.responders == nil {
		p.responders = map[string]bool{}
	}
	if len(p.responders) >= maxLogFacts {
		p.log.Dropped++
		return
	}
	p.responders[iface] = true
	p.log.Sockets = slices.DeleteFunc(p.log.Sockets, func(f LogFailure) bool { return f.Interface == iface })
}

func lacksPermission(err string) bool {
	for _, s := range []string{"operation not permitted", "permission denied", "forbidden"} {
		if strings.Contains(err, s) {
			return true
		}
	}
	return false
}

// announced puts the fact into one list and takes it out of the other.
func (p *logParser) announced(to, from *[]LogAnnouncement, a LogAnnouncement) {
	same := func(b LogAnnouncement) bool {
		return b.Service == a.Service && (a.Service != "" || slices.Equal(a.IPs, b.IPs))
	}
	*from = slices.DeleteFunc(*from, same)
	*to = slices.DeleteFunc(*to, same)
	if len(*to) >= maxLogFacts {
		p.log.Dropped++
		return
	}
	*to = append(*to, a)
}

// failed counts the failure, as one with those that say the same.
func (p *logParser) failed(to *[]LogFailure, f LogFailure) {
	i := slices.IndexFunc(*to, func(g LogFailure) bool {
		return g.Interface == f.Interface && g.Service == f.Service && g.Err == f.Err
	})
	if i < 0 {
		if len(*to) >= maxLogFacts {
			p.log.Dropped++
			return
		}
		f.First = f.Last
		*to = append(*to, f)
		i = len(*to) - 1
	}
	(*to)[i].Count++
	(*to)[i].Last = f.Last
}

// logLine is a line's keys and values.
type logLine map[string]any

// logFields reads a line as JSON from its first brace on, or as logfmt.
func logFields(line string) (logLine, bool) {
	prefix, rest, found := strings.Cut(line, "{")
	if found {
		var fields logLine
		if json.Unmarshal([]byte("{"+rest), &fields) == nil && fields != nil {
			if _, ok := fields["ts"]; !ok {
				fields["ts"] = prefixTime(prefix)
			}
			return fields, true
		}
	}
	return logfmt(line)
}

// prefixTime returns the first word that is a time, as kubectl and container
// runtimes put it before each line.
func prefixTime(prefix string) string {
	for _, word := range strings.Fields(prefix) {
		if _, err := time.Parse(time.RFC3339Nano, word); err == nil {
			return word
		}
	}
	return ""
}

func (l logLine) text(key string) string {
	s, _ := l[key].(string)
	return clip(s)
}

// clip bounds what is kept of a text that somebody else wrote.
func clip(s string) string {
	if len(s) > maxLogText {
		s = strings.ToValidUTF8(s[:maxLogText], "")
	}
	return strings.Clone(s)
}

func (l logLine) time() time.Time {
	if seconds, ok := l["ts"].(float64); ok && seconds > 0 && seconds < 1<<40 {
		return time.UnixMilli(int64(seconds * 1000)).UTC()
	}
	at, err := time.Parse(time.RFC3339Nano, l.text("ts"))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// layer2 returns whether the line is about that protocol; before 0.13 lines did
// not say so where a pool had but one.
func (l logLine) layer2() bool {
	p := l.text("protocol")
	return p == "" || p == "layer2"
}

// ips reads the addresses: a list since 0.12, one before, and "[a b]" in logfmt.
func (l logLine) ips() []netip.Addr {
	var addrs []netip.Addr
	for _, key := range []string{"ips", "ip"} {
		for _, text := range texts(l[key]) {
			for _, word := range strings.FieldsFunc(clip(text), func(r rune) bool { return strings.ContainsRune("[], \"", r) }) {
				if a, err := netip.ParseAddr(word); err == nil && len(addrs) < 64 && !slices.Contains(addrs, a.Unmap()) {
					addrs = append(addrs, a.Unmap())
				}
			}
		}
	}
	return addrs
}

// reconciled returns the Service of a controller-runtime line.
func (l logLine) reconciled() string {
	if namespace, name := l.text("namespace"), l.text("name"); namespace != "" && name != "" {
		return namespace + "/" + name
	}
	return ""
}
