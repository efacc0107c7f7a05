package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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
func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // fails only for a bad pointer
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func floorOf(client *netnstest.Host, frames [][]byte, pairs int) (contender, func(), error) {
	var f *floor
	err := client.Do(func() (err error) {
		f, err = newFloor(netnstest.NIC)
		return err
	})
	if err != nil {
		return contender{}, nil, err
	}
	return contender{name: "floor: sends, reads nothing", run: func(context.Context) (measurement, error) {
		begun, before := time.Now(), cpu()
		err := f.send(frames)
		took := time.Since(begun)
		return measurement{all: took, end: took, cpu: cpu() - before, pairs: pairs}, err
	}}, func() { _ = unix.Close(f.fd) }, nil
}

func sweepOf(client *netnstest.Host, targets []netip.Addr, buffer int) contender {
	return contender{name: "arpcheck.Sweep", run: func(ctx context.Context) (m measurement, err error) {
		p, err := client.Open() // only now: the others' replies would reach it too
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		p.Wait = linger
		if buffer > 0 {
			if err := p.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(buffer); err != nil {
				return m, err
			}
		}
		begun, before := time.Now(), cpu()
		for r, err := range p.Sweep(ctx, slices.Values(targets)) {
			if err != nil {
				return m, err
			}
			for _, responder := range r.Responders {
				m.pairs++
				m.all = max(m.all, responder.First.Sub(begun))
			}
		}
		m.end, m.cpu = time.Since(begun), cpu()-before
		return m, nil
	}}
}

// scansOf are arp-scan with settings that do not lose replies, and with its own.
func scansOf(client *netnstest.Host, targets []netip.Addr, pairs int, withDefault bool) []contender {
	if _, err := exec.LookPath("arp-scan"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: arp-scan is left out: it is not installed (apt-get install arp-scan)")
		return nil
	}
	settings := []string{"--interval=20u --retry=1 --timeout=100", "--bandwidth=100000000 --retry=1 --timeout=100"}
	if withDefault {
		settings = append(settings, "")
	}
	var list strings.Builder
	for _, target := range targets {
		fmt.Fprintln(&list, target)
	}
	var all []contender
	for _, s := range settings {
		args := append([]string{"--interface=" + netnstest.NIC, "--file=-", "--numeric", "--plain", "--quiet"}, strings.Fields(s)...)
		all = append(all, contender{name: strings.TrimSpace("arp-scan " + s), run: func(ctx context.Context) (measurement, error) {
			return scan(ctx, client, args, list.String(), pairs)
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
