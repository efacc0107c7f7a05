package ipvs_test

import (
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"sync"
	"testing"
	"time"

	cloudflare "github.com/cloudflare/ipvs"
	"github.com/cloudflare/ipvs/netmask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
)

// read reads the host's table in both ways. The error is that of /proc or, if
// there is none, of netlink.
func read(t *testing.T, host *netnstest.Host) (proc, netlink ipvs.Table, err error) {
	t.Helper()
	err = host.Do(func() (err error) {
		if proc, err = ipvs.ReadTable(); err != nil {
			return err
		}
		netlink, err = ipvs.ReadTableNetlink()
		return err
	})
	return proc, netlink, err
}

// client returns a client that edits the host's IPVS table, or skips the test.
func client(t *testing.T, host *netnstest.Host) cloudflare.Client {
	t.Helper()
	_, _, err := read(t, host)
	if errors.Is(err, ipvs.ErrNoIPVS) {
		t.Skip("needs a kernel with ip_vs: modprobe ip_vs")
	}
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("needs CAP_NET_ADMIN in the initial user namespace: run the tests as root")
	}
	require.NoError(t, err)
	var c cloudflare.Client
	require.NoError(t, host.Do(func() (err error) {
		c, err = cloudflare.New()
		return err
	}))
	t.Cleanup(func() { require.NoError(t, c.(io.Closer).Close()) })
	return c
}

func TestNoIPVS(t *testing.T) {
	t.Parallel()
	host := bare(t)
	_, _, err := read(t, host)
	if !errors.Is(err, ipvs.ErrNoIPVS) {
		t.Skipf("needs a kernel without ip_vs: modprobe -r ip_vs; here reading gives: %v", err)
	}
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "modprobe ip_vs")
	err = host.Do(func() error {
		_, err := ipvs.ReadTableNetlink()
		return err
	})
	assert.ErrorIs(t, err, ipvs.ErrNoIPVS)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.NotErrorIs(t, err, fs.ErrPermission)
}

func TestEmptyTable(t *testing.T) {
	t.Parallel()
	host := bare(t)
	client(t, host)
	proc, netlink, err := read(t, host)
	require.NoError(t, err, "empty is not absent")
	assert.Empty(t, proc.Services)
	assert.Equal(t, proc, netlink)
	assert.Equal(t, "1.2.1", proc.Version)
}

// Services of all kinds, read from a real kernel in both ways.
func TestReadTable(t *testing.T) {
	t.Parallel()
	host := bare(t)
	c := client(t, host)
	services := realServices()
	for i, s := range services {
		s.Scheduler = "rr"
		require.NoError(t, c.CreateService(s), "%+v", s)
		for n := range i % 4 { // some have none
			require.NoError(t, c.CreateDestination(s, destination(s, n)), "%+v", s)
		}
	}

	proc, netlink, err := read(t, host)
	require.NoError(t, err)
	require.Len(t, proc.Services, len(services))
	assert.False(t, proc.Partial)
	for i := range netlink.Services {
		s, p := &netlink.Services[i], &proc.Services[i]
		assert.NotZero(t, s.Flags&2, "IP_VS_SVC_F_HASHED")
		if s.Persistent {
			ticks := p.TimeoutTicks / uint32(s.Timeout/time.Second)
			assert.Contains(t, []uint32{100, 250, 300, 1000}, ticks, "ticks a second")
		}
		// What only one of both tells.
		s.Flags, s.Timeout, p.TimeoutTicks = 0, 0, 0
	}
	assert.Equal(t, netlink, proc)
	assert.Len(t, proc.For(vip), 4)
	assert.Equal(t, ipvs.Backing{Local: 2, Remote: 1, Empty: 1},
		proc.Backing(vip, func(a netip.Addr) bool { return a == netip.MustParseAddr("10.244.1.2") }))
}

