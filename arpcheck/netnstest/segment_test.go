package netnstest_test

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

func TestHosts(t *testing.T) {
	l := newLab(t)
	var names []string
	for _, h := range l.Hosts() {
		names = append(names, h.Name())
		assert.Same(t, h, l.Host(h.Name()))
		assert.Equal(t, h != l.client, h.IsNode())
	}
	assert.Equal(t, []string{"w1", "w2", "w3", "client"}, names)
	assert.Nil(t, l.Host("w4"))
	assert.Equal(t, arpcheck.MAC{2, 0, 0, 0, 4, 0}, l.client.MAC())
	for _, h := range l.Hosts() {
		require.NoError(t, h.Do(func() error {
			ifi, err := net.InterfaceByName(netnstest.NIC)
			require.NoError(t, err)
			assert.Equal(t, h.MAC().String(), ifi.HardwareAddr.String())
			assert.NotZero(t, ifi.Flags&net.FlagRunning)
			addrs, err := ifi.Addrs()
			require.NoError(t, err)
			require.Len(t, addrs, 1, "IPv6 is off")
			assert.Equal(t, h.Addr().String()+"/24", addrs[0].String())
			return nil
		}))
	}
}

func TestHostErrors(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct {
		name   string
		prefix netip.Prefix
		want   string
	}{
		{"w1", prefix("10.0.3.60"), "no other host has"},
		{"", prefix("10.0.3.60"), "no other host has"},
		{"w9", netip.Prefix{}, "want IPv4"},
		{"w9", netip.MustParsePrefix("2001:db8::1/64"), "want IPv4"},
	} {
		_, err := l.AddClient(tt.name, tt.prefix)
		assert.ErrorContains(t, err, tt.want)
	}
	_, err := l.nodes[0].AddNIC(netnstest.NIC)
	assert.ErrorIs(t, err, fs.ErrExist)
	assert.Error(t, l.nodes[0].SetLink("eth7", true))
	assert.Error(t, l.nodes[0].Inject([]byte{1, 2, 3}))
	assert.ErrorIs(t, l.nodes[0].SetSysctl("eth7", sysctl.ARPIgnore, 1), fs.ErrNotExist)
	_, err = l.nodes[0].Sysctl("eth7", sysctl.ARPIgnore)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, `host "w1": read sysctl`)
	_, err = l.nodes[0].Sysctl("all", "no/param")
	assert.ErrorContains(t, err, "no/param")
	_, err = l.AddClient("after", prefix("10.0.3.61"))
	assert.NoError(t, err, "a failure leaves the segment usable")
}

// A new namespace starts with a copy of the machine's settings; the lab's must
// not depend on them.
func TestSettingsAreTheKernelsDefaults(t *testing.T) {
	l := newLab(t)
	for _, h := range []*netnstest.Host{l.client, l.nodes[0]} {
		a, err := sysctl.ReadARP(h.Sysctls())
		require.NoError(t, err)
		assert.Contains(t, a.Interfaces, netnstest.NIC)
		for _, p := range sysctl.Params() {
			want := 0
			if p == sysctl.Forwarding && h.IsNode() || p == sysctl.SendRedirects && !h.IsNode() {
				want = 1
			}
			e, err := a.Effective(netnstest.NIC, p)
			require.NoError(t, err)
			assert.Equal(t, want, e.Value, "%s of %s", p, h.Name())
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, l.Expose(netnstest.Service{VIP: web, Node: w1}))
	a, err := w1.Announce(vip)
	require.NoError(t, err)
	require.NoError(t, w1.Inject(make([]byte, 60)))
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "closing twice is no error")
	require.NoError(t, a.Stop(), "stopping afterwards is no error")

	// Nothing must happen to the machine's own interfaces, which have such
	// names too.
	before, err := net.InterfaceAddrs()
	require.NoError(t, err)
	assert.ErrorIs(t, w1.AddAddr("lo", prefix("10.0.3.99")), net.ErrClosed)
	assert.ErrorIs(t, w1.HoldVIP(vip), net.ErrClosed)
	after, err := net.InterfaceAddrs()
	require.NoError(t, err)
	assert.Equal(t, before, after)

	assert.Error(t, w1.Inject(make([]byte, 60)))
	assert.Error(t, w1.SetStrictARP(true))
	_, err = w1.Announce(vip)
	assert.Error(t, err)
	_, err = w1.Serve(web)
	assert.Error(t, err)
	_, err = l.AddNode("late", prefix("10.0.3.99"))
	assert.ErrorContains(t, err, "closed")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestManySegmentsLeaveNoDescriptors(t *testing.T) {
	run := func() {
		s, err := netnstest.NewSegment()
		require.NoError(t, err)
		w1, err := s.AddNode("w1", prefix("10.0.3.11"))
		require.NoError(t, err)
		require.NoError(t, s.Expose(netnstest.Service{VIP: web, Node: w1}))
		_, err = w1.Announce(vip)
		require.NoError(t, err)
		require.NoError(t, w1.Inject(make([]byte, 60)))
		require.NoError(t, s.Close())
	}
	newLab(t) // skips where there can be no lab
	run()     // the runtime's poller opens descriptors of its own
	before := descriptors(t)
	for range 20 {
		run()
	}
	assert.Equal(t, before, descriptors(t))
}

func TestFailNowInDoEndsTheTest(t *testing.T) {
	l := newLab(t)
	ended := make(chan bool, 1)
	go func() {
		defer func() { ended <- true }()
		_ = l.client.Do(func() error {
			(&testing.T{}).SkipNow()
			return errors.New("not reached")
		})
		ended <- false
	}()
	assert.True(t, <-ended)
}

func TestOpenErrorNamesHostAndLink(t *testing.T) {
	l := newLab(t)
	_, err := l.client.OpenOn("eth7")
	assert.ErrorContains(t, err, `host "client": open prober on eth7`)
}

func BenchmarkFiveHosts(b *testing.B) {
	newLab(b)
	for b.Loop() {
		s, err := netnstest.NewSegment()
		require.NoError(b, err)
		for i, name := range []string{"w1", "w2", "w3", "c1", "c2"} {
			_, err := s.AddNode(name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
			require.NoError(b, err)
		}
		b.StopTimer()
		require.NoError(b, s.Close())
		time.Sleep(50 * time.Millisecond) // the kernel removes namespaces in the background
		b.StartTimer()
	}
}

func TestOpenProbesFromTheHost(t *testing.T) {
	l := newLab(t)
	l.holdVIP(t)
	p, err := l.client.Open()
	require.NoError(t, err)
	defer p.Close()
	p.Wait = 200 * time.Millisecond
	result, err := p.Probe(t.Context(), vip)
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Multiple, result.Verdict)
	assert.Len(t, result.Responders, 3)
	assert.Equal(t, "client", result.Vantage)
	assert.Equal(t, l.client.MAC(), result.MAC)
	assert.Equal(t, l.client.Addr(), result.Sender.Addr)
}
