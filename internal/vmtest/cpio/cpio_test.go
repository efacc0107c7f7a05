package cpio_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/cpio"
)

// entry is one entry of an archive, as the kernel's init/initramfs.c reads it.
type entry struct {
	name         string
	mode         uint64
	major, minor uint64
	data         string
}

// read reads an archive by buffer-format.rst, not by what Writer does.
func read(t *testing.T, archive []byte) []entry {
	t.Helper()
	var list []entry
	inodes := map[uint64]bool{}
	for at := 0; ; {
		require.Zero(t, at%4, "a header must start at a multiple of 4")
		require.GreaterOrEqual(t, len(archive), at+110, "the archive ends without a trailer")
		require.Equal(t, "070701", string(archive[at:at+6]))
		var field [13]uint64
		for i := range field {
			var err error
			field[i], err = strconv.ParseUint(string(archive[at+6+8*i:at+14+8*i]), 16, 32)
			require.NoError(t, err)
		}
		at += 110
		size, nameSize := int(field[6]), int(field[11])
		name := string(archive[at : at+nameSize])
		require.Equal(t, nameSize-1, strings.IndexByte(name, 0), "a name ends with its only NUL")
		at = align(t, archive, at+nameSize)
		data := string(archive[at : at+size])
		at = align(t, archive, at+size)
		name = name[:nameSize-1]
		if name == "TRAILER!!!" {
			require.Zero(t, field[1])
			require.Zero(t, size)
			require.Len(t, archive, at, "nothing comes after the trailer")
			return list
		}
		assert.Equal(t, []uint64{0, 0, 1}, field[2:5], "%s: owner root, one link", name)
		assert.False(t, inodes[field[0]], "%s: entries with one inode number would be links to one file", name)
		inodes[field[0]] = true
		list = append(list, entry{name, field[1], field[9], field[10], data})
	}
}

// align returns where the next multiple of 4 is, and checks that zeros lead there.
func align(t *testing.T, archive []byte, at int) int {
	t.Helper()
	for ; at%4 != 0; at++ {
		require.Zero(t, archive[at])
	}
	return at
}

func TestWriter(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := cpio.NewWriter(&b)
	require.NoError(t, w.File("/init", 0o755, []byte("12345")))
	require.NoError(t, w.Dir("bin"))
	require.NoError(t, w.File("src/a/b.test", 0o644, []byte("1234")))
	require.NoError(t, w.Dir("/src/a/testdata/"))
	require.NoError(t, w.Dir("src/a"), "a directory that is there already")
	require.NoError(t, w.File("src/a/testdata/empty", 0o600, nil))
	require.NoError(t, w.Device("dev/console", 5, 1))
	require.NoError(t, w.Close())
	assert.Equal(t, []entry{
		{name: "init", mode: 0o100755, data: "12345"},
		{name: "bin", mode: 0o040755},
		{name: "src", mode: 0o040755},
		{name: "src/a", mode: 0o040755},
		{name: "src/a/b.test", mode: 0o100644, data: "1234"},
		{name: "src/a/testdata", mode: 0o040755},
		{name: "src/a/testdata/empty", mode: 0o100600},
		{name: "dev", mode: 0o040755},
		{name: "dev/console", mode: 0o020600, major: 5, minor: 1},
	}, read(t, b.Bytes()))
}

// TestAlignment has names and data of every length modulo 4.
func TestAlignment(t *testing.T) {
	t.Parallel()
	for n := 1; n < 9; n++ {
		for d := range 9 {
			var b bytes.Buffer
			w := cpio.NewWriter(&b)
			name, data := strings.Repeat("n", n), strings.Repeat("d", d)
			require.NoError(t, w.File(name, 0o644, []byte(data)))
			require.NoError(t, w.Close())
			assert.Equal(t, []entry{{name: name, mode: 0o100644, data: data}}, read(t, b.Bytes()))
		}
	}
}

// TestBytes is an archive byte for byte, as GNU cpio 2.13 reads it.
func TestBytes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := cpio.NewWriter(&b)
	require.NoError(t, w.File("ab", 0o644, []byte("xyz")))
	require.NoError(t, w.Close())
	assert.Equal(t, ""+
		"070701"+"00000001"+"000081a4"+"00000000"+"00000000"+"00000001"+"00000000"+"00000003"+
		"00000000"+"00000000"+"00000000"+"00000000"+"00000003"+"00000000"+"ab\x00\x00\x00\x00"[:6]+
		"xyz\x00"+
		"070701"+"00000002"+"00000000"+"00000000"+"00000000"+"00000001"+"00000000"+"00000000"+
		"00000000"+"00000000"+"00000000"+"00000000"+"0000000b"+"00000000"+"TRAILER!!!\x00\x00\x00\x00",
		b.String())
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := cpio.NewWriter(&bytes.Buffer{})
	require.NoError(t, w.File("a/b", 0o644, nil))
	for _, name := range []string{"", "..", "../x", "a/../../x", "a\x00b"} {
		assert.ErrorContains(t, w.File(name, 0o644, nil), "no name of a file", "%q", name)
		assert.ErrorContains(t, w.Dir(name), "no name of a file", "%q", name)
	}
	for _, name := range []string{"a/b", "a", "/a/./b", ".", "/"} {
		assert.ErrorContains(t, w.File(name, 0o644, nil), "has it already", "%q", name)
	}
	require.NoError(t, w.Close(), "what was refused does no harm")
	require.ErrorContains(t, w.File("c", 0o644, nil), "after Close")
}

// full is a disk that takes left more writes.
type full struct{ left int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorStays(t *testing.T) {
	t.Parallel()
	for n := range 12 { // an entry takes four writes: two entries and the trailer
		w := cpio.NewWriter(&full{n})
		first := w.File("a", 0o644, []byte("x"))
		second := w.File("b", 0o644, []byte("y"))
		if n < 4 {
			assert.ErrorIs(t, first, errFull, "%d writes", n)
		}
		if n < 8 {
			assert.ErrorIs(t, second, errFull, "%d writes", n)
		}
		assert.ErrorIs(t, w.Close(), errFull, "%d writes", n)
	}
}
