package metallb_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func hygiene(c *metallbtest.Cluster, around metallb.Surroundings) []metallb.Reason {
	return metallb.FromObjects(c.Objects()...).Hygiene(around)
}

func TestHygieneOverlapsUsed(t *testing.T) {
	t.Parallel()
	around := metallb.Surroundings{
		Gateways: addrs("10.0.3.1", "fe80::1"),
		Used:     []metallb.UsedAddr{{Addr: netip.MustParseAddr("10.0.3.99"), By: "the host 00:00:5e:00:53:77"}},
	}
	for name, tc := range map[string]struct {
		addresses []string
		want      []string // parts of the message; nil: no reason
	}{
		"clean":          {[]string{"10.0.3.20-10.0.3.40"}, nil},
		"a node":         {[]string{"10.0.3.13-10.0.3.40"}, []string{"10.0.3.13 of the node w3"}},
		"the gateway":    {[]string{"10.0.3.0/29"}, []string{"10.0.3.1 of the gateway"}},
		"another":        {[]string{"10.0.3.99/32"}, []string{"10.0.3.99 of the host 00:00:5e:00:53:77"}},
		"all":            {[]string{"10.0.3.0/24"}, []string{"10.0.3.1 of the gateway, 10.0.3.11 of the node w1", "10.0.3.99"}},
		"the Service":    {[]string{"10.0.3.11-10.0.3.30"}, []string{"10.0.3.12 of the node w2 (which the Service default/web has)"}},
		"both its ends":  {[]string{"10.0.3.11-10.0.3.11", "10.0.3.13-10.0.3.13"}, []string{"w1", "w3"}},
		"of the family":  {[]string{"::/0"}, []string{"fe80::1 of the gateway"}},
		"the whole IPv4": {[]string{"0.0.0.0/0"}, []string{"10.0.3.99"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := metallbtest.New("w1", "w2", "w3")
			c.AddService("default/web", "10.0.3.12")
			c.Pools[0].Addresses = tc.addresses
			found := byRule(hygiene(c, around), metallb.RulePoolOverlapsNode)
			assert.Len(t, found, min(len(tc.want), 1))
			for _, part := range tc.want {
				assert.Contains(t, found[0].Message, part)
			}
		})
	}
}

func byRule(reasons []metallb.Reason, rule metallb.Rule) []metallb.Reason {
	var found []metallb.Reason
	for _, r := range reasons {
		if r.Rule == rule {
			found = append(found, r)
		}
	}
	return found
}

func TestHygieneOverlapsPools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pools [][]string
		want  int
	}{
		"apart":          {[][]string{{"10.1.0.0/24"}, {"10.1.1.0/24"}}, 0},
		"one address":    {[][]string{{"10.1.0.0-10.1.0.5"}, {"10.1.0.5-10.1.0.9"}}, 1},
		"inside":         {[][]string{{"10.1.0.0/16"}, {"10.1.1.0/24"}, {"10.1.2.0/24"}}, 2},
		"within itself":  {[][]string{{"10.1.0.0/24", "10.1.0.128/25"}}, 1},
		"families apart": {[][]string{{"0.0.0.0/0"}, {"::/0"}}, 0},
		"the same":       {[][]string{{"10.1.0.0/24"}, {"10.1.0.0/24"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := metallbtest.New()
			c.Pools = nil
			for i, a := range tc.pools {
				c.Pools = append(c.Pools, &metallbtest.Pool{Name: fmt.Sprint("pool-", i), Addresses: a})
			}
			found := byRule(hygiene(c, metallb.Surroundings{}), metallb.RulePoolOverlapsNode)
			assert.Len(t, found, tc.want, found)
			for _, r := range found {
				assert.Equal(t, metallb.Object{Kind: "IPAddressPool", Namespace: "metallb-system", Name: r.Object.Name}, r.Object)
				assert.Equal(t, "spec.addresses", r.Field)
			}
		})
	}
}

func TestHygieneAwkward(t *testing.T) {
	t.Parallel()
	segments := prefixes("10.0.3.11/24", "10.9.0.70/26", "192.0.2.0/31", "192.0.2.7/32", "2001:db8::5/64")
	for name, tc := range map[string]struct {
		addresses []string
		avoid     bool
		want      string // the addresses; empty: no reason
	}{
		"clean":                      {[]string{"10.0.3.20-10.0.3.40"}, false, ""},
		"network address":            {[]string{"10.0.3.0/28"}, false, "10.0.3.0, the network address of 10.0.3.0/24"},
		"broadcast address":          {[]string{"10.0.3.250-10.0.4.1"}, false, "10.0.3.255, the broadcast address of 10.0.3.0/24"},
		"avoided":                    {[]string{"10.0.3.0/24"}, true, ""},
		"in the middle of a /24":     {[]string{"10.9.0.64/26"}, true, "10.9.0.64, the network address of 10.9.0.64/26, 10.9.0.127, the broadcast address of 10.9.0.64/26"},
		"ends in .0":                 {[]string{"172.16.5.200-172.16.7.1"}, false, "172.16.5.255, which ends in .0 or .255"},
		"starts at .0":               {[]string{"172.16.5.0-172.16.5.1"}, false, "172.16.5.0, which ends"},
		"ends before .255":           {[]string{"172.16.5.1-172.16.5.254"}, false, ""},
		"a link of two":              {[]string{"192.0.2.1/32"}, false, ""},
		"IPv6's first":               {[]string{"2001:db8::/120"}, false, "2001:db8::, the subnet-router anycast address of 2001:db8::/64"},
		"IPv6's others":              {[]string{"2001:db8::1-2001:db8::ff"}, false, ""},
		"the last address of all":    {[]string{"255.255.255.255/32"}, false, "255.255.255.255"},
		"everything, in no time":     {[]string{"0.0.0.0/0", "::/0"}, false, "0.0.0.0"},
		"the Service that has one":   {[]string{"172.16.9.0/24"}, false, "172.16.9.0, which ends in .0 or .255 (which the Service default/web has)"},
		"an address that is no pool": {[]string{"nonsense"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := metallbtest.New()
			c.AddService("default/web", "172.16.9.0")
			c.Pools[0].Addresses, c.Pools[0].AvoidBuggyIPs = tc.addresses, tc.avoid
			found := byRule(hygiene(c, metallb.Surroundings{Segments: segments}), metallb.RulePoolAwkwardAddress)
			if tc.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].Message, tc.want)
			assert.Equal(t, !tc.avoid, strings.Contains(found[0].Message, "avoidBuggyIPs"))
		})
	}
}

