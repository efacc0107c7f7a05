package sysctl_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/sysctl"
)

// namespace returns a new network namespace with so many interfaces in it,
// besides lo; the last one is named eth0.100.
func namespace(t testing.TB, interfaces int) *netns.NS {
	t.Helper()
	netnstest.New(t) // skips, with cause and cure
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ns.Close()) })
	require.NoError(t, ns.Do(func() error {
		for i := range interfaces / 2 {
			link := netlink.NewVeth(netlink.NewLinkAttrs())
			link.Name, link.PeerName = fmt.Sprintf("if%d", i), fmt.Sprintf("if%d.peer", i)
			if err := netlink.LinkAdd(link); err != nil {
				return err
			}
		}
		link, err := netlink.LinkByName(fmt.Sprintf("if%d.peer", interfaces/2-1))
		if err != nil {
			return err
		}
		return netlink.LinkSetName(link, "eth0.100")
	}))
	return ns
}

// randomise sets every parameter of every interface.
func randomise(t testing.TB, tree sysctl.Tree, names []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		for _, p := range sysctl.Params() {
			k, err := sysctl.ConfKey(name, p)
			require.NoError(t, err)
			require.NoError(t, tree.Set(k, strconv.Itoa(int(int32(r.Uint32())>>r.IntN(32)))))
		}
	}
}

// procFiles returns the settings as files alone, which are not dumped.
func procFiles(t testing.TB) sysctl.Tree {
	t.Helper()
	r, err := os.OpenRoot("/proc/sys")
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return sysctl.In(r)
}

func TestDumpAndFilesAgree(t *testing.T) {
	t.Parallel()
	const interfaces = 300
	ns := namespace(t, interfaces)
	fromFiles := procFiles(t).Within(ns.Do)
	a, err := sysctl.ReadARP(fromFiles)
	require.NoError(t, err)
	require.Len(t, a.Interfaces, interfaces+1)
	names := []string{"all", "default"}
	for name := range a.Interfaces {
		names = append(names, name)
	}
	randomise(t, sysctl.Live().Within(ns.Do), names)

	want, err := sysctl.ReadARP(fromFiles)
	require.NoError(t, err)
	var links map[string]sysctl.Values
	require.NoError(t, ns.Do(func() (err error) {
		links, err = sysctl.ReadInterfaces()
		return err
	}))
	require.Equal(t, want.Interfaces, links)
	assert.Contains(t, links, "eth0.100")
	for _, values := range links {
		require.Len(t, values, len(sysctl.Params()), "this kernel has all")
	}
	got, err := sysctl.ReadARP(sysctl.Live().Within(ns.Do))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// An interface without IPv4 has no settings, by neither way.
func TestInterfaceWithoutIPv4(t *testing.T) {
	t.Parallel()
	ns := namespace(t, 2)
	require.NoError(t, ns.Do(func() error {
		link, err := netlink.LinkByName("lo") // others refuse so small an MTU
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(link, 67)
	}))
	for _, tree := range []sysctl.Tree{sysctl.Live(), procFiles(t)} {
		a, err := sysctl.ReadARP(tree.Within(ns.Do))
		require.NoError(t, err)
		assert.NotContains(t, a.Interfaces, "lo")
		assert.Contains(t, a.Interfaces, "eth0.100")
	}
}

// Interfaces come and go all the time: those that stay are there each time, with
// their values, whichever way they were read in the end.
func TestReadWhileInterfacesChange(t *testing.T) {
	t.Parallel()
	ns := namespace(t, 60)
	tree := sysctl.Live().Within(ns.Do)
	require.NoError(t, tree.Set(key, "8"))
	stop := make(chan struct{})
	churned := make(chan error, 1)
	go func() {
		churned <- ns.Do(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				link := netlink.NewVeth(netlink.NewLinkAttrs())
				link.Name, link.PeerName = "new", "new.peer"
				if err := netlink.LinkAdd(link); err != nil {
					return err
				}
				if err := netlink.LinkDel(link); err != nil {
					return err
				}
			}
		})
	}()
	for range 50 {
		a, err := sysctl.ReadARP(tree)
		if !assert.NoError(t, err) {
			break
		}
		assert.GreaterOrEqual(t, len(a.Interfaces), 61)
		assert.Equal(t, 8, a.Interfaces["eth0.100"][sysctl.ARPIgnore])
	}
	close(stop)
	require.NoError(t, <-churned)
}

func TestLongValue(t *testing.T) {
	t.Parallel()
	ns := namespace(t, 2)
	const ports = sysctl.Key("net/ipv4/ip_local_reserved_ports")
	var list []string
	for i := range 500 {
		list = append(list, strconv.Itoa(2*i+1))
	}
	long := strings.Join(list, ",")
	tree := sysctl.Live().Within(ns.Do)
	require.NoError(t, tree.Set(ports, long))
	value, err := tree.Get(ports)
	require.NoError(t, err)
	assert.Equal(t, long, value)
	require.NoError(t, tree.Set(ports, ""))
	value, err = tree.Get(ports)
	require.NoError(t, err)
	assert.Empty(t, value)
	_, err = tree.Get("net/ipv4/conf")
	assert.Error(t, err, "a directory")
	_, err = tree.Get("net/ipv4/nothing")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
