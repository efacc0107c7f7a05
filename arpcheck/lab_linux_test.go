package arpcheck_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// labWait is a window in which everybody in the lab answers: kernels do within
// microseconds, announcers as soon as they are woken.
const labWait = 100 * time.Millisecond

// lab is a segment with nodes that hold the VIP, and a client.
func lab(t *testing.T, nodes int) ([]*netnstest.Host, *netnstest.Host) {
	t.Helper()
	s := netnstest.New(t)
	var all []*netnstest.Host
	for i := range nodes {
		addr := netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)})
		n, err := s.AddNode(fmt.Sprintf("w%d", i+1), netip.PrefixFrom(addr, 24))
		require.NoError(t, err)
		require.NoError(t, n.HoldVIP(vip))
		all = append(all, n)
	}
	from, err := s.AddClient("client", netip.PrefixFrom(client, 24))
	require.NoError(t, err)
	return all, from
}

// openIn returns a Prober on a host that is closed when the test ends.
func openIn(t *testing.T, h *netnstest.Host, link string) *arpcheck.Prober {
	t.Helper()
	p, err := h.OpenOn(link)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	p.Wait = labWait
	return p
}

// receivers are the ways in which a socket's frames are received.
var receivers = map[string]func(testing.TB, *netnstest.Host) *arpcheck.Prober{
	"ring": func(t testing.TB, h *netnstest.Host) *arpcheck.Prober {
		return opened(t, h, arpcheck.Open)
	},
	"queue": func(t testing.TB, h *netnstest.Host) *arpcheck.Prober {
		const bytes = 212992 // of a socket that asks for none: 256 replies
		p := opened(t, h, func(link string) (*arpcheck.Prober, error) { return arpcheck.OpenQueued(link, bytes) })
		time.Sleep(labWait) // the kernel begins to stamp frames a while after the first socket wants it (net_enable_timestamp)
		return p
	},
}

func opened(t testing.TB, h *netnstest.Host, open func(string) (*arpcheck.Prober, error)) *arpcheck.Prober {
	t.Helper()
	var p *arpcheck.Prober
	require.NoError(t, h.Do(func() (err error) {
		p, err = open(netnstest.NIC)
		return err
	}))
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	p.Wait = labWait
	return p
}

// Three loose nodes, one of which announces: all three are seen each time, and
// the announcer's double answer; once they are strict, the announcer alone.
func TestLabEveryNodeEveryTime(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 3)
	_, err := nodes[0].Announce(vip)
	require.NoError(t, err)
	p := openIn(t, from, "eth0")
	p.Rounds = 1
	for range 100 {
		r := probe(t, p)
		require.Equal(t, arpcheck.Multiple, r.Verdict)
		require.ElementsMatch(t, []arpcheck.MAC{nodes[0].MAC(), nodes[1].MAC(), nodes[2].MAC()}, macs(r))
		for _, responder := range r.Responders {
			require.Equal(t, responder.MAC == nodes[0].MAC(), responder.DoubleAnswer, "%+v", responder)
		}
	}
	for _, n := range nodes {
		require.NoError(t, n.SetStrictARP(true))
	}
	p.Rounds = 3
	r := probe(t, p)
	require.Equal(t, arpcheck.Single, r.Verdict, "%+v", r)
	require.Equal(t, []arpcheck.MAC{nodes[0].MAC()}, macs(r))
	got := r.Responders[0]
	assert.False(t, got.DoubleAnswer)
	assert.Equal(t, 3, got.Replies)
	assert.Equal(t, 3, got.WonRounds)
	assert.Equal(t, []arpcheck.LengthCount{{Length: 60, Frames: 3}}, got.Lengths)
	assert.Positive(t, got.RTT.Min)
	assert.Less(t, got.RTT.Max, labWait)
	assert.Equal(t, arpcheck.Sender{Addr: client, From: arpcheck.SenderRoute}, r.Sender)
	assert.Equal(t, "client", r.Vantage)
	assert.Equal(t, from.MAC(), r.MAC)
	assert.Equal(t, 3, r.Quality.Requests)
}

// Two probers and a TCP connect on one interface, at the same time.
func TestLabNoFalseDoubleAnswer(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 2)
	_, err := nodes[0].Serve(netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	p, second := openIn(t, from, "eth0"), openIn(t, from, "eth0")
	second.Rounds, second.Wait = 30, 10*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = second.Probe(ctx, vip)
	}()
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		for ctx.Err() == nil {
			_ = from.Forget(vip)
			if conn, err := from.Dial(ctx, netip.AddrPortFrom(vip, 80)); err == nil {
				conn.Close()
			}
		}
	}()
	r := probe(t, p)
	cancel()
	<-done
	<-connected
	require.Equal(t, arpcheck.Multiple, r.Verdict)
	assert.Greater(t, r.Quality.OtherRequests, 3, "requests of the others were not seen")
	for _, responder := range r.Responders {
		assert.False(t, responder.DoubleAnswer, "%+v", responder)
	}
}

