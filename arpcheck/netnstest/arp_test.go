package netnstest_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestLooseNodesAllAnswerLastJoinedFirst(t *testing.T) {
	l := newLab(t)
	l.holdVIP(t)
	got := ask(t, l.client, l.client.Addr(), vip)
	assert.Equal(t, []arpcheck.MAC{l.nodes[2].MAC(), l.nodes[1].MAC(), l.nodes[0].MAC()}, macs(got))
	assert.Equal(t, 42, got[0].Length, "a kernel does not pad on a virtual link")
}

func TestAnnouncingNodeAnswersTwiceWithOneMAC(t *testing.T) {
	l := newLab(t)
	l.holdVIP(t)
	_, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	w1 := l.nodes[0].MAC()
	got := ask(t, l.client, l.client.Addr(), vip)
	assert.Equal(t, []answer{{l.nodes[2].MAC(), 42}, {l.nodes[1].MAC(), 42}, {w1, 42}, {w1, 60}}, got)
}

func TestStrictNodesAreSilentAndTheAnnouncerIsNot(t *testing.T) {
	l := newLab(t)
	l.holdVIP(t)
	strict := func(on bool) func(*netnstest.Host) error {
		return func(n *netnstest.Host) error { return n.SetStrictARP(on) }
	}
	l.each(t, strict(true))
	assert.Empty(t, ask(t, l.client, l.client.Addr(), vip))
	a, err := l.nodes[0].Announce(vip)
	require.NoError(t, err)
	assert.Equal(t, []answer{{a.MAC(), 60}}, ask(t, l.client, l.client.Addr(), vip))
	require.NoError(t, a.Stop())
	assert.Empty(t, ask(t, l.client, l.client.Addr(), vip))
	l.each(t, strict(false))
	assert.Len(t, ask(t, l.client, l.client.Addr(), vip), 3)
}

var unspecified = netip.IPv4Unspecified()

func TestVIPDevice(t *testing.T) {
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
	t.Logf("%s is a %s", netnstest.VIPDevice, kind)
	require.NoError(t, w1.DropVIP(vip))
	assert.Empty(t, ask(t, l.client, unspecified, vip))
	assert.Error(t, w1.DropVIP(vip))
}
