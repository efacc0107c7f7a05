package strictarp_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// ipAddr is of iproute2 6.1, "ip -d addr" with interfaces of a node and of other
// kinds.
const ipAddr = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
    inet6 ::1/128 scope host
       valid_lft forever preferred_lft forever
2: eno1: <NO-CARRIER,BROADCAST,MULTICAST,SLAVE,UP> mtu 1500 qdisc mq master bond0 state DOWN group default qlen 1000
    link/ether 00:00:5e:00:53:0a brd ff:ff:ff:ff:ff:ff permaddr 00:00:5e:00:53:0b promiscuity 0
    bond_slave state BACKUP mii_status DOWN
    altname enp2s0
3: bond0.100@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether 00:00:5e:00:53:0a brd ff:ff:ff:ff:ff:ff promiscuity 0
    vlan protocol 802.1Q id 100 <REORDER_HDR> numtxqueues 1
    inet 192.0.2.11/24 brd 192.0.2.255 scope global noprefixroute bond0.100
       valid_lft forever preferred_lft forever
    inet 192.0.2.12/24 brd 192.0.2.255 scope global secondary dynamic bond0.100
       valid_lft 3600sec preferred_lft 3600sec
4: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default
    link/ether 00:00:5e:00:53:e0 brd ff:ff:ff:ff:ff:ff
    dummy numtxqueues 1
    inet 192.0.2.240/32 scope global kube-ipvs0
       valid_lft forever preferred_lft forever
5: tun0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1400 qdisc fq_codel state UNKNOWN group default qlen 500
    link/none
    inet 10.8.0.1 peer 10.8.0.2/32 scope link tun0
       valid_lft forever preferred_lft forever
    RX:  bytes packets errors dropped  missed   mcast
             0       0      0       0       0       0
    TX:  bytes packets errors dropped carrier collsns
             0       0      0       0       0       0
    something new 1
    inet 10.0.0.300/8 scope global tun0
