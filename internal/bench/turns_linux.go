package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// subject is what contenders do, each in its way.
type subject struct {
	title      string
	noun       string      // what is found
	want       int         // how many of these there are
	contenders []contender // the first is what the others are measured by
	close      func() error
}

type contender struct {
	name     string
	run      func(context.Context) (measurement, error)
	measured []measurement
}

type measurement struct {
	all    time.Duration // until the last was found
	end    time.Duration
	cpu    time.Duration
	found  int
	allocs uint64 // memory objects that this process has made
}

// turns lets all contenders run, one after the other, and again.
func (s *subject) turns(ctx context.Context, runs int) error {
	for turn := range runs + 1 {
		for i := range s.contenders {
			if err := ctx.Err(); err != nil {
				return err
			}
			debug.FreeOSMemory()              // what others have left, or it is freed meanwhile
			time.Sleep(20 * time.Millisecond) // for what is still under way
			m, err := s.contenders[i].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", s.contenders[i].name, err)
			}
			if turn > 0 { // the first warms caches and memory
				s.contenders[i].measured = append(s.contenders[i].measured, m)
			}
		}
	}
	return nil
}

// timed measures what a function does, by all threads of this process.
func timed(do func() (found int, err error)) (m measurement, err error) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	objects, begun, before := stats.Mallocs, time.Now(), cpu()
	m.found, err = do()
	m.all = time.Since(begun)
	m.end, m.cpu = m.all, cpu()-before
	runtime.ReadMemStats(&stats)
	m.allocs = stats.Mallocs - objects
	return m, err
}

// alone measures what a thread does by itself: the Go runtime's own work, which is
// done by others, is no part of a limit.
func alone(do func() (found int, err error)) (m measurement, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, before := time.Now(), clock(unix.CLOCK_THREAD_CPUTIME_ID)
	m.found, err = do()
	m.all = time.Since(begun)
	m.end, m.cpu = m.all, clock(unix.CLOCK_THREAD_CPUTIME_ID)-before
	return m, err
}

// cpu is the processor time this process has had. On veth pairs the nodes answer
// within the sender's system call, so theirs is in it, whoever sends.
func cpu() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // fails only for a bad pointer or id
	return time.Duration(t.Nano())
}

// place is where a program is started: it inherits the namespace of the thread.
type place interface{ Do(func() error) error }

// program runs a program and lets find look at each line that it prints; it returns
// whether the line is one of those that are counted. The program may exit with any
// status: some say so how many did not answer.
func program(cmd *exec.Cmd, where place, find func(line string) bool) (m measurement, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	begun := time.Now()
	if err := where.Do(cmd.Start); err != nil {
		return m, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20) // ip -json prints one line
	for lines.Scan() {
		if find(lines.Text()) {
			m.found++
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = errors.Join(lines.Err(), cmd.Wait())
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	m.end = time.Since(begun)
	m.all = m.end // programs print in blocks
	if state := cmd.ProcessState; state != nil {
		m.cpu = state.SystemTime() + state.UserTime()
	}
	return m, err
}

// installed returns whether a program is, and says what helps if not.
func installed(name, debian string) bool {
	_, err := exec.LookPath(name)
	if err != nil {
		hint(name, "it is not installed (apt-get install "+debian+")")
	}
	return err == nil
}

// median of what measurements say.
func median(all []measurement, of func(measurement) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, m := range all {
		values = append(values, of(m))
	}
	return middle(values)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// find returns the contender whose name begins so, nil if none does.
func (s *subject) find(name string) *contender {
	i := slices.IndexFunc(s.contenders, func(c contender) bool { return strings.HasPrefix(c.name, name) })
	if i < 0 {
		return nil
	}
	return &s.contenders[i]
}
