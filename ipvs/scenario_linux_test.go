package ipvs_test

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/ipvs/ipvstest"
)

// reader is what ipvs.Conn and the fake's have in common.
type reader interface {
	Device(name string) (ipvs.Device, error)
	Devices() (ipvs.Devices, error)
	Watch(ctx context.Context, name string) iter.Seq2[ipvs.Event, error]
}

var (
	_ reader = (*ipvs.Conn)(nil)
	_ reader = (*ipvstest.Conn)(nil)
)

// world is a kernel or a fake, to which the same happens.
type world interface {
	open(t *testing.T) reader
	hold(vip netip.Addr) error
	add(device string, prefix netip.Prefix) error
	remove(device string, prefix netip.Prefix) error
	up() error // of kube-ipvs0
	removeDevice() error
}

// steps are what happens to kube-ipvs0, and the events that must come of it.
var steps = []struct {
	name string
	do   func(world) error
	want []string
}{
	{"nothing", func(world) error { return nil }, []string{"gone"}},
	{"the first VIP", func(w world) error { return w.hold(vip) }, []string{"full"}},
	{"another", func(w world) error { return w.hold(service(1)) }, []string{"added 10.96.0.1/32"}},
	{"the same again", func(w world) error { return w.hold(service(1)) }, nil},
	{"elsewhere", func(w world) error { return w.add("lo", prefix(service(2))) }, nil},
	{"by hand", func(w world) error { return w.add("kube-ipvs0", netip.MustParsePrefix("10.5.0.1/16")) }, []string{"added 10.5.0.1/16"}},
	{"one less", func(w world) error { return w.remove("kube-ipvs0", prefix(vip)) }, []string{"removed 10.0.3.20/32"}},
	{"up", world.up, []string{"changed true"}},
	{"no device", world.removeDevice, []string{"removed 10.96.0.1/32", "removed 10.5.0.1/16", "gone"}},
	{"back", func(w world) error { return w.hold(vip) }, []string{"full"}},
}

// The fake and the kernel tell the same of the same.
func TestScenario(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]world{"kernel": newKernel(t), "fake": newFake(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := watch(t, w.open(t).Watch(t.Context(), ""))
			conn := w.open(t)
			for _, step := range steps {
				require.NoError(t, step.do(w), step.name)
				for _, want := range step.want {
					require.Equal(t, want, expected(t, next, want), step.name)
				}
			}
			dev, err := conn.Device("")
			require.NoError(t, err)
			assert.Len(t, dev.Addresses, 1)
			assert.Equal(t, ipvs.Address{Prefix: prefix(vip), Scope: ipvs.ScopeGlobal, Flags: ipvs.Permanent, Label: "kube-ipvs0"}, dev.Addresses[0])
			assert.True(t, dev.NoARP)
			assert.False(t, dev.Up)
			assert.Equal(t, ipvs.StateDown, dev.State)
			all, err := conn.Devices()
			require.NoError(t, err)
			assert.Len(t, all.Holders([]netip.Addr{service(2), vip}, "kube-ipvs0"), 1)
			_, err = conn.Device("nothing")
			assert.ErrorContains(t, err, "no interface")
		})
	}
}

// expected returns the next event. How often a kernel tells of a device's state
// depends on its kind: it is skipped where it is not wanted.
func expected(t *testing.T, next func() (ipvs.Event, error), want string) string {
	t.Helper()
	for {
		e, err := next()
		require.NoError(t, err)
		got := string(e.Type)
		switch e.Type {
		case ipvs.Added, ipvs.Removed:
			got += " " + e.Address.Prefix.String()
		case ipvs.Changed:
			if got += fmt.Sprintf(" %t", e.Device.Up); got != want {
				continue
			}
		}
		return got
	}
}

type fake struct{ node ipvstest.Node }

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	require.NoError(t, f.node.AddDevice(ipvs.Device{Name: "lo", Up: true}))
	return f
}

func (f *fake) open(*testing.T) reader { return f.node.Open() }

func (f *fake) hold(vip netip.Addr) error {
	f.node.HoldVIP(vip)
	return nil
}

func (f *fake) add(device string, prefix netip.Prefix) error {
	return f.node.AddAddress(device, prefix)
}

func (f *fake) remove(device string, prefix netip.Prefix) error {
	return f.node.RemoveAddress(device, prefix)
}

func (f *fake) up() error {
	dev, err := f.node.Open().Device("")
	dev.Up = true
	if err != nil {
		return err
	}
	return f.node.SetLink(dev)
}

func (f *fake) removeDevice() error { return f.node.RemoveDevice(ipvs.DefaultDevice) }

type kernel struct {
	host   *netnstest.Host
	handle *netlink.Handle
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	host := bare(t)
	return &kernel{host: host, handle: plumber(t, host)}
}

func (k *kernel) open(t *testing.T) reader { return open(t, k.host) }

func (k *kernel) hold(vip netip.Addr) error { return k.host.HoldVIP(vip) }

func (k *kernel) add(device string, prefix netip.Prefix) error { return k.host.AddAddr(device, prefix) }

func (k *kernel) remove(device string, prefix netip.Prefix) error {
	return k.host.DelAddr(device, prefix)
}

func (k *kernel) up() error { return k.change((*netlink.Handle).LinkSetUp) }

func (k *kernel) removeDevice() error { return k.change((*netlink.Handle).LinkDel) }

func (k *kernel) change(do func(*netlink.Handle, netlink.Link) error) error {
	link, err := k.handle.LinkByName(ipvs.DefaultDevice)
	if err != nil {
		return err
	}
	return do(k.handle, link)
}
