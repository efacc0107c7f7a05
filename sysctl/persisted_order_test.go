package sysctl_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

// files makes a root of files in /etc/sysctl.d, and /etc/sysctl.conf if a name
// is empty, of texts in which "; " stands between lines.
func files(t *testing.T, texts map[string]string) sysctl.Persisted {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range texts {
		path := "etc/sysctl.d/" + name + ".conf"
		if name == "" {
			path = "etc/sysctl.conf"
		}
		root[path] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "; ", "\n"))}
	}
	p, err := sysctl.ReadPersisted(root)
	require.NoError(t, err)
	return p
}

// Where the two tools differ, and where they do not. Keys are given without
// net.ipv4.conf., as IF.PARAM; each want is "value FILE:LINE", or "" for none.
func TestWinner(t *testing.T) {
	t.Parallel()
	const key = "net/ipv4/conf/eth0.100/rp_filter"
	line := func(iface, value string) string { return "net.ipv4.conf." + iface + ".rp_filter" + value }
	for name, tt := range map[string]struct {
		files           map[string]string
		systemd, procps string
	}{
		"nothing":            {map[string]string{"a": "kernel.x = 1"}, "", ""},
		"last file wins":     {map[string]string{"a": line("eth0/100", "=1"), "b": line("eth0/100", "=2")}, "2 b:1", "2 b:1"},
		"last line wins":     {map[string]string{"a": line("eth0/100", "=1") + "; " + line("eth0/100", "=2")}, "2 a:2", "2 a:2"},
		"other notation":     {map[string]string{"a": line("eth0/100", "=1") + "; net/ipv4/conf/eth0.100/rp_filter=2"}, "2 a:2", "2 a:2"},
		"wrong notation":     {map[string]string{"a": line("eth0.100", "=1")}, "", ""},
		"pattern":            {map[string]string{"a": line("*", "=2")}, "2 a:1", "2 a:1"},
		"name before it":     {map[string]string{"a": line("eth0/100", "=1"), "b": line("*", "=2")}, "1 a:1", "1 a:1"},
		"name after it":      {map[string]string{"a": line("*", "=2"), "b": line("eth0/100", "=1")}, "1 b:1", "1 b:1"},
		"later pattern":      {map[string]string{"a": line("*", "=2"), "b": line("eth*", "=0")}, "0 b:1", "0 b:1"},
		"excluded":           {map[string]string{"a": line("*", "=2"), "b": "-" + line("eth0/100", "")}, "", ""},
		"excluded before":    {map[string]string{"a": "-" + line("eth0/100", ""), "b": line("*", "=2")}, "", ""},
		"may fail":           {map[string]string{"a": "-" + line("eth0/100", "=1")}, "1 a:1", "1 a:1"},
		"sysctl.conf":        {map[string]string{"z": line("eth0/100", "=1"), "": line("eth0/100", "=2")}, "1 z:1", "2 sysctl:1"},
		"only sysctl.conf":   {map[string]string{"": line("eth0/100", "=2")}, "", "2 sysctl:1"},
		"hidden file":        {map[string]string{".a": line("eth0/100", "=2")}, "", "2 .a:1"},
		"excluded by name":   {map[string]string{"a": line("eth0/100", "=1"), "b": "-" + line("eth0/100", "")}, "", "1 a:1"},
		"named once more":    {map[string]string{"a": "-" + line("eth0/100", ""), "b": line("eth0/100", "=1")}, "1 b:1", "1 b:1"},
		"pattern excludes":   {map[string]string{"a": line("*", "=2"), "b": "-" + line("eth*", "")}, "2 a:1", ""},
		"flat pattern":       {map[string]string{"a": line("*", "=2"), "b": "-net.*"}, "2 a:1", ""},
		"pattern taken back": {map[string]string{"a": line("*", "=2"), "b": "-" + line("*", "")}, "", ""},
		// systemd-sysctl leaves the pattern where it stood when it comes again with the same value.
		"pattern repeated": {map[string]string{"a": line("*", "=2"), "b": line("eth*", "=0"), "c": line("*", "=2")}, "0 b:1", "2 c:1"},
		"pattern anew":     {map[string]string{"a": line("*", "=2"), "b": line("eth*", "=0"), "c": line("*", "=1")}, "1 c:1", "1 c:1"},
		// What the kernel refuses replaces the other line for systemd-sysctl, for procps it only fails.
		"refused value":      {map[string]string{"a": line("eth0/100", "=1"), "b": line("eth0/100", "=on")}, "", "1 a:1"},
		"comment at the end": {map[string]string{"a": line("eth0/100", "=1 # loose")}, "1 # loose a:1", "1 # loose a:1"},
		"blank after dash":   {map[string]string{"a": "- " + line("eth0/100", "=1")}, "1 a:1", ""},
		"two dashes":         {map[string]string{"a": "--" + line("eth0/100", "=1")}, "", "1 a:1"},
		"doubled":            {map[string]string{"a": "/net/ipv4/conf/eth0.100/rp_filter=1", "b": line("*", "=2")}, "1 a:1", "2 b:1"},
		"both doubled":       {map[string]string{"a": "/net/ipv4/conf/eth0.100/rp_filter=1", "b": "/net/ipv4/conf/*/rp_filter=2"}, "1 a:1", "1 a:1"},
		"other doubled":      {map[string]string{"a": "net//ipv4/conf/eth0.100/rp_filter=1", "b": "/net/ipv4/conf/*/rp_filter=2"}, "1 a:1", "2 b:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := files(t, tt.files)
			for tool, want := range map[sysctl.Tool]string{systemd: tt.systemd, procps: tt.procps} {
				w, ok := p.Winner(tool, key)
				got := ""
				if ok {
					file, _, _ := strings.Cut(w.By.File[strings.LastIndex(w.By.File, "/")+1:], ".conf")
					got = w.Value + " " + file + ":" + string(rune('0'+w.By.Line))
					assert.Equal(t, sysctl.Key(key), w.Key)
				}
				assert.Equal(t, want, got, "%s", tool)
			}
		})
	}
}

