package arprule_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/internal/arprule"
)

// The generators draw from small pools, so that addresses, subnets, routes and
// interfaces meet often, and include what no kernel would hold.
// Tests that draw from these do not run in parallel: a generator is not safe for
// concurrent use.
var (
	anyAddr = rapid.Map(rapid.SampledFrom([]string{
		"10.0.3.11", "10.0.3.20", "10.0.3.50", "10.0.3.255", "10.9.0.1", "10.9.0.77", "172.31.1.9", "127.0.0.1",
		"127.0.0.9", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "2001:db8::1", "::ffff:10.0.3.20", "",
	}), ip)
	anyPrefix = rapid.Custom(func(t *rapid.T) netip.Prefix {
		// Lengths beyond the family's make an invalid prefix.
		return netip.PrefixFrom(anyAddr.Draw(t, "addr"), rapid.SampledFrom([]int{32, 32, 24, 24, 31, 8, 0, 99}).Draw(t, "bits"))
	})
	names = []string{"lo", "ens33", "eth1", "kube-ipvs0", "vrf1", "br0"}
	// An interface may be one that is not listed.
	anyName = rapid.SampledFrom(append([]string{"", "other"}, names...))
	level   = rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3, 4, 8, 9, -1})
	flag    = rapid.SampledFrom([]int{0, 0, 1})
)

var anyConf = rapid.Custom(func(t *rapid.T) arprule.Conf {
	return arprule.Conf{
		ArpIgnore: level.Draw(t, "arp_ignore"), ArpAnnounce: level.Draw(t, "arp_announce"),
		ArpFilter: flag.Draw(t, "arp_filter"), ProxyArp: flag.Draw(t, "proxy_arp"),
		ProxyArpPvlan: flag.Draw(t, "proxy_arp_pvlan"), RpFilter: level.Draw(t, "rp_filter"),
		Forwarding: flag.Draw(t, "forwarding"), RouteLocalnet: flag.Draw(t, "route_localnet"),
		AcceptLocal: flag.Draw(t, "accept_local"), DropGratuitousArp: flag.Draw(t, "drop_gratuitous_arp"),
		SendRedirects: flag.Draw(t, "send_redirects"),
	}
})

func anyInterface(name string) *rapid.Generator[arprule.Interface] {
	return rapid.Custom(func(t *rapid.T) arprule.Interface {
		rarely := rapid.Map(rapid.IntRange(0, 5), func(n int) bool { return n == 5 })
		in := arprule.Interface{
			Name: name, Conf: anyConf.Draw(t, "conf"), Loopback: name == "lo",
			Down: rarely.Draw(t, "down"), NoARP: rarely.Draw(t, "noarp"),
		}
		if rarely.Draw(t, "enslaved") {
			in.Master, in.MasterKind = "vrf1", rapid.SampledFrom([]string{"vrf", "vrf", "bridge", ""}).Draw(t, "kind")
		}
		return in
	})
}

var anyAddress = rapid.Custom(func(t *rapid.T) arprule.Address {
	return arprule.Address{
		Prefix: anyPrefix.Draw(t, "prefix"), Interface: anyName.Draw(t, "interface"),
		Scope:     rapid.SampledFrom([]arprule.Scope{0, 200, 253, 254, 255, 7}).Draw(t, "scope"),
		Secondary: rapid.Bool().Draw(t, "secondary"),
		Peer:      rapid.OneOf(rapid.Just(netip.Addr{}), rapid.Just(netip.Addr{}), anyAddr).Draw(t, "peer"),
		Metric:    flag.Draw(t, "metric"), NoPrefixRoute: flag.Draw(t, "noprefixroute") == 1,
		NoLocalRoute: flag.Draw(t, "nolocalroute") == 1,
	}
})

var anyRoute = rapid.Custom(func(t *rapid.T) arprule.Route {
	return arprule.Route{
		Dst: anyPrefix.Draw(t, "dst"), Interface: anyName.Draw(t, "dev"),
		NextHops: rapid.SliceOfN(anyName, 0, 2).Draw(t, "nexthops"),
		Type:     arprule.RouteType(rapid.IntRange(0, 12).Draw(t, "type")),
		Metric:   flag.Draw(t, "metric"),
	}
})

