package ipvstest_test

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/ipvs/ipvstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	vip   = netip.MustParseAddr("10.0.3.20")
	other = netip.MustParsePrefix("10.0.3.21/32")
)

func TestZeroNode(t *testing.T) {
	t.Parallel()
	var node ipvstest.Node
	conn := node.Open()
	_, err := conn.Device("")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	all, err := conn.Devices()
	require.NoError(t, err)
	assert.Empty(t, all.Devices)
	_, err = node.ReadTable()
	assert.ErrorIs(t, err, ipvs.ErrNoIPVS)
	_, err = node.ReadTableNetlink()
	assert.ErrorIs(t, err, ipvs.ErrNoIPVS)
}

func TestEdit(t *testing.T) {
	t.Parallel()
	var node ipvstest.Node
	require.NoError(t, node.AddDevice(ipvs.Device{Name: "eth0", Index: 7, Addresses: []ipvs.Address{{Prefix: other}}}))
	assert.ErrorIs(t, node.AddDevice(ipvs.Device{Name: "eth0"}), fs.ErrExist)
	require.NoError(t, node.AddDevice(ipvs.Device{Name: "lo"}))
	require.NoError(t, node.AddAddress("lo", netip.MustParsePrefix("127.0.0.1/8")))
	assert.ErrorIs(t, node.AddAddress("lo", netip.MustParsePrefix("127.0.0.1/8")), fs.ErrExist)
	assert.ErrorIs(t, node.AddAddress("lo", netip.MustParsePrefix("::1/128")), fs.ErrInvalid)
	assert.ErrorIs(t, node.AddAddress("eth1", other), fs.ErrNotExist)
	assert.ErrorIs(t, node.RemoveAddress("eth1", other), fs.ErrNotExist)
	assert.ErrorIs(t, node.RemoveAddress("lo", other), fs.ErrNotExist)
	assert.ErrorIs(t, node.SetLink(ipvs.Device{Name: "eth1"}), fs.ErrNotExist)
	assert.ErrorIs(t, node.RemoveDevice("eth1"), fs.ErrNotExist)

	all, err := node.Open().Devices()
	require.NoError(t, err)
	assert.Equal(t, ipvs.Devices{Devices: []ipvs.Device{
		{Name: "eth0", Index: 7, Addresses: []ipvs.Address{
			{Prefix: other, Scope: ipvs.ScopeGlobal, Flags: ipvs.Permanent, Label: "eth0"}}},
		{Name: "lo", Index: 8, Addresses: []ipvs.Address{
			{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Scope: ipvs.ScopeHost, Flags: ipvs.Permanent, Label: "lo"}}},
	}}, all)
	all.Devices[0].Addresses[0].Label = "mine"
	dev, err := node.Open().Device("eth0")
	require.NoError(t, err)
	assert.Equal(t, "eth0", dev.Addresses[0].Label, "what was read is a copy")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var node ipvstest.Node
	node.HoldVIP(vip)
	node.SetTable(ipvs.Table{})
	broken := errors.New("broken")
	node.Fail(broken)
	conn := node.Open()
	_, err := conn.Device("")
	assert.ErrorIs(t, err, broken)
	_, err = conn.Devices()
	assert.ErrorIs(t, err, broken)
	_, err = node.ReadTable()
	assert.ErrorIs(t, err, broken)
	for _, err := range conn.Watch(t.Context(), "") {
		assert.ErrorIs(t, err, broken)
	}
	node.Fail(nil)
	node.SetPartial(true)
	dev, err := conn.Device("")
	require.NoError(t, err)
	assert.True(t, dev.Partial)
	table, err := node.ReadTable()
	require.NoError(t, err)
	assert.True(t, table.Partial)
	require.NoError(t, conn.Close())
	_, err = conn.Device("")
	assert.ErrorIs(t, err, fs.ErrClosed)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var node ipvstest.Node
		node.HoldVIP(vip)
		conn := node.Open()
		var seen []ipvs.Event
		var last error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range conn.Watch(ctx, "") {
				if last = err; err == nil {
					seen = append(seen, e)
				}
				time.Sleep(time.Second) // a slow reader
			}
		}()
		synctest.Wait()
		_, err := conn.Device("")
		assert.ErrorIs(t, err, ipvs.ErrBusy)
		require.NoError(t, node.AddAddress(ipvs.DefaultDevice, other))
		time.Sleep(time.Minute)
		node.HoldVIP(netip.MustParseAddr("10.0.3.22"))
		node.Overrun()
		node.HoldVIP(netip.MustParseAddr("10.0.3.23")) // is in what follows
		time.Sleep(time.Minute)
		require.NoError(t, node.RemoveDevice(ipvs.DefaultDevice))
		time.Sleep(time.Minute)
		node.HoldVIP()
		require.NoError(t, node.RemoveDevice(ipvs.DefaultDevice)) // came and went
		time.Sleep(time.Minute)
		cancel()
		<-done
		assert.ErrorIs(t, last, context.Canceled)
		var types []ipvs.EventType
		for _, e := range seen {
			types = append(types, e.Type)
		}
		assert.Equal(t, []ipvs.EventType{ipvs.Full, ipvs.Added, ipvs.Full,
			ipvs.Removed, ipvs.Removed, ipvs.Removed, ipvs.Removed, ipvs.Gone}, types)
		assert.Len(t, seen[0].Device.Addresses, 1)
		assert.True(t, seen[2].Resync)
		assert.Len(t, seen[2].Device.Addresses, 4)
	})
}

func TestWatchEndsByClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := new(ipvstest.Node).Open()
		go func() {
			synctest.Wait()
			assert.NoError(t, conn.Close())
		}()
		var last error
		for e, err := range conn.Watch(t.Context(), "") {
			last = err
			if err == nil {
				assert.Equal(t, ipvs.Gone, e.Type)
			}
		}
		assert.ErrorIs(t, last, fs.ErrClosed)
	})
}

func TestTable(t *testing.T) {
	t.Parallel()
	var node ipvstest.Node
	v6 := netip.MustParseAddr("2001:db8::1")
	node.SetService(ipvs.Service{Protocol: ipvs.TCP, Addr: vip, Port: 80, Scheduler: "rr", Persistent: true, Timeout: time.Hour, Flags: 1,
		RealServers: []ipvs.RealServer{{Addr: vip, Port: 80, Forward: ipvs.Local}}})
	node.SetService(ipvs.Service{Protocol: ipvs.TCP, Addr: v6, Port: 80, Scheduler: "rr", Persistent: true, OnePacket: true})
	node.SetService(ipvs.Service{FWMark: 3, Scheduler: "rr", OnePacket: true})
	node.SetService(ipvs.Service{FWMark: 4, Scheduler: "rr"})
	node.SetService(ipvs.Service{FWMark: 3, Scheduler: "wrr", OnePacket: true}) // replaces
	node.RemoveService(ipvs.Service{FWMark: 4})

	proc, err := node.ReadTable()
	require.NoError(t, err)
	nl, err := node.ReadTableNetlink()
	require.NoError(t, err)
	require.Len(t, proc.Services, 3)
	assert.Equal(t, uint32(900000), proc.Services[0].TimeoutTicks)
	assert.Equal(t, time.Hour, nl.Services[0].Timeout)
	assert.False(t, proc.Services[1].OnePacket, "/proc forgets that of IPv6")
	proc.Services[0].TimeoutTicks, nl.Services[0].Timeout, nl.Services[0].Flags = 0, 0, 0
	nl.Services[1].OnePacket = false
	assert.Equal(t, nl, proc)
	assert.Equal(t, []int{32, 128, 0}, []int{proc.Services[0].ClientBits, proc.Services[1].ClientBits, proc.Services[2].ClientBits})
	node.RemoveTable()
	_, err = node.ReadTable()
	assert.ErrorIs(t, err, ipvs.ErrNoIPVS)
}

// As the kernel's format strings make it: fields are padded and lines end in
// blanks.
func TestProc(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A000314:0050 rr  
  -> 0AF40102:1F90      Masq    1      0          0         
`, ipvstest.Proc(ipvs.Table{Version: "1.2.1", ConnTable: 4096, Services: []ipvs.Service{{
		Protocol: ipvs.TCP, Addr: vip, Port: 80, Scheduler: "rr", RealServers: []ipvs.RealServer{
			{Addr: netip.MustParseAddr("10.244.1.2"), Port: 8080, Forward: ipvs.Masq, Weight: 1}}}}}))
}
