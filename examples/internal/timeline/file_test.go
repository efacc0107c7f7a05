package timeline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/examples/internal/timeline"
)

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "soak.html")
	f, err := timeline.NewFile(path)
	require.NoError(t, err)
	assert.Empty(t, names(t, dir), "to look whether it can be written leaves nothing")
	require.NoError(t, f.Write(quiet(), page(timeline.Good)))
	assert.Equal(t, []string{"soak.html"}, names(t, dir))
	var want bytes.Buffer
	require.NoError(t, quiet().WriteHTML(&want, page(timeline.Good)))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, want.String(), string(got))

	f, err = timeline.NewFile(path)
	require.NoError(t, err)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, got, again, "it is there until there is another")
	require.NoError(t, f.Write(split(), page(timeline.Bad)))
	again, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(again), "Not good")
	assert.Equal(t, []string{"soak.html"}, names(t, dir))
}

func TestFileBehindALink(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	link, behind := filepath.Join(dir, "latest.html"), filepath.Join(other, "soak.html")
	require.NoError(t, os.WriteFile(behind, nil, 0o600))
	require.NoError(t, os.Symlink(behind, link))
	f, err := timeline.NewFile(link)
	require.NoError(t, err)
	require.NoError(t, f.Write(quiet(), page(timeline.Good)))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays one")
	info, err = os.Stat(behind)
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077, "what is its owner's alone stays so")
	text, err := os.ReadFile(behind)
	require.NoError(t, err)
	assert.Contains(t, string(text), "Good")
}

// What cannot be written is found out before the soak.
func TestFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	locked := filepath.Join(dir, "locked")
	require.NoError(t, os.Mkdir(locked, 0o500))
	for path, want := range map[string]string{
		dir:                                     "no regular file",
		os.DevNull:                              "no regular file",
		filepath.Join(dir, "none", "soak.html"): "choose a folder that exists",
		filepath.Join(file, "soak.html"):        "write a page",
		filepath.Join(locked, "soak.html"):      "permission denied",
	} {
		if filepath.Dir(path) == locked && (os.Getuid() == 0 || runtime.GOOS == "windows") {
			continue // who may write everywhere
		}
		_, err := timeline.NewFile(path)
		require.ErrorContains(t, err, want, path)
	}
	assert.ElementsMatch(t, []string{"file", "locked"}, names(t, dir))
}

// A page that cannot be written in the end leaves the one before as it was, and no rest.
func TestFileFailsLate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f, err := timeline.NewFile(filepath.Join(dir, "soak.html"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "soak.html"), 0o700), "something that no file can replace")
	require.ErrorContains(t, f.Write(quiet(), page(timeline.Good)), "write a page to")
	assert.Equal(t, []string{"soak.html"}, names(t, dir))
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, f.Write(quiet(), page(timeline.Good)), os.ErrNotExist)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
