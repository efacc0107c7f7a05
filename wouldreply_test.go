package strictarp_test

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// observedNode is a node of which everything was observed: loose, with a VIP.
func observedNode() strictarp.NodeFacts {
	zero := func() sysctl.Values {
		v := sysctl.Values{}
		for _, p := range sysctl.Params() {
			v[p] = 0
		}
		v[sysctl.SendRedirects] = 1 // the kernel's own value
		return v
	}
	return strictarp.NodeFacts{
		Links: []strictarp.Link{
			{Name: "lo", Up: true, Loopback: true, Addrs: []strictarp.Address{{Prefix: prefix("127.0.0.1/8"), Scope: strictarp.ScopeHost}}},
			{Name: "eth0", Up: true, Addrs: []strictarp.Address{{Prefix: prefix("10.0.3.11/24"), Scope: strictarp.ScopeGlobal}}},
			{Name: "eth1", Up: true, Addrs: []strictarp.Address{{Prefix: prefix("10.9.0.1/24"), Scope: strictarp.ScopeGlobal}}},
			{Name: "br0", Kind: "bridge", Up: true, Addrs: []strictarp.Address{}},
			{Name: "port", Kind: "veth", Up: true, Master: "br0", Addrs: []strictarp.Address{}},
			{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Addrs: []strictarp.Address{{Prefix: prefix("10.0.3.20/32"), Scope: strictarp.ScopeGlobal}}},
		},
		Sysctls: &sysctl.ARP{All: zero(), Default: zero(), Interfaces: map[string]sysctl.Values{
			"lo": zero(), "eth0": zero(), "eth1": zero(), "br0": zero(), "port": zero(), "kube-ipvs0": zero(),
		}},
		Routes: []strictarp.Route{
			{Dst: prefix("10.0.3.0/24"), Link: "eth0"}, {Dst: prefix("10.9.0.0/24"), Link: "eth1"}, {Dst: prefix("172.31.0.0/16"), Link: "eth1"},
		},
		Rules: []strictarp.PolicyRule{
			{Table: strictarp.TableLocal}, {Priority: 32766, Table: strictarp.TableMain}, {Priority: 32767, Table: strictarp.TableDefault},
		},
		ProxyNeighbours: []strictarp.ProxyNeighbour{},
	}
}

func edited(edits ...func(*strictarp.NodeFacts)) strictarp.NodeFacts {
	n := observedNode()
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func setting(link string, p sysctl.Param, value int) func(*strictarp.NodeFacts) {
	return func(n *strictarp.NodeFacts) {
		if link == "all" {
			n.Sysctls.All[p] = value
			return
		}
		n.Sysctls.Interfaces[link][p] = value
	}
}

func without(p sysctl.Param) func(*strictarp.NodeFacts) {
	return func(n *strictarp.NodeFacts) { delete(n.Sysctls.Interfaces["eth0"], p) }
}

func ask(sender, target string) strictarp.Question {
	return strictarp.Question{Link: "eth0", Sender: addr(sender), Target: addr(target)}
}

func TestWouldReply(t *testing.T) {
	t.Parallel()
	vip := ask("10.0.3.50", "10.0.3.20")
	for name, c := range map[string]struct {
		node    strictarp.NodeFacts
		ask     strictarp.Question
		replies bool
		rule    string
		why     string
	}{
		"loose":            {edited(), vip, true, "local-address", "In effect is arp_ignore 0"},
		"strict by all":    {edited(setting("all", sysctl.ARPIgnore, 1)), vip, false, "arp-ignore-1", `arp_ignore 1: conf/all has 1, conf/"eth0" 0`},
		"strict by eth0":   {edited(setting("eth0", sysctl.ARPIgnore, 1)), vip, false, "arp-ignore-1", `conf/all has 0, conf/"eth0" 1`},
		"own address":      {edited(setting("all", sysctl.ARPIgnore, 1)), ask("10.0.3.50", "10.0.3.11"), true, "local-address", "arp_ignore 1"},
		"reserved":         {edited(setting("all", sysctl.ARPIgnore, 1), setting("eth0", sysctl.ARPIgnore, 5)), vip, true, "arp-ignore-reserved", "arp_ignore 5"},
		"rp_filter":        {edited(setting("all", sysctl.RPFilter, 1)), ask("172.31.0.9", "10.0.3.20"), false, "rp-filter-strict", "rp_filter 1"},
		"no route back":    {edited(setting("all", sysctl.RPFilter, 2)), ask("192.0.2.9", "10.0.3.20"), false, "rp-filter-loose", "rp_filter 2"},
		"not held":         {edited(), ask("10.0.3.50", "10.0.3.99"), false, "not-local", "not an address of this host"},
		"probe":            {edited(), ask("0.0.0.0", "10.0.3.20"), true, "local-address", ""},
		"IPv4 within IPv6": {edited(), ask("::ffff:10.0.3.50", "::ffff:10.0.3.20"), true, "local-address", ""},
		"no local route": {edited(func(n *strictarp.NodeFacts) { n.Links[5].Addrs[0].NoLocalRoute = true }), vip,
			false, "not-local", ""},
		"subnet's route deleted": {edited(setting("all", sysctl.RPFilter, 1), func(n *strictarp.NodeFacts) { n.Routes = n.Routes[1:] }),
			vip, false, "rp-filter-strict", ""},
		"the first of equal routes": {edited(setting("all", sysctl.RPFilter, 1), func(n *strictarp.NodeFacts) {
			n.Routes = append(n.Routes, strictarp.Route{Dst: prefix("10.0.3.0/24"), Link: "br0"})
		}), vip, true, "local-address", ""},
		"proxy neighbour": {edited(setting("eth0", sysctl.Forwarding, 1), func(n *strictarp.NodeFacts) {
			n.ProxyNeighbours = []strictarp.ProxyNeighbour{{Addr: addr("172.31.0.7"), Link: "eth0"}}
		}), ask("10.0.3.50", "172.31.0.7"), true, "proxy-neighbour", ""},
		"bridge port": {edited(), strictarp.Question{Link: "port", Sender: addr("10.0.3.50"), Target: addr("10.0.3.20")}, false, "bridge-port", "bridge port"},
		"kube-ipvs0":  {edited(), strictarp.Question{Link: "kube-ipvs0", Sender: addr("10.0.3.50"), Target: addr("10.0.3.20")}, false, "interface-down", ""},
		"marks do not matter": {edited(setting("all", sysctl.RPFilter, 1), func(n *strictarp.NodeFacts) {
			n.Rules = append(n.Rules, strictarp.PolicyRule{Priority: 9, Table: 2004, Mark: 0x200, Mask: 0xf00})
		}), vip, true, "local-address", ""},
		"a rule, and the local table is asked first": {edited(func(n *strictarp.NodeFacts) {
			n.Rules = append(n.Rules, strictarp.PolicyRule{Priority: 9, Table: 2004, Mark: 1, Mask: 1})
			n.Links[2].Addrs = append(n.Links[2].Addrs, strictarp.Address{Prefix: prefix("10.0.3.50/32"), Scope: strictarp.ScopeHost})
			n.Sysctls.All[sysctl.AcceptLocal] = 1
		}), vip, true, "local-address", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := c.node.WouldReply(c.ask)
			require.NoError(t, err)
			assert.Equal(t, c.replies, a.Replies, a.Why)
			assert.Equal(t, c.rule, a.Rule)
			assert.Contains(t, a.Why, c.why)
			assert.Empty(t, a.Assumed)
		})
	}
}

