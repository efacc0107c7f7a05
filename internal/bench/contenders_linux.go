package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// linger is how long all wait for a late answer.
const linger = 100 * time.Millisecond

type contender struct {
	name     string
	run      func(context.Context) (measurement, error)
	measured []measurement
}

type measurement struct {
	all   time.Duration // until the last pair was seen
	end   time.Duration
	cpu   time.Duration
	pairs int
}

// cpu is the processor time this process has had. On veth pairs the nodes answer
// within the sender's system call, so theirs is in it, whoever sends.
func cpu() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // fails only for a bad pointer or id
	return time.Duration(t.Nano())
}

// alone measures what a thread does by itself: the Go runtime's own work, which is
// done by others, is no part of a limit.
func alone(do func() error) (m measurement, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, before := time.Now(), clock(unix.CLOCK_THREAD_CPUTIME_ID)
	err = do()
	m.all = time.Since(begun)
	m.end, m.cpu = m.all, clock(unix.CLOCK_THREAD_CPUTIME_ID)-before
	return m, err
}

func floorOf(l *lab) (contender, func(), error) {
	f, err := l.newFloor()
	if err != nil {
		return contender{}, nil, err
	}
	return contender{name: "floor: sends, reads nothing", run: func(context.Context) (measurement, error) {
		m, err := alone(func() error {
			_, err := f.send(l.requests, floorBatch, false)
			return err
		})
		m.pairs = l.pairs
		return m, err
	}}, func() { _ = unix.Close(f.fd) }, nil
}

// readerOf is what a tool pays at least that reads all replies from a socket's queue.
// It sends no more at once than the queue holds replies to.
func readerOf(l *lab) contender {
	return contender{name: "reader: sends, reads, looks at nothing", run: func(context.Context) (m measurement, err error) {
		f, err := l.newFloor()
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, unix.Close(f.fd)) }()
		held, err := f.listen()
		if err != nil {
			return m, err
		}
		replies := 0
		m, err = alone(func() (err error) {
			replies, err = f.send(l.requests, max(min(held, 2000)/l.nodes, 1), true)
			return err
		})
		m.pairs = replies
		return m, err
	}}
}

func sweepOf(l *lab, name string, change func(*arpcheck.Prober)) contender {
	return proberOf(l, name, func(ctx context.Context, p *arpcheck.Prober, seen func(arpcheck.Result)) error {
		change(p)
		for r, err := range p.Sweep(ctx, slices.Values(l.targets)) {
			if err != nil {
				return err
			}
			seen(r)
		}
		return nil
	})
}

func askOf(l *lab) contender {
	return proberOf(l, "arpcheck.AskAll", func(ctx context.Context, p *arpcheck.Prober, seen func(arpcheck.Result)) error {
		for a, err := range p.AskAll(ctx, slices.Values(l.targets), l.asked) {
			if err != nil {
				return err
			}
			seen(a.Result)
		}
		return nil
	})
}

// proberOf measures what uses a Prober that is open already, since one is kept.
func proberOf(l *lab, name string, use func(context.Context, *arpcheck.Prober, func(arpcheck.Result)) error) contender {
	return contender{name: name, run: func(ctx context.Context) (m measurement, err error) {
		p, err := l.client.Open() // only now: the others' replies would reach it too
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		p.Wait = linger
		if l.buffer > 0 {
			if err := p.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(l.buffer); err != nil {
				return m, err
			}
		}
		begun, before := time.Now(), cpu()
		err = use(ctx, p, func(r arpcheck.Result) {
			for _, responder := range r.Responders {
				m.pairs++
				m.all = max(m.all, responder.First.Sub(begun))
			}
		})
		m.end, m.cpu = time.Since(begun), cpu()-before
		return m, err
	}}
}

// scansOf are arp-scan with settings that do not lose replies, and with its own.
func scansOf(l *lab) []contender {
	if _, err := exec.LookPath("arp-scan"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: arp-scan is left out: it is not installed (apt-get install arp-scan)")
		return nil
	}
	settings := []string{"--interval=20u --retry=1 --timeout=100", "--bandwidth=100000000 --retry=1 --timeout=100"}
	if l.defaultScan {
		settings = append(settings, "")
	}
	var list strings.Builder
	for _, target := range l.targets {
		fmt.Fprintln(&list, target)
	}
	var all []contender
	for _, s := range settings {
		args := append([]string{"--interface=" + netnstest.NIC, "--file=-", "--numeric", "--plain", "--quiet"}, strings.Fields(s)...)
		all = append(all, contender{name: strings.TrimSpace("arp-scan " + s), run: func(ctx context.Context) (measurement, error) {
			return scan(ctx, l.client, args, list.String(), l.pairs)
		}})
	}
	return all
}

// scan runs arp-scan until it has printed all pairs.
func scan(ctx context.Context, client *netnstest.Host, args []string, input string, pairs int) (measurement, error) {
	cmd := exec.CommandContext(ctx, "arp-scan", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return measurement{}, err
	}
	var m measurement
	begun := time.Now()
	if err := client.Do(cmd.Start); err != nil { // a program inherits the namespace of the thread that starts it
		return m, err
	}
	seen := make(map[string]bool, pairs)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && !seen[fields[0]+fields[1]] {
			seen[fields[0]+fields[1]] = true
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() { // it says how many did not answer
		err = nil
	}
	m.end, m.pairs = time.Since(begun), len(seen)
	m.all = m.end // it prints in blocks, and ends when it has heard of each target
	if state := cmd.ProcessState; state != nil {
		m.cpu = state.SystemTime() + state.UserTime()
	}
	return m, err
}
