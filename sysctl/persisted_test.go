package sysctl_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

const (
	systemd = sysctl.SystemdSysctl
	procps  = sysctl.ProcpsSysctl
)

func TestParsePersisted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sysctl.Line{
		"net.ipv4.conf.all.arp_ignore = 1":          {Pattern: "net/ipv4/conf/all/arp_ignore", Value: "1"},
		"net/ipv4/conf/eth0.100/arp_ignore=1":       {Pattern: "net/ipv4/conf/eth0.100/arp_ignore", Value: "1"},
		"net.ipv4.conf.eth0/100.arp_ignore\t=\t1\r": {Pattern: "net/ipv4/conf/eth0.100/arp_ignore", Value: "1"},
		"-net.ipv4.conf.all.arp_ignore=1":           {Pattern: "net/ipv4/conf/all/arp_ignore", Value: "1", MayFail: true},
		"-net.ipv4.conf.all.arp_ignore":             {Pattern: "net/ipv4/conf/all/arp_ignore", Exclude: true},
		"  net.ipv4.conf.*.arp_ignore = 1":          {Pattern: "net/ipv4/conf/*/arp_ignore", Value: "1"},
		"kernel.core_pattern = |/bin/x =%e;#":       {Pattern: "kernel/core_pattern", Value: "|/bin/x =%e;#"},
		"net.ipv4.ip_local_port_range = 1024 2048":  {Pattern: "net/ipv4/ip_local_port_range", Value: "1024 2048"},
	} {
		lines, warnings, err := sysctl.ParsePersisted(strings.NewReader("\n# comment\n ; comment\n" + text + "\n"))
		require.NoError(t, err)
		assert.Empty(t, warnings, text)
		want.Number, want.Text = 4, strings.TrimSpace(text)
		assert.Equal(t, []sysctl.Line{want}, lines, text)
	}
}