func TestWouldReplyProxyIsDelayedUnlessAskedAlone(t *testing.T) {
	t.Parallel()
	n := edited(setting("eth0", sysctl.ProxyARP, 1), setting("eth0", sysctl.Forwarding, 1))
	q := ask("10.0.3.50", "172.31.0.7")
	for _, unicast := range []bool{false, true} {
		q.Unicast = unicast
		a, err := n.WouldReply(q)
		require.NoError(t, err)
		assert.True(t, a.Replies)
		assert.Equal(t, "proxy-arp", a.Rule)
		assert.Equal(t, !unicast, a.Delayed)
	}
}

// TestWouldReplyNeverGuesses: what is missing is an error if it could turn the
// answer, and only then.
func TestWouldReplyNeverGuesses(t *testing.T) {
	t.Parallel()
	noRoutes := func(n *strictarp.NodeFacts) { n.Routes = nil }
	noScopes := func(n *strictarp.NodeFacts) {
		for _, l := range n.Links {
			for i := range l.Addrs {
				l.Addrs[i].Scope = ""
			}
		}
	}
	noKinds := func(n *strictarp.NodeFacts) {
		for i := range n.Links {
			n.Links[i].Kind = ""
		}
	}
	foreignRule := func(n *strictarp.NodeFacts) {
		n.Rules = append(n.Rules, strictarp.PolicyRule{Priority: 100, Table: 7, Other: true})
	}
	strictRP := setting("all", sysctl.RPFilter, 1)
	local, port := ask("10.0.3.50", "10.0.3.20"), ask("10.0.3.50", "10.0.3.20")
	port.Link = "port"
	for name, c := range map[string]struct {
		node    strictarp.NodeFacts
		ask     strictarp.Question
		missing []string // none: it does not matter
	}{
		"links":       {edited(func(n *strictarp.NodeFacts) { n.Links = nil }), local, []string{"the interfaces"}},
		"addresses":   {edited(func(n *strictarp.NodeFacts) { n.Links[2].Addrs = nil }), local, []string{`the addresses of "eth1"`}},
		"sysctls":     {edited(func(n *strictarp.NodeFacts) { n.Sysctls = nil }), local, []string{"the sysctls"}},
		"arp_ignore":  {edited(without(sysctl.ARPIgnore)), local, []string{`arp_ignore of "eth0" and "all"`}},
		"accept":      {edited(without(sysctl.AcceptLocal)), local, nil},
		"accept own":  {edited(without(sysctl.AcceptLocal)), ask("10.9.0.1", "10.0.3.20"), []string{`accept_local of "eth0" and "all"`}},
		"rp, routed":  {edited(without(sysctl.RPFilter)), local, nil},
		"rp, not":     {edited(without(sysctl.RPFilter)), ask("192.0.2.9", "10.0.3.20"), []string{`rp_filter of "eth0" and "all"`}},
		"no filter":   {edited(noRoutes), local, nil},
		"rp_filter":   {edited(noRoutes, strictRP), local, []string{"the routes"}},
		"arp_filter":  {edited(noRoutes, setting("eth0", sysctl.ARPFilter, 1)), local, []string{"the routes"}},
		"probe":       {edited(noRoutes, strictRP), ask("0.0.0.0", "10.0.3.20"), nil},
		"proxy":       {edited(noRoutes, setting("all", sysctl.ProxyARP, 1), setting("eth0", sysctl.Forwarding, 1)), ask("10.0.3.50", "172.31.0.7"), []string{"the routes"}},
		"scopes":      {edited(noScopes), local, nil},
		"scopes at 3": {edited(noScopes, setting("all", sysctl.ARPIgnore, 3)), local, []string{"the scopes of addresses"}},
		"master":      {edited(noKinds), port, []string{`the kind of "br0", the master of "port"`}},
		"no master":   {edited(noKinds), local, nil},
		"rule":        {edited(foreignRule), local, nil},
		"rule and rp": {edited(foreignRule, strictRP), local, []string{"the routes that policy routing rules lead to"}},
		"no lookup":   {edited(strictRP, func(n *strictarp.NodeFacts) { n.Rules = n.Rules[:1] }), local, []string{"the routes that policy routing rules lead to"}},
		"all at once": {edited(func(n *strictarp.NodeFacts) { n.Sysctls = &sysctl.ARP{} }, noRoutes), port, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.node.WouldReply(c.ask)
			if c.missing == nil {
				require.NoError(t, err)
				return
			}
			var unknown *strictarp.UnknownError
			require.ErrorAs(t, err, &unknown)
			var what []string
			for _, m := range unknown.Missing {
				what = append(what, m.What)
				assert.NotEmpty(t, m.Collect)
				assert.ErrorContains(t, err, m.What)
			}
			assert.Equal(t, c.missing, what)
		})
	}
}

