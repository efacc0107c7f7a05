package arprule_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/internal/arprule"
)

func local(dst, iface string) arprule.Route {
	return arprule.Route{Dst: netip.MustParsePrefix(dst), Interface: iface, Type: arprule.RouteLocal}
}

func routes(list ...arprule.Route) func(*arprule.Host) {
	return func(h *arprule.Host) { h.Routes = append(h.Routes, list...) }
}

func addresses(list ...arprule.Address) func(*arprule.Host) {
	return func(h *arprule.Host) { h.Addresses = append(h.Addresses, list...) }
}

func all(edits ...func(*arprule.Host)) func(*arprule.Host) {
	return func(h *arprule.Host) {
		for _, edit := range edits {
			edit(h)
		}
	}
}

func TestReplyRoutes(t *testing.T) {
	t.Parallel()
	strict := on(func(c *arprule.Conf) { c.RpFilter = 1 })
	multipath := unicast("172.31.9.0/24", "eth1")
	multipath.NextHops = []string{"ens33"}
	slow, fast := unicast("172.31.9.0/24", "ens33"), unicast("172.31.9.0/24", "eth1")
	slow.Metric, fast.Metric = 20, 10
	twin := address("10.0.3.12/24", "eth1", arprule.ScopeUniverse)
	twin.Metric = 100
	noRoute := address("192.0.2.1/24", "ens33", arprule.ScopeUniverse)
	noRoute.NoPrefixRoute = true
	secondary := address("192.0.2.1/24", "ens33", arprule.ScopeUniverse)
	secondary.Secondary = true
	removed := address("192.0.2.1/24", "ens33", arprule.ScopeUniverse)
	removed.NoLocalRoute = true
	peer := address("192.0.2.1/32", "ens33", arprule.ScopeUniverse)
	peer.Peer = ip("192.0.2.2")
	lazy := local("10.0.3.0/24", "lo")
	lazy.Metric = 10
	runReplyTests(t, []replyTest{
		{"local route without an address", routes(local("10.0.3.99/32", "lo")), client, "10.0.3.99", arprule.ReasonLocal},
		{"whole local prefix", routes(local("192.0.2.0/24", "lo")), client, "192.0.2.77", arprule.ReasonLocal},
		{"/24 on loopback makes all of it local", addresses(address("192.0.2.1/24", "lo", arprule.ScopeUniverse)),
			client, "192.0.2.77", arprule.ReasonLocal},
		{"connected route is longer than a local prefix", routes(local("10.0.0.0/8", "lo")),
			client, "10.0.3.99", arprule.ReasonNotLocal},
		{"local prefix as long as a connected route", routes(local("10.0.3.0/24", "lo")),
			"172.31.1.9", "10.0.3.99", arprule.ReasonLocal},
		{"a custom local route makes senders be looked up", routes(local("10.0.3.99/32", "lo")),
			"10.0.3.255", vip, arprule.ReasonSenderBroadcast},
		{"a listed implied route does not", routes(local("10.0.3.20/32", "kube-ipvs0"), local("127.0.0.0/8", "lo")),
			"10.0.3.255", vip, arprule.ReasonLocal},
		{"sender in a local prefix", routes(local("192.0.2.0/24", "lo")), "192.0.2.9", vip, arprule.ReasonSenderLocal},
		{"local route removed", addresses(removed), client, "192.0.2.1", arprule.ReasonNotLocal},
		{"blackhole is no way back", all(strict, routes(arprule.Route{
			Dst: netip.MustParsePrefix("10.0.3.50/32"), Type: arprule.RouteBlackhole,
		})), client, vip, arprule.ReasonRpFilterStrict},
		{"any next hop is a way back", all(strict, routes(multipath)), "172.31.9.9", vip, arprule.ReasonLocal},
		{"lowest metric counts", all(strict, routes(slow, fast)), "172.31.9.9", vip, arprule.ReasonRpFilterStrict},
		{"route type zero is unicast", all(strict, routes(arprule.Route{
			Dst: netip.MustParsePrefix("172.31.9.0/24"), Interface: "ens33",
		})), "172.31.9.9", vip, arprule.ReasonLocal},
		{"route by a down interface is gone", all(strict, routes(fast, slow), func(h *arprule.Host) {
			iface(h, "eth1").Down = true
		}), "172.31.9.9", vip, arprule.ReasonLocal},
		{"two NICs in one subnet: metric decides", all(strict, addresses(twin)), client, vip, arprule.ReasonLocal},
		{"connected route", all(strict, addresses(address("192.0.2.1/24", "ens33", arprule.ScopeUniverse))),
			"192.0.2.9", vip, arprule.ReasonLocal},
		{"no prefix route", all(strict, addresses(noRoute)), "192.0.2.9", vip, arprule.ReasonRpFilterStrict},
		{"secondary has no prefix route", all(strict, addresses(secondary)), "192.0.2.9", vip, arprule.ReasonRpFilterStrict},
		{"down interface has no prefix route", all(on(func(c *arprule.Conf) { c.RpFilter = 2 }),
			addresses(address("192.0.2.1/24", "kube-ipvs0", arprule.ScopeUniverse))),
			"192.0.2.9", vip, arprule.ReasonRpFilterLoose},
		{"route to a peer", all(strict, addresses(peer)), "192.0.2.2", vip, arprule.ReasonLocal},
		{"prefix length 0 makes no default route", all(strict, addresses(address("192.0.2.1/0", "ens33", arprule.ScopeUniverse))),
			"198.51.100.9", vip, arprule.ReasonRpFilterStrict},
		{"local table before main whatever the metric", routes(lazy),
			"172.31.1.9", "10.0.3.99", arprule.ReasonLocal},
		{"VIP on the NIC's broadcast address", addresses(address("10.0.3.255/32", "dummy0", arprule.ScopeUniverse)),
			client, "10.0.3.255", arprule.ReasonBroadcastTarget},
		{"address that is its own broadcast", addresses(address("192.0.2.255/24", "eth1", arprule.ScopeUniverse)),
			client, "192.0.2.255", arprule.ReasonLocal},
		{"/31 has no broadcast", addresses(address("192.0.2.0/31", "ens33", arprule.ScopeUniverse)),
			client, "192.0.2.1", arprule.ReasonNotLocal},
	})
}

