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
	"github.com/strictarp/strictarp/sysctl"
)

// cluster is the usual segment: three nodes that hold the VIP, joined in the
// order of their names, and a client.
type cluster struct {
	*arpchecktest.Segment
	w1, w2, w3, client *arpchecktest.Host
	conn               *arpchecktest.Conn
}

func newCluster(t *testing.T) cluster {
	seg := arpchecktest.New(t)
	c := cluster{
		Segment: seg, w1: seg.AddNode("w1", addr(11)), w2: seg.AddNode("w2", addr(12)),
		w3: seg.AddNode("w3", addr(13)), client: seg.AddClient("client", addr(50)),
	}
	for _, w := range c.nodes() {
		require.NoError(t, w.HoldVIP(vip))
	}
	c.conn = openConn(t, c.client)
	return c
}

func (c cluster) nodes() []*arpchecktest.Host { return []*arpchecktest.Host{c.w1, c.w2, c.w3} }

func (c cluster) setStrict(t *testing.T) {
	for _, w := range c.nodes() {
		require.NoError(t, w.SetStrictARP(true))
	}
}

// answers asks once and returns who answers within 1.5 s.
func (c cluster) answers(t *testing.T) []reply {
	t.Helper()
	ask(t, c.client, c.conn, vip)
	return collect(t, c.conn, 1500*time.Millisecond)
}

func mac(last byte) arpcheck.MAC { return arpcheck.MAC{0x02, 5: last} }

const (
	kernelTime  = arpchecktest.DefaultLatency
	speakerTime = arpchecktest.DefaultLatency + arpchecktest.DefaultAnnouncerDelay
)

// The incident, as it was measured: w3, w2 and w1 and then w1's speaker.
func TestLooseNodesAllAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		_, err := c.w1.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
		require.NoError(t, err)
		assert.Equal(t, []reply{
			{kernelTime, mac(3), 42}, {kernelTime, mac(2), 42}, {kernelTime, mac(1), 42}, {speakerTime, mac(1), 60},
		}, c.answers(t))
		c.setStrict(t)
		assert.Equal(t, []reply{{speakerTime, mac(1), 60}}, c.answers(t))
	})
}

func TestAnswersByState(t *testing.T) {
	set := func(link string, p sysctl.Param, value int) func(*testing.T, cluster) {
		return func(t *testing.T, c cluster) { require.NoError(t, c.w2.SetSysctl(link, p, value)) }
	}
	all := []arpcheck.MAC{mac(3), mac(2), mac(1)}
	without2 := []arpcheck.MAC{mac(3), mac(1)}
	for _, row := range []struct {
		name   string
		change func(*testing.T, cluster)
		want   []arpcheck.MAC
	}{
		{"as it is", func(*testing.T, cluster) {}, all},
		{"strict on one node", func(t *testing.T, c cluster) { require.NoError(t, c.w2.SetStrictARP(true)) }, without2},
		{"strict and loose again", func(t *testing.T, c cluster) {
			require.NoError(t, c.w2.SetStrictARP(true))
			require.NoError(t, c.w2.SetStrictARP(false))
		}, all},
		{"arp_ignore of the interface alone", set("eth0", "arp_ignore", 1), without2},
		{"arp_ignore of kube-ipvs0 never counts", set("kube-ipvs0", "arp_ignore", 1), all},
		{"arp_ignore of default counts later", set("default", "arp_ignore", 1), all},
		{"the VIP is dropped", func(t *testing.T, c cluster) { require.NoError(t, c.w2.DropVIP(vip)) }, without2},
		{"strict, but the VIP is on the NIC", func(t *testing.T, c cluster) {
			c.setStrict(t)
			require.NoError(t, c.w2.BindOnNIC(vip))
		}, []arpcheck.MAC{mac(2)}},
		{"down", func(t *testing.T, c cluster) { require.NoError(t, c.w2.SetLink("eth0", false)) }, without2},
		{"a second NIC on the segment", func(t *testing.T, c cluster) {
			other, err := c.w2.AddNIC("eth1")
			require.NoError(t, err)
			require.Equal(t, mac(5), other)
		}, []arpcheck.MAC{mac(5), mac(3), mac(2), mac(1)}},
		{"a NIC made after default was set", func(t *testing.T, c cluster) {
			require.NoError(t, c.w2.SetSysctl("default", "arp_ignore", 1))
			_, err := c.w2.AddNIC("eth1")
			require.NoError(t, err)
		}, all},
		{"another MAC", func(_ *testing.T, c cluster) { c.w2.SetMAC(mac(99)) },
			[]arpcheck.MAC{mac(3), mac(99), mac(1)}},
		{"a slow host comes last", func(_ *testing.T, c cluster) { c.w3.SetLatency(time.Second) },
			[]arpcheck.MAC{mac(2), mac(1), mac(3)}},
		{"rp_filter without a route back", func(t *testing.T, c cluster) {
			require.NoError(t, c.w2.SetSysctl("all", "rp_filter", 1))
			require.NoError(t, c.w2.AddRoute(arpchecktest.Route{
				To: netip.MustParsePrefix("10.0.3.50/32"), Unreachable: true,
			}))
		}, without2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				row.change(t, c)
				var got []arpcheck.MAC
				for _, r := range c.answers(t) {
					got = append(got, r.MAC)
				}
				assert.Equal(t, row.want, got)
			})
		})
	}
}