func TestSourceString(t *testing.T) {
	t.Parallel()
	p := files(t, map[string]string{"a": "# x; net.ipv4.conf.*.rp_filter = 2"})
	w, ok := p.Winner(systemd, "net/ipv4/conf/all/rp_filter")
	require.True(t, ok)
	assert.True(t, w.By.Pattern)
	assert.Equal(t, "/etc/sysctl.d/a.conf:2: net.ipv4.conf.*.rp_filter = 2", w.By.String())
	assert.Equal(t, "no file", sysctl.Source{}.String())
}

// testdata/tools.json holds 24 random trees of files and what the tools made of
// them in a new network namespace of Linux 6.18 with interfaces eth0, eth1,
// eth0.100 and lxc1: systemd-sysctl of systemd 252 and "sysctl --system" of
// procps-ng 4.0.2, both as Debian 12 has them. Values that are not in it were 0;
// send_redirects was not looked at.
func TestToolsReally(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/tools.json")
	require.NoError(t, err)
	var rows []struct {
		Files, Links map[string]string
		Results      map[sysctl.Tool]map[sysctl.Key]string
	}
	require.NoError(t, json.Unmarshal(data, &rows))
	require.Len(t, rows, 24)
	interfaces := []string{"eth0", "eth1", "eth0.100", "lxc1"}
	keys := append(sysctl.ARPKeys(append(interfaces, "all", "default", "lo")...), "net/ipv4/ip_forward")
	keys = slices.DeleteFunc(keys, func(k sysctl.Key) bool { return strings.HasSuffix(string(k), string(sysctl.SendRedirects)) })
	for i, row := range rows {
		root := fstest.MapFS{}
		for name, text := range row.Files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		for name, to := range row.Links {
			root[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
		}
		p, _ := sysctl.ReadPersisted(root) // the tools go on after links to nothing, too
		for tool, results := range row.Results {
			tree := sysctltest.New(interfaces...).Tree()
			for _, w := range p.Writes(tool, keys) {
				if now, err := tree.Get(w.Key); err == nil && tool == systemd && now == w.Value {
					continue // see AtBoot
				}
				_ = tree.Set(w.Key, w.Value) // some are refused
			}
			for _, k := range keys {
				want := results[k]
				if want == "" {
					want = "0"
				}
				got, err := tree.Get(k)
				require.NoError(t, err)
				assert.Equal(t, want, got, "row %d, %s, %s", i, tool, k)
			}
		}
	}
}
