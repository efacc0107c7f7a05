package scenario_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/scenario"
)

const (
	// labs are probed at the same time, repeats times each: 100 runs.
	labs    = 10
	repeats = 10
	// steadyWait leaves time enough for the announcer on a busy machine.
	steadyWait = 250 * time.Millisecond
)

// clusterLab is three nodes that hold the VIP, the first of which announces it,
// and a client.
func clusterLab(t *testing.T) (client *netnstest.Host, nodes []*netnstest.Host) {
	t.Helper()
	s := netnstest.New(t)
	client, err := s.AddClient("client", scenario.Client)
	require.NoError(t, err)
	for i := range 3 {
		n, err := s.AddNode(fmt.Sprintf("w%d", i+1), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	require.NoError(t, s.Expose(netnstest.Service{VIP: netip.AddrPortFrom(scenario.VIP, 80), Node: nodes[0]}))
	_, err = nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{scenario.VIP}, Quiet: true})
	require.NoError(t, err)
	return client, nodes
}

func open(t *testing.T, h *netnstest.Host) *arpcheck.Prober {
	t.Helper()
	p, err := h.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	p.Wait = steadyWait
	return p
}

func probe(t *testing.T, p *arpcheck.Prober) arpcheck.Result {
	t.Helper()
	r, err := p.Probe(context.Background(), scenario.VIP)
	assert.NoError(t, err)
	return r
}

// together runs f n times at once; unlike parallel subtests it does not depend
// on how many processors there are.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func TestEveryRunFindsEveryResponder(t *testing.T) {
	t.Parallel()
	clients, probers, nodes := make([]*netnstest.Host, labs), make([]*arpcheck.Prober, labs), make([][]*netnstest.Host, labs)
	for i := range labs {
		clients[i], nodes[i] = clusterLab(t)
		probers[i] = open(t, clients[i])
	}
	together(labs, func(i int) {
		for range repeats {
			r, err := probers[i].Probe(context.Background(), scenario.VIP)
			if !assert.NoError(t, err) || !assert.Len(t, r.Responders, 3, "%+v", r) {
				return
			}
			assert.Equal(t, arpcheck.Multiple, r.Verdict)
			for _, responder := range r.Responders {
				assert.Equal(t, responder.MAC == nodes[i][0].MAC(), responder.DoubleAnswer, "%+v", responder)
			}
		}
		for _, n := range nodes[i] {
			assert.NoError(t, n.SetStrictARP(true))
		}
		for range repeats {
			r, err := probers[i].Probe(context.Background(), scenario.VIP)
			if assert.NoError(t, err) && assert.Len(t, r.Responders, 1, "%+v", r) {
				assert.Equal(t, arpcheck.Single, r.Verdict)
				assert.Equal(t, nodes[i][0].MAC(), r.Responders[0].MAC)
				assert.False(t, r.Responders[0].DoubleAnswer, "%+v", r)
			}
		}
	})
}

// A proxy answers after a random time of up to 0.8 s. With the default window it
// is heard in every round.
func TestProxyARPIsNeverMissed(t *testing.T) {
	t.Parallel()
	probers := make([]*arpcheck.Prober, labs)
	for i := range probers {
		s := netnstest.New(t)
		client, err := s.AddClient("client", scenario.Client)
		require.NoError(t, err)
		router, err := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
		require.NoError(t, err)
		require.NoError(t, router.SetProxyARP(true, toVIP))
		probers[i] = open(t, client)
		probers[i].Wait = 0
	}
	together(labs, func(i int) {
		r, err := probers[i].Probe(context.Background(), scenario.VIP)
		if assert.NoError(t, err) && assert.Len(t, r.Responders, 1) {
			assert.Equal(t, arpcheck.DefaultRounds, r.Responders[0].Replies, "%+v", r)
		}
	})
}

// Its queue holds 64 answers, and loses the others in each round.
func TestProxyARPIsNeverMissedForManyTargets(t *testing.T) {
	t.Parallel()
	s := netnstest.New(t)
	client, err := s.AddClient("client", scenario.Client)
	require.NoError(t, err)
	router, err := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
	require.NoError(t, err)
	require.NoError(t, router.SetProxyARP(true, netip.MustParsePrefix("10.9.0.0/16")))
	targets := make([]netip.Addr, 306)
	for i := range targets {
		targets[i] = netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
	}
	p := open(t, client)
	p.Wait = 0
	results, err := p.ProbeAll(context.Background(), targets)
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
		assert.False(t, r.Responders[0].DoubleAnswer, "%+v", r)
	}
}

// Two probers, and connections for which the kernel asks, on one interface: each
// draws answers that look the same to all.
func TestOtherAskersMakeNoDoubleAnswer(t *testing.T) {
	t.Parallel()
	client, nodes := clusterLab(t)
	for _, n := range nodes {
		require.NoError(t, n.SetStrictARP(true))
	}
	probers := []*arpcheck.Prober{open(t, client), open(t, client)}
	stop := connectAllTheTime(t, client)
	results := make([]arpcheck.Result, 10)
	together(len(probers), func(i int) {
		for k := range len(results) / 2 {
			results[2*k+i] = probe(t, probers[i])
		}
	})
	stop()
	for _, r := range results {
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Positive(t, r.Quality.OtherRequests)
		assert.Greater(t, r.Responders[0].Replies, r.Quality.Requests, "others' answers were not seen")
		assert.Zero(t, r.Responders[0].DoubleAnswers, "%+v", r)
	}
	// And a true double answer is still seen beside them.
	require.NoError(t, nodes[0].SetStrictARP(false))
	defer connectAllTheTime(t, client)()
	together(len(probers), func(i int) {
		assert.True(t, probe(t, probers[i]).Responders[0].DoubleAnswer)
	})
}

// connectAllTheTime has the client's kernel ask and connect again and again.
func connectAllTheTime(t *testing.T, client *netnstest.Host) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			assert.NoError(t, client.Forget(scenario.VIP))
			_, err := client.Visit(ctx, netip.AddrPortFrom(scenario.VIP, 80))
			if ctx.Err() == nil {
				assert.NoError(t, err)
			}
			<-tick.C
		}
	})
	return func() { cancel(); wg.Wait() }
}
