package arprule_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/internal/arprule"
)

// replyTest is a change to truthNode and what it answers on ens33 then.
type replyTest struct {
	name           string
	edit           func(*arprule.Host)
	sender, target string
	want           arprule.Reason
}

const (
	client = "10.0.3.50" // in ens33's subnet
	nic    = "10.0.3.11" // on ens33
	vip    = "10.0.3.20" // on kube-ipvs0
)

func runReplyTests(t *testing.T, tests []replyTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := truthNode()
			if tt.edit != nil {
				tt.edit(&h)
			}
			request := arprule.Request{Interface: "ens33", Sender: ip(tt.sender), Target: ip(tt.target)}
			got, why := arprule.Reply(h, request)
			assert.Equal(t, tt.want, why)
			assert.Equal(t, tt.want.Answers(), got)
		})
	}
}

// on edits the sysctls of ens33.
func on(edit func(*arprule.Conf)) func(*arprule.Host) {
	return func(h *arprule.Host) { edit(&iface(h, "ens33").Conf) }
}

func ignore(all, own int) func(*arprule.Host) {
	return func(h *arprule.Host) {
		h.All.ArpIgnore = all
		iface(h, "ens33").Conf.ArpIgnore = own
	}
}

func TestReplyArpIgnore(t *testing.T) {
	t.Parallel()
	localnet := func(level int) func(*arprule.Host) {
		return on(func(c *arprule.Conf) { c.RouteLocalnet, c.ArpIgnore = 1, level })
	}
	peer := func(bits string) func(*arprule.Host) {
		return func(h *arprule.Host) {
			a := address("192.0.2.1/"+bits, "ens33", arprule.ScopeUniverse)
			a.Peer = ip("192.0.2.2")
			h.Addresses = append(h.Addresses, a)
			h.All.ArpIgnore = 1
		}
	}
	runReplyTests(t, []replyTest{
		{"VIP at 0", nil, client, vip, arprule.ReasonLocal},
		{"VIP at 1", ignore(1, 0), client, vip, arprule.ReasonArpIgnore1},
		{"NIC at 1", ignore(0, 1), client, nic, arprule.ReasonLocal},
		{"VIP at 2", ignore(1, 2), client, vip, arprule.ReasonArpIgnore2},
		{"/32 beside the /24 at 2", ignore(2, 0), client, "10.0.3.30", arprule.ReasonLocal},
		{"far sender at 2", ignore(2, 0), "172.31.1.9", nic, arprule.ReasonArpIgnore2},
		{"probe at 2", ignore(2, 0), "0.0.0.0", nic, arprule.ReasonLocal},
		{"VIP at 3", ignore(3, 1), client, vip, arprule.ReasonLocal},
		{"host scope at 3", ignore(3, 0), client, "10.0.3.31", arprule.ReasonArpIgnore3},
		{"4 hides 1", ignore(1, 4), client, vip, arprule.ReasonArpIgnoreReserved},
		{"5", ignore(5, 0), client, vip, arprule.ReasonArpIgnoreReserved},
		{"6", ignore(6, 0), client, vip, arprule.ReasonArpIgnoreReserved},
		{"7", ignore(7, 0), client, vip, arprule.ReasonArpIgnoreReserved},
		{"8 hides 4", ignore(4, 8), client, nic, arprule.ReasonArpIgnore8},
		{"9 hides 8", ignore(8, 9), client, vip, arprule.ReasonArpIgnoreReserved},
		{"negative below 1", ignore(-5, 1), client, vip, arprule.ReasonArpIgnore1},
		{"negative both", ignore(-5, -1), client, vip, arprule.ReasonArpIgnoreReserved},
		{"kube-ipvs0's own value", func(h *arprule.Host) {
			iface(h, "kube-ipvs0").Conf.ArpIgnore = 8
		}, client, vip, arprule.ReasonLocal},
		// route_localnet makes host scope count as link scope.
		{"host scope at 3 with route_localnet", localnet(3), client, "10.0.3.31", arprule.ReasonLocal},
		{"another interface's host scope then", localnet(3), client, "10.0.3.21", arprule.ReasonArpIgnore3},
		// With a far end of /32 the near end is not in its own subnet.
		{"peer /32", peer("32"), client, "192.0.2.1", arprule.ReasonArpIgnore1},
		{"peer /24", peer("24"), client, "192.0.2.1", arprule.ReasonLocal},
	})
}

