package strictarp_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	vrrp := arpcheck.MAC{0, 0, 0x5e, 0, 1, 7}
	dummy := arpcheck.MAC{6, 1, 1, 1, 1, 1}
	node := func(links ...strictarp.Link) strictarp.NodeFacts { return strictarp.NodeFacts{Links: links} }
	ipvs := strictarp.Link{Name: "kube-ipvs0", MAC: dummy, NoARP: true}
	f := strictarp.Facts{
		Nodes: map[string]strictarp.NodeFacts{
			"w1": node(strictarp.Link{Name: "eth0", MAC: mac("w1"), PermanentMAC: mac("w1/ens34")}, ipvs),
			"w2": node(strictarp.Link{Name: "eth0", MAC: mac("w2")}, strictarp.Link{Name: "eth1", MAC: mac("w9")}, ipvs),
			"w3": node(strictarp.Link{Name: "eth0", MAC: mac("w2")}, ipvs),
		},
		MetalLB: &metallb.State{Nodes: []metallb.Node{
			{Name: "w4", Addresses: []netip.Addr{netip.MustParseAddr("10.0.3.14")}},
			{Name: "w5", Addresses: []netip.Addr{netip.MustParseAddr("10.0.3.15")}},
		}},
		Vantages: []strictarp.Vantage{{
			Name: "client",
			Probes: []arpcheck.Result{
				{Target: netip.MustParseAddr("10.0.3.14"), Responders: []arpcheck.Responder{{MAC: mac("w4")}}},
				{Target: netip.MustParseAddr("10.0.3.20"), Responders: []arpcheck.Responder{{MAC: vrrp}}},
			},
			Neighbours: []arpcheck.Neighbour{{Addr: netip.MustParseAddr("10.0.3.15"), MAC: mac("w5")}, {Addr: netip.MustParseAddr("10.0.3.14"), MAC: mac("w9")}},
		}},
	}
	const software = "locally administered: set by software"
	for _, c := range []struct {
		name string
		mac  arpcheck.MAC
		node string
		want strictarp.Owner
	}{
		{"a link", mac("w1"), "w1", strictarp.Owner{Nodes: []string{"w1"}, Link: "eth0", From: "links of w1", Class: software}},
		{"a link's permanent MAC", mac("w1/ens34"), "w1", strictarp.Owner{Nodes: []string{"w1"}, Link: "eth0", From: "permanent MACs of w1", Class: software}},
		{"clones", mac("w2"), "", strictarp.Owner{Nodes: []string{"w2", "w3"}, Link: "eth0", From: "links of w2", Class: software}},
		{"what answers for a node", mac("w4"), "w4", strictarp.Owner{Nodes: []string{"w4"}, From: "what answered for 10.0.3.14 at client", Class: software}},
		{"a neighbour entry", mac("w5"), "w5", strictarp.Owner{Nodes: []string{"w5"}, From: "the neighbour entry of 10.0.3.15 at client", Class: software}},
		{"a link is surer than an entry", mac("w9"), "w2", strictarp.Owner{Nodes: []string{"w2"}, Link: "eth1", From: "links of w2", Class: software}},
		{"the same device everywhere", dummy, "", strictarp.Owner{Class: software}},
		{"a virtual router", vrrp, "", strictarp.Owner{Class: "virtual router of VRRP or CARP, IPv4"}},
		{"a stranger", arpcheck.MAC{0x3c, 0xfd, 0xfe, 1, 2, 3}, "", strictarp.Owner{Class: "vendor 3c:fd:fe"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := f.Owners().Of(c.mac)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.node, got.Node())
		})
	}
	assert.Equal(t, strictarp.Owner{Class: software}, strictarp.Owners{}.Of(mac("w1")))
}

func ExampleFacts_Owners() {
	w2 := arpcheck.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 2}
	facts := strictarp.Facts{Nodes: map[string]strictarp.NodeFacts{"w2": {Links: []strictarp.Link{{Name: "eth0", MAC: w2}}}}}
	owners := facts.Owners()
	for _, mac := range []arpcheck.MAC{w2, {0x52, 0x54, 0, 0xaa, 0xbb, 9}} {
		if owner := owners.Of(mac); owner.Node() != "" {
			fmt.Printf("%s is %s of %s\n", mac, owner.Link, owner.Node())
		} else {
			fmt.Printf("%s is of no known node: %s\n", mac, owner.Class)
		}
	}
	// Output:
	// 52:54:00:aa:bb:02 is eth0 of w2
	// 52:54:00:aa:bb:09 is of no known node: QEMU or KVM virtual machine
}
