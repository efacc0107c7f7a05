package sysctl_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

func openRoot(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r, dir
}

func TestDropIn(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	d := sysctl.DropInFor(append(strict(), sysctl.Change{Key: "net/ipv4/conf/eth0.100/arp_ignore", From: "4", To: "1"}))
	change, err := d.Change(root)
	require.NoError(t, err)
	assert.Equal(t, "etc/sysctl.d/90-strictarp.conf", change.Path)
	require.NoError(t, change.Apply(root))

	file := dir + "/etc/sysctl.d/90-strictarp.conf"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "# Written by strictarp: which address the kernel answers ARP for, and speaks as.\n"+
		"# Changes to this file are overwritten; remove it to go back.\n"+
		"net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.all.arp_announce = 2\nnet.ipv4.conf.eth0/100.arp_ignore = 1\n", string(data))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o644), info.Mode())

	p, err := sysctl.ReadPersisted(root.FS())
	require.NoError(t, err)
	for _, tool := range sysctl.Tools() {
		w, ok := p.Winner(tool, "net/ipv4/conf/eth0.100/arp_ignore")
		require.True(t, ok)
		assert.Equal(t, "1", w.Value)
		assert.Equal(t, 5, w.By.Line)
	}

	again, err := d.Change(root)
	require.NoError(t, err)
	require.NoError(t, again.Apply(root))
	same, err := os.Stat(file)
	require.NoError(t, err)
	assert.True(t, os.SameFile(info, same), "a file that is as it should be is not touched")
	entries, err := os.ReadDir(dir + "/etc/sysctl.d")
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left behind")

	// The undo survives being stored.
	stored, err := json.Marshal(change.Inverse())
	require.NoError(t, err)
	var undo sysctl.FileChange
	require.NoError(t, json.Unmarshal(stored, &undo))
	require.NoError(t, undo.Apply(root))
	_, err = os.Stat(file)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, undo.Apply(root), "it is gone already")
}

func TestDropInReplaces(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	const name = "etc/sysctl.d/90-strictarp.conf"
	require.NoError(t, os.MkdirAll(dir+"/etc/sysctl.d", 0o755))
	d := sysctl.DropIn{Settings: []sysctl.Setting{{Key: allIgnore, Value: "1"}}, Comment: "of ours\n\nand theirs\r"}
	for _, prepare := range []func(){
		func() { require.NoError(t, os.WriteFile(dir+"/"+name, []byte("mine = 1\n"), 0o600)) },
		func() { require.NoError(t, os.Symlink("/dev/null", dir+"/"+name)) },
	} {
		prepare()
		change, err := d.Change(root)
		require.NoError(t, err)
		require.NoError(t, change.Apply(root))
		data, err := os.ReadFile(dir + "/" + name)
		require.NoError(t, err)
		assert.Equal(t, "# of ours\n#\n# and theirs\nnet.ipv4.conf.all.arp_ignore = 1\n", string(data))

		require.NoError(t, change.Inverse().Apply(root))
		back, err := d.Change(root)
		require.NoError(t, err)
		assert.Equal(t, change.From, back.From, "bytes, mode or link are as before")
		assert.NotContains(t, change.From.String(), "no file")
		require.NoError(t, os.Remove(dir+"/"+name))
	}
}

func TestDropInConflicts(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	d := sysctl.DropIn{Settings: []sysctl.Setting{{Key: allIgnore, Value: "1"}}}
	change, err := d.Change(root)
	require.NoError(t, err)
	require.NoError(t, change.Apply(root))
	require.NoError(t, os.WriteFile(dir+"/"+change.Path, []byte("somebody's = 1\n"), 0o644))
	err = change.Inverse().Apply(root)
	var conflict *sysctl.FileConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "somebody's = 1\n", string(conflict.Found.Data))
	assert.ErrorContains(t, err, "expected a file of ")
	assert.ErrorAs(t, change.Apply(root), &conflict)
}

func TestDropInCannotLeadOut(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	outside := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/etc", 0o755))
	require.NoError(t, os.Symlink(outside, dir+"/etc/sysctl.d"))
	change := sysctl.FileChange{Path: "etc/sysctl.d/90-x.conf", To: sysctl.FileState{Exists: true, Mode: 0o644}}
	require.Error(t, change.Apply(root))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, entries)
	require.NoError(t, os.Remove(dir+"/etc/sysctl.d"))
	require.NoError(t, os.MkdirAll(dir+"/"+change.Path, 0o755))
	assert.ErrorIs(t, change.Apply(root), fs.ErrInvalid, "a directory is in the way")
}