func TestParsePersistedWarns(t *testing.T) {
	t.Parallel()
	for text, tt := range map[string]struct {
		problem string
		line    *sysctl.Line
	}{
		"net.ipv4.conf.all.arp_ignore 1":              {"not an assignment", nil},
		"= 1":                                         {"no name", nil},
		"-":                                           {"no name", nil},
		"net.//.x = 1":                                {`a part ".."`, nil},
		"a\x00b = 1":                                  {"NUL", nil},
		"net.ipv4.conf.all.arp_ignore =":              {"refuses", &sysctl.Line{Pattern: "net/ipv4/conf/all/arp_ignore"}},
		"net.ipv4.conf.all.arp_ignore = on":           {"refuses", &sysctl.Line{Pattern: "net/ipv4/conf/all/arp_ignore", Value: "on"}},
		"net.ipv4.conf.all.arp_ignore = 1 # x":        {"comments stand on lines of their own", &sysctl.Line{Pattern: "net/ipv4/conf/all/arp_ignore", Value: "1 # x"}},
		`kernel.domainname = a\`:                      {"not continued", &sysctl.Line{Pattern: "kernel/domainname", Value: `a\`}},
		"net.ipv4.conf.eth0.100.arp_ignore = 1":       {"net.ipv4.conf.eth0/100.arp_ignore", &sysctl.Line{Pattern: "net/ipv4/conf/eth0/100/arp_ignore", Value: "1"}},
		"-net.ipv4.conf.lxc*.arp_ignore":              {"exclusion by a pattern", &sysctl.Line{Pattern: "net/ipv4/conf/lxc*/arp_ignore", Exclude: true}},
		"net.ipv4.conf.{a,b}*.rp_filter = 1":          {"braces", &sysctl.Line{Pattern: "net/ipv4/conf/{a,b}*/rp_filter", Value: "1"}},
		"- net.ipv4.ip_forward = 1":                   {"blank after the dash", &sysctl.Line{Pattern: "net/ipv4/ip_forward", Value: "1", MayFail: true, Only: systemd}},
		"--net.ipv4.ip_forward = 1":                   {"two dashes", &sysctl.Line{Pattern: "net/ipv4/ip_forward", Value: "1", MayFail: true, Only: procps}},
		"/net/ipv4/ip_forward = 1":                    {"in front or twice", &sysctl.Line{Pattern: "net/ipv4/ip_forward", Value: "1", Spelling: "/net/ipv4/ip_forward"}},
		"net..ipv4.ip_forward = 1":                    {"in front or twice", &sysctl.Line{Pattern: "net/ipv4/ip_forward", Value: "1", Spelling: "net//ipv4/ip_forward"}},
		"net.ipv4.conf.all.arp_ignore = 300000000000": {"refuses", &sysctl.Line{Pattern: "net/ipv4/conf/all/arp_ignore", Value: "300000000000"}},
	} {
		lines, warnings, err := sysctl.ParsePersisted(strings.NewReader(text))
		require.NoError(t, err)
		require.Len(t, warnings, 1, text)
		assert.Equal(t, text, warnings[0].Text)
		assert.Equal(t, 1, warnings[0].Line)
		assert.Contains(t, warnings[0].String(), tt.problem, text)
		if tt.line == nil {
			assert.Empty(t, lines, text)
			continue
		}
		tt.line.Number, tt.line.Text = 1, text
		assert.Equal(t, []sysctl.Line{*tt.line}, lines, text)
	}
}

func TestParsePersistedFails(t *testing.T) {
	t.Parallel()
	_, _, err := sysctl.ParsePersisted(iotest.ErrReader(errors.ErrUnsupported))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	lines, _, err := sysctl.ParsePersisted(strings.NewReader("a.b = 1\n\n" + strings.Repeat("x", 1<<20+1)))
	require.ErrorIs(t, err, bufio.ErrTooLong)
	assert.ErrorContains(t, err, "line 3")
	assert.Len(t, lines, 1, "what stands before")
}

func FuzzParsePersisted(f *testing.F) {
	for _, s := range []string{"a.b = 1", "-a.*.b", "- a=b", "--a = b\n;c\n#d", "/a//b=\\\n", "net.ipv4.conf.eth0.1.rp_filter=0x1 # c", "{a,b}*=1", "=", "..=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines, _, err := sysctl.ParsePersisted(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, l := range lines {
			if leadsOut(l.Pattern) {
				t.Fatalf("%q became %q", l.Text, l.Pattern)
			}
			again, _, err := sysctl.ParsePersisted(strings.NewReader(l.Text))
			if err != nil || len(again) != 1 || again[0].Pattern != l.Pattern || again[0].Value != l.Value {
				t.Fatalf("%+v alone became %+v, %v", l, again, err)
			}
		}
		p := sysctl.Persisted{Files: []sysctl.File{{Path: "/x", ReadBy: sysctl.Tools(), Lines: lines}}}
		for _, tool := range sysctl.Tools() {
			p.AtBoot(tool, "eth0.100")
		}
	})
}

// root of files, with links, as another machine's is.
func TestReadPersisted(t *testing.T) {
	t.Parallel()
	one := func(v string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("kernel.x = " + v + "\n")} }
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	root := fstest.MapFS{
		"etc/sysctl.d/20-same.conf":     one("etc"),
		"run/sysctl.d/20-same.conf":     one("run"),
		"usr/lib/sysctl.d/20-same.conf": one("usr"),
		"usr/lib/sysctl.d/10-usr.conf":  one("10"),
		"usr/lib/sysctl.d/30-mask.conf": one("masked"),
		"etc/sysctl.d/30-mask.conf":     link("/dev/null"),
		"usr/lib/sysctl.d/40-mask.conf": one("masked too"),
		"run/sysctl.d/40-mask.conf":     link("../../dev/null"),
		"usr/lib/sysctl.d/50-gone.conf": one("hidden by a link to nothing"),
		"etc/sysctl.d/50-gone.conf":     link("/nowhere/x"),
		"etc/sysctl.d/99-sysctl.conf":   link("../sysctl.conf"),
		"etc/sysctl.d/.hidden.conf":     one("dot"),
		"etc/sysctl.d/README":           one("no"),
		"etc/sysctl.d/dir.conf/x.conf":  one("no"),
		"etc/sysctl.conf":               one("conf"),
		"lib":                           link("usr/lib"),
		"usr/local/lib":                 link("/opt/lib"),
		"opt/lib/sysctl.d/60-opt.conf":  link("/etc/../../etc/./inner"),
		"etc/inner":                     link("sysctl.conf"),
	}
	p, err := sysctl.ReadPersisted(root)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "/etc/sysctl.d/50-gone.conf")
	type file struct {
		path, target, hiddenBy, value string
		masked                        bool
		readBy                        int
	}
	var got []file
	for _, f := range p.Files {
		value := ""
		if len(f.Lines) > 0 {
			value = f.Lines[0].Value
		}
		got = append(got, file{f.Path, f.Target, f.HiddenBy, value, f.Masked, len(f.ReadBy)})
	}
	const etc, run, usr = "/etc/sysctl.d/", "/run/sysctl.d/", "/usr/lib/sysctl.d/"
	assert.Equal(t, []file{
		{etc + ".hidden.conf", "", "", "dot", false, 1},
		{usr + "10-usr.conf", "", "", "10", false, 2},
		{run + "20-same.conf", "", etc + "20-same.conf", "", false, 0},
		{usr + "20-same.conf", "", etc + "20-same.conf", "", false, 0},
		{etc + "20-same.conf", "", "", "etc", false, 2},
		{usr + "30-mask.conf", "", etc + "30-mask.conf", "", false, 0},
		{etc + "30-mask.conf", "/dev/null", "", "", true, 2},
		{usr + "40-mask.conf", "", run + "40-mask.conf", "", false, 0},
		{run + "40-mask.conf", "/dev/null", "", "", true, 2},
		{usr + "50-gone.conf", "", etc + "50-gone.conf", "", false, 0},
		{etc + "50-gone.conf", "/nowhere/x", "", "", false, 2},
		{"/usr/local/lib/sysctl.d/60-opt.conf", "/etc/sysctl.conf", "", "conf", false, 2},
		{etc + "99-sysctl.conf", "/etc/sysctl.conf", "", "conf", false, 2},
		{"/etc/sysctl.conf", "", "", "conf", false, 1},
	}, got)
}

func TestReadPersistedOfNothing(t *testing.T) {
	t.Parallel()
	p, err := sysctl.ReadPersisted(fstest.MapFS{})
	require.NoError(t, err)
	assert.NotNil(t, p.Files, "looked for, and there is none")
	assert.Empty(t, p.Files)
	_, err = sysctl.ReadPersisted(os.DirFS(filepath.Join(t.TempDir(), "x")))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadPersistedOfLoops(t *testing.T) {
	t.Parallel()
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	p, err := sysctl.ReadPersisted(fstest.MapFS{
		"etc/sysctl.d/a.conf": link("b.conf"), "etc/sysctl.d/b.conf": link("a.conf"),
		"etc/sysctl.d/c.conf": {Data: []byte("kernel.x = 1")}, "run": link("run"),
		"etc/sysctl.d/d.conf": {Mode: fs.ModeDevice | fs.ModeCharDevice},
		"etc/sysctl.d/e.conf": {Mode: fs.ModeNamedPipe},
	})
	require.ErrorContains(t, err, "more than 40 links")
	require.ErrorContains(t, err, "/run/sysctl.d")
	require.ErrorContains(t, err, "it is no file")
	require.Len(t, p.Files, 5)
	assert.NotEmpty(t, p.Files[0].Err)
	assert.Len(t, p.Files[2].Lines, 1, "the rest is there")
	assert.True(t, p.Files[3].Masked)
	assert.NotEmpty(t, p.Files[4].Err)
}

// A directory of the machine: absolute links stay within it.
func TestReadPersistedStaysWithinTheRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/etc/sysctl.d", 0o755))
	require.NoError(t, os.WriteFile(dir+"/etc/inside", []byte("kernel.x = inside"), 0o644))
	if err := os.Symlink("/etc/inside", dir+"/etc/sysctl.d/a.conf"); errors.Is(err, errors.ErrUnsupported) {
		return // there are no links to follow on this system
	}
	require.NoError(t, os.Symlink("../../../../../../../../etc/inside", dir+"/etc/sysctl.d/b.conf"))
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer r.Close()
	for _, root := range []fs.FS{os.DirFS(dir), r.FS()} {
		p, err := sysctl.ReadPersisted(root)
		require.NoError(t, err)
		require.Len(t, p.Files, 2)
		for _, f := range p.Files {
			require.Len(t, f.Lines, 1)
			assert.Equal(t, "inside", f.Lines[0].Value)
			assert.Equal(t, "/etc/inside", f.Target)
		}
	}
}
