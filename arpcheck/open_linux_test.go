package arpcheck_test

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	_, err := from.AddNIC("eth1")
	require.NoError(t, err)
	require.NoError(t, from.SetLink("eth1", false))
	for _, row := range []struct {
		link string
		want error
		says string
	}{
		{"no-such-link", fs.ErrNotExist, "no such interface"},
		{"", fs.ErrNotExist, ""},
		{"../eth0", fs.ErrNotExist, "../eth0"},
		{"longer-than-any-interface-name", fs.ErrNotExist, "longer-than-any-interface-name"},
		{strings.Repeat("x", 200), fs.ErrNotExist, ""},
		{"eth0\x00", fs.ErrNotExist, ""},
		{"lo", arpcheck.ErrNotEthernet, "loopback"},
		{"eth1", arpcheck.ErrLinkDown, "ip link set eth1 up"},
	} {
		t.Run(row.link[:min(len(row.link), 40)], func(t *testing.T) {
			p, err := from.OpenOn(row.link)
			if err == nil {
				p.Close()
			}
			require.ErrorIs(t, err, row.want)
			assert.ErrorContains(t, err, "arpcheck: open "+row.link)
			assert.ErrorContains(t, err, row.says)
		})
	}
}

// Without CAP_NET_RAW the error says what is missing and how to grant it.
func TestOpenWithoutCapability(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	err := from.Do(func() error {
		restore, err := dropNetRaw()
		if err != nil {
			return err
		}
		defer restore()
		p, err := arpcheck.Open("eth0")
		if err == nil {
			p.Close()
			return errors.New("opened without CAP_NET_RAW")
		}
		return err
	})
	require.ErrorIs(t, err, fs.ErrPermission)
	for _, text := range []string{"eth0", "CAP_NET_RAW", "setcap", "securityContext"} {
		assert.ErrorContains(t, err, text)
	}
}

// dropNetRaw takes CAP_NET_RAW from the calling thread, which must be locked.
func dropNetRaw() (restore func(), err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return nil, err
	}
	less := sets
	less[0].Effective &^= 1 << unix.CAP_NET_RAW
	if err := unix.Capset(&header, &less[0]); err != nil {
		return nil, err
	}
	return func() { _ = unix.Capset(&header, &sets[0]) }, nil
}

// LinkTo says what the kernel's routes say.
func TestLinkTo(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	addr := netip.MustParseAddr
	gateway := addr("10.0.3.1")
	require.NoError(t, from.AddRoute(netip.MustParsePrefix("172.16.0.0/16"), gateway, "eth0"))
	require.NoError(t, from.Do(func() error {
		return errors.Join(addReject("172.17.0.0/16", unix.RTN_UNREACHABLE), addReject("172.18.0.0/16", unix.RTN_PROHIBIT),
			addReject("172.19.0.0/16", unix.RTN_BLACKHOLE))
	}))
	for _, row := range []struct {
		name   string
		target netip.Addr
		want   arpcheck.Hop
		err    error
	}{
		{"on the link", vip, arpcheck.Hop{Link: "eth0"}, nil},
		{"as 4in6", netip.AddrFrom16(vip.As16()), arpcheck.Hop{Link: "eth0"}, nil},
		{"behind a gateway", addr("172.16.1.1"), arpcheck.Hop{Link: "eth0", Gateway: gateway}, nil},
		{"its own", client, arpcheck.Hop{Link: "lo", Local: true}, nil},
		{"no route", addr("192.0.2.1"), arpcheck.Hop{}, arpcheck.ErrNoRoute},
		{"unreachable", addr("172.17.1.1"), arpcheck.Hop{}, arpcheck.ErrNoRoute},
		{"prohibited", addr("172.18.1.1"), arpcheck.Hop{}, arpcheck.ErrNoRoute},
		{"blackhole", addr("172.19.1.1"), arpcheck.Hop{}, arpcheck.ErrNoRoute},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := from.Do(func() error {
				hop, err := arpcheck.LinkTo(row.target)
				assert.Equal(t, row.want, hop)
				return err
			})
			require.ErrorIs(t, err, row.err)
			if err != nil {
				require.ErrorContains(t, err, row.target.String())
			}
		})
	}
}

func addReject(prefix string, kind int) error {
	_, dst, err := net.ParseCIDR(prefix)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Type: kind})
}

// The sender of a probe for a target that is behind no route, one that another
// interface leads to, and one of the interface's own.
func TestOpenedHost(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	require.NoError(t, from.AddAddr("eth0", netip.MustParsePrefix("10.0.3.51/24")))
	require.NoError(t, from.AddAddr("eth0", netip.MustParsePrefix("192.0.2.9/24")))
	_, err := from.AddNIC("eth1", netip.MustParsePrefix("10.9.0.9/24"))
	require.NoError(t, err)
	p := openIn(t, from, "eth0")
	state, err := p.Host.Link()
	require.NoError(t, err)
	assert.True(t, state.Up)
	assert.Equal(t, from.MAC(), state.MAC)
	assert.Equal(t, []netip.Addr{client, netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("10.0.3.51")}, state.Addrs,
		"primary addresses first")
	for target, want := range map[string]arpcheck.Route{
		"10.0.3.20": {Source: client},
		"192.0.2.1": {Source: netip.MustParseAddr("192.0.2.9")},
		"10.9.0.1":  {}, // by eth1
		"8.8.8.8":   {},
		"10.0.3.51": {Local: true},
		"10.9.0.9":  {Local: true},
	} {
		route, err := p.Host.Route(netip.MustParseAddr(target))
		require.NoError(t, err)
		if want.Local {
			route.Source = netip.Addr{} // whatever it is, it leaves by lo
		}
		assert.Equal(t, want, route, target)
	}
}

// An interface that is removed under a Prober is a link that is down.
func TestLinkIsGone(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	p := openIn(t, from, "eth0")
	require.NoError(t, from.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	}))
	for range 2 {
		r := probe(t, p)
		assert.Equal(t, arpcheck.Inconclusive, r.Verdict)
		assert.Contains(t, r.Reasons, arpcheck.LinkDown)
	}
	_, err := p.Conn.Send([][]byte{arpwire.Request(p.MAC, client, vip).Append(nil, 0)})
	require.ErrorIs(t, err, arpcheck.ErrLinkDown)
}