func TestHygieneShared(t *testing.T) {
	t.Parallel()
	kubeVIP := metallb.Controller{Kind: metallb.KindKubeVIP, Name: "daemonset/kube-vip", PerService: true, Handles: metallb.Handles{All: true}}
	speakers := metallb.Controller{Kind: metallb.KindMetalLB, Name: "daemonset/speaker", Handles: metallb.Handles{Classes: []string{"x"}}}
	for name, tc := range map[string]struct {
		edit        func(a, b *metallbtest.Service)
		controllers []metallb.Controller
		want        string // a part of the message; empty: no reason
	}{
		"both Cluster":         {func(_, _ *metallbtest.Service) {}, nil, ""},
		"different policies":   {func(a, _ *metallbtest.Service) { a.Local = true }, nil, "differ in externalTrafficPolicy"},
		"Local, own selectors": {func(a, b *metallbtest.Service) { a.Local, b.Local = true, true }, nil, "different selectors"},
		"Local, one selector": {func(a, b *metallbtest.Service) {
			a.Local, b.Local, b.Selector = true, true, map[string]string{"app": "a"}
		}, nil, ""},
		"Local, other namespaces": {func(a, b *metallbtest.Service) {
			a.Local, b.Local, b.Selector, b.Namespace = true, true, map[string]string{"app": "a"}, "x"
		}, nil, "different namespaces"},
		"other addresses":     {func(a, b *metallbtest.Service) { a.Local, b.Addresses = true, []string{"10.0.3.21"} }, nil, ""},
		"kube-vip's leases":   {func(_, _ *metallbtest.Service) {}, []metallb.Controller{kubeVIP}, "elects a node for each"},
		"MetalLB has no part": {func(a, b *metallbtest.Service) { a.Local, a.Class, b.Class = true, "x", "x" }, []metallb.Controller{}, ""},
		"another MetalLB's":   {func(a, b *metallbtest.Service) { a.Local, a.Class, b.Class = true, "x", "x" }, []metallb.Controller{speakers}, "externalTrafficPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := metallbtest.New("w1", "w2")
			tc.edit(c.AddService("default/a", "10.0.3.20", "w1"), c.AddService("default/b", "10.0.3.20", "w2"))
			s := metallb.FromObjects(c.Objects()...)
			s.Controllers = tc.controllers
			found := s.Hygiene(metallb.Surroundings{})
			if tc.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, metallb.RuleSharedIPConflict, found[0].Rule)
			assert.Contains(t, found[0].Message, tc.want)
		})
	}
}

func TestHygieneRealCases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		around metallb.Surroundings
		want   []string
	}{
		"d03": {metallb.Surroundings{Segments: prefixes("192.0.2.0/24")}, []string{"shared-ip-conflict"}},
		"d04": {metallb.Surroundings{Segments: prefixes("192.0.2.0/24"), Gateways: addrs("192.0.2.1")}, []string{"pool-overlaps-node"}},
		"d06": {metallb.Surroundings{Segments: prefixes("192.0.2.0/24")}, []string{"pool-awkward-address", "pool-overlaps-node"}},
		"d02": {metallb.Surroundings{Segments: prefixes("198.51.100.0/24"), Gateways: addrs("198.51.100.1")}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, rules(readCase(t, name).Hygiene(tc.around)))
		})
	}
}

// A thousand pools with nodes and Services take no longer than they have to, and
// messages name a few addresses only.
func TestHygieneMany(t *testing.T) {
	t.Parallel()
	c := metallbtest.New("w1")
	c.Pools = []*metallbtest.Pool{{Name: "all", Addresses: []string{"10.0.0.0/8"}}}
	for i := range 1000 {
		ip := fmt.Sprintf("10.%d.%d.7", i/250, i%250)
		c.Nodes = append(c.Nodes, &metallbtest.Node{Name: fmt.Sprint("n", i), IP: ip})
		c.Pools = append(c.Pools, &metallbtest.Pool{Name: fmt.Sprint("p", i), Addresses: []string{fmt.Sprintf("10.%d.%d.0/24", i/250, i%250)}, AvoidBuggyIPs: true})
		svc := c.AddService(fmt.Sprint("default/s", i), "10.0.0.9")
		svc.Local = i%2 == 0
	}
	found := hygiene(c, metallb.Surroundings{})
	assert.Len(t, byRule(found, metallb.RuleSharedIPConflict), 999, "each with the first: half by policy, half by selector")
	overlaps := byRule(found, metallb.RulePoolOverlapsNode)
	assert.Len(t, overlaps, 1+1000+1000)
	for _, r := range overlaps {
		assert.Less(t, len(r.Message), 600)
	}
	assert.True(t, slices.ContainsFunc(overlaps, func(r metallb.Reason) bool { return strings.Contains(r.Message, "and 993 more") }))
}
