package kubeproxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func runningFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "running", name))
	require.NoError(t, err)
	return text
}

func TestParseConfigz(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text []byte
		want kubeproxy.Config
		err  string
	}{
		"1.37": {text: runningFile(t, "configz-1.37.2.json"), want: kubeproxy.Config{
			Mode: kubeproxy.ModeIPVS, StrictARP: kubeproxy.StrictARPFalse, MetricsBind: "127.0.0.1:10249"}},
		"strict": {text: runningFile(t, "configz-true.json"), want: kubeproxy.Config{
			Mode: kubeproxy.ModeIPVS, StrictARP: kubeproxy.StrictARPTrue, MetricsBind: "127.0.0.1:10249"}},
		// kube-proxy 1.31 answers with its internal type, which has no JSON names.
		"1.31": {text: []byte(`{"kubeproxy.config.k8s.io":{"Mode":"ipvs","MetricsBindAddress":"0.0.0.0:10249","IPVS":{"ExcludeCIDRs":["10.0.0.0/8"],"StrictARP":true}}}`), want: kubeproxy.Config{
			Mode: kubeproxy.ModeIPVS, StrictARP: kubeproxy.StrictARPTrue, MetricsBind: "0.0.0.0:10249", ExcludeCIDRs: []string{"10.0.0.0/8"}}},
		"with a header":  {text: []byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{\"kubeproxy.config.k8s.io\":{\"mode\":\"nftables\"}}\n"), want: kubeproxy.Config{Mode: kubeproxy.ModeNFTables}},
		"a kubelet's":    {text: []byte(`{"kubeletconfig":{}}`), err: "no kubeproxy.config.k8s.io"},
		"an error page":  {text: []byte("404 page not found"), err: "is this the answer of kube-proxy's /configz?"},
		"nothing":        {err: "is this the answer"},
		"a header only":  {text: []byte("HTTP/1.1 200 OK\r\n"), err: "is this the answer"},
		"another's type": {text: []byte(`{"kubeproxy.config.k8s.io":{"ipvs":{"strictARP":"yes"}}}`), err: "cannot unmarshal"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := kubeproxy.ParseConfigz(tt.text)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			tt.want.Source.Kind = kubeproxy.SourceConfigz
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseProxyMode(t *testing.T) {
	t.Parallel()
	mode, err := kubeproxy.ParseProxyMode(runningFile(t, "proxymode-1.37.2.txt"))
	require.NoError(t, err)
	assert.Equal(t, kubeproxy.ModeIPVS, mode)
	mode, err = kubeproxy.ParseProxyMode([]byte("iptables\n"))
	require.NoError(t, err)
	assert.Equal(t, kubeproxy.ModeIPTables, mode)
	for _, text := range []string{"", "404 page not found", "<html>", "HTTP/1.1 200 OK", "ipvs\x00"} {
		_, err := kubeproxy.ParseProxyMode([]byte(text))
		require.ErrorContains(t, err, "want one word", text)
	}
}

func FuzzParseRunning(f *testing.F) {
	f.Add(runningFile(f, "configz-1.37.2.json"))
	f.Add(runningFile(f, "proxymode-1.37.2.txt"))
	f.Add([]byte(`{"kubeproxy.config.k8s.io":{"IPVS":{"StrictARP":null}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := kubeproxy.ParseConfigz(text); err == nil && c.Source.Kind != kubeproxy.SourceConfigz {
			t.Errorf("%q: source %v", text, c.Source)
		}
		if mode, err := kubeproxy.ParseProxyMode(text); err == nil && (mode == "" || !strings.Contains(string(text), string(mode))) {
			t.Errorf("%q: mode %q", text, mode)
		}
	})
}

func TestReadRunning(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(kubeproxytest.Proxy{Mode: kubeproxy.ModeIPVS, StrictARP: true})
	defer server.Close()
	r, err := kubeproxy.ReadRunning(t.Context(), http.DefaultClient, server.URL+"/")
	require.NoError(t, err)
	assert.Equal(t, kubeproxy.ModeIPVS, r.Mode)
	require.NotNil(t, r.Config)
	assert.True(t, r.Config.Strict())
	assert.Equal(t, server.URL, r.Source)
	assert.WithinDuration(t, time.Now(), r.At, time.Minute)
}

func TestReadRunningFails(t *testing.T) {
	t.Parallel()
	ok := kubeproxytest.Proxy{Mode: kubeproxy.ModeIPVS}
	tests := map[string]struct {
		handler  http.HandlerFunc
		is       error
		contains string
		mode     kubeproxy.Mode
	}{
		"forbidden":    {handler: status(http.StatusForbidden), is: os.ErrPermission, contains: "grant get on pods/proxy"},
		"not found":    {handler: status(http.StatusNotFound), is: os.ErrNotExist},
		"no process":   {handler: kubeproxytest.Proxy{}.ServeHTTP, contains: "status 503"},
		"endless":      {handler: endless, contains: "more than 1048576 bytes"},
		"another mode": {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") }, contains: "want one word"},
		"configz is off": {handler: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/configz" {
				http.NotFound(w, r)
				return
			}
			ok.ServeHTTP(w, r)
		}, is: os.ErrNotExist, mode: kubeproxy.ModeIPVS},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			r, err := kubeproxy.ReadRunning(t.Context(), http.DefaultClient, server.URL)
			require.ErrorContains(t, err, tt.contains)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			assert.Equal(t, tt.mode, r.Mode, "what answers is kept")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := kubeproxy.ReadRunning(ctx, kubeproxytest.New(kubeproxytest.Strict), "http://w1:10249")
	require.ErrorIs(t, err, context.Canceled)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func endless(w http.ResponseWriter, _ *http.Request) {
	chunk := make([]byte, 64<<10)
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestMetricsHostPort(t *testing.T) {
	t.Parallel()
	for bind, want := range map[string]string{
		"":                "127.0.0.1:10249",
		"127.0.0.1:10249": "127.0.0.1:10249",
		"0.0.0.0:10249":   "192.0.2.7:10249",
		"[::]:9":          "192.0.2.7:9",
		":9":              "192.0.2.7:9",
		"0.0.0.0":         "192.0.2.7:10249",
		"10.1.2.3":        "10.1.2.3:10249",
		"::1":             "[::1]:10249",
	} {
		assert.Equal(t, want, kubeproxy.Config{MetricsBind: bind}.MetricsHostPort("192.0.2.7"), bind)
	}
}

// The situations that were measured, as the fake plays them.
func TestJudgeSituations(t *testing.T) {
	t.Parallel()
	tests := map[kubeproxytest.Situation]kubeproxy.State{
		kubeproxytest.Loose:        kubeproxy.StateOff,
		kubeproxytest.Strict:       kubeproxy.StateInForce,
		kubeproxytest.Pending:      kubeproxy.StatePending,
		kubeproxytest.Overridden:   kubeproxy.StateOverridden,
		kubeproxytest.Residue:      kubeproxy.StateResidue,
		kubeproxytest.Leftover:     kubeproxy.StateOff,
		kubeproxytest.ModeMismatch: kubeproxy.StateModeMismatch,
	}
	for situation, want := range tests {
		t.Run(string(situation), func(t *testing.T) {
			t.Parallel()
			c := kubeproxytest.New(situation)
			declared, err := kubeproxy.Parse([]byte(text(t, c)), kubeproxy.ParseOptions{})
			require.NoError(t, err)
			r, err := kubeproxy.ReadRunning(t.Context(), c, "http://w2:10249")
			require.NoError(t, err)
			arp := c.Node("w2").ARP
			j := kubeproxy.Judge(declared, &r, &arp)
			assert.Equal(t, want, j.State, j.Reason)
			assert.NotEmpty(t, j.Reason)
			assert.False(t, j.Inferred)
			assert.Equal(t, situation != kubeproxytest.ModeMismatch, len(c.Node("w2").IPVSAddresses) > 0)
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	kubeasz, err := kubeproxy.Parse(runningFile(t, "kubeasz.yaml"), kubeproxy.ParseOptions{})
	require.NoError(t, err)
	off, err := kubeproxy.ParseConfigz(runningFile(t, "configz-false.json"))
	require.NoError(t, err)
	on, err := kubeproxy.ParseConfigz(runningFile(t, "configz-true.json"))
	require.NoError(t, err)
	changed := kubeasz
	changed.Changed = time.Date(2025, 2, 1, 4, 0, 0, 0, time.UTC)
	started := func(hour int) *kubeproxy.Running {
		return &kubeproxy.Running{Mode: kubeproxy.ModeIPVS, Started: time.Date(2025, 2, 1, hour, 0, 0, 0, time.UTC)}
	}
	loose, strict := &kubeproxy.ARP{}, &kubeproxy.ARP{Ignore: 1, Announce: 2}
	tests := map[string]struct {
		declared kubeproxy.Config
		running  *kubeproxy.Running
		arp      *kubeproxy.ARP
		want     kubeproxy.State
		inferred bool
	}{
		"kubeasz: file appended, unit not restarted":      {kubeasz, &kubeproxy.Running{Config: &off}, loose, kubeproxy.StatePending, false},
		"started before the change":                       {changed, started(3), loose, kubeproxy.StatePending, true},
		"started after the change":                        {changed, started(5), strict, kubeproxy.StateInForce, true},
		"started after the change, and loosened":          {changed, started(5), loose, kubeproxy.StateOverridden, true},
		"turned off, not restarted":                       {off, &kubeproxy.Running{Config: &on}, strict, kubeproxy.StatePendingOff, false},
		"turned off and restarted":                        {off, &kubeproxy.Running{Config: &off}, strict, kubeproxy.StateResidue, false},
		"only arp_ignore was set by hand":                 {off, &kubeproxy.Running{Config: &off}, &kubeproxy.ARP{Ignore: 1}, kubeproxy.StateOff, false},
		"arp_ignore 2 is strict, with side effects":       {on, &kubeproxy.Running{Config: &on}, &kubeproxy.ARP{Ignore: 2, Announce: 2}, kubeproxy.StateInForce, false},
		"arp_ignore 3 answers for addresses like a VIP":   {on, &kubeproxy.Running{Config: &on}, &kubeproxy.ARP{Ignore: 3, Announce: 2}, kubeproxy.StateOverridden, false},
		"arp_ignore 4 is reserved":                        {on, &kubeproxy.Running{Config: &on}, &kubeproxy.ARP{Ignore: 4, Announce: 2}, kubeproxy.StateOverridden, false},
		"arp_announce 1 is half a fix":                    {on, &kubeproxy.Running{Config: &on}, &kubeproxy.ARP{Ignore: 1, Announce: 1}, kubeproxy.StateOverridden, false},
		"arp_announce 3 is reserved":                      {on, &kubeproxy.Running{Config: &on}, &kubeproxy.ARP{Ignore: 1, Announce: 3}, kubeproxy.StateOverridden, false},
		"fell back, seen by proxyMode":                    {kubeasz, &kubeproxy.Running{Mode: kubeproxy.ModeIPTables}, loose, kubeproxy.StateModeMismatch, false},
		"unset mode runs as iptables":                     {kubeproxy.Config{}, &kubeproxy.Running{Mode: kubeproxy.ModeIPTables}, loose, kubeproxy.StateOff, true},
		"strictARP in mode iptables does nothing":         {kubeproxy.Config{Mode: kubeproxy.ModeIPTables, StrictARP: kubeproxy.StrictARPTrue}, nil, loose, kubeproxy.StateOff, true},
		"nothing observed":                                {kubeasz, nil, nil, kubeproxy.StateUnknown, true},
		"pending can be told without the kernel":          {kubeasz, &kubeproxy.Running{Config: &off}, nil, kubeproxy.StatePending, false},
		"the running process is assumed to have its file": {kubeasz, nil, strict, kubeproxy.StateInForce, true},
		"refused": {kubeproxy.Config{Refused: "unknown mode"}, nil, nil, kubeproxy.StateRefused, false},
		"Windows": {kubeproxy.Config{Windows: true}, nil, nil, kubeproxy.StateNotApplicable, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := kubeproxy.Judge(tt.declared, tt.running, tt.arp)
			assert.Equal(t, tt.want, j.State, j.Reason)
			assert.Equal(t, tt.inferred, j.Inferred)
			assert.NotEmpty(t, j.Reason)
		})
	}
}