// The kernel's own request, under the same sender, is seen and counted.
func TestLabKernelsRequestIsSeen(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	p.Rounds = 1
	kicked := make(chan error, 1)
	time.AfterFunc(labWait/4, func() { kicked <- from.SendFrom(netip.Addr{}, vip) })
	r := probe(t, p)
	require.NoError(t, <-kicked)
	assert.Equal(t, 1, r.Quality.OtherRequests)
	require.Len(t, r.Responders, 1)
	assert.Equal(t, 2, r.Responders[0].Replies)
	assert.False(t, r.Responders[0].DoubleAnswer)
	assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 2}}, r.Responders[0].Lengths)
}

// An interface without an IPv4 address, or with a dot in its name, is probed on
// as any other.
func TestLabLinks(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	for _, row := range []struct {
		link  string
		addrs []netip.Prefix
		want  arpcheck.SenderSource
	}{
		{"eth1", nil, arpcheck.SenderUnspecified},
		{"eth0.100", []netip.Prefix{netip.MustParsePrefix("172.31.0.9/24")}, arpcheck.SenderInterface},
		{"fifteen-letters", []netip.Prefix{netip.MustParsePrefix("172.30.0.9/24")}, arpcheck.SenderInterface},
	} {
		t.Run(row.link, func(t *testing.T) {
			mac, err := from.AddNIC(row.link, row.addrs...)
			require.NoError(t, err)
			r := probe(t, openIn(t, from, row.link))
			assert.Equal(t, arpcheck.Single, r.Verdict)
			assert.Equal(t, []arpcheck.MAC{nodes[0].MAC()}, macs(r))
			assert.Equal(t, row.want, r.Sender.From)
			assert.Equal(t, row.link, r.Interface)
			assert.Equal(t, mac, r.MAC)
		})
	}
}

// Frames that a node sends by a raw socket, before the kernel answers.
func TestLabCountedApart(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	answer := arpwire.Request(from.MAC(), client, vip).Reply(nodes[0].MAC())
	foreign, other, claim := answer, answer, answer
	foreign.VLAN = 7
	other.Sender = vip.Next()
	claim.Op, claim.Dst, claim.Target = arpwire.OpRequest, arpwire.Broadcast, vip
	p := openIn(t, from, "eth0")
	p.Rounds = 1
	injected := make(chan error, 1)
	time.AfterFunc(labWait/4, func() {
		for _, frame := range [][]byte{
			foreign.Append(nil, 0), foreign.Append(nil, 60), other.Append(nil, 0), claim.Append(nil, 0),
			answer.Append(nil, 0)[:30],
		} {
			if err := nodes[0].Inject(frame); err != nil {
				injected <- err
				return
			}
		}
		injected <- nil
	})
	r := probe(t, p)
	require.NoError(t, <-injected)
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, 1, r.Responders[0].Replies)
	assert.Equal(t, arpcheck.Quality{Requests: 1, OtherVLANs: 2, OtherTargets: 1, Malformed: 1}, r.Quality)
	require.Len(t, r.Claims, 1)
	assert.Equal(t, arpcheck.Announcement, r.Claims[0].Kind)
}

// A node cannot see its own kernel's answer, and says so.
func TestLabHeldHere(t *testing.T) {
	t.Parallel()
	nodes, _ := lab(t, 1)
	r := probe(t, openIn(t, nodes[0], "eth0"))
	assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
	assert.Equal(t, reasons(arpcheck.HeldHere), r.Reasons)
	assert.Empty(t, r.Responders)
	assert.Equal(t, nodes[0].Addr(), r.Sender.Addr)
}

// With the defaults a router that answers by proxy, late, is not missed.
func TestLabProxyARP(t *testing.T) {
	t.Parallel()
	s := netnstest.New(t)
	router, err := s.AddNode("router", netip.MustParsePrefix("10.0.3.1/24"))
	require.NoError(t, err)
	require.NoError(t, router.SetProxyARP(true, netip.PrefixFrom(vip, 32)))
	from, err := s.AddClient("client", netip.PrefixFrom(client, 24))
	require.NoError(t, err)
	p := openIn(t, from, "eth0")
	p.Wait, p.Rounds = 0, 1
	r := probe(t, p)
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, []arpcheck.MAC{router.MAC()}, macs(r))
}

func TestLabLinkGoesDown(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	p.Wait = 10 * time.Second
	set := make(chan error, 1)
	time.AfterFunc(labWait, func() { set <- from.SetLink("eth0", false) })
	begun := time.Now()
	r := probe(t, p)
	require.NoError(t, <-set)
	assert.Less(t, time.Since(begun), 5*time.Second, "the window was waited for")
	assert.Equal(t, []arpcheck.MAC{nodes[0].MAC()}, macs(r))
	assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
	assert.Contains(t, r.Reasons, arpcheck.LinkDown)

	r = probe(t, p)
	assert.Contains(t, r.Reasons, arpcheck.LinkDown)
	assert.Zero(t, r.Quality.Requests)
}

// A Prober is kept for long: that the link was down once, between two passes,
// does not matter to the second.
func TestLabLinkWasDownBetweenPasses(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	require.Equal(t, arpcheck.Single, probe(t, p).Verdict)
	require.NoError(t, from.SetLink("eth0", false))
	require.NoError(t, from.SetLink("eth0", true))
	r := probe(t, p)
	assert.Equal(t, arpcheck.Single, r.Verdict, "%v", r.Reasons)
}
