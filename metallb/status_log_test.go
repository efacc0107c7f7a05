package metallb_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
)

func addrs(texts ...string) []netip.Addr {
	var list []netip.Addr
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func readLog(t *testing.T, name, node string) metallb.SpeakerLog {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "speakers", name))
	require.NoError(t, err)
	l, err := metallb.ParseSpeakerLog(bytes.NewReader(text))
	require.NoError(t, err)
	l.Node, l.Source = node, name
	return l
}

func parseLog(t *testing.T, lines ...string) metallb.SpeakerLog {
	t.Helper()
	l, err := metallb.ParseSpeakerLog(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return l
}

func TestParseSpeakerLogLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 3, 4, 8, 30, 0, 0, time.UTC)
	const announced = `{"caller":"main.go:420","event":"serviceAnnounced","ips":["198.51.100.240"],"level":"info","pool":"main","protocol":"layer2","ts":"2025-03-04T08:30:00Z"}`
	want := []metallb.LogAnnouncement{{IPs: addrs("198.51.100.240"), At: at}}
	for name, tc := range map[string]struct {
		line string
		want []metallb.LogAnnouncement
	}{
		"0.13 and later":     {announced, want},
		"carriage return":    {announced + "\r", want},
		"kubectl prefix":     {"[pod/speaker-x/speaker] " + announced, want},
		"kubectl timestamps": {`2025-03-04T08:30:00.000000000Z {"event":"serviceAnnounced","ips":["198.51.100.240"]}`, want},
		"container runtime":  {`2025-03-04T08:30:00Z stderr F ` + announced, want},
		"before 0.12": {`{"caller":"main.go:343","event":"serviceAnnounced","ip":"198.51.100.240","msg":"service has IP, announcing","pool":"main","protocol":"layer2","service":"default/web","ts":"2025-03-04T08:30:00.000000000Z"}`,
			[]metallb.LogAnnouncement{{Service: "default/web", IPs: addrs("198.51.100.240"), At: at}}},
		"logfmt": {`ts=2025-03-04T08:30:00Z event=serviceAnnounced service=default/web ips="[198.51.100.240 2001:db8::1]" msg="service has IP, announcing" protocol=layer2`,
			[]metallb.LogAnnouncement{{Service: "default/web", IPs: addrs("198.51.100.240", "2001:db8::1"), At: at}}},
		"seconds":            {`{"event":"serviceAnnounced","ips":["198.51.100.240"],"ts":1741077000.0}`, want},
		"bgp":                {strings.Replace(announced, "layer2", "bgp", 1), nil},
		"broken address":     {`{"event":"serviceAnnounced","ips":["198.51.100.999"],"service":"a/b","ts":""}`, []metallb.LogAnnouncement{{Service: "a/b"}}},
		"values of no type":  {`{"event":["serviceAnnounced"],"ts":{}}`, nil},
		"not a log":          {`panic: runtime error`, nil},
		"braces and no JSON": {`goroutine 1 [running]: main.f({0x1, 0x2})`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, parseLog(t, tc.line).Announced)
		})
	}
}

func TestParseSpeakerLogFollows(t *testing.T) {
	t.Parallel()
	const (
		start    = `{"msg":"MetalLB speaker starting version v0.15.2","version":"v0.15.2","ts":"2025-03-04T06:00:00Z"}`
		again    = `{"msg":"MetalLB speaker starting version v0.15.3","version":"v0.15.3","ts":"2025-03-04T07:00:00Z"}`
		made     = `{"event":"createARPResponder","interface":"ens33","ts":"2025-03-04T06:00:01Z"}`
		deleted  = `{"event":"deleteARPResponder","interface":"ens33","ts":"2025-03-04T06:00:09Z"}`
		socket   = `{"op":"createARPResponder","interface":"ens33","error":"creating ARP responder for \"ens33\": listen packet: operation not permitted","ts":"2025-03-04T06:00:02Z"}`
		announce = `{"event":"serviceAnnounced","ips":["192.0.2.1"],"ts":"2025-03-04T06:00:03Z"}`
		withdraw = `{"event":"serviceWithdrawn","ip":["192.0.2.1"],"reason":"notOwner","ts":"2025-03-04T06:00:04Z"}`
	)
	t.Run("withdrawn", func(t *testing.T) {
		t.Parallel()
		l := parseLog(t, start, announce, withdraw)
		assert.Empty(t, l.Announced)
		assert.Equal(t, "notOwner", l.Withdrawn[0].Reason)
		assert.Len(t, parseLog(t, start, announce, withdraw, announce).Announced, 1)
	})
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		l := parseLog(t, start, made, announce, socket, again)
		assert.Equal(t, "0.15.3", l.Version)
		assert.Equal(t, 7, l.Started.Hour())
		assert.Equal(t, 6, l.First.Hour(), "the log is older than the process")
		assert.Equal(t, 5, l.Lines)
		assert.Empty(t, l.Announced)
		assert.Empty(t, l.Responders)
		assert.Empty(t, l.Sockets)
	})
	t.Run("responders", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, []string{"ens33"}, parseLog(t, start, made).Responders)
		assert.Empty(t, parseLog(t, start, made, deleted).Responders)
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		l := parseLog(t, start, socket, socket)
		require.Len(t, l.Sockets, 1)
		assert.Equal(t, 2, l.Sockets[0].Count)
		assert.True(t, l.Sockets[0].Permission)
		assert.Empty(t, parseLog(t, start, socket, made).Sockets, "it worked later")
	})
}

