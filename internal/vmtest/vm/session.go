package vm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

const (
	maxOutput  = 20_000 // lines of a package's output that are kept
	maxConsole = 200    // lines of the console that are kept
)

// Session judges one run of a machine by the lines that come out of it. It is
// suspicious: a package passed only if the machine said that it started, that
// it printed PASS and that it ended with status 0, in this order and once; and
// the run passed only if in addition the machine said that it was done, then
// stopped by itself, and its kernel found no fault in itself. It is not safe
// for concurrent use.
type Session struct {
	kernel  string
	results []*Result
	running *Result
	ready   bool
	done    bool
	faults  []string
	console tail
	onLine  func(string)
}

// Result is what became of one package.
type Result struct {
	Package string
	Passed  bool
	Why     string        // why not
	Elapsed time.Duration // as measured inside the machine; 0 if it did not end
	Tests   int           // top-level tests that ended
	Skipped []string      // those of them that were skipped

	output  tail
	started bool
	saidOK  bool
}

// NewSession returns a session that expects packages to run in this order.
// onLine, which may be nil, is given each line that a package writes.
func NewSession(packages []string, onLine func(string)) *Session {
	s := &Session{console: tail{max: maxConsole}, onLine: onLine}
	for _, p := range packages {
		s.results = append(s.results, &Result{Package: p, Why: "it was not run", output: tail{max: maxOutput}})
	}
	return s
}

// Report takes one line of the port for events.
func (s *Session) Report(line string) {
	e, err := wire.Parse([]byte(line))
	if err != nil {
		s.fault("the machine's report is not readable: %v", err)
		return
	}
	if problem := s.take(e); problem != "" {
		s.fault("the machine's report has event %q of package %q out of order: %s", e.Kind, e.Package, problem)
	}
}

// take returns what is wrong with an event, or "".
func (s *Session) take(e wire.Event) string {
	switch {
	case e.Kind == wire.Fatal:
		s.fault("the machine could not be set up: %s", e.Text)
		return ""
	case s.done:
		return "the machine was done"
	case e.Kind == wire.Ready:
		if s.ready {
			return "it was ready before"
		}
		s.ready, s.kernel = true, e.Text
		return ""
	case !s.ready:
		return "it is not ready"
	case e.Kind == wire.Start:
		return s.start(e)
	case e.Kind == wire.Done:
		if s.running != nil {
			return s.running.Package + " is running"
		}
		s.done = true
		return ""
	case s.running == nil || s.running.Package != e.Package:
		return "this package is not running"
	case e.Kind == wire.Output:
		s.output(e.Text)
	case e.Kind == wire.End:
		s.end(e)
	}
	return ""
}

func (s *Session) start(e wire.Event) string {
	if s.running != nil {
		return s.running.Package + " is running"
	}
	next := slices.IndexFunc(s.results, func(r *Result) bool { return !r.started })
	if next < 0 || s.results[next].Package != e.Package {
		return "it is not its turn"
	}
	s.running = s.results[next]
	s.running.started, s.running.Why = true, "it did not end"
	return ""
}

// testEnd matches the line that a top-level test ends with.
var testEnd = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \(`)

func (s *Session) output(line string) {
	r := s.running
	r.output.add(line)
	r.saidOK = r.saidOK || line == "PASS"
	if m := testEnd.FindStringSubmatch(line); m != nil {
		r.Tests++
		if m[1] == "SKIP" {
			r.Skipped = append(r.Skipped, m[2])
		}
	}
	if s.onLine != nil {
		s.onLine(line)
	}
}

func (s *Session) end(e wire.Event) {
	r := s.running
	s.running = nil
	r.Elapsed, r.Why = e.Elapsed, ""
	switch {
	case e.Text != "":
		r.Why = e.Text
	case e.Exit != 0:
		r.Why = fmt.Sprintf("exit status %d", e.Exit)
	case !r.saidOK:
		r.Why = "exit status 0, but without a line PASS: did something end the program early?"
	default:
		r.Passed = true
	}
}

// trouble matches what the kernel says when it has found a fault in itself:
// panic(), die(), BUG(), and what KASAN, lockdep and the hung task detector
// print where they are built in.
var trouble = regexp.MustCompile(`Kernel panic|\bOops\b|\bBUG: |kernel BUG at|general protection fault|Unable to handle kernel|blocked for more than`)

// Console takes one line of the console.
func (s *Session) Console(line string) {
	line = printable(line)
	s.console.add(line)
	if trouble.MatchString(line) {
		where := "no package was running"
		if s.running != nil {
			where = "while " + s.running.Package + " was running"
		}
		s.fault("the kernel reported a fault of its own (%s): %s", where, strings.TrimSpace(line))
	}
}

// End says that the machine is gone. err is how it ended, nil if by itself and
// in order.
func (s *Session) End(err error) {
	if !s.done {
		s.fault("the machine stopped before it was done")
	}
	if err != nil {
		s.fault("the machine did not stop in order: %v", err)
	}
	if s.running != nil {
		s.running.Why = "the machine stopped while it was running"
	}
}

// maxFaults is how many faults are kept: one is enough to fail, and the first
// tell most.
const maxFaults = 20

func (s *Session) fault(format string, args ...any) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// Passed reports whether all went well.
func (s *Session) Passed() bool {
	return len(s.faults) == 0 && s.done && len(s.results) > 0 &&
		!slices.ContainsFunc(s.results, func(r *Result) bool { return !r.Passed })
}

// Results returns what became of each package, in order.
func (s *Session) Results() []Result {
	list := make([]Result, len(s.results))
	for i, r := range s.results {
		list[i] = *r
	}
	return list
}

// Faults returns what went wrong with the run as a whole.
func (s *Session) Faults() []string { return slices.Clone(s.faults) }

// Kernel returns the release of the kernel that ran, or "" if it did not get
// that far.
func (s *Session) Kernel() string { return s.kernel }
