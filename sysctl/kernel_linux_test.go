package sysctl_test

import (
	"io/fs"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

func TestMain(m *testing.M) {
	// netnstest.New says what is missing.
	_ = netnstest.Enter()
	goleak.VerifyTestMain(m)
}

var netip24 = netip.MustParsePrefix("10.0.3.11/24")

func host(t *testing.T) *netnstest.Host {
	t.Helper()
	h, err := netnstest.New(t).AddNode("node", netip24)
	require.NoError(t, err)
	_, err = h.AddNIC("eth0.100")
	require.NoError(t, err)
	return h
}

func TestKernel(t *testing.T) {
	t.Parallel()
	tree := host(t).Sysctls()
	require.NoError(t, tree.Set(key, "9"), "the kernel keeps reserved values")
	a, err := sysctl.ReadARP(tree)
	require.NoError(t, err)
	e, err := a.Effective("eth0.100", sysctl.ARPIgnore)
	require.NoError(t, err)
	assert.Equal(t, 9, e.Value)
	for _, p := range sysctl.Params() {
		assert.Contains(t, a.All, p, "this kernel has it")
		assert.Contains(t, a.Interfaces["lo"], p)
	}
	assert.ErrorIs(t, tree.Set(key, "strict"), syscall.EINVAL)
	_, err = tree.Get("net/ipv4/conf/eth7/arp_ignore")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorIs(t, tree.Set("net/ipv4/conf/eth7/arp_ignore", "1"), fs.ErrNotExist)
}

// A directory is opened once, yet what is below net is of the thread that looks.
func TestRootFollowsTheNamespace(t *testing.T) {
	t.Parallel()
	r, err := os.OpenRoot("/proc/sys")
	require.NoError(t, err)
	defer r.Close()
	tree := sysctl.In(r).Within(host(t).Do)
	require.NoError(t, tree.Set(key, "1"))
	value, err := tree.Get(key)
	require.NoError(t, err)
	assert.Equal(t, "1", value)
	_, err = sysctl.In(r).Get(key)
	assert.ErrorIs(t, err, fs.ErrNotExist, "not in this namespace")
}

func TestSettingThatNobodyMayWrite(t *testing.T) {
	t.Parallel()
	const ostype = sysctl.Key("kernel/ostype")
	value, err := sysctl.Live().Get(ostype)
	require.NoError(t, err)
	require.Equal(t, "Linux", value)
	assert.ErrorIs(t, sysctl.Live().Set(ostype, "Linux"), sysctl.ErrReadOnly)
}

func TestInterfaceNamesAreBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, iface := range []string{"all", "\xff"} {
		require.NoError(t, os.MkdirAll(dir+"/net/ipv4/conf/"+iface, 0o755))
		require.NoError(t, os.WriteFile(dir+"/net/ipv4/conf/"+iface+"/arp_ignore", []byte("2\n"), 0o644))
	}
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer r.Close()
	a, err := sysctl.ReadARP(sysctl.In(r))
	require.NoError(t, err)
	assert.Equal(t, sysctl.Values{sysctl.ARPIgnore: 2}, a.Interfaces["\xff"])
}
