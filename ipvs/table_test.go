package ipvs_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/ipvs/ipvstest"
)

func real(addr string, weight int, forward ipvs.Forward) ipvs.RealServer {
	return ipvs.RealServer{Addr: netip.MustParseAddr(addr), Port: 8080, Weight: weight, Forward: forward}
}

func web(port uint16, servers ...ipvs.RealServer) ipvs.Service {
	return ipvs.Service{Protocol: ipvs.TCP, Addr: vip, Port: port, Scheduler: "rr", RealServers: servers}
}

func TestBacking(t *testing.T) {
	t.Parallel()
	pods := netip.MustParsePrefix("10.244.1.0/24")
	here, there := real("10.244.1.2", 1, ipvs.Masq), real("10.244.2.2", 1, ipvs.Masq)
	tests := map[string]struct {
		services []ipvs.Service
		want     ipvs.Backing
	}{
		"no table":           {nil, ipvs.Backing{}},
		"another VIP":        {[]ipvs.Service{{Protocol: ipvs.TCP, Addr: service(1), RealServers: []ipvs.RealServer{here}}}, ipvs.Backing{}},
		"a firewall mark":    {[]ipvs.Service{{FWMark: 1, RealServers: []ipvs.RealServer{here}}}, ipvs.Backing{}},
		"here":               {[]ipvs.Service{web(80, here)}, ipvs.Backing{Local: 1}},
		"there":              {[]ipvs.Service{web(80, there)}, ipvs.Backing{Remote: 1}},
		"here and there":     {[]ipvs.Service{web(80, there, here)}, ipvs.Backing{Local: 1}},
		"nowhere":            {[]ipvs.Service{web(80)}, ipvs.Backing{Empty: 1}},
		"retired":            {[]ipvs.Service{web(80, real("10.244.1.2", 0, ipvs.Masq))}, ipvs.Backing{Empty: 1}},
		"retired, and there": {[]ipvs.Service{web(80, real("10.244.1.2", 0, ipvs.Masq), there)}, ipvs.Backing{Remote: 1}},
		"the node itself":    {[]ipvs.Service{web(80, real("10.0.3.11", 1, ipvs.Local))}, ipvs.Backing{Local: 1}},
		"one port each":      {[]ipvs.Service{web(80, here), web(81, there), web(82)}, ipvs.Backing{Local: 1, Remote: 1, Empty: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := ipvs.Table{Services: test.services}
			assert.Equal(t, test.want, table.Backing(vip, pods.Contains))
			assert.Equal(t, test.want, table.Backing(netip.AddrFrom16(vip.As16()), pods.Contains), "as ::ffff:10.0.3.20")
		})
	}
}

func TestBackingCaptured(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]ipvs.Backing{"w1": {Local: 1}, "w2": {Remote: 1}, "w3": {Remote: 1}} {
		f, err := os.Open("testdata/kube-proxy-" + node + ".txt")
		require.NoError(t, err)
		table, err := ipvs.ParseTable(f)
		require.NoError(t, errors.Join(err, f.Close()))
		isLocal := func(a netip.Addr) bool { return node == "w1" && a == netip.MustParseAddr("10.244.1.2") }
		assert.Equal(t, want, table.Backing(vip, isLocal), node)
	}
}

func TestServiceString(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "tcp 10.0.3.20:80", web(80).String())
	assert.Equal(t, "sctp [2001:db8::1]:0", ipvs.Service{Protocol: ipvs.SCTP, Addr: netip.MustParseAddr("2001:db8::1")}.String())
	assert.Equal(t, "fwmark 16", ipvs.Service{FWMark: 16}.String())
	assert.Equal(t, "fwmark 16 ipv6", ipvs.Service{FWMark: 16, IPv6: true}.String())
}

func TestTableJSON(t *testing.T) {
	t.Parallel()
	var node ipvstest.Node
	node.SetService(web(80, real("10.244.1.2", 1, ipvs.Masq)))
	node.SetService(ipvs.Service{FWMark: 16, Scheduler: "wlc", Persistent: true, TimeoutTicks: 100})
	table, err := node.ReadTable()
	require.NoError(t, err)
	text, err := json.Marshal(table)
	require.NoError(t, err)
	assert.JSONEq(t, `{"version": "1.2.1", "connTable": 4096, "services": [
		{"protocol": "tcp", "addr": "10.0.3.20", "port": 80, "scheduler": "rr", "realServers": [
			{"addr": "10.244.1.2", "port": 8080, "forward": "masq", "weight": 1, "activeConns": 0, "inactiveConns": 0}]},
		{"fwMark": 16, "scheduler": "wlc", "persistent": true, "clientBits": 32, "timeoutTicks": 100, "realServers": []}]}`, string(text))
	var again ipvs.Table
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, table, again)
}

