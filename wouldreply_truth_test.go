package strictarp_test

import (
	"compress/gzip"
	"encoding/csv"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl"
)

// truthRows is the number of rows of the table, so that a truncated one cannot
// pass.
const truthRows = 15260

// TestWouldReplyTruthTable compares WouldReply with every row of the table that
// was measured on kernels 6.1 and 6.18.
func TestWouldReplyTruthTable(t *testing.T) {
	t.Parallel()
	file, err := os.Open("internal/arprule/testdata/arp_truth_table.csv.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	rows, err := csv.NewReader(unzipped).ReadAll()
	require.NoError(t, err)
	header, rows := rows[0], rows[1:]
	require.Len(t, rows, truthRows)
	wrong := 0
	for _, fields := range rows {
		row := map[string]string{}
		for i, name := range header {
			row[name] = fields[i]
		}
		sender, err := netip.ParseAddr(row["sender_ip"])
		require.NoError(t, err)
		target, err := netip.ParseAddr(row["target_ip"])
		require.NoError(t, err)
		a, err := truthFacts(t, row).WouldReply(strictarp.Question{Link: "ens33", Sender: sender, Target: target})
		require.NoError(t, err, "%v", row)
		if a.Replies != (row["kernel_replies"] == "1") {
			wrong++
			t.Errorf("the kernel answers: %s, WouldReply: %t (%s) in %v", row["kernel_replies"], a.Replies, a.Rule, row)
			require.Less(t, wrong, 20)
		}
	}
}

// truthFacts is the node of the table as "ip addr", "ip route show table all" and
// sysctl showed it.
func truthFacts(t *testing.T, row map[string]string) strictarp.NodeFacts {
	t.Helper()
	number := func(column string) int {
		n, err := strconv.Atoi(row[column])
		require.NoError(t, err, column)
		return n
	}
	own := func() sysctl.Values {
		v := sysctl.Values{}
		for _, p := range sysctl.Params() {
			v[p] = 0
		}
		v[sysctl.SendRedirects] = 1 // the kernel's own value
		v[sysctl.Forwarding] = number("ip_forward")
		return v
	}
	all, ens33 := own(), own()
	for _, p := range []sysctl.Param{sysctl.ARPIgnore, sysctl.ARPFilter, sysctl.ProxyARP, sysctl.RPFilter} {
		all[p], ens33[p] = number("all_"+string(p)), number("if_"+string(p))
	}
	n := observedNode()
	n.Links = truthLinks()
	n.Links[4].Up = row["ipvs0_state"] == "up"
	n.Sysctls = &sysctl.ARP{All: all, Default: own(), Interfaces: map[string]sysctl.Values{
		"lo": own(), "ens33": ens33, "eth1p": own(), "eth1": own(), "kube-ipvs0": own(),
	}}
	n.Routes = []strictarp.Route{
		{Dst: prefix("10.0.3.0/24"), Link: "ens33", Source: addr("10.0.3.11")},
		{Dst: prefix("10.9.0.0/24"), Link: "eth1", Source: addr("10.9.0.1")},
		{Dst: prefix("172.31.1.0/24"), Gateway: addr("10.0.3.1"), Link: "ens33"},
		{Dst: prefix("172.31.2.0/24"), Gateway: addr("10.9.0.254"), Link: "eth1"},
		{Dst: prefix("172.31.3.0/24"), Type: strictarp.RouteUnreachable},
		{Dst: prefix("127.0.0.0/8"), Type: strictarp.RouteLocal, Table: strictarp.TableLocal, Link: "lo"},
	}
	return n
}

func truthLinks() []strictarp.Link {
	const global, link, host = strictarp.ScopeGlobal, strictarp.ScopeLink, strictarp.ScopeHost
	return []strictarp.Link{
		{Name: "lo", Up: true, Loopback: true, Addrs: []strictarp.Address{
			{Prefix: prefix("127.0.0.1/8"), Scope: host}, {Prefix: prefix("10.0.3.41/32"), Scope: host},
			{Prefix: prefix("10.0.3.40/32"), Scope: global},
		}},
		{Name: "ens33", Up: true, Addrs: []strictarp.Address{
			{Prefix: prefix("10.0.3.31/32"), Scope: host}, {Prefix: prefix("10.0.3.11/24"), Scope: global},
			{Prefix: prefix("10.0.3.30/32"), Scope: global}, {Prefix: prefix("203.0.113.30/32"), Scope: global},
		}},
		{Name: "eth1p", Kind: "veth", Up: true, Addrs: []strictarp.Address{}},
		{Name: "eth1", Kind: "veth", Up: true, Addrs: []strictarp.Address{{Prefix: prefix("10.9.0.1/24"), Scope: global}}},
		{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Addrs: []strictarp.Address{
			{Prefix: prefix("10.0.3.21/32"), Scope: host}, {Prefix: prefix("10.0.3.22/32"), Scope: link},
			{Prefix: prefix("10.0.3.20/32"), Scope: global}, {Prefix: prefix("203.0.113.20/32"), Scope: global},
		}},
	}
}

// TestTruthTableHasBothAnswers guards the test above against a table in which
// everything, or nothing, is answered.
func TestTruthTableTellsApart(t *testing.T) {
	t.Parallel()
	row := map[string]string{"ip_forward": "0", "ipvs0_state": "down"}
	for _, p := range []string{"arp_ignore", "arp_filter", "proxy_arp", "rp_filter"} {
		row["all_"+p], row["if_"+p] = "0", "0"
	}
	q := strictarp.Question{Link: "ens33", Sender: addr("10.0.3.50"), Target: addr("10.0.3.20")}
	loose, err := truthFacts(t, row).WouldReply(q)
	require.NoError(t, err)
	row["all_arp_ignore"] = "1"
	strict, err := truthFacts(t, row).WouldReply(q)
	require.NoError(t, err)
	assert.True(t, loose.Replies)
	assert.False(t, strict.Replies)
}
