package strictarp

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/strictarp/strictarp/sysctl"
)

// maxCounters is how many are kept: a kernel has some 500.
const maxCounters = 4096

// ParseCounters reads what "nstat -az" prints, or /proc/net/netstat and
// /proc/net/snmp, and names counters as nstat does. Warnings and error are as those
// of ParseRoutes; so is a counter beyond 4096.
func ParseCounters(r io.Reader) (map[string]uint64, []sysctl.Warning, error) {
	p := counterParser{counters: map[string]uint64{}}
	lines, err := eachLine(r, p.line)
	if err != nil {
		err = fmt.Errorf("strictarp: parse counters: %w", err)
	}
	return p.counters, p.warnings.done(lines), err
}

type counterParser struct {
	counters map[string]uint64
	group    string   // of the line of names before, in /proc
	names    []string // of that line
	warnings warnings
}

func (p *counterParser) line(number int, text string) {
	fields := strings.Fields(text)
	switch {
	case fields[0][0] == '#':
	case strings.HasSuffix(fields[0], ":"):
		p.procLine(number, text, strings.TrimSuffix(fields[0], ":"), fields[1:])
	case len(fields) >= 2:
		p.set(number, text, fields[0], fields[1])
	default:
		p.warnings.add(number, text, "not a counter with its value")
	}
}

// procLine takes a line of names or the line of their values that follows it.
func (p *counterParser) procLine(number int, text, group string, fields []string) {
	if p.group != group {
		p.group, p.names = group, fields
		return
	}
	for i, value := range fields[:min(len(fields), len(p.names))] {
		if !strings.HasPrefix(value, "-") { // a limit of Tcp, -1 for none
			p.set(number, text, group+p.names[i], value)
		}
	}
	p.group, p.names = "", nil
}

func (p *counterParser) set(number int, text, name, value string) {
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case err != nil:
		p.warnings.add(number, text, strconv.Quote(value)+" is not the value of a counter")
	case len(p.counters) >= maxCounters:
		p.warnings.add(number, text, fmt.Sprintf("more than %d counters", maxCounters))
	default:
		p.counters[strings.ToValidUTF8(name, "\uFFFD")] = n
	}
}
