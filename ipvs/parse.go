package ipvs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// maxLine is the longest line that is read, in bytes. The kernel's longest,
	// an IPv6 service with persistence, has about 90.
	maxLine = 4 << 10
	// maxSyntaxErrors is how many lines are complained of one by one. One is
	// enough to know where to look; the rest is counted.
	maxSyntaxErrors = 10
	// maxSyntaxText is how much of a line is quoted, in bytes.
	maxSyntaxText = 120
)

const (
	repeatedService = "the service was there before"
	repeatedServer  = "the service has this real server already"
)

// SyntaxError is a line that ParseTable could not use.
type SyntaxError struct {
	Line   int    // from 1
	Text   string // the line, or its start
	Reason string
}

// Error tells where, what and why.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %q: %s", e.Line, e.Text, e.Reason) }

// ParseTable reads the text of /proc/net/ip_vs, as ip_vs_info_seq_show in the
// kernel's net/netfilter/ipvs/ip_vs_ctl.c writes it.
//
// Lines that it cannot use make it return an error along with the Table of all
// other lines: each of the first 10 is a *SyntaxError in the error's chain, the
// others are counted. A real server is only used if its service's line was. If
// the text does not begin as that file does the error matches ErrNotTable, and
// an error of r is wrapped.
func ParseTable(r io.Reader) (Table, error) {
	t, _, err := parseTable(r)
	return t, err
}

// parseTable also reports whether the only fault is that services or real
// servers are there twice.
func parseTable(r io.Reader) (t Table, onlyRepeats bool, err error) {
	p := parser{seen: map[string]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		p.number++
		p.line(lines.Text())
		if p.fatal != nil {
			return Table{}, false, fmt.Errorf("ipvs: parse IPVS table: line %d: %w", p.number, p.fatal)
		}
	}
	p.finish()
	p.end(lines.Err())
	p.table.sort()
	if err := errors.Join(p.errs...); err != nil {
		return p.table, p.others == 0, fmt.Errorf("ipvs: parse IPVS table: %w", err)
	}
	return p.table, false, nil
}

type parser struct {
	table  Table
	number int // of the line
	header bool
	fatal  error
	errs   []error
	more   int // syntax errors beyond maxSyntaxErrors
	others int // errors that are not repeats

	service *pending       // whose real servers come now; nil if its line was bad
	seen    map[string]int // how often a service came
}

// pending is a service until its last real server was read.
type pending struct {
	Service
	servers map[netip.AddrPort]bool
}

func (p *parser) line(line string) {
	fields := strings.Fields(line)
	switch {
	case len(fields) == 0: // an editor's
	case !p.header:
		p.fatal = p.first(line)
		p.header = true
	case fields[0] == "Prot" || fields[0] == "->" && len(fields) > 1 && fields[1] == "RemoteAddress:Port":
	case fields[0] == "->":
		if reason := p.realServer(fields); reason != "" {
			p.complain(line, reason)
		}
	default:
		p.finish()
		s, reason := parseService(fields)
		if reason == "" {
			reason = p.duplicate(s)
		}
		if reason != "" {
			p.complain(line, reason)
			return
		}
		p.service = &pending{Service: s, servers: map[netip.AddrPort]bool{}}
	}
}

// end is told how reading ended.
func (p *parser) end(err error) {
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("line %d: more than %d bytes: reading ends here", p.number+1, maxLine)
	case err != nil:
		err = fmt.Errorf("after line %d: %w", p.number, err)
	case !p.header:
		err = fmt.Errorf("%w: it is empty", ErrNotTable)
	}
	if err != nil {
		p.others++
		p.errs = append(p.errs, err)
	}
	if p.more > 0 {
		p.errs = append(p.errs, fmt.Errorf("and %d more lines", p.more))
	}
}

// finish ends the list of a service's real servers.
func (p *parser) finish() {
	if p.service != nil {
		p.table.Services = append(p.table.Services, p.service.Service)
	}
	p.service = nil
}

func (p *parser) complain(line, reason string) {
	if reason != repeatedService && reason != repeatedServer {
		p.others++
	}
	if len(p.errs) >= maxSyntaxErrors {
		p.more++
		return
	}
	if len(line) > maxSyntaxText {
		line = line[:maxSyntaxText]
	}
	p.errs = append(p.errs, &SyntaxError{Line: p.number, Text: line, Reason: reason})
}

func (p *parser) first(line string) error {
	var size int
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "IP Virtual Server version ")
	version, rest, found := strings.Cut(rest, " ")
	if _, err := fmt.Sscanf(rest, "(size=%d)", &size); !ok || !found || err != nil || size < 0 {
		if len(line) > maxSyntaxText {
			line = line[:maxSyntaxText]
		}
		return fmt.Errorf("%w: it begins with %q, not with \"IP Virtual Server version\" and a size", ErrNotTable, line)
	}
	p.table.Version, p.table.ConnTable = version, size
	return nil
}

// duplicate returns a reason if the service cannot be there: the kernel has a
// firewall mark once for each of IPv4 and IPv6, and all else once.
func (p *parser) duplicate(s Service) string {
	id, allowed := s.String(), 1
	if s.Protocol == "" {
		id, allowed = strconv.FormatUint(uint64(s.FWMark), 10), 2
	}
	p.seen[id]++
	if p.seen[id] > allowed {
		return repeatedService
	}
	return ""
}

// realServer reads "-> 0AF40102:1F90 Masq 1 0 0".
func (p *parser) realServer(f []string) (reason string) {
	if p.service == nil {
		return "a real server of no service: the line of its service is missing or could not be used"
	}
	if len(f) != 6 {
		return "a real server has an address, a way of forwarding, a weight and two numbers of connections"
	}
	at, reason := parseAddr(f[1])
	if reason != "" {
		return reason
	}
	r := RealServer{Addr: at.Addr(), Port: at.Port(), Forward: Forward(strings.ToLower(f[2]))}
	switch r.Forward {
	case Masq, Local, Tunnel, Route:
	default:
		return fmt.Sprintf("%q is no way of forwarding: Masq, Local, Tunnel and Route are", f[2])
	}
	for i, n := range []*int{&r.Weight, &r.ActiveConns, &r.InactiveConns} {
		v, err := strconv.ParseInt(f[3+i], 10, 32)
		if err != nil || i == 0 && v < 0 {
			return fmt.Sprintf("%q is no weight or number of connections", f[3+i])
		}
		*n = int(v)
	}
	if p.service.servers[at] {
		return repeatedServer
	}
	p.service.servers[at] = true
	// A firewall mark's line does not tell its family, a real server does.
	p.service.IPv6 = p.service.IPv6 || at.Addr().Is6() && p.service.Protocol == ""
	p.service.RealServers = append(p.service.RealServers, r)
	return ""
}
