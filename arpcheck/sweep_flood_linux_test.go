package arpcheck_test

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// spoofRate is how many frames a second a flood sends, if the machine can.
const spoofRate = 200_000

// spoof sends the frames that next makes from a host until it is told to stop,
// and returns how many they were.
func spoof(t *testing.T, from *netnstest.Host, next func(n int) arpwire.Packet) (stop func() int) {
	t.Helper()
	var fd int
	var to unix.SockaddrLinklayer
	require.NoError(t, from.Do(func() error {
		link, err := net.InterfaceByName(netnstest.NIC)
		if err != nil {
			return err
		}
		to.Ifindex = link.Index
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	var done atomic.Bool
	sent := make(chan int)
	go func() {
		n := 0
		var frame []byte
		for begun := time.Now(); !done.Load(); {
			if due := int(time.Since(begun).Seconds() * spoofRate); n >= due {
				runtime.Gosched()
				continue
			}
			frame = next(n).Append(frame[:0], 0)
			_ = unix.Sendto(fd, frame, 0, &to) // a full queue is as good
			n++
		}
		sent <- n
	}()
	return func() int {
		done.Store(true)
		n := <-sent
		assert.NoError(t, unix.Close(fd))
		return n
	}
}

// inUse returns how many bytes of the heap are in use.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Made-up frames, as fast as one sender can make them, while targets are swept
// that three nodes hold. Whatever is lost by that, nobody is told that one MAC
// answers, or none; and memory stays bounded.
func TestLabSweepFlood(t *testing.T) {
	targets := addrs(306)
	s := netnstest.New(t)
	var nodes []*netnstest.Host
	for i := range 3 {
		h, err := s.AddNode(fmt.Sprintf("w%d", i), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 8, byte(1 + i)}), 8))
		require.NoError(t, err)
		for _, target := range targets {
			require.NoError(t, h.HoldVIP(target))
		}
		nodes = append(nodes, h)
	}
	from, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/8"))
	require.NoError(t, err)
	attacker, err := s.AddClient("attacker", netip.MustParsePrefix("10.0.3.66/8"))
	require.NoError(t, err)
	toClient := func(mac arpcheck.MAC, addr netip.Addr) arpwire.Packet {
		return arpwire.Request(from.MAC(), from.Addr(), addr).Reply(mac)
	}
	for _, row := range []struct {
		name, receiver string
		next           func(n int) arpwire.Packet
	}{
		{"replies for other addresses", "ring", func(n int) arpwire.Packet { return toClient(madeUp(n), vip) }},
		{"replies for one target", "queue", func(n int) arpwire.Packet { return toClient(madeUp(n), targets[0]) }},
		{"replies of one MAC", "ring", func(n int) arpwire.Packet { return toClient(nodes[0].MAC(), targets[n%len(targets)]) }},
		{"requests", "queue", func(n int) arpwire.Packet { return arpwire.Request(madeUp(n), targets[n%len(targets)], vip) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := receivers[row.receiver](t, from)
			p.Wait = 500 * time.Millisecond
			before := inUse()
			most := before
			var last arpcheck.SweepProgress
			stop := spoof(t, attacker, row.next)
			got := sweepAll(t, arpcheck.Sweep{Prober: p, Progress: func(p arpcheck.SweepProgress) {
				most, last = max(most, inUse()), p
			}}, targets)
			sent := stop()
			verdicts := map[arpcheck.Verdict]int{}
			for _, r := range got {
				verdicts[r.Verdict]++
				require.NotEqual(t, arpcheck.Single, r.Verdict, "%+v", r)
				require.NotEqual(t, arpcheck.None, r.Verdict, "%+v", r)
			}
			require.Len(t, got, len(targets))
			assert.Less(t, most-before, int64(16<<20), "bytes")
			t.Logf("%.0f frames/s, %v, %d KiB, %+v", float64(sent)/last.Elapsed.Seconds(), verdicts, (most-before)>>10, last)
		})
	}
}
