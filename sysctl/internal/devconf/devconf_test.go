package devconf_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

func cell(iface, param string) devconf.Cell { return devconf.Cell{Interface: iface, Param: param} }

func value(t *testing.T, n *devconf.Net, iface, param string) int32 {
	t.Helper()
	v, ok := n.Value(cell(iface, param))
	require.True(t, ok)
	return v
}

func TestWriteTellsWhatItSets(t *testing.T) {
	t.Parallel()
	n := devconf.New()
	require.True(t, n.Add("eth0"))
	require.True(t, n.Add("eth1"))
	set, err := n.Write(cell("eth1", "arp_ignore"), "x")
	require.ErrorIs(t, err, syscall.EINVAL)
	assert.Empty(t, set)
	set, err = n.Write(cell("default", "arp_ignore"), "2")
	require.NoError(t, err)
	assert.Equal(t, []devconf.Cell{cell("default", "arp_ignore"), cell("eth0", "arp_ignore")}, set, "eth1 was written, though in vain")
	set, err = n.Write(cell("all", "forwarding"), "1")
	require.NoError(t, err)
	assert.Equal(t, []devconf.Cell{
		cell("all", "forwarding"), cell("all", "accept_redirects"), cell("default", "forwarding"), cell("eth0", "forwarding"), cell("eth1", "forwarding"),
	}, set)
	assert.EqualValues(t, 0, value(t, n, "all", "accept_redirects"))
	set, err = n.Write(cell("all", "forwarding"), "1")
	require.NoError(t, err)
	assert.Equal(t, []devconf.Cell{cell("all", "forwarding")}, set, "it was on already")
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	n := devconf.New()
	for c, want := range map[devconf.Cell]error{
		cell("all", "mc_forwarding"): syscall.EACCES,
		cell("all", "nothing"):       fs.ErrNotExist,
		cell("eth7", "arp_ignore"):   fs.ErrNotExist,
		cell("all", "forwarding"):    syscall.EINVAL,
	} {
		_, err := n.Write(c, "on")
		assert.ErrorIs(t, err, want, "%v", c)
	}
}

func TestNamesThatAreNoInterfaces(t *testing.T) {
	t.Parallel()
	n := devconf.New()
	require.True(t, n.Add("eth0"))
	for _, name := range []string{"all", "default", "eth0"} {
		assert.False(t, n.Add(name))
		assert.False(t, n.Rename("eth0", name))
	}
	for _, name := range []string{"all", "default", "eth7"} {
		assert.False(t, n.Remove(name))
		assert.False(t, n.Address(name))
		assert.False(t, n.Rename(name, "x"))
	}
	assert.Equal(t, []string{"all", "default", "eth0"}, n.Names())
}
