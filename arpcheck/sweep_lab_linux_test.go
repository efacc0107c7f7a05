package arpcheck_test

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// sweepRunsEnv is how often each size is swept in the lab; 3 unless it is set.
const sweepRunsEnv = "STRICTARP_SWEEP_RUNS"

func sweepRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv(sweepRunsEnv)
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, sweepRunsEnv)
	return n
}

// sweepLab is a segment of namespaces whose nodes all hold the targets.
func sweepLab(t testing.TB, nodes int, targets []netip.Addr) *netnstest.Host {
	t.Helper()
	begun := time.Now()
	s := netnstest.New(t)
	for i := range nodes {
		h, err := s.AddNode(fmt.Sprintf("w%d", i), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(8 + i/250), byte(1 + i%250)}), 8))
		require.NoError(t, err)
		for _, target := range targets {
			require.NoError(t, h.HoldVIP(target))
		}
	}
	from, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/8"))
	require.NoError(t, err)
	t.Logf("%d nodes with %d addresses took %s to make", nodes, len(targets), time.Since(begun).Round(time.Millisecond))
	return from
}

// Every pair is found, every time, with a ring and with a queue of the default size.
func TestLabSweepFindsEveryPair(t *testing.T) {
	for _, row := range []struct{ targets, nodes int }{{306, 3}, {306, 50}, {4096, 3}, {306, 200}} {
		t.Run(fmt.Sprintf("%dx%d", row.targets, row.nodes), func(t *testing.T) {
			sweepOften(t, sweepLab(t, row.nodes, addrs(row.targets)), row.targets, row.nodes)
		})
	}
}

// A slow port loses what its queue cannot hold, and no socket counts that. A sweep
// does not overfill it, and is as fast as the port lets replies through.
func TestLabSweepBehindASlowPort(t *testing.T) {
	const targets, nodes, rate, queue = 4096, 3, 5_000_000, 1000
	from := sweepLab(t, nodes, addrs(targets))
	require.NoError(t, from.SetPortRate(rate, queue))
	limit := time.Duration(targets*nodes*arpwire.FrameSize*8) * time.Second / rate
	for _, took := range sweepOften(t, from, targets, nodes) {
		assert.Greater(t, took, limit*9/10, "the port was not slow")
		assert.Less(t, took, 2*limit, "the port stood idle")
	}
}

// sweepOften sweeps as often as it is told to, and returns how long it took to
// find all pairs.
func sweepOften(t *testing.T, from *netnstest.Host, targets, nodes int) (took []time.Duration) {
	t.Helper()
	for name, open := range receivers {
		p := open(t, from)
		for range sweepRuns(t) {
			begun := time.Now()
			var last time.Time
			var progress arpcheck.SweepProgress
			results := sweepAll(t, arpcheck.Sweep{Prober: p, Progress: func(p arpcheck.SweepProgress) { progress = p }}, addrs(targets))
			require.Len(t, results, targets)
			for _, r := range results {
				require.Len(t, r.Responders, nodes)
				require.Empty(t, r.Reasons)
				require.Equal(t, arpcheck.Multiple, r.Verdict)
				if at := r.Responders[nodes-1].First; at.After(last) {
					last = at
				}
			}
			t.Logf("%s: all pairs after %s: %+v", name, last.Sub(begun), progress)
			took = append(took, last.Sub(begun))
		}
	}
	return took
}

// The sender of each target is what a probe takes, though the kernel is asked
// for one route for many targets; so is whether this host holds it.
func TestLabSweepSenders(t *testing.T) {
	t.Parallel()
	s := netnstest.New(t)
	from, err := s.AddNode("w1", netip.MustParsePrefix("10.0.3.50/24"))
	require.NoError(t, err)
	for _, prefix := range []string{"10.1.0.129/25", "10.1.1.9/30", "172.30.0.9/16"} {
		require.NoError(t, from.AddAddr("eth0", netip.MustParsePrefix(prefix)))
	}
	for _, route := range []string{"10.1.2.0/24", "10.1.2.7/32", "0.0.0.0/0"} {
		require.NoError(t, from.AddRoute(netip.MustParsePrefix(route), netip.Addr{}, "eth0"))
	}
	_, err = from.AddNIC("eth1", netip.MustParsePrefix("10.1.3.1/24"))
	require.NoError(t, err)
	require.NoError(t, from.HoldVIP(netip.MustParseAddr("10.1.0.200")))
	require.NoError(t, from.HoldVIP(netip.MustParseAddr("10.1.3.200")))
	p := openIn(t, from, "eth0")
	p.Wait, p.Rounds = 10*time.Millisecond, 1
	targets := append(addrs(1024)[1:], netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("172.30.7.7"))
	probed, err := p.ProbeAll(t.Context(), targets)
	require.NoError(t, err)
	got := sweepAll(t, arpcheck.Sweep{Prober: p}, targets)
	senders := map[arpcheck.Sender]int{}
	for _, want := range probed {
		require.Equal(t, want.Sender, got[want.Target].Sender, "%s", want.Target)
		require.Equal(t, want.Reasons, got[want.Target].Reasons, "%s", want.Target)
		senders[want.Sender]++
	}
	assert.Len(t, senders, 5, "%v", senders)
}

// proxyRouter is a router that answers by proxy for all targets of addrs, and a client.
func proxyRouter(t *testing.T) (router *netnstest.Host, p *arpcheck.Prober) {
	t.Helper()
	s := netnstest.New(t)
	router, err := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/8"))
	require.NoError(t, err)
	require.NoError(t, router.SetProxyARP(true, netip.MustParsePrefix("10.1.0.0/16")))
	from, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/8"))
	require.NoError(t, err)
	return router, openIn(t, from, "eth0")
}

// A router that answers by proxy, late and for more targets than its queue holds.
func TestLabSweepProxyARP(t *testing.T) {
	t.Parallel()
	router, p := proxyRouter(t)
	p.Wait = 0
	for _, r := range sweepAll(t, arpcheck.Sweep{Prober: p}, addrs(306)) {
		require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
		require.Equal(t, router.MAC(), r.Responders[0].MAC)
	}
}

// Asked alone, such a router answers for all targets each time, within a window that
// is a fraction of its delay.
func TestLabAskAllProxyARP(t *testing.T) {
	t.Parallel()
	router, p := proxyRouter(t)
	p.Wait = labWait
	all := askAll(t, p, addrs(306), router.MAC())
	require.Len(t, all, 306)
	for _, a := range all {
		require.Equal(t, arpcheck.Answers, a.Answers, "%+v", a)
		require.Equal(t, 3, a.Result.Responders[0].Replies)
		require.False(t, a.Double)
		require.Empty(t, a.Result.Reasons)
	}
}