func TestNoIPVSMatches(t *testing.T) {
	t.Parallel()
	assert.ErrorIs(t, ipvs.ErrNoIPVS, fs.ErrNotExist)
	assert.NotErrorIs(t, ipvs.ErrNoIPVS, fs.ErrPermission)
	assert.NotErrorIs(t, ipvs.ErrNoIPVS, errors.ErrUnsupported)
}

// A table is read until it stands still.
func TestSettle(t *testing.T) {
	t.Parallel()
	table := func(ports ...uint16) ipvs.Table {
		t := ipvs.Table{}
		for _, port := range ports {
			t.Services = append(t.Services, web(port))
		}
		return t
	}
	busy := table(80)
	busy.Services[0].RealServers = []ipvs.RealServer{{Addr: service(1), ActiveConns: 1}}
	busier := table(80)
	busier.Services[0].RealServers = []ipvs.RealServer{{Addr: service(1), ActiveConns: 2}}
	bad, broken := &ipvs.SyntaxError{Line: 4}, errors.New("broken")
	type result struct {
		table ipvs.Table
		how   ipvs.Reading
		err   error
	}
	ok := func(t ipvs.Table) result { return result{table: t} }
	tests := map[string]struct {
		reads   []result
		want    []uint16
		partial bool
		err     error
	}{
		"whole":               {[]result{{table(80), ipvs.Whole, nil}}, []uint16{80}, false, nil},
		"whole, bad":          {[]result{{table(80), ipvs.Whole, bad}}, []uint16{80}, false, bad},
		"still":               {[]result{ok(table(80, 81)), ok(table(80, 81))}, []uint16{80, 81}, false, nil},
		"empty":               {[]result{ok(table()), ok(table())}, nil, false, nil},
		"only connections":    {[]result{ok(busy), ok(busier)}, []uint16{80}, false, nil},
		"one more":            {[]result{ok(table(80)), ok(table(80, 81)), ok(table(80, 81))}, []uint16{80, 81}, false, nil},
		"hidden for a moment": {[]result{ok(table(80, 81)), ok(table(80)), ok(table(80, 81)), ok(table(80, 81))}, []uint16{80, 81}, false, nil},
		"never still": {[]result{ok(table(80)), ok(table(81)), ok(table(80)), ok(table(81)), ok(table(82))},
			[]uint16{80, 81, 82}, true, nil},
		"the same is skipped": {[]result{{table(80), ipvs.Unsteady, nil}, {table(80), ipvs.Unsteady, nil}, {table(80), ipvs.Unsteady, nil},
			{table(81), ipvs.Unsteady, nil}, {table(80), ipvs.InPieces, nil}}, []uint16{80, 81}, true, nil},
		"skipped for once":     {[]result{{table(80), ipvs.Unsteady, nil}, ok(table(80)), ok(table(80))}, []uint16{80}, false, nil},
		"a bad line, for once": {[]result{{table(80), 0, bad}, ok(table(80)), ok(table(80))}, []uint16{80}, false, nil},
		"a bad line, always":   {[]result{{table(80), 0, bad}, {table(80), 0, bad}}, []uint16{80}, false, bad},
		"broken":               {[]result{{table(80), 0, broken}}, []uint16{80}, false, broken},
		"broken later":         {[]result{ok(table(80)), {table(), 0, broken}}, nil, false, broken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			got, err := ipvs.Settle(func(attempt int) (ipvs.Table, ipvs.Reading, error) {
				require.Equal(t, reads, attempt)
				reads++
				r := test.reads[attempt]
				return r.table, r.how, r.err
			})
			assert.ErrorIs(t, err, test.err)
			assert.Equal(t, len(test.reads), reads)
			assert.Equal(t, test.partial, got.Partial)
			var ports []uint16
			for _, s := range got.Services {
				ports = append(ports, s.Port)
			}
			assert.Equal(t, test.want, ports)
		})
	}
}