// realServices are virtual servers of all kinds.
func realServices() []cloudflare.Service {
	v6 := netip.MustParseAddr("2001:db8::1")
	return []cloudflare.Service{
		{Address: vip, Port: 80, Family: cloudflare.INET, Protocol: cloudflare.TCP, Netmask: netmask.MaskFrom(32, 32)},
		{Address: vip, Port: 443, Family: cloudflare.INET, Protocol: cloudflare.TCP, Netmask: netmask.MaskFrom(24, 32),
			Flags: cloudflare.ServicePersistent, Timeout: 10800},
		{Address: vip, Port: 53, Family: cloudflare.INET, Protocol: cloudflare.UDP, Netmask: netmask.MaskFrom(32, 32),
			Flags: cloudflare.ServiceOnePacket},
		{Address: vip, Port: 80, Family: cloudflare.INET, Protocol: cloudflare.SCTP, Netmask: netmask.MaskFrom(32, 32)},
		{Address: v6, Port: 80, Family: cloudflare.INET6, Protocol: cloudflare.TCP, Netmask: netmask.MaskFrom(128, 128)},
		{Address: v6, Port: 443, Family: cloudflare.INET6, Protocol: cloudflare.TCP, Netmask: netmask.MaskFrom(64, 128),
			Flags: cloudflare.ServicePersistent, Timeout: 300},
		{FWMark: 16, Family: cloudflare.INET, Netmask: netmask.MaskFrom(32, 32)},
		{FWMark: 16, Family: cloudflare.INET6, Netmask: netmask.MaskFrom(128, 128), Flags: cloudflare.ServicePersistent, Timeout: 300},
		{FWMark: 17, Family: cloudflare.INET, Netmask: netmask.MaskFrom(32, 32), Flags: cloudflare.ServicePersistent, Timeout: 300},
	}
}

// destination returns the nth real server for a service: each is forwarded to
// in another way.
func destination(s cloudflare.Service, n int) cloudflare.Destination {
	d := cloudflare.Destination{
		Address: netip.AddrFrom4([4]byte{10, 244, 1, byte(1 + n)}), Port: s.Port, Family: cloudflare.INET,
		FwdMethod: []cloudflare.ForwardType{cloudflare.Masquerade, cloudflare.DirectRoute, cloudflare.Tunnel}[n], Weight: uint32(1 + n),
	}
	if s.Family == cloudflare.INET6 {
		d.Address, d.Family = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(2 + n)}), cloudflare.INET6
	}
	return d
}

// A namespace's table is its own, whatever another one has in the same kernel.
// Not parallel: a kernel counts all namespaces' services, so that what other
// tests change makes even netlink's table unsteady.
func TestTableBesideAnotherNamespace(t *testing.T) {
	here, there := bare(t), bare(t)
	c, other := client(t, here), client(t, there)
	for n := range 200 {
		require.NoError(t, other.CreateService(tcp(service(n))))
	}
	have := 0
	for _, size := range []int{20, 300} { // in one piece, and in several
		for ; have < size; have++ {
			require.NoError(t, c.CreateService(tcp(service(have))))
		}
		proc, netlink, err := read(t, here)
		require.NoError(t, err)
		assert.False(t, netlink.Partial)
		assert.Len(t, netlink.Services, size)
		assert.Subset(t, netlink.Services, withFlags(proc.Services))
		if !proc.Partial {
			assert.Len(t, proc.Services, size)
		}
		t.Logf("%d services: %d in /proc, Partial: %t", size, len(proc.Services), proc.Partial)
		assert.False(t, size == 20 && proc.Partial, "one piece is whole")
	}
}

// withFlags adds what all services of a kernel have, but only netlink tells.
func withFlags(services []ipvs.Service) []ipvs.Service {
	for i := range services {
		services[i].Flags = 2 // IP_VS_SVC_F_HASHED
	}
	return services
}

func tcp(addr netip.Addr) cloudflare.Service {
	return cloudflare.Service{Address: addr, Port: 80, Family: cloudflare.INET, Protocol: cloudflare.TCP,
		Scheduler: "rr", Netmask: netmask.MaskFrom(32, 32)}
}

// While services come and go, none that is there all the time may be missing
// from a table that is not Partial.
func TestTableChurn(t *testing.T) {
	t.Parallel()
	host := bare(t)
	c := client(t, host)
	const still, churnReads = 300, 10
	for n := range still {
		require.NoError(t, c.CreateService(tcp(service(n))))
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	defer done.Wait()
	defer close(stop)
	done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			change := c.CreateService
			if n/100%2 == 1 {
				change = c.RemoveService
			}
			assert.NoError(t, change(tcp(service(still+n%100))))
		}
	})
	for name, read := range map[string]func() (ipvs.Table, error){"proc": ipvs.ReadTable, "netlink": ipvs.ReadTableNetlink} {
		partial := 0
		for n := range churnReads {
			var table ipvs.Table
			require.NoError(t, host.Do(func() (err error) {
				table, err = read()
				return err
			}))
			if table.Partial {
				partial++
				continue
			}
			found := 0
			for n := range still {
				found += len(table.For(service(n)))
			}
			require.Equal(t, still, found, "services are missing from read %d by %s", n, name)
		}
		t.Logf("%s: %d of %d reads were Partial", name, partial, churnReads)
	}
}
