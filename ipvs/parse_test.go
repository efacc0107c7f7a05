package ipvs_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/ipvs/ipvstest"
)

const head = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
`

func parse(text string) (ipvs.Table, error) { return ipvs.ParseTable(strings.NewReader(text)) }

func TestParseService(t *testing.T) {
	t.Parallel()
	v4 := netip.MustParseAddr("10.0.3.20")
	v6 := netip.MustParseAddr("2001:db8::1")
	tests := map[string]struct {
		lines string
		want  ipvs.Service
	}{
		"tcp": {"TCP  0A000314:0050 rr  \n", ipvs.Service{Protocol: ipvs.TCP, Addr: v4, Port: 80, Scheduler: "rr"}},
		"udp, one packet": {"UDP  0A000314:0035 rr ops  \n",
			ipvs.Service{Protocol: ipvs.UDP, Addr: v4, Port: 53, Scheduler: "rr", OnePacket: true}},
		"sctp, all ports": {"SCTP  0A000314:0000 wlc  \n", ipvs.Service{Protocol: ipvs.SCTP, Addr: v4, Scheduler: "wlc"}},
		"no scheduler":    {"TCP  0A000314:0050 none  \n", ipvs.Service{Protocol: ipvs.TCP, Addr: v4, Port: 80, Scheduler: "none"}},
		"persistent": {"TCP  0A000314:0050 rr  persistent 2700000 FFFFFF00\n", ipvs.Service{
			Protocol: ipvs.TCP, Addr: v4, Port: 80, Scheduler: "rr", Persistent: true, ClientBits: 24, TimeoutTicks: 2700000}},
		"persistent for longer than a signed number": {"TCP  0A000314:0050 rr  persistent -2 FFFFFFFF\n", ipvs.Service{
			Protocol: ipvs.TCP, Addr: v4, Port: 80, Scheduler: "rr", Persistent: true, ClientBits: 32, TimeoutTicks: 1<<32 - 2}},
		"ipv6": {"TCP  [2001:0db8:0000:0000:0000:0000:0000:0001]:01BB rr \n",
			ipvs.Service{Protocol: ipvs.TCP, Addr: v6, Port: 443, IPv6: true, Scheduler: "rr"}},
		"ipv6, persistent": {"UDP  [2001:0db8:0000:0000:0000:0000:0000:0001]:01BB rr persistent 100 40000000\n", ipvs.Service{
			Protocol: ipvs.UDP, Addr: v6, Port: 443, IPv6: true, Scheduler: "rr", Persistent: true, ClientBits: 64, TimeoutTicks: 100}},
		"ipv6, persistent, big-endian": {"UDP  [2001:0db8:0000:0000:0000:0000:0000:0001]:01BB rr persistent 100 00000080\n", ipvs.Service{
			Protocol: ipvs.UDP, Addr: v6, Port: 443, IPv6: true, Scheduler: "rr", Persistent: true, ClientBits: 128, TimeoutTicks: 100}},
		"firewall mark": {"FWM  00000010 rr \n", ipvs.Service{FWMark: 16, Scheduler: "rr"}},
		"firewall mark, one packet, persistent": {"FWM  FFFFFFFF rr ops persistent 90000 FFFFFFFF\n", ipvs.Service{
			FWMark: 1<<32 - 1, Scheduler: "rr", OnePacket: true, Persistent: true, ClientBits: 32, TimeoutTicks: 90000}},
		"firewall mark, ipv6 by its mask": {"FWM  00000010 rr persistent 90000 80000000\n", ipvs.Service{
			FWMark: 16, IPv6: true, Scheduler: "rr", Persistent: true, ClientBits: 128, TimeoutTicks: 90000}},
		"firewall mark, ipv6 by its real server": {
			"FWM  00000010 rr \n  -> [2001:0db8:0000:0000:0000:0000:0000:0001]:1F90      Tunnel  2      3          4         \n",
			ipvs.Service{FWMark: 16, IPv6: true, Scheduler: "rr", RealServers: []ipvs.RealServer{
				{Addr: v6, Port: 8080, Forward: ipvs.Tunnel, Weight: 2, ActiveConns: 3, InactiveConns: 4}}}},
		"ways of forwarding, sorted": {`TCP  0A000314:0050 rr  
  -> 0A000314:0050      Local   0      0          12        
  -> 0A000314:0052      Route   1      0          0         
  -> 0A000314:0051      Masq    65535  2147483647 0         