// Time is not needed where hosts answer at once: nothing waits for a timer.
func TestLatencyOfZeroAnswersWithinSend(t *testing.T) {
	c := newCluster(t)
	for _, w := range c.nodes() {
		w.SetLatency(0)
	}
	ask(t, c.client, c.conn, vip)
	n, err := c.conn.Receive(make([]arpcheck.Frame, 8))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
}

func TestProxyARP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seg := arpchecktest.New(t)
		client, router := seg.AddClient("client", addr(50)), seg.AddClient("router", addr(1))
		conn := openConn(t, client)
		require.NoError(t, router.AddLink("eth1", netip.MustParsePrefix("10.9.0.1/24")))
		behind := netip.MustParseAddr("10.9.0.7")

		ask(t, client, conn, behind)
		require.Empty(t, collect(t, conn, 2*time.Second))
		require.NoError(t, router.SetProxyARP(true))
		delays := map[time.Duration]bool{}
		for range 20 {
			ask(t, client, conn, behind)
			got := collect(t, conn, 2*time.Second)
			require.Len(t, got, 1)
			require.Less(t, got[0].After, 800*time.Millisecond+kernelTime)
			delays[got[0].After] = true
		}
		assert.Greater(t, len(delays), 10, "the delay is random")

		for range 100 {
			ask(t, client, conn, behind)
		}
		assert.Len(t, collect(t, conn, 2*time.Second), 65, "pneigh_enqueue drops when more than 64 wait")

		p := arpwire.Request(client.MAC(), client.Addr(), behind)
		p.Dst = router.MAC()
		_, err := conn.Send([][]byte{p.Append(nil, 0)})
		require.NoError(t, err)
		assert.Equal(t, []reply{{kernelTime, router.MAC(), 42}}, collect(t, conn, 2*time.Second), "unicast is answered at once")

		require.NoError(t, router.SetProxyARP(false))
		ask(t, client, conn, behind)
		require.Empty(t, collect(t, conn, 2*time.Second))
		require.NoError(t, router.AddProxyNeighbour(behind, "eth0"))
		ask(t, client, conn, behind)
		assert.Len(t, collect(t, conn, 2*time.Second), 1)
	})
}

func TestSysctls(t *testing.T) {
	h := arpchecktest.New(t).AddNode("w1", addr(11))
	assert.Equal(t, "w1", h.Name())
	forwards, err := h.Sysctl("eth0", "forwarding")
	require.NoError(t, err)
	assert.Equal(t, 1, forwards, "all/forwarding sets it on every interface")
	require.NoError(t, h.AddLink("eth9"))
	forwards, err = h.Sysctl("eth9", "forwarding")
	require.NoError(t, err)
	assert.Equal(t, 1, forwards, "later ones too")
	for k, param := range []sysctl.Param{
		sysctl.ARPIgnore, sysctl.ARPAnnounce, sysctl.ARPFilter, sysctl.ProxyARP, sysctl.ProxyARPPVLAN,
		sysctl.RPFilter, sysctl.Forwarding, sysctl.RouteLocalnet, sysctl.AcceptLocal, sysctl.DropGratuitousARP, sysctl.SendRedirects,
	} {
		for j, link := range []string{"all", "default", "eth0", "lo"} {
			require.NoError(t, h.SetSysctl(link, param, 10*k+j))
		}
		for j, link := range []string{"default", "eth0", "lo"} {
			got, err := h.Sysctl(link, param)
			require.NoError(t, err)
			assert.Equal(t, 10*k+j+1, got, "%s/%s", link, param)
		}
	}
	require.NoError(t, h.AddLink("eth1"))
	got, err := h.Sysctl("eth1", "arp_announce")
	require.NoError(t, err)
	assert.Equal(t, 11, got, "from default")
}

// A kernel does not answer its own host, but its second NIC answers a probe
// from 0.0.0.0 that comes in from outside.
func TestOwnHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seg := arpchecktest.New(t)
		node := seg.AddNode("w1", addr(11))
		require.NoError(t, node.HoldVIP(vip))
		conn := openConn(t, node)
		ask(t, node, conn, vip)
		require.Empty(t, collect(t, conn, time.Second))

		second, err := node.AddNIC("eth1")
		require.NoError(t, err)
		ask(t, node, conn, vip)
		require.Empty(t, collect(t, conn, time.Second), "the sender is its own address")
		_, err = conn.Send([][]byte{arpwire.Request(node.MAC(), netip.IPv4Unspecified(), vip).Append(nil, 0)})
		require.NoError(t, err)
		assert.Equal(t, []reply{{kernelTime, second, 42}}, collect(t, conn, time.Second))
	})
}