func TestDropInRefuses(t *testing.T) {
	t.Parallel()
	root, _ := openRoot(t)
	one := []sysctl.Setting{{Key: allIgnore, Value: "1"}}
	for _, d := range []sysctl.DropIn{
		{Name: "../90-x.conf", Settings: one}, {Name: "a/b.conf", Settings: one}, {Name: "90-x", Settings: one}, {Name: ".conf", Settings: one},
		{Settings: []sysctl.Setting{{Key: "net/../x", Value: "1"}}}, {Settings: []sysctl.Setting{{Key: "", Value: "1"}}},
		{Settings: []sysctl.Setting{{Key: allIgnore, Value: "1\nkernel.x = 1"}}}, {Settings: []sysctl.Setting{{Key: allIgnore, Value: " 1"}}},
		{Settings: []sysctl.Setting{{Key: allIgnore, Value: "on"}}}, {Settings: []sysctl.Setting{{Key: "net/ipv4/conf/*/arp_ignore", Value: "1"}}},
		{Settings: []sysctl.Setting{{Key: "net/ipv4/conf/a=b/arp_ignore", Value: "1"}}}, {Settings: []sysctl.Setting{{Key: "-net/x", Value: "1"}}},
		{Settings: []sysctl.Setting{{Key: "#net/x", Value: "1"}}},
	} {
		_, err := d.Change(root)
		assert.ErrorIs(t, err, fs.ErrInvalid, "%+v", d)
	}
}

func TestDropInWinning(t *testing.T) {
	t.Parallel()
	d := sysctl.DropIn{Settings: []sysctl.Setting{{Key: allIgnore, Value: "1"}}}
	const loose, same, other = "net.ipv4.conf.all.arp_ignore = 0", "net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.rp_filter = 0"
	for name, tt := range map[string]struct {
		files  map[string]string
		want   string
		beaten int
	}{
		"nothing":     {nil, "90-strictarp.conf", 0},
		"earlier":     {map[string]string{"10-a": loose}, "90-strictarp.conf", 0},
		"of its own":  {map[string]string{"90-strictarp": loose}, "90-strictarp.conf", 0},
		"later":       {map[string]string{"95-a": loose}, "99-strictarp.conf", 0},
		"sysctl link": {map[string]string{"99-sysctl": loose}, "99-zz-strictarp.conf", 0},
		"excluded":    {map[string]string{"99-sysctl": "-net.ipv4.conf.all.arp_ignore"}, "99-zz-strictarp.conf", 0},
		"zz":          {map[string]string{"99-zzz": loose}, "zz-strictarp.conf", 0},
		"last":        {map[string]string{"zz": loose}, "zzz-strictarp.conf", 0},
		"the same":    {map[string]string{"99-a": same}, "90-strictarp.conf", 0},
		"other key":   {map[string]string{"99-a": other}, "90-strictarp.conf", 0},
		"pattern":     {map[string]string{"99-a": "net.ipv4.conf.*.arp_ignore = 0"}, "90-strictarp.conf", 0},
		"sysctl.conf": {map[string]string{"": loose}, "90-strictarp.conf", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := files(t, tt.files)
			winning, beaten := d.Winning(p)
			require.Len(t, beaten, tt.beaten)
			change, err := winning.Change(func() *os.Root { r, _ := openRoot(t); return r }())
			require.NoError(t, err)
			assert.Equal(t, "etc/sysctl.d/"+tt.want, change.Path)

			texts := map[string]string{strings.TrimSuffix(tt.want, ".conf"): string(change.To.Data)}
			for name, text := range tt.files {
				if name+".conf" != tt.want {
					texts[name] = text
				}
			}
			for _, tool := range sysctl.Tools() {
				w, ok := files(t, texts).Winner(tool, allIgnore)
				require.True(t, ok)
				won := w.Value == "1"
				assert.Equal(t, tt.beaten == 0 || tool == systemd, won, "%s", tool)
			}
		})
	}
}
