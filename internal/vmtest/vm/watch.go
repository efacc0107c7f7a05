package vm

import (
	"bufio"
	"context"
	"io"
	"strings"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// Limits are how long the parts of a run may take. They must be set.
type Limits struct {
	// Boot is from switching on until the machine is ready, between two
	// packages, and from done until it is off.
	Boot time.Duration
	// Package is for one package. The machine is given this time to end it by
	// itself, and wire.Grace more.
	Package time.Duration
}

// Watch feeds a session with what comes out of a machine until both its ports
// are at their end. If the machine takes longer than limits, or ctx ends, Watch
// says so to the session and calls kill, once; kill must make both ports end.
// The session's End is left to the caller.
func Watch(ctx context.Context, s *Session, console, reports io.Reader, limits Limits, kill func()) {
	consoleLines, reportLines := lines(console), lines(reports)
	ctxDone, stopped := ctx.Done(), false
	phase := s.phase()
	timer := time.NewTimer(limits.of(phase))
	defer timer.Stop()
	stop := func(format string, args ...any) {
		s.fault(format, args...)
		ctxDone, stopped = nil, true
		kill()
	}
	for consoleLines != nil || reportLines != nil {
		select {
		case line, ok := <-consoleLines:
			if !ok {
				consoleLines = nil
				continue
			}
			s.Console(line)
		case line, ok := <-reportLines:
			if !ok {
				reportLines = nil
				continue
			}
			s.Report(line)
		case <-timer.C: // once: it is not set again after this
			stop("the machine hangs: %s took longer than %v", phase, limits.of(phase))
		case <-ctxDone:
			timer.Stop()
			stop("stopped while %s was under way: %v", phase, context.Cause(ctx))
		}
		if now := s.phase(); now != phase && !stopped {
			phase = now
			timer.Reset(limits.of(phase))
		}
	}
}

// phase is what the machine is doing, for the clock and for people.
type phase struct {
	what      string
	inPackage bool
}

func (p phase) String() string { return p.what }

func (s *Session) phase() phase {
	switch {
	case s.running != nil:
		return phase{s.running.Package, true}
	case s.done:
		return phase{"switching off", false}
	case !s.ready:
		return phase{"starting up", false}
	}
	for _, r := range s.results {
		if !r.started {
			return phase{"going on to " + r.Package, false}
		}
	}
	return phase{"finishing", false}
}

func (l Limits) of(p phase) time.Duration {
	if p.inPackage {
		return l.Package + wire.Grace
	}
	return l.Boot
}

// lines sends the lines of r, also a last one without its end, and closes at
// the end of r. A read error is an end like any other: the session sees by
// what it was told whether something is missing.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		b := bufio.NewReader(r)
		for {
			line, err := b.ReadString('\n')
			if line != "" {
				out <- strings.TrimRight(line, "\r\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
