package sysctl_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

const key = sysctl.Key("net/ipv4/conf/eth0.100/arp_ignore")

// root returns a directory as a tree, with key in it.
func root(t *testing.T) (sysctl.Tree, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.FromSlash(string(key)))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("0\n"), 0o644))
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return sysctl.In(r), dir
}

func TestRoot(t *testing.T) {
	t.Parallel()
	tree, dir := root(t)
	require.NoError(t, tree.Set(key, "1"))
	value, err := tree.Get(key)
	require.NoError(t, err)
	assert.Equal(t, "1", value)

	const absent = sysctl.Key("net/ipv4/conf/eth0.100/arp_announce")
	_, err = tree.Get(absent)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorIs(t, tree.Set(absent, "2"), fs.ErrNotExist)
	_, err = os.Stat(filepath.Join(dir, filepath.FromSlash(string(absent))))
	assert.ErrorIs(t, err, fs.ErrNotExist, "Set makes no files")
}

func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	tree, dir := root(t)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	if err := os.Symlink(outside, filepath.Join(dir, "link")); !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
		_, err := tree.Get("link")
		assert.Error(t, err)
		assert.Error(t, tree.Set("link", "y"))
	}
	for _, k := range []sysctl.Key{"", "../secret", "/etc/passwd", "a/./b", "a\x00"} {
		_, err := tree.Get(k)
		assert.ErrorIs(t, err, fs.ErrInvalid)
		assert.ErrorIs(t, tree.Set(k, "y"), fs.ErrInvalid)
	}
	data, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))
}

// fake is a file system that treats writes as a kernel may.
type fake struct {
	fstest.MapFS
	err  error
	keep func(string) string
}

func (f fake) WriteFile(name string, data []byte, _ fs.FileMode) error {
	if f.err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: f.err}
	}
	f.MapFS[name].Data = []byte(f.keep(string(data)))
	return nil
}

func TestSet(t *testing.T) {
	t.Parallel()
	same := func(s string) string { return s }
	for name, tt := range map[string]struct {
		value string
		mode  fs.FileMode
		err   error
		keep  func(string) string
		want  error  // nil: no error
		text  string // in the error
	}{
		"kept":              {value: "1", mode: 0o644, keep: same},
		"kept as list":      {value: "32768 60999", mode: 0o644, keep: func(string) string { return "32768\t60999\n" }},
		"kept as number":    {value: "0x10", mode: 0o644, keep: func(string) string { return "16\n" }},
		"kept as text":      {value: "cubic", mode: 0o644, keep: same},
		"other number":      {value: "1", mode: 0o644, keep: func(string) string { return "0\n" }, want: sysctl.ErrNotKept, text: `"0" was read back`},
		"shorter list":      {value: "1 2", mode: 0o644, keep: func(string) string { return "1\n" }, want: sysctl.ErrNotKept},
		"not permitted":     {value: "1", mode: 0o644, err: syscall.EACCES, want: fs.ErrPermission, text: "CAP_NET_ADMIN"},
		"nobody may":        {value: "1", mode: 0o444, err: syscall.EACCES, want: sysctl.ErrReadOnly, text: "read-only setting"},
		"read-only mount":   {value: "1", mode: 0o644, err: syscall.EROFS, want: sysctl.ErrReadOnly, text: "container"},
		"its errno":         {value: "1", mode: 0o644, err: syscall.EROFS, want: syscall.EROFS},
		"refused value":     {value: "x", mode: 0o644, err: syscall.EINVAL, want: syscall.EINVAL},
		"gone in meanwhile": {value: "1", mode: 0o644, err: syscall.ENOENT, want: fs.ErrNotExist, text: "is the interface there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := fstest.MapFS{string(key): {Data: []byte("7\n"), Mode: tt.mode}}
			err := sysctl.At(fake{m, tt.err, tt.keep}).Set(key, tt.value)
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, string(key))
			assert.ErrorContains(t, err, tt.text)
			if errors.Is(tt.want, fs.ErrPermission) {
				assert.NotErrorIs(t, err, sysctl.ErrReadOnly)
			}
		})
	}
}

func TestTreeForReadingOnly(t *testing.T) {
	t.Parallel()
	tree := sysctl.At(fstest.MapFS{string(key): {Data: []byte("1\n")}})
	value, err := tree.Get(key)
	require.NoError(t, err)
	assert.Equal(t, "1", value)
	assert.ErrorIs(t, tree.Set(key, "1"), sysctl.ErrReadOnly)
}

func TestWithin(t *testing.T) {
	t.Parallel()
	base, _ := root(t)
	var calls []string
	tree := base.Within(func(f func() error) error {
		calls = append(calls, "in")
		defer func() { calls = append(calls, "out") }()
		return f()
	})
	_, err := tree.Get(key)
	require.NoError(t, err)
	require.NoError(t, tree.Set(key, "1"))
	_, err = sysctl.ReadARP(tree)
	assert.ErrorIs(t, err, fs.ErrNotExist, "there is no all")
	assert.Equal(t, strings.Fields("in out in out in out"), calls, "each of them once")

	refused := errors.New("no such namespace")
	_, err = base.Within(func(func() error) error { return refused }).Get(key)
	assert.ErrorIs(t, err, refused)
}

// mapFS is a file system with one file.
func mapFS(name, text string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte(text), Mode: 0o644}}
}

func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1", "1\n", true}, {"0x10", "16", true}, {"020", "16", true}, {"4096 87380", "4096\t87380", true}, {"cubic", "cubic", true},
		{"1", "2", false}, {"1", "1 1", false}, {"cubic", "reno", false}, {"", "0", false},
	} {
		assert.Equal(t, c.same, sysctl.SameValue(c.a, c.b), "%q and %q", c.a, c.b)
	}
}
