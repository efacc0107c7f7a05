package netnstest_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
	"github.com/strictarp/strictarp/sysctl"
)

func TestLooseNodesAllAnswerLastJoinedFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.holdVIP(t)
	w1, w2, w3 := l.nodes[0].MAC(), l.nodes[1].MAC(), l.nodes[2].MAC()
	// A kernel does not pad on a virtual link; an announcer does.
	loose := []answer{{w3, 42}, {w2, 42}, {w1, 42}}
	assert.Equal(t, loose, ask(t, l.client, l.client.Addr(), vip, 3))
	_, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	got := ask(t, l.client, l.client.Addr(), vip, 4)
	announcer := func(a answer) bool { return a.Length == 60 }
	at := slices.IndexFunc(got, announcer)
	require.GreaterOrEqual(t, at, 0, "%v", got)
	assert.Equal(t, w1, got[at].MAC)
	// It is usually last, but a processor that is idle may let it overtake.
	assert.Equal(t, loose, slices.DeleteFunc(got, announcer))
}

func TestStrictNodesAreSilentAndTheAnnouncerIsNot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.holdVIP(t)
	l.each(t, func(n *netnstest.Host) error { return n.SetStrictARP(true) })
	assert.Empty(t, ask(t, l.client, l.client.Addr(), vip, 0))
	a, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	assert.Equal(t, []answer{{a.MAC(), 60}}, ask(t, l.client, l.client.Addr(), vip, 1))
	require.NoError(t, a.Stop())
	require.NoError(t, a.Stop(), "stopping twice is no error")
	assert.Empty(t, ask(t, l.client, l.client.Addr(), vip, 0))
	l.each(t, func(n *netnstest.Host) error { return n.SetStrictARP(false) })
	assert.Len(t, ask(t, l.client, l.client.Addr(), vip, 3), 3)
}

func TestARPIgnore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, w1.HoldVIP(vip))
	for _, tt := range []struct{ all, own, want int }{
		{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {2, 0, 0}, {3, 0, 1}, {8, 0, 0}, {1, 4, 1}, {9, 8, 1},
	} {
		t.Run(fmt.Sprintf("all=%d own=%d", tt.all, tt.own), func(t *testing.T) {
			require.NoError(t, w1.SetSysctl("all", sysctl.ARPIgnore, tt.all))
			require.NoError(t, w1.SetSysctl(netnstest.NIC, sysctl.ARPIgnore, tt.own))
			got, err := w1.Sysctl("all", sysctl.ARPIgnore)
			require.NoError(t, err)
			assert.Equal(t, tt.all, got)
			assert.Len(t, ask(t, l.client, l.client.Addr(), vip, tt.want), tt.want)
		})
	}
}

func TestVIPDevice(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	kind, err := w1.VIPDeviceKind()
	require.NoError(t, err)
	require.Empty(t, kind)
	require.NoError(t, w1.HoldVIP(vip))
	require.NoError(t, w1.HoldVIP(vip), "holding it twice is no error")
	kind, err = w1.VIPDeviceKind()
	require.NoError(t, err)
	assert.Contains(t, []string{"dummy", "ifb", "bridge"}, kind)
	t.Logf("%s is of kind %s", netnstest.VIPDevice, kind)
	assert.Len(t, ask(t, l.client, l.client.Addr(), vip, 1), 1)
	require.NoError(t, w1.DropVIP(vip))
	assert.Empty(t, ask(t, l.client, l.client.Addr(), vip, 0))
	assert.ErrorContains(t, w1.DropVIP(vip), `host "w1": remove 10.0.3.20/32 from kube-ipvs0`)
}

func TestVIPOnNIC(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	require.NoError(t, l.nodes[1].BindOnNIC(vip))
	require.NoError(t, l.nodes[1].SetStrictARP(true))
	assert.Equal(t, []arpcheck.MAC{l.nodes[1].MAC()}, macs(ask(t, l.client, l.client.Addr(), vip, 1)),
		"arp_ignore=1 does not silence an address of the receiving interface")
}

func TestSecondLinkAnswersWithAnotherMAC(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, w1.HoldVIP(vip))
	second, err := w1.AddNIC("eth0.100")
	require.NoError(t, err)
	assert.ElementsMatch(t, []arpcheck.MAC{w1.MAC(), second}, macs(ask(t, l.client, l.client.Addr(), vip, 2)))
	require.NoError(t, w1.SetSysctl("eth0.100", sysctl.ARPIgnore, 1))
	assert.Equal(t, []arpcheck.MAC{w1.MAC()}, macs(ask(t, l.client, l.client.Addr(), vip, 1)))
	assert.Len(t, w1.Links(), 2)
}

func TestLinkDownIsSilent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w1 := l.nodes[0]
	require.NoError(t, w1.SetLink(netnstest.NIC, false))
	assert.Empty(t, ask(t, l.client, l.client.Addr(), w1.Addr(), 0))
	require.NoError(t, w1.SetLink(netnstest.NIC, true))
	assert.Len(t, ask(t, l.client, l.client.Addr(), w1.Addr(), 1), 1)
}

func TestClientOfAnotherSubnet(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	far, err := l.AddClient("haproxy", prefix("172.31.0.9"))
	require.NoError(t, err)
	w1 := l.nodes[0]
	require.NoError(t, w1.HoldVIP(vip))
	for _, filter := range []struct{ value, want int }{{0, 1}, {1, 0}, {2, 0}} {
		require.NoError(t, w1.SetSysctl("all", sysctl.RPFilter, filter.value))
		assert.Len(t, ask(t, far, far.Addr(), vip, filter.want), filter.want, "rp_filter=%d, no route back", filter.value)
	}
	require.NoError(t, w1.AddRoute(prefix("172.31.0.0"), netip.Addr{}, netnstest.NIC))
	assert.Len(t, ask(t, far, far.Addr(), vip, 1), 1, "with a route back")
}

func TestProxyARP(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w2 := l.nodes[1]
	elsewhere := netip.MustParseAddr("198.51.100.7")
	require.NoError(t, w2.SetProxyARP(true))
	require.NoError(t, w2.SetProxyARP(true, netip.PrefixFrom(vip, 32)))
	for _, target := range []netip.Addr{elsewhere, vip} {
		assert.Equal(t, []arpcheck.MAC{w2.MAC()}, macs(ask(t, l.client, l.client.Addr(), target, 1)))
	}
	require.NoError(t, w2.SetProxyARP(false))
	// Sent to the node's MAC it would be answered without delay.
	toNode := arpwire.Request(l.client.MAC(), l.client.Addr(), elsewhere)
	toNode.Dst = w2.MAC()
	assert.Empty(t, askBy(t, l.client, toNode, 0))
}
