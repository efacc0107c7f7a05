package sysctl_test

import (
	"io/fs"
	"math"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

func TestNamespace(t *testing.T) {
	t.Parallel()
	host, err := netnstest.New(t).AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
	require.NoError(t, err)
	var ns *sysctl.Namespace
	require.NoError(t, host.Do(func() (err error) {
		ns, err = sysctl.OpenNamespace(unix.Gettid()) // a thread will do for a process
		return err
	}))
	const key = "net/ipv4/conf/eth0/arp_ignore"
	require.NoError(t, ns.Tree().Set(key, "1"))
	assert.Equal(t, "1", get(t, host.Sysctls(), key), "set where the process is")
	a, err := sysctl.ReadARP(ns.Tree())
	require.NoError(t, err)
	assert.Equal(t, 1, a.Interfaces[netnstest.NIC][sysctl.ARPIgnore])
	require.NoError(t, ns.Close())
	require.NoError(t, ns.Close())
	_, err = ns.Tree().Get(key)
	assert.ErrorContains(t, err, "closed")
}

func TestNamespaceOfNobody(t *testing.T) {
	t.Parallel()
	_, err := sysctl.OpenNamespace(math.MaxInt32)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "process 2147483647")
}
