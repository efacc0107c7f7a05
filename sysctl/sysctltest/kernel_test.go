package sysctltest_test

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

const key = sysctl.Key("net/ipv4/conf/all/arp_ignore")

func TestFaults(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	k.FailWrite(key, syscall.EPERM)
	require.ErrorIs(t, k.Tree().Set(key, "1"), fs.ErrPermission)
	assert.NotErrorIs(t, k.Tree().Set(key, "1"), sysctl.ErrReadOnly)
	k.FailWrite(key, nil)
	k.FailRead(key, syscall.EACCES)
	_, err := k.Tree().Get(key)
	require.ErrorIs(t, err, fs.ErrPermission)
	a, err := sysctl.ReadARP(k.Tree())
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.NotEmpty(t, a.Interfaces["eth0"], "the rest is there")
	k.FailRead(key, nil)
	k.SetReadOnly(true)
	require.ErrorIs(t, k.Tree().Set(key, "1"), sysctl.ErrReadOnly)
	k.SetReadOnly(false)
	require.NoError(t, k.Tree().Set(key, "1"))
	assert.Equal(t, []sysctl.Setting{{Key: key, Value: "1"}}, k.Writes(), "only what succeeded")
	require.ErrorIs(t, k.Tree().Set("net/ipv4/conf/all/mc_forwarding", "1"), sysctl.ErrReadOnly)
}

func TestPut(t *testing.T) {
	t.Parallel()
	k := sysctltest.New()
	k.Put("kernel/ostype", "Linux", 0o444)
	k.Put("net/core/default_qdisc", "pfifo", 0o644)
	value, err := k.Tree().Get("kernel/ostype")
	require.NoError(t, err)
	assert.Equal(t, "Linux", value)
	require.ErrorIs(t, k.Tree().Set("kernel/ostype", "x"), sysctl.ErrReadOnly)
	require.NoError(t, k.Tree().Set("net/core/default_qdisc", "fq"))
}

func TestInterfaceNamesAreBytes(t *testing.T) {
	t.Parallel()
	a, err := sysctl.ReadARP(sysctltest.New("\xff", "eth0.100").Tree())
	require.NoError(t, err)
	assert.Contains(t, a.Interfaces, "\xff")
	assert.Contains(t, a.Interfaces, "eth0.100")
}

func TestMistakesOfTests(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	for _, f := range []func(){
		func() { k.AddInterface("eth0") }, func() { k.AddInterface("all") }, func() { k.AddInterface("a/b") }, func() { k.RemoveInterface("eth7") },
		func() { k.AddAddress("default") }, func() { k.RenameInterface("eth0", "lo") }, func() { k.RenameInterface("eth7", "x") },
	} {
		assert.Panics(t, f)
	}
}

func TestFS(t *testing.T) {
	t.Parallel()
	fsys := sysctltest.New().FS()
	root, err := fsys.Open("net/ipv4")
	require.NoError(t, err)
	defer root.Close()
	dir := root.(fs.ReadDirFile)
	first, err := dir.ReadDir(1)
	require.NoError(t, err)
	assert.Equal(t, "conf", first[0].Name())
	rest, err := dir.ReadDir(-1)
	require.NoError(t, err)
	require.Len(t, rest, 1)
	assert.Equal(t, "ip_forward", rest[0].Name())
	_, err = dir.ReadDir(1)
	require.ErrorIs(t, err, io.EOF)
	_, err = dir.Read(nil)
	require.ErrorIs(t, err, syscall.EISDIR)
	info, err := fs.Stat(fsys, "net")
	require.NoError(t, err)
	assert.True(t, info.IsDir())
	_, err = fs.Stat(fsys, "net/ipv6")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.Open("net/ipv6")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, fsys.WriteFile("net/ipv4", nil, 0), syscall.EISDIR)
	entries, err := fs.ReadDir(fsys, ".")
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				assert.NoError(t, k.Tree().Set(key, "1"))
				_, err := sysctl.ReadARP(k.Tree())
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.Len(t, k.Writes(), 200)
}
