package netnstest_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
	"github.com/strictarp/strictarp/sysctl"
)

func TestAnnouncerAnswersWhom(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, w1.SetSysctl("all", sysctl.ARPIgnore, 8))
	_, err := w1.Announce(vip)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		to     arpcheck.MAC
		sender netip.Addr
		target netip.Addr
		want   int
	}{
		"broadcast":          {arpcheck.Broadcast, l.client.Addr(), vip, 1},
		"its own MAC":        {w1.MAC(), l.client.Addr(), vip, 1},
		"another MAC":        {l.nodes[1].MAC(), l.client.Addr(), vip, 0},
		"multicast":          {arpcheck.MAC{1, 0, 0x5e, 0, 0, 1}, l.client.Addr(), vip, 0},
		"unspecified sender": {arpcheck.Broadcast, netip.IPv4Unspecified(), vip, 1},
		"another target":     {arpcheck.Broadcast, l.client.Addr(), netip.MustParseAddr("10.0.3.21"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			request := arpwire.Request(l.client.MAC(), tt.sender, tt.target)
			request.Dst = tt.to
			got := askBy(t, l.client, request, tt.want)
			require.Len(t, got, tt.want)
			for _, a := range got {
				assert.Equal(t, answer{w1.MAC(), 60}, a)
			}
		})
	}
}

func TestMalformedFramesDoNotEndTheAnnouncer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	good := arpwire.Request(l.client.MAC(), l.client.Addr(), vip).Append(nil, 60)
	for n := 14; n < len(good); n++ {
		require.NoError(t, l.client.Inject(good[:n]))
	}
	for i := 14; i < 22; i++ { // hardware and protocol type, lengths, operation
		for _, b := range []byte{0, 1, 3, 5, 7, 128, 255} {
			bad := append([]byte(nil), good...)
			bad[i] = b
			require.NoError(t, l.client.Inject(bad))
		}
	}
	require.NoError(t, l.nodes[0].SetLink(netnstest.NIC, false))
	require.NoError(t, l.nodes[0].SetLink(netnstest.NIC, true))
	assert.Contains(t, ask(t, l.client, l.client.Addr(), vip, 1), answer{a.MAC(), 60})
}

func TestGratuitousFrames(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := listen(t, l.client, netnstest.NIC, arpwire.TypeARP)
	started := time.Now()
	a, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	var at []time.Duration
	c.frames(10, func(f []byte) bool {
		p, err := arpwire.Parse(f)
		require.NoError(t, err)
		want := arpwire.Packet{
			Dst: arpcheck.Broadcast, Src: a.MAC(), Op: arpwire.OpRequest,
			SenderMAC: a.MAC(), Sender: vip, TargetMAC: arpcheck.Broadcast, Target: vip,
		}
		if len(at)%2 == 1 {
			want.Op = arpwire.OpReply
		}
		assert.Equal(t, want, p)
		assert.Len(t, f, 60)
		at = append(at, time.Since(started))
		return true
	})
	require.Len(t, at, 10, "five pairs")
	for i, d := range at {
		assert.InDelta(t, float64(i/2)*1.1, d.Seconds(), 0.5, "frame %d", i)
	}
	assert.Empty(t, c.frames(0, isARP), "and no more")
}

func isARP(f []byte) bool {
	_, err := arpwire.Parse(f)
	return err == nil
}

func TestQuietAnnouncer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := listen(t, l.client, netnstest.NIC, arpwire.TypeARP)
	a, err := l.nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
	require.NoError(t, err)
	assert.Empty(t, c.frames(0, isARP))
	assert.Equal(t, []answer{{a.MAC(), 60}}, ask(t, l.client, l.client.Addr(), vip, 1))
}

func TestLaggardAnnouncer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const delay = 300 * time.Millisecond
	_, err := l.nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true, Delay: delay})
	require.NoError(t, err)
	started := time.Now()
	require.Len(t, ask(t, l.client, l.client.Addr(), vip, 1), 1)
	assert.GreaterOrEqual(t, time.Since(started), delay)
}

func TestAnnounceErrors(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, err := l.nodes[0].Announce(netip.MustParseAddr("2001:db8::1"))
	assert.ErrorContains(t, err, `host "w1": announce [2001:db8::1]: 2001:db8::1 is not an IPv4 address`)
	_, err = l.nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Link: "eth7"})
	assert.ErrorContains(t, err, "eth7")
}