`, ipvs.Service{Protocol: ipvs.TCP, Addr: v4, Port: 80, Scheduler: "rr", RealServers: []ipvs.RealServer{
			{Addr: v4, Port: 80, Forward: ipvs.Local, InactiveConns: 12},
			{Addr: v4, Port: 81, Forward: ipvs.Masq, Weight: 65535, ActiveConns: 1<<31 - 1},
			{Addr: v4, Port: 82, Forward: ipvs.Route, Weight: 1},
		}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.want.RealServers == nil {
				test.want.RealServers = []ipvs.RealServer{}
			}
			got, err := parse(head + test.lines)
			require.NoError(t, err)
			assert.Equal(t, ipvs.Table{Version: "1.2.1", ConnTable: 4096, Services: []ipvs.Service{test.want}}, got)
		})
	}
}

func TestParseTableOfOnlyAHead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{head, strings.ReplaceAll(head, "\n", "\r\n"), head + "\n\n"} {
		got, err := parse(text)
		require.NoError(t, err)
		assert.Equal(t, ipvs.Table{Version: "1.2.1", ConnTable: 4096}, got)
	}
}

func TestParseTableOfSomethingElse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n\n", "hello", "IP Virtual Server version 1.2.1", "IP Virtual Server version 1.2.1 (size=-1)\n",
		"IP Virtual Server version 1.2.1 (size=x)\n", strings.TrimPrefix(head, "IP"), "TCP  0A000314:0050 rr  \n" + head,
	} {
		_, err := parse(text)
		assert.ErrorIs(t, err, ipvs.ErrNotTable, "%q", text)
	}
}

// Every bad line is told of, and none spoils another one.
func TestParseBadLines(t *testing.T) {
	t.Parallel()
	const server = "  -> 0AF40102:1F90      Masq    1      0          0         \n"
	tests := map[string]struct {
		lines  string
		reason string
		line   int
		left   int // services
	}{
		"no scheduler":           {"TCP  0A000314:0050\n", "at least", 4, 0},
		"lower-case protocol":    {"tcp  0A000314:0050 rr\n", "neither a protocol", 4, 0},
		"noise":                  {"---- cut here ----\n", "neither a protocol", 4, 0},
		"short address":          {"TCP  0A0003:0050 rr\n", "8 hexadecimal digits", 4, 0},
		"short port":             {"TCP  0A000314:50 rr\n", "4 hexadecimal digits", 4, 0},
		"no port":                {"TCP  0A000314 rr\n", "hexadecimal", 4, 0},
		"no digits":              {"TCP  0A00031G:0050 rr\n", "hexadecimal", 4, 0},
		"zone":                   {"TCP  [fe80::1%eth0]:0050 rr\n", "IPv6 address", 4, 0},
		"ipv4 in brackets":       {"TCP  [10.0.3.20]:0050 rr\n", "ipvsadm", 4, 0},
		"ipvsadm":                {"TCP  10.0.3.20:6443 rr\n", "ipvsadm", 4, 0},
		"mark of 0":              {"FWM  00000000 rr\n", "firewall mark", 4, 0},
		"short mark":             {"FWM  10 rr\n", "firewall mark", 4, 0},
		"unknown option":         {"TCP  0A000314:0050 rr oops\n", `"oops"`, 4, 0},
		"persistent without":     {"TCP  0A000314:0050 rr persistent 10\n", "persistent TICKS MASK", 4, 0},
		"ticks":                  {"TCP  0A000314:0050 rr persistent 4294967296 FFFFFFFF\n", "ticks", 4, 0},
		"mask with holes":        {"TCP  0A000314:0050 rr persistent 10 FF00FF00\n", "no mask", 4, 0},
		"ipv6 mask for ipv4":     {"TCP  0A000314:0050 rr persistent 10 40000000\n", "no mask", 4, 0},
		"server first":           {server, "no service", 4, 0},
		"server of a bad line":   {"TCP  0A000314:005 rr\n" + server, "no service", 5, 0},
		"server without numbers": {"TCP  0A000314:0050 rr\n  -> 0AF40102:1F90 Masq 1 0\n", "two numbers", 5, 1},
		"unknown forwarding":     {"TCP  0A000314:0050 rr\n  -> 0AF40102:1F90 Bypass 1 0 0\n", "Bypass", 5, 1},
		"negative weight":        {"TCP  0A000314:0050 rr\n  -> 0AF40102:1F90 Masq -1 0 0\n", `"-1"`, 5, 1},
		"huge number":            {"TCP  0A000314:0050 rr\n  -> 0AF40102:1F90 Masq 1 0 4294967296\n", "4294967296", 5, 1},
		"server address":         {"TCP  0A000314:0050 rr\n  -> web:http Masq 1 0 0\n", "hexadecimal", 5, 1},
		"server twice":           {"TCP  0A000314:0050 rr\n" + server + server, "already", 6, 1},
		"service twice":          {"TCP  0A000314:0050 rr\nTCP  0A000314:0050 wrr\n", "before", 5, 1},
		"mark three times":       {"FWM  00000010 rr\nFWM  00000010 rr\nFWM  00000010 rr\n", "before", 6, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(head + test.lines + "UDP  0A000399:0035 rr\n" + server)
			var bad *ipvs.SyntaxError
			require.ErrorAs(t, err, &bad)
			assert.NotErrorIs(t, err, ipvs.ErrNotTable)
			lines := strings.Split(head+test.lines, "\n")
			assert.ErrorContains(t, err, test.reason)
			found := false
			for _, line := range lines[test.line-1 : test.line] {
				found = strings.Contains(err.Error(), line)
			}
			assert.True(t, found, "line %d is not named in: %v", test.line, err)
			assert.Len(t, got.Services, test.left+1)
			assert.Len(t, got.For(netip.MustParseAddr("10.0.3.153"))[0].RealServers, 1, "the last service is whole")
		})
	}
}

func TestParseManyBadLines(t *testing.T) {
	t.Parallel()
	_, err := parse(head + strings.Repeat("?\n", 1000))
	assert.ErrorContains(t, err, "line 13:")
	assert.NotContains(t, err.Error(), "line 14:")
	assert.ErrorContains(t, err, "and 990 more lines")
}

func TestParseEndlessLine(t *testing.T) {
	t.Parallel()
	got, err := parse(head + "TCP  0A000314:0050 rr  \n" + strings.Repeat("x", 1<<20) + "\nUDP  0A000314:0050 rr  \n")
	assert.ErrorContains(t, err, "line 5")
	assert.ErrorContains(t, err, "reading ends here")
	assert.Len(t, got.Services, 1)
}

func TestParseReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := ipvs.ParseTable(iotest.DataErrReader(&failing{text: head + "TCP  0A000314:0050 rr  \n", err: broken}))
	assert.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "after line 4")
	assert.Len(t, got.Services, 1)
}

type failing struct {
	text string
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.text == "" {
		return 0, f.err
	}
	n := copy(p, f.text)
	f.text = f.text[n:]
	return n, nil
}

// What was captured is what a table set to the same prints.
func TestParseCaptured(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		table, err := parse(string(text))
		require.NoError(t, err, file)
		assert.NotEmpty(t, table.Services, file)
		again, err := parse(ipvstest.Proc(table))
		require.NoError(t, err, file)
		assert.Equal(t, table, again, file)
		// Not the same order: the kernel's is that of a hash.
		assert.ElementsMatch(t, strings.Split(string(text), "\n"), strings.Split(ipvstest.Proc(table), "\n"), file)
	}
}

func FuzzParseTable(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(head + "FWM  00000010 rr ops persistent 90000 80000000\n  -> [2001:0db8:0000:0000:0000:0000:0000:0001]:1F90 Route 1 0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parse(text)
		if err != nil {
			return
		}
		// No line but the head's and empty ones may be lost.
		want := 0
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 0 && f[0] != "Prot" && (len(f) < 2 || f[1] != "RemoteAddress:Port") {
				want++
			}
		}
		got := 1
		for _, s := range table.Services {
			got += 1 + len(s.RealServers)
		}
		require.Equal(t, want, got)
		again, err := parse(ipvstest.Proc(table))
		require.NoError(t, err)
		require.Equal(t, table, again)
	})
}
