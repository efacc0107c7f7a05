package scenario

import (
	"fmt"
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// Table is all scenarios.
func Table() []Scenario {
	var table []Scenario
	for _, part := range [][]Scenario{cluster(), changing(), proxies(), poisoning(), senders(), arpIgnore()} {
		table = append(table, part...)
	}
	return table
}

func strict() []Sysctl {
	return []Sysctl{{"all", sysctl.ARPIgnore, 1}, {"all", sysctl.ARPAnnounce, 2}}
}

func setting(link string, p sysctl.Param, value int) []Sysctl { return []Sysctl{{link, p, value}} }

// nodes are w1, which announces, and w2 and w3, all of which hold the VIP.
func nodes(edit ...func(w1, w2, w3 *Host)) []Host {
	var w [3]Host
	for i := range w {
		w[i] = Host{
			Name:  fmt.Sprintf("w%d", i+1),
			Addr:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24),
			Holds: true, Announces: i == 0, Sysctls: strict(),
		}
	}
	for _, e := range edit {
		e(&w[0], &w[1], &w[2])
	}
	return w[:]
}

func single(name string) Want { return Want{Verdict: arpcheck.Single, Responders: []string{name}} }

func multiple(names ...string) Want { return Want{Verdict: arpcheck.Multiple, Responders: names} }

func none() Want { return Want{Verdict: arpcheck.None} }

func once(w Want) []Pass { return []Pass{{Want: w}} }

func allLoose(w1, w2, w3 *Host) { w1.Sysctls, w2.Sysctls, w3.Sysctls = nil, nil, nil }

func silent(w1, _, _ *Host) { w1.Announces = false }

// cluster is what strictARP, announcers and addresses make of three nodes.
func cluster() []Scenario {
	loose := multiple("w1", "w2", "w3")
	loose.Double = []string{"w1"}
	double := single("w1")
	double.Double = []string{"w1"}
	printer := Host{Name: "printer", Addr: netip.MustParsePrefix("10.0.3.99/24"), Binds: true}
	return []Scenario{
		{"healthy", nodes(), once(single("w1"))},
		{"loose", nodes(allLoose), once(loose)},
		{"double answer", nodes(func(w1, _, _ *Host) { w1.Sysctls = nil }), once(double)},
		{"one laggard", nodes(func(_, _, w3 *Host) { w3.Sysctls = nil }), once(multiple("w1", "w3"))},
		{"silent announcer", nodes(silent), once(none())},
		{"silent announcer, loosened", nodes(silent, allLoose), once(multiple("w1", "w2", "w3"))},
		{"split brain", nodes(func(_, w2, _ *Host) { w2.Announces = true }), once(multiple("w1", "w2"))},
		{"foreign host", append(nodes(), printer), once(multiple("w1", "printer"))},
		{"VIP bound on a NIC", nodes(func(_, w2, _ *Host) { w2.Binds = true }), once(multiple("w1", "w2"))},
		{"VIP bound on a NIC, silent announcer", nodes(silent, func(_, w2, _ *Host) { w2.Binds = true }), once(single("w2"))},
		{"second NIC", nodes(silent, func(_, w2, _ *Host) {
			w2.Sysctls, w2.SecondNIC = nil, true
		}), once(multiple("w2", "w2/eth1"))},
		{"second NIC, strict", nodes(func(_, w2, _ *Host) { w2.SecondNIC = true }), once(single("w1"))},
		{"announcer under arp_ignore 8", nodes(func(w1, _, _ *Host) {
			w1.Sysctls = setting("all", sysctl.ARPIgnore, 8)
		}), once(single("w1"))},
	}
}

// changing is an announcer that moves from node to node and back.
func changing() []Scenario {
	move := func(from, to string) []Action { return []Action{{from, StopAnnouncing}, {to, Announce}} }
	return []Scenario{{"flapping", nodes(), []Pass{
		{Want: single("w1")},
		{Before: move("w1", "w2"), Want: single("w2")},
		{Before: move("w2", "w1"), Want: single("w1")},
	}}}
}

