package ipvs_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
)

// node returns a host with the VIP on kube-ipvs0.
func node(t testing.TB) *netnstest.Host {
	t.Helper()
	host := bare(t)
	require.NoError(t, host.HoldVIP(vip))
	return host
}

// bare returns a host without kube-ipvs0.
func bare(t testing.TB) *netnstest.Host {
	t.Helper()
	host, err := netnstest.New(t).AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	require.NoError(t, err)
	return host
}

// open returns a Conn in the host's namespace.
func open(t testing.TB, host *netnstest.Host) *ipvs.Conn {
	t.Helper()
	var conn *ipvs.Conn
	require.NoError(t, host.Do(func() (err error) {
		conn, err = ipvs.Open()
		return err
	}))
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// plumber returns a handle that changes links and addresses in the host's
// namespace.
func plumber(t testing.TB, host *netnstest.Host) *netlink.Handle {
	t.Helper()
	var handle *netlink.Handle
	require.NoError(t, host.Do(func() (err error) {
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	}))
	t.Cleanup(handle.Close)
	return handle
}

func netlinkAddr(addr netip.Addr) *netlink.Addr {
	ip := addr.As4()
	return &netlink.Addr{IPNet: netlink.NewIPNet(ip[:])}
}

// fill adds addresses to kube-ipvs0.
func fill(t testing.TB, handle *netlink.Handle, from, to int) netlink.Link {
	t.Helper()
	link, err := handle.LinkByName(ipvs.DefaultDevice)
	require.NoError(t, err)
	for n := from; n < to; n++ {
		require.NoError(t, handle.AddrAdd(link, netlinkAddr(service(n))))
	}
	return link
}

// addLink makes an interface with an address.
func addLink(t testing.TB, host *netnstest.Host, name string, prefix netip.Prefix) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, plumber(t, host).LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	require.NoError(t, host.AddAddr(name, prefix))
}
