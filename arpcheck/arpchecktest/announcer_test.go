package arpchecktest_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// What a speaker says of itself, as it was captured of MetalLB v0.16.1.
func TestGratuitousAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		start := time.Now()
		_, err := c.w1.Announce(vip)
		require.NoError(t, err)
		got := frames(t, c.conn, 20*time.Second)
		require.Len(t, got, 10)
		for k, f := range got {
			kind, err := arpcheck.Classify(f.Data)
			require.NoError(t, err)
			want := []arpcheck.Kind{arpcheck.Announcement, arpcheck.GratuitousReply}[k%2]
			assert.Equal(t, want, kind, "frame %d", k)
			assert.Equal(t, time.Duration(k/2)*1100*time.Millisecond, f.At.Sub(start))
			assert.Equal(t, 60, f.Length)
			assert.Equal(t, arpcheck.ToBroadcast, f.Type)
		}
		require.Empty(t, frames(t, c.conn, 20*time.Second), "other kernels do not answer them")
	})
}

func TestAnnouncerAnswers(t *testing.T) {
	for _, row := range []struct {
		name    string
		sender  netip.Addr
		to      func(cluster) arpcheck.MAC
		target  netip.Addr
		answers bool
	}{
		{"a broadcast", addr(50).Addr(), nil, vip, true},
		{"a sender of 0.0.0.0", netip.IPv4Unspecified(), nil, vip, true},
		{"a sender of another subnet", netip.MustParseAddr("172.31.1.9"), nil, vip, true},
		{"a sender that is the VIP", vip, nil, vip, true},
		{"a request to its MAC", addr(50).Addr(), func(c cluster) arpcheck.MAC { return c.w1.MAC() }, vip, true},
		{"a request to another MAC", addr(50).Addr(), func(cluster) arpcheck.MAC { return mac(99) }, vip, false},
		{"a multicast", addr(50).Addr(), func(cluster) arpcheck.MAC { return arpcheck.MAC{1, 0, 0x5e} }, vip, false},
		{"another target", addr(50).Addr(), nil, addr(99).Addr(), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				for _, w := range c.nodes() {
					require.NoError(t, w.SetSysctl("all", "arp_ignore", 8))
					require.NoError(t, w.SetSysctl("all", "rp_filter", 1))
				}
				_, err := c.w1.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true, Delay: time.Second})
				require.NoError(t, err)
				p := arpwire.Request(c.client.MAC(), row.sender, row.target)
				if row.to != nil {
					p.Dst = row.to(c)
				}
				_, err = c.conn.Send([][]byte{p.Append(nil, 0)})
				require.NoError(t, err)
				var want []reply
				if row.answers {
					want = []reply{{time.Second + kernelTime, c.w1.MAC(), 60}}
				}
				assert.Equal(t, want, collect(t, c.conn, 5*time.Second))
			})
		})
	}
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		a, err := c.w1.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Delay: -1})
		require.NoError(t, err)
		require.Len(t, frames(t, c.conn, 0), 2)
		require.Equal(t, []reply{{kernelTime, c.w1.MAC(), 60}}, func() []reply {
			ask(t, c.client, c.conn, vip)
			return collect(t, c.conn, time.Second)
		}())
		ask(t, c.client, c.conn, vip)
		require.NoError(t, a.Stop())
		require.NoError(t, a.Stop())
		assert.Empty(t, c.answers(t), "neither answers nor announcements")
	})
}

func TestAnnouncerOfTwoVIPs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		vips := []netip.Addr{vip, vip.Next()}
		_, err := c.w1.AnnounceWith(arpchecktest.Announcement{VIPs: vips})
		require.NoError(t, err)
		vips[0] = addr(99).Addr() // what was asked for counts
		got := frames(t, c.conn, 0)
		require.Len(t, got, 4)
		for k, f := range got {
			p, err := arpwire.Parse(f.Data)
			require.NoError(t, err)
			assert.Equal(t, []netip.Addr{vip, vip.Next()}[k/2], p.Target)
		}
		ask(t, c.client, c.conn, vip.Next())
		assert.Equal(t, []reply{{speakerTime, c.w1.MAC(), 60}}, collect(t, c.conn, time.Second))
	})
}

func TestSilentAnnouncerAnnouncesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		c.w1.SetFault(arpchecktest.Fault{Silent: true})
		_, err := c.w1.Announce(vip)
		require.NoError(t, err)
		assert.Empty(t, frames(t, c.conn, 10*time.Second))
	})
}
