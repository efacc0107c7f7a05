package vm

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

const (
	shownOutput  = 400 // lines of a failed package's output
	shownConsole = 60  // lines of the console
)

// progress matches what go test leaves out, too, unless it is asked for more.
var progress = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME) | *--- PASS: )`)

// Print writes what became of each package, in the manner of go test, with the
// output of those that failed, then what was wrong with the machine. If not all
// passed, the end of its console follows: a package may fail because the kernel
// killed it for want of memory. If verbose, output is left out: onLine has had it.
func (s *Session) Print(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, r := range s.results {
		if !r.Passed && !verbose {
			writeTail(&b, r.output.without(progress), shownOutput)
		}
		b.WriteString(r.line())
	}
	if !s.Passed() {
		s.printTrouble(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) line() string {
	seconds := r.Elapsed.Round(time.Millisecond).Seconds()
	if !r.Passed {
		return fmt.Sprintf("FAIL\t%s\t%.3fs\t%s\n", r.Package, seconds, r.Why)
	}
	line := fmt.Sprintf("ok  \t%s\t%.3fs\t%d tests", r.Package, seconds, r.Tests)
	if len(r.Skipped) > 0 {
		line += fmt.Sprintf(", %d of them skipped: %s", len(r.Skipped), strings.Join(r.Skipped, ", "))
	}
	return line + "\n"
}

func (s *Session) printTrouble(b *strings.Builder) {
	for _, f := range s.faults {
		fmt.Fprintf(b, "FAIL\tmachine\t%s\n", f)
	}
	if len(s.console.lines) > 0 {
		b.WriteString("The console's last lines:\n")
		writeTail(b, &s.console, shownConsole)
	}
}

func writeTail(b *strings.Builder, t *tail, max int) {
	lines, before := t.last(max)
	if before > 0 {
		fmt.Fprintf(b, "(%d lines before these)\n", before)
	}
	for _, line := range lines {
		b.WriteString("    " + line + "\n")
	}
}