// proxies are hosts that answer for what they route, late.
func proxies() []Scenario {
	router := Host{Name: "router", Addr: netip.MustParsePrefix("10.0.3.1/24"), RoutesVIP: true, ProxyARP: true}
	plain := router
	plain.ProxyARP = false
	strictRouter := router
	strictRouter.Sysctls = strict()
	patient := func(w Want) []Pass { return []Pass{{Patient: true, Want: w}} }
	return []Scenario{
		{"proxy ARP", []Host{router}, patient(single("router"))},
		{"proxy ARP beside an announcer", append(nodes(), router), patient(multiple("w1", "router"))},
		{"proxy ARP is not strictARP's business", []Host{strictRouter}, patient(single("router"))},
		{"proxy ARP and a sender of 0.0.0.0", []Host{router},
			[]Pass{{Patient: true, Sender: netip.IPv4Unspecified(), Want: none()}}},
		{"router without proxy ARP", []Host{plain}, once(none())},
	}
}

// poisoning is a node whose own request carries the VIP as sender. arp_ignore
// is strict: it does not help.
func poisoning() []Scenario {
	var rows []Scenario
	for announce := range 3 {
		want := single("w1")
		if announce < 2 {
			want.Requesters = []string{"w2"}
		}
		rows = append(rows, Scenario{
			fmt.Sprintf("request from the VIP under arp_announce %d", announce),
			nodes(func(_, w2, _ *Host) {
				w2.Sysctls = []Sysctl{{"all", sysctl.ARPIgnore, 1}, {"all", sysctl.ARPAnnounce, announce}}
			}),
			[]Pass{{During: []Action{{"w2", SendAsVIP}}, Want: want}},
		})
	}
	return rows
}

// senders are askers of another subnet and 0.0.0.0. The announcer answers all;
// the question is whether the kernel of w2, which is loose, does.
func senders() []Scenario {
	ask := func(name string, sender netip.Addr, answers bool, w2 Host) Scenario {
		want := single("w1")
		if answers {
			want = multiple("w1", "w2")
		}
		return Scenario{name, nodes(func(_, w *Host, _ *Host) {
			w.Sysctls, w.Routes = w2.Sysctls, w2.Routes
		}), []Pass{{Sender: sender, Want: want}}}
	}
	back := []netip.Prefix{netip.MustParsePrefix("172.31.1.0/24")}
	var rows []Scenario
	for value := range 3 {
		filter := setting("eth0", sysctl.RPFilter, value)
		rows = append(rows,
			ask(fmt.Sprintf("sender of another subnet, no route back, rp_filter %d", value),
				Elsewhere, value == 0, Host{Sysctls: filter}),
			ask(fmt.Sprintf("sender of another subnet, route back, rp_filter %d", value),
				Elsewhere, true, Host{Sysctls: filter, Routes: back}),
			ask(fmt.Sprintf("sender 0.0.0.0, rp_filter %d", value),
				netip.IPv4Unspecified(), true, Host{Sysctls: filter}))
	}
	return append(rows,
		ask("sender 0.0.0.0, arp_filter 1", netip.IPv4Unspecified(), true, Host{Sysctls: setting("all", sysctl.ARPFilter, 1)}),
		ask("sender 0.0.0.0, strict", netip.IPv4Unspecified(), false, Host{Sysctls: strict()}))
}

// arpIgnore is one node without an announcer. Values 4 to 7 and from 9 are
// reserved and behave as 0, and the maximum of all and the interface counts.
func arpIgnore() []Scenario {
	var rows []Scenario
	for _, c := range []struct {
		all, nic int
		answers  bool
	}{
		{0, 0, true}, {1, 0, false}, {0, 1, false}, {2, 0, false}, {0, 2, false}, {3, 0, true}, {0, 3, true},
		{8, 0, false}, {4, 0, true}, {1, 4, true}, {1, 3, true}, {9, 8, true}, {1, 8, false}, {2, 1, false},
	} {
		want := none()
		if c.answers {
			want = single("w1")
		}
		w1 := nodes(silent)[0]
		w1.Sysctls = []Sysctl{{"all", sysctl.ARPIgnore, c.all}, {"eth0", sysctl.ARPIgnore, c.nic}}
		rows = append(rows, Scenario{fmt.Sprintf("arp_ignore all=%d eth0=%d", c.all, c.nic), []Host{w1}, once(want)})
	}
	return append(rows, Scenario{"arp_ignore of kube-ipvs0 and default do nothing", nodes(silent, func(w1, _, _ *Host) {
		w1.Sysctls = []Sysctl{{"default", sysctl.ARPIgnore, 1}, {"kube-ipvs0", sysctl.ARPIgnore, 1}}
	})[:1], once(single("w1"))})
}