func TestSpeakerLogReasons(t *testing.T) {
	t.Parallel()
	scan := func(second int, iface string) string {
		return fmt.Sprintf(`{"op":"getAddresses","interface":%q,"error":"no such network interface","ts":"2025-03-04T06:00:%02dZ"}`, iface, second)
	}
	other := func(second int) string {
		return fmt.Sprintf(`{"event":"x","ts":"2025-03-04T06:00:%02dZ"}`, second)
	}
	for name, tc := range map[string]struct {
		lines   []string
		stopped string
	}{
		"goes on":          {[]string{scan(1, "tap0"), scan(11, "tap0"), other(30)}, "tap0"},
		"once":             {[]string{scan(1, "tap0")}, ""},
		"over":             {[]string{scan(1, "tap0"), scan(11, "tap0"), other(50)}, ""},
		"elsewhere after":  {[]string{scan(1, "old"), scan(2, "old"), scan(31, "tap0"), scan(41, "tap0")}, "tap0"},
		"without any time": {[]string{`op=getAddresses interface=tap0 error=x`, `op=getAddresses interface=tap0 error=x`}, "tap0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := parseLog(t, tc.lines...)
			assert.Equal(t, tc.stopped, l.ScanStopped())
			assert.Equal(t, tc.stopped != "", len(l.Reasons()) == 1)
		})
	}
	l := parseLog(t, `{"op":"createARPResponder","interface":"ens33","error":"socket: operation not permitted","ts":"2025-03-04T06:00:02Z"}`)
	l.Node = "w1"
	require.Len(t, l.Reasons(), 1)
	assert.Equal(t, metallb.RuleSpeakerCannotAnswer, l.Reasons()[0].Rule)
	assert.Contains(t, l.Reasons()[0].Message, "NET_RAW")
}

func TestParseSpeakerLogReal(t *testing.T) {
	t.Parallel()
	l := readLog(t, "c12-node-a.log", "node-a")
	assert.Equal(t, "0.14.8", l.Version)
	assert.Equal(t, "tap7c1f0", l.ScanStopped())
	assert.Empty(t, l.Responders)
	assert.Equal(t, addrs("192.0.2.240"), l.Announced[0].IPs)

	l = readLog(t, "d14-node-b.log", "node-b")
	require.Len(t, l.Statuses, 1)
	assert.Equal(t, "default/web", l.Statuses[0].Service)
	assert.Contains(t, l.Statuses[0].Err, "Value is immutable")

	l = readLog(t, "v0.16.1-info.log", "w1")
	assert.Equal(t, "0.16.1", l.Version)
	assert.Equal(t, []string{"cali0", "ens33"}, l.Responders)
	assert.Zero(t, l.Skipped)
	assert.Empty(t, l.Reasons())
}

func TestParseSpeakerLogBounds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `{"event":"serviceAnnounced","ips":["10.0.%d.%d"]}`+"\n", i/250, i%250)
		fmt.Fprintf(&b, `{"event":"createARPResponder","interface":"if%d"}`+"\n", i)
	}
	b.WriteString(strings.Repeat("x", 3<<20) + "\n")
	fmt.Fprintf(&b, `{"op":"getAddresses","interface":"a","error":%q}`, strings.Repeat("é", 4096))
	l := parseLog(t, b.String())
	assert.Len(t, l.Announced, 4096)
	assert.Len(t, l.Responders, 4096)
	assert.Equal(t, 2*(5000-4096), l.Dropped)
	assert.Equal(t, 1, l.Skipped)
	assert.LessOrEqual(t, len(l.Scans[0].Err), 1024)

	broken := errors.New("broken")
	l, err := metallb.ParseSpeakerLog(io.MultiReader(strings.NewReader(`{"event":"createARPResponder","interface":"a"}`+"\n"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.Equal(t, []string{"a"}, l.Responders, "what was read until then")
}

func FuzzParseSpeakerLog(f *testing.F) {
	for _, name := range []string{"c12-node-a.log", "d14-node-b.log", "v0.16.1-info.log"} {
		text, err := os.ReadFile(filepath.Join("testdata", "speakers", name))
		require.NoError(f, err)
		// Short ones: the fuzzer takes long to shorten what it finds.
		for line := range bytes.Lines(text[:min(len(text), 1000)]) {
			f.Add(line)
		}
	}
	f.Add([]byte(`ts=2025-03-04T08:30:00Z event=serviceAnnounced ips="[192.0.2.1 \"]" ="=" a= b="`))
	f.Add([]byte("{\"event\":\"createARPResponder\",\"interface\":{}}\n{{\n=\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := metallb.ParseSpeakerLog(bytes.NewReader(text))
		require.NoError(t, err)
		assert.LessOrEqual(t, l.Skipped, l.Lines)
		for _, r := range l.Reasons() {
			assert.NotEmpty(t, r.Message)
		}
		// What a speaker says after a restart does not depend on what it said before.
		const start = "\n" + `{"msg":"MetalLB speaker starting","ts":"2025-03-04T06:00:00Z"}` + "\n"
		after, err := metallb.ParseSpeakerLog(io.MultiReader(bytes.NewReader(text), strings.NewReader(start)))
		require.NoError(t, err)
		assert.Empty(t, append(after.Announced, after.Withdrawn...))
	})
}
