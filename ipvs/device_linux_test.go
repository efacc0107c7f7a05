package ipvs_test

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/ipvs"
)

func TestDevice(t *testing.T) {
	t.Parallel()
	host := node(t)
	kind, err := host.VIPDeviceKind()
	require.NoError(t, err)
	require.NoError(t, host.HoldVIP(netip.MustParseAddr("10.96.0.1")))

	dev, err := open(t, host).Device("")
	require.NoError(t, err)
	assert.Positive(t, dev.Index)
	assert.NotZero(t, dev.MAC)
	dev.Index, dev.MAC = 0, ipvs.MAC{}
	assert.True(t, dev.NoARP)
	assert.False(t, dev.Up)
	assert.Equal(t, uint32(0x80), dev.Flags&0x81, "IFF_NOARP and not IFF_UP")
	dev.Flags = 0
	assert.Equal(t, ipvs.Device{
		Name: "kube-ipvs0", Kind: kind, NoARP: true, State: ipvs.StateDown,
		Addresses: []ipvs.Address{
			{Prefix: prefix(vip), Scope: ipvs.ScopeGlobal, Flags: ipvs.Permanent, Label: "kube-ipvs0"},
			{Prefix: netip.MustParsePrefix("10.96.0.1/32"), Scope: ipvs.ScopeGlobal, Flags: ipvs.Permanent, Label: "kube-ipvs0"},
		},
	}, dev)
	assert.True(t, dev.Holds(vip))
	assert.False(t, dev.Holds(netip.MustParseAddr("10.96.0.2")))
}

// All that an address can have.
func TestAddressAttributes(t *testing.T) {
	t.Parallel()
	host := bare(t)
	handle := plumber(t, host)
	eth0, err := handle.LinkByName("eth0")
	require.NoError(t, err)
	peer := netlinkAddr(netip.MustParseAddr("10.9.0.1"))
	peer.Peer, peer.Label, peer.Scope = netlinkAddr(netip.MustParseAddr("10.9.0.2")).IPNet, "eth0:ppp", 253
	second, err := netlink.ParseAddr("10.8.0.1/24")
	require.NoError(t, err)
	second.Flags, second.Scope = 0x200, 77
	require.NoError(t, handle.AddrAdd(eth0, peer))
	require.NoError(t, handle.AddrAdd(eth0, second))

	dev, err := open(t, host).Device("eth0")
	require.NoError(t, err)
	assert.Equal(t, "veth", dev.Kind)
	assert.True(t, dev.Up)
	assert.Equal(t, ipvs.StateUp, dev.State)
	assert.Equal(t, ipvs.MAC(host.MAC()), dev.MAC)
	byAddr := map[string]ipvs.Address{}
	for _, a := range dev.Addresses {
		byAddr[a.Prefix.String()] = a
	}
	assert.Equal(t, map[string]ipvs.Address{
		"10.0.3.11/24": {Prefix: netip.MustParsePrefix("10.0.3.11/24"), Scope: ipvs.ScopeGlobal, Flags: ipvs.Permanent, Label: "eth0"},
		"10.8.0.1/24": {Prefix: netip.MustParsePrefix("10.8.0.1/24"), Scope: "77",
			Flags: ipvs.Permanent | ipvs.NoPrefixRoute, Label: "eth0"},
		"10.9.0.1/32": {Prefix: netip.MustParsePrefix("10.9.0.1/32"), Peer: netip.MustParseAddr("10.9.0.2"),
			Scope: ipvs.ScopeLink, Flags: ipvs.Permanent, Label: "eth0:ppp"},
	}, byAddr)
	assert.Equal(t, "permanent,noprefixroute", byAddr["10.8.0.1/24"].Flags.String())
	assert.Equal(t, "secondary,0x10", (ipvs.Secondary | 0x10).String())
}

// Absent, empty and failed are three results.
func TestDeviceAbsentEmptyAndFailed(t *testing.T) {
	t.Parallel()
	host := bare(t)
	conn := open(t, host)
	_, err := conn.Device("")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "kube-proxy makes it in ipvs mode only")
	_, err = conn.Device("kube-ipvs0x")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = conn.Device("a name that is too long")
	assert.ErrorIs(t, err, fs.ErrInvalid)
	assert.NotErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, host.HoldVIP(vip))
	require.NoError(t, host.DropVIP(vip))
	dev, err := conn.Device("")
	require.NoError(t, err)
	assert.NotNil(t, dev.Addresses)
	assert.Empty(t, dev.Addresses)
	assert.False(t, dev.Partial)
}