var anyHost = rapid.Custom(func(t *rapid.T) arprule.Host {
	h := arprule.Host{
		All:       anyConf.Draw(t, "all"),
		Addresses: rapid.SliceOfN(anyAddress, 0, 8).Draw(t, "addresses"),
		Routes:    rapid.SliceOfN(anyRoute, 0, 6).Draw(t, "routes"),
	}
	for _, name := range names {
		h.Interfaces = append(h.Interfaces, anyInterface(name).Draw(t, name))
	}
	for _, addr := range rapid.SliceOfN(anyAddr, 0, 2).Draw(t, "neighbours") {
		h.ProxyNeighbours = append(h.ProxyNeighbours, arprule.ProxyNeighbour{Addr: addr, Interface: anyName.Draw(t, "dev")})
	}
	return h
})

var anyRequest = rapid.Custom(func(t *rapid.T) arprule.Request {
	return arprule.Request{
		Interface: rapid.OneOf(rapid.Just("ens33"), anyName).Draw(t, "interface"),
		Sender:    anyAddr.Draw(t, "sender"), Target: anyAddr.Draw(t, "target"), Unicast: rapid.Bool().Draw(t, "unicast"),
	}
})

func shuffled(t *rapid.T, h arprule.Host) arprule.Host {
	h.Interfaces = rapid.Permutation(h.Interfaces).Draw(t, "interfaces")
	h.Addresses = rapid.Permutation(h.Addresses).Draw(t, "addresses")
	h.Routes = rapid.Permutation(h.Routes).Draw(t, "routes")
	h.ProxyNeighbours = rapid.Permutation(h.ProxyNeighbours).Draw(t, "neighbours")
	return h
}

func TestReplyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, r := anyHost.Draw(t, "host"), anyRequest.Draw(t, "request")
		got, why := arprule.Reply(h, r)
		if why.Explain() == "" || got != why.Answers() {
			t.Fatalf("answer %t for the reason %q", got, why)
		}
		if again, other := arprule.Reply(shuffled(t, h), r); again != got || other != why {
			t.Fatalf("order counts: %s, shuffled %s", why, other)
		}
		if h.Effective(r.Interface).ArpIgnore == 8 && got && !why.Proxy() {
			t.Fatalf("arp_ignore 8 answers: %s", why)
		}
		r.Unicast = !r.Unicast
		if _, other := arprule.Reply(h, r); other != why {
			t.Fatalf("unicast and broadcast differ: %s, %s", why, other)
		}
	})
}

// TestStrictNeverAnswersMore checks the promise of strict ARP: raising
// arp_ignore from 0 to 1 silences and never adds an answer.
func TestStrictNeverAnswersMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, r := anyHost.Draw(t, "host"), anyRequest.Draw(t, "request")
		for i := range h.Interfaces {
			h.Interfaces[i].Conf.ArpIgnore = 0
		}
		h.All.ArpIgnore = 0
		before, _ := arprule.Reply(h, r)
		h.All.ArpIgnore = 1
		if after, why := arprule.Reply(h, r); after && !before {
			t.Fatalf("arp_ignore 1 adds an answer: %s", why)
		}
	})
}

func TestSolicitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHost.Draw(t, "host")
		name := anyName.Draw(t, "interface")
		target, source := anyAddr.Draw(t, "target"), anyAddr.Draw(t, "source")
		got := arprule.Solicit(h, name, target, source)
		owned := slices.ContainsFunc(h.Addresses, func(a arprule.Address) bool { return a.Prefix.Addr() == got })
		if got.IsValid() && !got.Is4() || got.IsValid() && !got.IsUnspecified() && got != source.Unmap() && !owned {
			t.Fatalf("sender %s is neither the packet's nor the host's", got)
		}
		if h.Effective(name).ArpAnnounce == 2 && got != arprule.Solicit(h, name, target, netip.Addr{}) {
			t.Fatalf("arp_announce 2 depends on the packet's source %s", source)
		}
	})
}