func TestReplySender(t *testing.T) {
	t.Parallel()
	strict := on(func(c *arprule.Conf) { c.RpFilter = 1 })
	loose := on(func(c *arprule.Conf) { c.RpFilter = 2 })
	accept := on(func(c *arprule.Conf) { c.AcceptLocal = 1 })
	bare := func(rp int) func(*arprule.Host) {
		return func(h *arprule.Host) {
			*h = arprule.Host{
				Interfaces: []arprule.Interface{
					{Name: "ens33", Conf: arprule.Conf{RpFilter: rp}}, {Name: "eth1"},
				},
				Addresses: []arprule.Address{address("10.0.3.20/24", "eth1", arprule.ScopeUniverse)},
			}
		}
	}
	runReplyTests(t, []replyTest{
		{"multicast", nil, "224.0.0.1", vip, arprule.ReasonMartianSender},
		{"limited broadcast", nil, "255.255.255.255", vip, arprule.ReasonMartianSender},
		{"loopback", nil, "127.0.0.1", vip, arprule.ReasonMartianSender},
		{"other host's loopback with route_localnet", on(func(c *arprule.Conf) { c.RouteLocalnet = 1 }),
			"127.0.0.9", vip, arprule.ReasonLocal},
		{"own loopback with route_localnet", on(func(c *arprule.Conf) { c.RouteLocalnet = 1 }),
			"127.0.0.1", vip, arprule.ReasonSenderLocal},
		{"this network but not 0.0.0.0", nil, "0.1.2.3", vip, arprule.ReasonLocal},
		{"subnet broadcast", nil, "10.0.3.255", vip, arprule.ReasonLocal},
		{"subnet broadcast checked by route", loose, "10.0.3.255", vip, arprule.ReasonSenderBroadcast},
		{"own address", nil, nic, vip, arprule.ReasonSenderLocal},
		{"target itself", nil, vip, vip, arprule.ReasonGratuitous},
		{"target itself under rp_filter", strict, vip, vip, arprule.ReasonGratuitous},
		{"own address accepted", accept, nic, vip, arprule.ReasonLocal},
		{"target itself accepted", accept, vip, vip, arprule.ReasonLocal},
		{"own address accepted, of another interface, rp_filter 1", func(h *arprule.Host) {
			accept(h)
			strict(h)
		}, vip, nic, arprule.ReasonRpFilterStrict},
		{"strict, no route", strict, "172.31.9.9", vip, arprule.ReasonRpFilterStrict},
		{"strict, other interface", strict, "172.31.2.9", vip, arprule.ReasonRpFilterStrict},
		{"strict, same interface", strict, "172.31.1.9", vip, arprule.ReasonLocal},
		{"loose, other interface", loose, "172.31.2.9", vip, arprule.ReasonLocal},
		{"loose, unreachable", loose, "172.31.3.9", vip, arprule.ReasonRpFilterLoose},
		{"3 is loose", on(func(c *arprule.Conf) { c.RpFilter = 3 }), "172.31.9.9", vip, arprule.ReasonRpFilterLoose},
		{"no address, route by the other NIC", bare(0), client, vip, arprule.ReasonLocal},
		{"no address, loose is strict", bare(2), client, vip, arprule.ReasonRpFilterNoAddress},
		{"no address but IPv6", all(bare(2), addresses(address("2001:db8::1/64", "ens33", arprule.ScopeUniverse))),
			client, vip, arprule.ReasonRpFilterNoAddress},
		{"no address, strict", bare(1), client, vip, arprule.ReasonRpFilterStrict},
		{"arp_filter, other interface", on(func(c *arprule.Conf) { c.ArpFilter = 1 }),
			"172.31.2.9", vip, arprule.ReasonArpFilter},
		{"arp_filter, accepted own address", on(func(c *arprule.Conf) { c.ArpFilter, c.AcceptLocal = 1, 1 }),
			nic, vip, arprule.ReasonArpFilter},
		{"arp_ignore before arp_filter", on(func(c *arprule.Conf) { c.ArpFilter, c.ArpIgnore = 1, 1 }),
			"172.31.2.9", vip, arprule.ReasonArpIgnore1},
		{"drop_gratuitous_arp", func(h *arprule.Host) { h.All.DropGratuitousArp = 1 },
			vip, vip, arprule.ReasonDropGratuitous},
		{"drop_gratuitous_arp before accept_local", on(func(c *arprule.Conf) { c.DropGratuitousArp, c.AcceptLocal = 1, 1 }),
			vip, vip, arprule.ReasonDropGratuitous},
		{"drop_gratuitous_arp and a question", on(func(c *arprule.Conf) { c.DropGratuitousArp = 1 }),
			client, vip, arprule.ReasonLocal},
	})
}