// Names that other programs stumble over: a dot, and bytes that are no UTF-8.
func TestDeviceNames(t *testing.T) {
	t.Parallel()
	host := bare(t)
	for _, name := range []string{"eth0.100", "ip\xffvs", "-", "ünïcode"} {
		addLink(t, host, name, netip.MustParsePrefix("10.7.0.1/32"))
		dev, err := open(t, host).Device(name)
		require.NoError(t, err)
		assert.Equal(t, name, dev.Name)
		assert.Len(t, dev.Addresses, 1)
	}
}

func TestDevicesAndHolders(t *testing.T) {
	t.Parallel()
	host := node(t)
	other, third := netip.MustParseAddr("10.0.3.21"), netip.MustParseAddr("10.0.3.22")
	require.NoError(t, host.HoldVIP(other))
	require.NoError(t, host.BindOnNIC(vip))
	require.NoError(t, host.AddAddr("lo", prefix(vip)))
	addLink(t, host, "br0", prefix(third))

	var all ipvs.Devices
	require.NoError(t, host.Do(func() (err error) {
		all, err = ipvs.ReadDevices()
		return err
	}))
	assert.False(t, all.Partial)
	var names []string
	for _, dev := range all.Devices {
		names = append(names, dev.Name)
		assert.NotNil(t, dev.Addresses, dev.Name)
		alone, err := open(t, host).Device(dev.Name)
		require.NoError(t, err)
		assert.Equal(t, alone, dev)
	}
	assert.ElementsMatch(t, []string{"lo", "eth0", "br0", "kube-ipvs0"}, names)
	assert.True(t, slices.IsSortedFunc(all.Devices, func(a, b ipvs.Device) int { return a.Index - b.Index }))

	vips := []netip.Addr{third, vip, other, netip.MustParseAddr("::ffff:10.0.3.21"), netip.MustParseAddr("192.0.2.1")}
	type view struct{ vip, device, kind string }
	views := func(holders []ipvs.Holder) (out []view) {
		for _, h := range holders {
			assert.Equal(t, h.VIP, h.Address.Prefix.Addr())
			out = append(out, view{h.VIP.String(), h.Device, h.Kind})
		}
		return out
	}
	assert.Equal(t, []view{{"10.0.3.20", "lo", ""}, {"10.0.3.20", "eth0", "veth"}, {"10.0.3.22", "br0", "bridge"}},
		views(all.Holders(vips, ipvs.DefaultDevice)))
	assert.Len(t, all.Holders(vips), 5)
	assert.Empty(t, all.Holders(nil))

	_, err := all.Named("kube-ipvs1")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	dev, err := all.Named("")
	require.NoError(t, err)
	assert.Equal(t, "kube-ipvs0", dev.Name)
}

// A device is what its namespace has, and not another one's.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	one, two := node(t), bare(t)
	_, err := open(t, one).Device("")
	assert.NoError(t, err)
	_, err = open(t, two).Device("")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, one.Do(func() error {
		_, err := ipvs.ReadDevice("")
		return err
	}))
}

func TestDeviceJSON(t *testing.T) {
	t.Parallel()
	dev, err := open(t, node(t)).Device("")
	require.NoError(t, err)
	text, err := json.Marshal(dev)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"addresses":[{"prefix":"10.0.3.20/32","scope":"global","flags":128,"label":"kube-ipvs0"}]`)
	assert.Contains(t, string(text), `"mac":"`+dev.MAC.String()+`"`)
	var again ipvs.Device
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, dev, again)
}

// Several chunks of a dump, as the largest clusters have.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	host := node(t)
	fill(t, plumber(t, host), 1, 20000)
	conn := open(t, host)
	for range 2 { // the second read reuses memory
		dev, err := conn.Device("")
		require.NoError(t, err)
		assert.False(t, dev.Partial)
		got := map[netip.Addr]bool{}
		for _, a := range dev.Addresses {
			got[a.Prefix.Addr()] = true
		}
		require.Len(t, got, 20000)
		require.Len(t, dev.Addresses, 20000)
		for n := 1; n < 20000; n++ {
			require.True(t, got[service(n)])
		}
	}
}

func TestClosedConn(t *testing.T) {
	t.Parallel()
	host := node(t)
	var conn *ipvs.Conn
	require.NoError(t, host.Do(func() (err error) {
		conn, err = ipvs.Open()
		return err
	}))
	require.NoError(t, conn.Close())
	require.NoError(t, conn.Close())
	_, err := conn.Device("")
	assert.ErrorIs(t, err, fs.ErrClosed)
	_, err = conn.Devices()
	assert.ErrorIs(t, err, fs.ErrClosed)
	for _, err := range conn.Watch(t.Context(), "") {
		assert.ErrorIs(t, err, fs.ErrClosed)
	}
}
