package arprule_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/internal/arprule"
)

// TestSolicit includes the measured incident: with arp_announce 0 and 1 a node
// that holds 10.0.3.20 on kube-ipvs0 asks for 10.0.3.50 in the VIP's name.
func TestSolicit(t *testing.T) {
	t.Parallel()
	announce := func(all, own int) func(*arprule.Host) {
		return func(h *arprule.Host) {
			h.All.ArpAnnounce = all
			iface(h, "ens33").Conf.ArpAnnounce = own
		}
	}
	const outside = "203.0.113.20" // a VIP that is in no subnet of ens33
	second := addresses(address("192.0.2.1/24", "ens33", arprule.ScopeUniverse))
	secondary := address("10.0.3.5/24", "ens33", arprule.ScopeUniverse)
	secondary.Secondary = true
	bare := func(scope arprule.Scope) func(*arprule.Host) {
		return func(h *arprule.Host) {
			*h = arprule.Host{
				Interfaces: []arprule.Interface{{Name: "lo", Loopback: true}, {Name: "ens33"}, {Name: "eth1"}},
				Addresses: []arprule.Address{
					address("127.0.0.1/8", "lo", arprule.ScopeHost),
					address("10.9.0.1/24", "eth1", scope),
				},
			}
		}
	}
	inVRF := func(h *arprule.Host) {
		bare(arprule.ScopeUniverse)(h)
		h.Interfaces = append(h.Interfaces, arprule.Interface{Name: "vrf1"})
		in := iface(h, "ens33")
		in.Master, in.MasterKind = "vrf1", "vrf"
	}
	tests := []struct {
		name           string
		edit           func(*arprule.Host)
		target, source string
		want           string
	}{
		{"0 shows the VIP", announce(0, 0), client, vip, vip},
		{"1 shows the VIP in the NIC's subnet", announce(1, 0), client, vip, vip},
		{"2 does not", announce(0, 2), client, vip, nic},
		{"maximum", announce(2, 1), client, vip, nic},
		{"3 is reserved and as 0", announce(2, 3), client, outside, outside},
		{"negative is as 0", announce(-1, -1), client, outside, outside},
		{"0 shows a VIP of no subnet", announce(0, 0), client, outside, outside},
		{"1 hides a VIP of no subnet", announce(1, 1), client, outside, nic},
		{"1 hides the VIP from another subnet", all(announce(1, 0), second), "192.0.2.9", vip, "192.0.2.1"},
		{"1 asks for a subnet of this interface", announce(1, 0), "10.9.0.9", "10.9.0.1", nic},
		{"0 and a routed packet", announce(0, 0), client, "172.31.2.9", nic},
		{"1 and a routed packet", announce(1, 0), client, "172.31.2.9", nic},
		{"no packet", announce(0, 0), client, "", nic},
		{"unspecified source", announce(0, 0), client, "0.0.0.0", nic},
		{"subnet of the target", all(announce(2, 0), second), "192.0.2.9", vip, "192.0.2.1"},
		{"no subnet fits: the first address", all(announce(2, 0), second), "172.31.1.1", vip, nic},
		{"secondary is passed over", all(announce(2, 0), func(h *arprule.Host) {
			h.Addresses = append([]arprule.Address{secondary}, h.Addresses...)
		}), client, vip, nic},
		{"no address: borrowed", bare(arprule.ScopeUniverse), client, "", "10.9.0.1"},
		{"link scope is not lent", bare(arprule.ScopeLink), client, "", "0.0.0.0"},
		{"VRF borrows from no other", inVRF, client, "", "0.0.0.0"},
		{"VRF borrows from its device", all(inVRF, addresses(address("192.0.2.1/32", "vrf1", arprule.ScopeUniverse))),
			client, "", "192.0.2.1"},
		{"VRF borrows from its device first", func(h *arprule.Host) {
			inVRF(h)
			in := iface(h, "eth1")
			in.Master, in.MasterKind = "vrf1", "vrf"
			h.Addresses = append(h.Addresses, address("192.0.2.1/32", "vrf1", arprule.ScopeUniverse))
		}, client, "", "192.0.2.1"},
		{"source of another VRF is not local", inVRF, client, "10.9.0.1", "0.0.0.0"},
		{"host scope with route_localnet", func(h *arprule.Host) {
			bare(arprule.ScopeUniverse)(h)
			h.All.RouteLocalnet = 1
			h.Addresses = append(h.Addresses, address("10.0.3.31/32", "ens33", arprule.ScopeHost))
		}, client, "", "10.0.3.31"},
		{"multicast", nil, "224.0.0.1", vip, ""},
		{"broadcast", nil, "10.0.3.255", vip, ""},
		{"limited broadcast", nil, "255.255.255.255", vip, ""},
		{"IPv6", nil, "2001:db8::1", vip, ""},
		{"NOARP", func(h *arprule.Host) { iface(h, "ens33").NoARP = true }, client, vip, ""},
		{"down", func(h *arprule.Host) { iface(h, "ens33").Down = true }, client, vip, ""},
		{"zero host", func(h *arprule.Host) { *h = arprule.Host{} }, client, vip, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := truthNode()
			if tt.edit != nil {
				tt.edit(&h)
			}
			assert.Equal(t, ip(tt.want), arprule.Solicit(h, "ens33", ip(tt.target), ip(tt.source)))
		})
	}
}

func TestEffective(t *testing.T) {
	t.Parallel()
	h := arprule.Host{
		All: arprule.Conf{
			ArpIgnore: 1, ArpAnnounce: 2, ArpFilter: 0, ProxyArp: 5, ProxyArpPvlan: 1,
			RpFilter: -1, Forwarding: 1, RouteLocalnet: 1, AcceptLocal: 0, DropGratuitousArp: 1,
		},
		Interfaces: []arprule.Interface{{Name: "eth0.100", Conf: arprule.Conf{
			ArpIgnore: 4, ArpAnnounce: 1, ArpFilter: 2, RpFilter: 0, AcceptLocal: -1, SendRedirects: 1,
		}}},
	}
	assert.Equal(t, arprule.Conf{
		ArpIgnore: 4, ArpAnnounce: 2, ArpFilter: 1, ProxyArp: 1, ProxyArpPvlan: 1,
		RpFilter: 0, Forwarding: 0, RouteLocalnet: 1, AcceptLocal: 1, DropGratuitousArp: 1, SendRedirects: 1,
	}, h.Effective("eth0.100"))
	// A new interface under all=1 shows its own 0 and obeys 1.
	assert.Equal(t, 1, h.Effective("new").ArpIgnore)
}