func TestReplyTarget(t *testing.T) {
	t.Parallel()
	localnet := func(h *arprule.Host) { h.All.RouteLocalnet = 1 }
	runReplyTests(t, []replyTest{
		{"multicast", nil, client, "224.0.0.251", arprule.ReasonMulticastTarget},
		{"loopback", nil, client, "127.0.0.1", arprule.ReasonLoopbackTarget},
		{"loopback with route_localnet", localnet, client, "127.0.0.1", arprule.ReasonLocal},
		{"any of 127.0.0.0/8 with route_localnet", localnet, client, "127.9.9.9", arprule.ReasonLocal},
		{"zero", nil, client, "0.0.0.0", arprule.ReasonBroadcastTarget},
		{"limited broadcast", nil, client, "255.255.255.255", arprule.ReasonBroadcastTarget},
		{"subnet broadcast", nil, client, "10.0.3.255", arprule.ReasonBroadcastTarget},
		{"nobody's", nil, client, "10.0.3.99", arprule.ReasonNotLocal},
		{"probe for nobody's", nil, "0.0.0.0", "10.0.3.99", arprule.ReasonProbeNotLocal},
		{"probe for everybody's", nil, "0.0.0.0", "255.255.255.255", arprule.ReasonProbeNotLocal},
		{"probe for itself", nil, "0.0.0.0", "0.0.0.0", arprule.ReasonProbeNotLocal},
		{"probe for the VIP", nil, "0.0.0.0", vip, arprule.ReasonLocal},
		{"IPv6 target", nil, client, "2001:db8::1", arprule.ReasonNotIPv4},
		{"IPv6 sender", nil, "2001:db8::1", vip, arprule.ReasonNotIPv4},
		{"no sender", nil, "", vip, arprule.ReasonNotIPv4},
		{"no target", nil, client, "", arprule.ReasonNotIPv4},
		{"IPv4 mapped", nil, "::ffff:10.0.3.50", "::ffff:10.0.3.20", arprule.ReasonLocal},
	})
}

func TestReplyInterface(t *testing.T) {
	t.Parallel()
	edit := func(change func(*arprule.Interface)) func(*arprule.Host) {
		return func(h *arprule.Host) { change(iface(h, "ens33")) }
	}
	enslave := func(kind string) func(*arprule.Host) {
		return edit(func(in *arprule.Interface) { in.Master, in.MasterKind = "m0", kind })
	}
	runReplyTests(t, []replyTest{
		{"zero host", func(h *arprule.Host) { *h = arprule.Host{} }, client, vip, arprule.ReasonUnknownInterface},
		{"renamed", edit(func(in *arprule.Interface) { in.Name = "eth0" }), client, nic, arprule.ReasonUnknownInterface},
		{"down", edit(func(in *arprule.Interface) { in.Down = true }), client, nic, arprule.ReasonInterfaceDown},
		{"NOARP", edit(func(in *arprule.Interface) { in.NoARP = true }), client, nic, arprule.ReasonNoARP},
		{"loopback", edit(func(in *arprule.Interface) { in.Loopback = true }), client, nic, arprule.ReasonLoopback},
		{"bridge", enslave("bridge"), client, nic, arprule.ReasonBridgePort},
		{"openvswitch", enslave("openvswitch"), client, nic, arprule.ReasonBridgePort},
		{"bond", enslave("bond"), client, nic, arprule.ReasonBondSlave},
		{"team", enslave("team"), client, nic, arprule.ReasonBondSlave},
		{"unknown master", enslave(""), client, nic, arprule.ReasonEnslaved},
		{"VRF", enslave("vrf"), client, nic, arprule.ReasonLocal},
	})
}