// TestReplyTies has routes between which the kernel chooses by age, which a
// listing does not show: the choice must not depend on its order.
func TestReplyTies(t *testing.T) {
	t.Parallel()
	byENS33, byETH1, byBoth := unicast("0.0.0.0/0", "ens33"), unicast("0.0.0.0/0", "eth1"), unicast("0.0.0.0/0", "eth1")
	byBoth.NextHops = []string{"ens33"}
	strict := on(func(c *arprule.Conf) { c.RpFilter = 1 })
	runReplyTests(t, []replyTest{
		{"name, sorted", all(strict, routes(byENS33, byETH1)), "172.31.9.9", vip, arprule.ReasonLocal},
		{"name, reversed", all(strict, routes(byETH1, byENS33)), "172.31.9.9", vip, arprule.ReasonLocal},
		{"next hops, sorted", all(strict, routes(byETH1, byBoth)), "172.31.9.9", vip, arprule.ReasonRpFilterStrict},
		{"next hops, reversed", all(strict, routes(byBoth, byETH1)), "172.31.9.9", vip, arprule.ReasonRpFilterStrict},
	})
}

func TestReplyProxy(t *testing.T) {
	t.Parallel()
	const behind, lan = "10.9.0.77", "10.0.3.99"
	proxy := on(func(c *arprule.Conf) { c.Forwarding, c.ProxyArp = 1, 1 })
	pvlan := on(func(c *arprule.Conf) { c.Forwarding, c.ProxyArpPvlan = 1, 1 })
	neighbour := func(addr, dev string) func(*arprule.Host) {
		return func(h *arprule.Host) {
			iface(h, "ens33").Conf.Forwarding = 1
			h.ProxyNeighbours = []arprule.ProxyNeighbour{{Addr: ip(addr), Interface: dev}}
		}
	}
	runReplyTests(t, []replyTest{
		{"off", on(func(c *arprule.Conf) { c.Forwarding = 1 }), client, behind, arprule.ReasonNotLocal},
		{"on", proxy, client, behind, arprule.ReasonProxyARP},
		{"at arp_ignore 8", all(proxy, ignore(8, 0)), client, behind, arprule.ReasonProxyARP},
		{"gratuitous", proxy, behind, behind, arprule.ReasonProxyARP},
		{"gratuitous dropped", all(proxy, func(h *arprule.Host) { h.All.DropGratuitousArp = 1 }),
			behind, behind, arprule.ReasonDropGratuitous},
		{"probe", proxy, "0.0.0.0", behind, arprule.ReasonProbeNotLocal},
		{"all's forwarding is not the interface's", func(h *arprule.Host) {
			h.All.Forwarding, h.All.ProxyArp = 1, 1
		}, client, behind, arprule.ReasonForwardingOff},
		{"no route", proxy, client, "172.31.9.9", arprule.ReasonNoRoute},
		{"unreachable", proxy, client, "172.31.3.9", arprule.ReasonNoRoute},
		{"same interface", proxy, client, lan, arprule.ReasonProxySameInterface},
		{"rp_filter", all(proxy, func(h *arprule.Host) { h.All.RpFilter = 1 }),
			"172.31.2.9", behind, arprule.ReasonRpFilterStrict},
		{"own sender", proxy, nic, behind, arprule.ReasonSenderLocal},
		{"pvlan", pvlan, client, lan, arprule.ReasonProxyPVLAN},
		{"pvlan by all", func(h *arprule.Host) {
			h.All.ProxyArpPvlan = 1
			iface(h, "ens33").Conf.Forwarding = 1
		}, client, lan, arprule.ReasonProxyPVLAN},
		{"pvlan, self probe", pvlan, lan, lan, arprule.ReasonGratuitous},
		{"pvlan, other interface", pvlan, client, behind, arprule.ReasonNotLocal},
		// Who sends redirects looks senders up where the way on is the way back.
		{"pvlan, broadcast sender", pvlan, "10.0.3.255", lan, arprule.ReasonSenderBroadcast},
		{"pvlan, broadcast sender, no redirects", all(pvlan, func(h *arprule.Host) { h.All.SendRedirects = 0 }),
			"10.0.3.255", lan, arprule.ReasonProxyPVLAN},
		{"neighbour", neighbour(behind, "ens33"), client, behind, arprule.ReasonProxyNeighbour},
		{"neighbour on any device", neighbour(behind, ""), client, behind, arprule.ReasonProxyNeighbour},
		{"neighbour of another interface", neighbour(behind, "eth1"), client, behind, arprule.ReasonNotLocal},
		{"neighbour on the same segment", neighbour(lan, "ens33"), client, lan, arprule.ReasonProxySameInterface},
		{"local address first", all(proxy, neighbour(vip, "ens33"), ignore(1, 0)), client, vip, arprule.ReasonArpIgnore1},
	})
}

