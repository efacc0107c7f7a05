package arpchecktest_test

import (
	"io/fs"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

func TestProberKnowsItsHost(t *testing.T) {
	seg := arpchecktest.New(t)
	h := seg.AddNode("w1", addr(11), addr(9), netip.MustParsePrefix("10.7.0.1/16"))
	require.NoError(t, h.AddLink("eth1", netip.MustParsePrefix("10.9.0.1/24")))
	require.NoError(t, h.HoldVIP(vip))
	for _, r := range []arpchecktest.Route{
		{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.3.1"), Link: "eth0"},
		{To: netip.MustParsePrefix("172.16.0.0/12"), Link: "eth0", Source: netip.MustParseAddr("10.0.3.9")},
		{To: netip.MustParsePrefix("172.17.0.0/16"), Unreachable: true},
	} {
		require.NoError(t, h.AddRoute(r))
	}
	p, err := h.Open()
	require.NoError(t, err)
	assert.Equal(t, mac(1), p.MAC)
	assert.Equal(t, "eth0", p.Link)
	assert.Equal(t, "w1", p.Vantage)
	state, err := p.Host.Link()
	require.NoError(t, err)
	assert.Equal(t, arpcheck.LinkState{Up: true, MAC: mac(1), Addrs: []netip.Addr{
		netip.MustParseAddr("10.0.3.11"), netip.MustParseAddr("10.7.0.1"), netip.MustParseAddr("10.0.3.9"),
	}}, state)

	for target, want := range map[string]arpcheck.Route{
		"10.0.3.77":  {Source: netip.MustParseAddr("10.0.3.11")},
		"10.7.200.1": {Source: netip.MustParseAddr("10.7.0.1")},
		"8.8.8.8":    {Source: netip.MustParseAddr("10.0.3.11")},
		"172.18.0.1": {Source: netip.MustParseAddr("10.0.3.9")},
		"172.17.0.1": {},
		"10.9.0.5":   {}, // by eth1
		"10.0.3.20":  {Local: true},
		"10.0.3.11":  {Local: true},
	} {
		got, err := p.Host.Route(netip.MustParseAddr(target))
		require.NoError(t, err)
		assert.Equal(t, want, got, target)
	}

	require.NoError(t, h.DelRoute(netip.MustParsePrefix("0.0.0.0/0")))
	got, err := p.Host.Route(netip.MustParseAddr("8.8.8.8"))
	require.NoError(t, err)
	assert.Zero(t, got)
}

func TestErrors(t *testing.T) {
	seg := arpchecktest.New(t)
	h, v6 := seg.AddNode("w1", addr(11)), netip.MustParseAddr("fd00::1")
	require.NoError(t, h.AddLink("eth1"))
	require.NoError(t, h.HoldVIP(vip))
	require.NoError(t, h.Serve(at))
	for name, row := range map[string]struct{ got, want error }{
		"no such interface":      {h.SetLink("eth9", true), fs.ErrNotExist},
		"address of no NIC":      {h.AddAddr("eth9", addr(12), arpchecktest.ScopeGlobal), fs.ErrNotExist},
		"twice the same address": {h.AddAddr("kube-ipvs0", netip.PrefixFrom(vip, 32), arpchecktest.ScopeGlobal), fs.ErrExist},
		"IPv6 VIP":               {h.HoldVIP(v6), fs.ErrInvalid},
		"VIP that is not held":   {h.DropVIP(addr(99).Addr()), fs.ErrNotExist},
		"sysctl of no interface": {h.SetSysctl("eth9", "arp_ignore", 1), fs.ErrNotExist},
		"unknown sysctl":         {h.SetSysctl("all", "disable_ipv6", 1), fs.ErrNotExist},
		"link twice":             {h.AddLink("eth0"), fs.ErrExist},
		"link called all":        {h.AddLink("all"), fs.ErrExist},
		"link with IPv6":         {h.AddLink("eth2", netip.PrefixFrom(v6, 64)), fs.ErrInvalid},
		"route by no NIC":        {h.AddRoute(arpchecktest.Route{To: subnet, Link: "eth9"}), fs.ErrNotExist},
		"IPv6 route":             {h.AddRoute(arpchecktest.Route{To: netip.PrefixFrom(v6, 64), Link: "eth0"}), fs.ErrInvalid},
		"no such route":          {h.DelRoute(subnet), fs.ErrNotExist},
		"proxy on no NIC":        {h.AddProxyNeighbour(vip, "eth9"), fs.ErrNotExist},
		"inject on no NIC":       {h.InjectOn("eth9", nil), fs.ErrNotExist},
		"inject elsewhere":       {h.InjectOn("eth1", nil), arpcheck.ErrNotEthernet},
		"a stranger's address":   {h.SendFrom(addr(99).Addr(), addr(50).Addr()), fs.ErrInvalid},
		"served twice":           {h.Serve(at), fs.ErrExist},
		"flood without target":   {h.Flood(h, v6, 1), fs.ErrInvalid},
	} {
		assert.ErrorIs(t, row.got, row.want, name)
	}
	require.NoError(t, h.Forget(vip), "it is not there, as wanted")
	_, err := h.OpenOn("eth9")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = h.OpenOn("eth1")
	require.ErrorIs(t, err, arpcheck.ErrNotEthernet)
	_, err = h.Announce(v6)
	require.ErrorIs(t, err, os.ErrInvalid)
	_, err = h.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip, v6}})
	require.ErrorIs(t, err, os.ErrInvalid)
	_, err = h.AddNIC("eth0")
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = h.Sysctl("eth9", "arp_ignore")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Panics(t, func() { seg.AddNode("w1") }, "the name is taken")
	assert.Panics(t, func() { seg.AddNode("w2", netip.PrefixFrom(v6, 64)) })

	require.NoError(t, seg.Close())
	require.NoError(t, seg.Close())
	assert.Panics(t, func() { seg.AddClient("late") })
	_, err = h.Open()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = h.Announce(vip)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = h.Resolve(t.Context(), addr(50).Addr())
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, h.Forget(vip), net.ErrClosed)
}