`

func TestParseLinksText(t *testing.T) {
	t.Parallel()
	links, warned, err := strictarp.ParseLinks(strings.NewReader(ipAddr))
	require.NoError(t, err)
	require.Len(t, links, 5)
	assert.True(t, links[0].Loopback)
	assert.True(t, links[0].MAC.IsZero())
	assert.Equal(t, "bond0", links[1].Master)
	assert.Equal(t, arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 0x0b}, links[1].PermanentMAC)
	assert.Empty(t, links[1].Addrs)
	assert.NotNil(t, links[1].Addrs)
	assert.Zero(t, links[1].Flags&0x40, "without carrier it is not RUNNING")
	assert.Equal(t, strictarp.Link{
		Name: "bond0.100", MAC: arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 0x0a}, Kind: "vlan", Up: true, Flags: 0x11043,
		Addrs: []strictarp.Address{
			{Prefix: netip.MustParsePrefix("192.0.2.11/24"), Scope: strictarp.ScopeGlobal, NoPrefixRoute: true},
			{Prefix: netip.MustParsePrefix("192.0.2.12/24"), Scope: strictarp.ScopeGlobal, Secondary: true},
		},
	}, links[2])
	assert.Equal(t, strictarp.Link{
		Name: "kube-ipvs0", MAC: arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 0xe0}, Kind: "dummy", NoARP: true, Flags: 0x82,
		Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("192.0.2.240/32"), Scope: strictarp.ScopeGlobal}},
	}, links[3])
	assert.Equal(t, []strictarp.Address{{
		Prefix: netip.MustParsePrefix("10.8.0.1/32"), Peer: netip.MustParseAddr("10.8.0.2"), Scope: strictarp.ScopeLink,
	}}, links[4].Addrs)
	require.Len(t, warned, 2)
	assert.Equal(t, "something new 1", warned[0].Text)
	assert.Contains(t, warned[1].Problem, "10.0.0.300/8")
}

func TestParseLinksJSON(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/cases/d07/nodes/ctl-1/ip-addr.json")
	require.NoError(t, err)
	links, warned, err := strictarp.ParseLinks(strings.NewReader("\n" + string(text)))
	require.NoError(t, err)
	assert.Empty(t, warned)
	require.Len(t, links, 3)
	assert.Equal(t, "dummy", links[2].Kind)
	assert.True(t, links[2].NoARP)
	assert.False(t, links[2].Up)
	assert.Len(t, links[2].Addrs, 3)
	assert.Equal(t, netip.MustParsePrefix("198.51.100.191/32"), links[1].Addrs[1].Prefix)

	links, warned, err = strictarp.ParseLinks(strings.NewReader(`[{},{"ifname":"a","flags":["UP"],"link_type":"ether","address":"zz","permaddr":"00:00:5e:00:53:0b",
		"addr_info":[{"family":"inet","local":"10.8.0.1","address":"10.8.0.2","prefixlen":30,"scope":"global"}]},{"ifname":7},{"ifname":"b"},`))
	require.ErrorContains(t, err, "after 2 of them")
	require.Len(t, links, 2)
	assert.Equal(t, netip.MustParseAddr("10.8.0.2"), links[0].Addrs[0].Peer)
	assert.Equal(t, netip.MustParsePrefix("10.8.0.1/30"), links[0].Addrs[0].Prefix)
	assert.Equal(t, arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 0x0b}, links[0].PermanentMAC)
	assert.Len(t, warned, 2, "the MAC, and a number for a name")
}

func TestParseRoutes(t *testing.T) {
	t.Parallel()
	routes, warned, err := strictarp.ParseRoutes(strings.NewReader(`default via 192.0.2.1 dev ens33 proto static metric 100
192.0.2.0/24 dev ens33 proto kernel scope link src 192.0.2.11
203.0.113.6 dev cali7d1 scope link
unreachable 198.51.100.0/24 metric 200
local 192.0.2.240 dev kube-ipvs0 table local proto kernel scope host src 192.0.2.240
198.51.100.9 dev eth1 table 100 onlink
10.0.0.0/8 proto bird
	nexthop via 192.0.2.2 dev ens33 weight 1
	nexthop via 192.0.2.3 dev ens34 weight 1 onlink
default via inet6 fe80::1 dev ens33
2001:db8::/64 dev ens33 proto kernel
172.16.0.0/12 dev ens33 hyperspeed
RTNETLINK answers: Operation not permitted
`))
	require.NoError(t, err)
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	assert.Equal(t, []strictarp.Route{
		{Dst: prefix("0.0.0.0/0"), Link: "ens33", Gateway: addr("192.0.2.1"), Metric: 100},
		{Dst: prefix("192.0.2.0/24"), Link: "ens33", Source: addr("192.0.2.11")},
		{Dst: prefix("203.0.113.6/32"), Link: "cali7d1"},
		{Dst: prefix("198.51.100.0/24"), Type: strictarp.RouteUnreachable, Metric: 200},
		{Dst: prefix("192.0.2.240/32"), Type: strictarp.RouteLocal, Table: strictarp.TableLocal, Link: "kube-ipvs0", Source: addr("192.0.2.240")},
		{Dst: prefix("198.51.100.9/32"), Table: 100, Link: "eth1"},
		{Dst: prefix("10.0.0.0/8"), Link: "ens33", Gateway: addr("192.0.2.2"), NextHops: []string{"ens34"}},
		{Dst: prefix("0.0.0.0/0"), Link: "ens33"},
		{Dst: prefix("172.16.0.0/12"), Link: "ens33"},
	}, routes)
	require.Len(t, warned, 2)
	assert.Equal(t, 12, warned[0].Line)
	assert.Contains(t, warned[0].Problem, "hyperspeed")
	assert.Equal(t, 13, warned[1].Line)
}

func TestParseNeighbours(t *testing.T) {
	t.Parallel()
	cache, proxies, warned, err := strictarp.ParseNeighbours(strings.NewReader(`192.0.2.1 dev eth0 lladdr 00:00:5e:00:53:fe REACHABLE
192.0.2.240 dev eth0  FAILED
192.0.2.9 dev eth0.100 lladdr 00:00:5e:00:53:09 ref 1 used 12/9/4 probes 4 STALE
fe80::1 dev eth0 lladdr 00:00:5e:00:53:fe router STALE
192.0.2.66 dev eth0 proxy
192.0.2.7 dev eth0 lladdr nonsense STALE
192.0.2.8 dev eth0 CONFUSED
`))
	require.NoError(t, err)
	addr := netip.MustParseAddr
	assert.Equal(t, []arpcheck.Neighbour{
		{Addr: addr("192.0.2.1"), MAC: arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 0xfe}, Link: "eth0", State: arpcheck.NeighbourReachable},
		{Addr: addr("192.0.2.240"), Link: "eth0", State: arpcheck.NeighbourFailed},
		{Addr: addr("192.0.2.9"), MAC: arpcheck.MAC{0, 0, 0x5e, 0, 0x53, 9}, Link: "eth0.100", State: arpcheck.NeighbourStale},
	}, cache)
	assert.Equal(t, []strictarp.ProxyNeighbour{{Addr: addr("192.0.2.66"), Link: "eth0"}}, proxies)
	assert.Len(t, warned, 2)
}

func TestParseCounters(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nstat":   "#kernel\nIpInReceives                    12                 0.0\nTcpExtIPReversePathFilter       3                  0.0\n",
		"netstat": "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 0 3\nIp: InReceives MaxConn\nIp: 12 -1\n",
	} {
		counters, warned, err := strictarp.ParseCounters(strings.NewReader(text))
		require.NoError(t, err)
		assert.Empty(t, warned, name)
		assert.Equal(t, uint64(3), counters["TcpExtIPReversePathFilter"], name)
		assert.Equal(t, uint64(12), counters["IpInReceives"], name)
	}
	_, warned, err := strictarp.ParseCounters(strings.NewReader("IpInReceives many\nlonely\n"))
	require.NoError(t, err)
	assert.Len(t, warned, 2)
}

// Warnings are few however much cannot be used.
func TestParseWarningsAreBounded(t *testing.T) {
	t.Parallel()
	_, warned, err := strictarp.ParseRoutes(strings.NewReader(strings.Repeat("x\n", 5000)))
	require.NoError(t, err)
	require.Len(t, warned, 101)
	assert.Contains(t, warned[100].Problem, "4900 more lines")
}

func FuzzParseIP(f *testing.F) {
	f.Add(ipAddr)
	for _, name := range []string{"d07/nodes/ctl-1/ip-addr.json", "d04/nodes/node-a/ip-route.txt", "a01/vantage/proxy-vm/ip-neigh.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata/cases", name))
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add("TcpExt: A B\nTcpExt: 1 2\n10.0.0.0/8\n\tnexthop dev a\n\tnexthop dev b\nlocal default table 4294967296")
	f.Fuzz(func(t *testing.T, text string) {
		var n strictarp.NodeFacts
		var warned [4][]sysctl.Warning
		n.Links, warned[0], _ = strictarp.ParseLinks(strings.NewReader(text))
		n.Routes, warned[1], _ = strictarp.ParseRoutes(strings.NewReader(text))
		n.Neighbours, n.ProxyNeighbours, warned[2], _ = strictarp.ParseNeighbours(strings.NewReader(text))
		n.Counters, warned[3], _ = strictarp.ParseCounters(strings.NewReader(text))
		for _, w := range warned {
			require.LessOrEqual(t, len(w), 101)
		}
		data, err := json.Marshal(n)
		require.NoError(t, err)
		var again strictarp.NodeFacts
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, n, again, "JSON keeps what was parsed")
	})
}