// TestReplyVRF extends the measured rows: an interface of a VRF finds addresses
// of the default VRF because the local table is searched first, except for
// probes, and not the other way round.
func TestReplyVRF(t *testing.T) {
	t.Parallel()
	enslave := func(names ...string) func(*arprule.Host) {
		return func(h *arprule.Host) {
			h.Interfaces = append(h.Interfaces, arprule.Interface{Name: "vrf1", NoARP: true})
			for _, name := range names {
				in := iface(h, name)
				in.Master, in.MasterKind = "vrf1", "vrf"
			}
		}
	}
	up := func(h *arprule.Host) { iface(h, "kube-ipvs0").Down = false }
	onMaster := addresses(address("192.0.2.1/32", "vrf1", arprule.ScopeUniverse))
	runReplyTests(t, []replyTest{
		{"VIP outside", enslave("ens33"), client, vip, arprule.ReasonLocal},
		{"VIP outside, probe", enslave("ens33"), "0.0.0.0", vip, arprule.ReasonProbeNotLocal},
		{"own address, probe", enslave("ens33"), "0.0.0.0", nic, arprule.ReasonLocal},
		{"VIP inside, receiver outside", all(up, enslave("kube-ipvs0")), client, vip, arprule.ReasonNotLocal},
		{"both inside, up", all(up, enslave("ens33", "kube-ipvs0")), client, vip, arprule.ReasonLocal},
		{"both inside, down: its routes were flushed", enslave("ens33", "kube-ipvs0"), client, vip, arprule.ReasonNotLocal},
		{"address of the VRF's device", all(enslave("ens33"), onMaster), "0.0.0.0", "192.0.2.1", arprule.ReasonLocal},
		{"address in both VRFs, probe", all(enslave("ens33"), addresses(
			address("10.0.3.20/32", "ens33", arprule.ScopeUniverse))), "0.0.0.0", vip, arprule.ReasonLocal},
		{"senders are looked up", enslave("ens33"), "10.0.3.255", nic, arprule.ReasonSenderBroadcast},
		{"a sender that is local in another VRF", enslave("eth1"), "10.9.0.1", nic, arprule.ReasonLocal},
		{"local prefix before a longer connected route", all(enslave("eth1"), routes(local("10.0.0.0/8", "lo"))),
			"172.31.1.9", "10.0.3.99", arprule.ReasonLocal},
		{"probe sees the local table alone", all(enslave("eth1"), routes(local("10.0.0.0/8", "lo"))),
			"0.0.0.0", "10.0.3.99", arprule.ReasonLocal},
	})
}

func TestDelayed(t *testing.T) {
	t.Parallel()
	for _, why := range []arprule.Reason{
		arprule.ReasonProxyARP, arprule.ReasonProxyPVLAN, arprule.ReasonProxyNeighbour,
	} {
		assert.True(t, arprule.Delayed(arprule.Request{}, why), "%s", why)
		assert.False(t, arprule.Delayed(arprule.Request{Unicast: true}, why), "%s", why)
	}
	for _, why := range []arprule.Reason{arprule.ReasonLocal, arprule.ReasonArpIgnoreReserved, arprule.ReasonNotLocal} {
		assert.False(t, arprule.Delayed(arprule.Request{}, why), "%s", why)
	}
}
