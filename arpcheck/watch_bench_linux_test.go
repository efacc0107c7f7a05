package arpcheck_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	watchEnv     = "STRICTARP_BENCH_WATCH" // says that this process is the one that watches
	watchTime    = 5 * time.Second
	watchedAddrs = 306
	allAddrs     = 10_000
)

func watchAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(40 + n>>8), byte(n)}) }

// BenchmarkLabWatch is the CPU that a Watch takes at 10,000 ARP frames a second, 306
// of 10,000 addresses being watched. Who watches is a process of its own: the
// frames' sender keeps the Go runtime awake, which would be counted, too.
func BenchmarkLabWatch(b *testing.B) {
	if os.Getenv(watchEnv) != "" {
		for b.Loop() {
			watchForBench(b)
		}
		return
	}
	s := netnstest.New(b)
	node, err := s.AddNode("w1", netip.MustParsePrefix("10.1.0.1/16"))
	require.NoError(b, err)
	from, err := s.AddClient("client", netip.MustParsePrefix("10.1.0.2/16"))
	require.NoError(b, err)
	sender, err := node.Open()
	require.NoError(b, err)
	defer sender.Close()
	var percent, frames, events float64
	for b.Loop() {
		var out bytes.Buffer
		cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkLabWatch$", "-test.benchtime=1x")
		cmd.Env, cmd.Stderr = append(os.Environ(), watchEnv+"=1"), &out
		require.NoError(b, from.Do(cmd.Start))
		ctx, cancel := context.WithCancel(b.Context())
		sent := make(chan int, 1)
		go func() { sent <- sendForBench(ctx, node.MAC(), sender.Conn) }()
		begun := time.Now()
		require.NoError(b, cmd.Wait(), "%s", out.String())
		elapsed := time.Since(begun).Seconds()
		cancel()
		frames += float64(<-sent) / elapsed
		var p, e float64
		_, err := fmt.Sscan(out.String(), &p, &e)
		require.NoError(b, err, "%s", out.String())
		percent, events = percent+p, events+e
	}
	b.ReportMetric(percent/float64(b.N), "cpu-%")
	b.ReportMetric(frames/float64(b.N), "frames/s")
	b.ReportMetric(events/float64(b.N), "events")
}

// sendForBench returns how many requests it has sent, 10 a millisecond.
func sendForBench(ctx context.Context, mac arpcheck.MAC, conn arpcheck.Conn) (sent int) {
	frames := make([][]byte, 10)
	for begun := time.Now(); ctx.Err() == nil; sent += len(frames) {
		for i := range frames {
			frames[i] = arpwire.Request(mac, watchAddr((sent+i)%allAddrs), watchAddr(allAddrs)).Append(nil, 60)
		}
		_, _ = conn.Send(frames)
		time.Sleep(time.Until(begun.Add(time.Duration(sent) * 100 * time.Microsecond)))
	}
	return sent
}

// watchForBench watches until enough has been seen, and prints its CPU time. The
// first second is left out: everything is new then.
func watchForBench(b *testing.B) {
	p, err := arpcheck.Open("eth0")
	require.NoError(b, err)
	defer p.Close()
	var addrs []netip.Addr
	for n := range watchedAddrs {
		addrs = append(addrs, watchAddr(n*allAddrs/watchedAddrs))
	}
	ctx, cancel := context.WithTimeout(b.Context(), watchTime+time.Second)
	defer cancel()
	var before time.Duration
	events := 0
	time.AfterFunc(time.Second, func() { before = cpuTime() })
	for range p.Watch(ctx, arpcheck.WatchOptions{Addrs: addrs}) {
		events++
	}
	fmt.Fprintln(os.Stderr, 100*(cpuTime()-before).Seconds()/watchTime.Seconds(), events)
}

func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