func TestWouldReplyNamesAssumptions(t *testing.T) {
	t.Parallel()
	unseen := func(n *strictarp.NodeFacts) { n.Rules, n.ProxyNeighbours = nil, nil }
	a, err := edited(unseen).WouldReply(ask("10.0.3.50", "10.0.3.20"))
	require.NoError(t, err)
	assert.Empty(t, a.Assumed, "no rule or entry silences a VIP that is held")

	a, err = edited(unseen, setting("eth0", sysctl.Forwarding, 1)).WouldReply(ask("10.0.3.50", "172.31.0.7"))
	require.NoError(t, err)
	assert.False(t, a.Replies)
	require.Len(t, a.Assumed, 1)
	assert.Contains(t, a.Assumed[0], "proxy neighbour")

	// Without rules the broadcast address of a subnet is a sender like others.
	a, err = edited(unseen).WouldReply(ask("10.0.3.255", "10.0.3.20"))
	require.NoError(t, err)
	assert.True(t, a.Replies)
	routes := append(slices.Clone(observedNode().Routes), strictarp.Route{
		Dst: prefix("10.0.3.255/32"), Type: strictarp.RouteBroadcast, Table: strictarp.TableLocal, Link: "eth0",
	})
	a, err = edited(unseen, func(n *strictarp.NodeFacts) { n.Routes = routes }).WouldReply(ask("10.0.3.255", "10.0.3.20"))
	require.NoError(t, err)
	require.Len(t, a.Assumed, 1)
	assert.Contains(t, a.Assumed[0], "policy routing")
}

func TestWouldReplyRefuses(t *testing.T) {
	t.Parallel()
	_, err := observedNode().WouldReply(strictarp.Question{Link: "eth7", Sender: addr("10.0.3.50"), Target: addr("10.0.3.20")})
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, q := range []strictarp.Question{{Link: "eth0"}, ask("fd00::1", "10.0.3.20"), ask("10.0.3.50", "fd00::1")} {
		_, err := observedNode().WouldReply(q)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err = edited(func(n *strictarp.NodeFacts) { n.Links[1].Addrs[0].Scope = "galaxy" }).WouldReply(ask("10.0.3.50", "10.0.3.20"))
	require.ErrorContains(t, err, `"galaxy"`)
	_, err = edited(func(n *strictarp.NodeFacts) { n.Routes[0].Type = "scenic" }).WouldReply(ask("10.0.3.50", "10.0.3.20"))
	require.ErrorContains(t, err, `"scenic"`)
}

func TestAnswerJSON(t *testing.T) {
	t.Parallel()
	a, err := edited(setting("all", sysctl.ARPIgnore, 1)).WouldReply(ask("10.0.3.50", "10.0.3.20"))
	require.NoError(t, err)
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var again strictarp.Answer
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, a, again)
}
