package sysctltest_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

func TestMain(m *testing.M) {
	// netnstest.New says what is missing.
	_ = netnstest.Enter()
	goleak.VerifyTestMain(m)
}

// kernel is a network namespace of the real one.
type kernel struct {
	t  *testing.T
	ns *netns.NS
}

func newKernel(t *testing.T, interfaces ...string) *kernel {
	t.Helper()
	netnstest.New(t) // skips, with cause and cure
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ns.Close()) })
	k := &kernel{t, ns}
	for _, name := range interfaces {
		k.AddInterface(name)
	}
	return k
}

func (k *kernel) Tree() sysctl.Tree { return sysctl.Live().Within(k.ns.Do) }

func (k *kernel) do(f func() error) { require.NoError(k.t, k.ns.Do(f)) }

func (k *kernel) with(name string, f func(netlink.Link) error) {
	k.do(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return f(link)
	})
}

func (k *kernel) AddInterface(name string) {
	k.do(func() error {
		link := netlink.NewVeth(netlink.NewLinkAttrs())
		link.Name, link.PeerName = name, "peer."+name
		return netlink.LinkAdd(link)
	})
}

func (k *kernel) RemoveInterface(name string) { k.with(name, netlink.LinkDel) }

func (k *kernel) RenameInterface(from, to string) {
	k.with(from, func(l netlink.Link) error { return netlink.LinkSetName(l, to) })
}

func (k *kernel) AddAddress(name string) {
	k.with(name, func(l netlink.Link) error {
		addr, err := netlink.ParseAddr("10.9.0.1/24")
		return errors.Join(err, netlink.AddrAdd(l, addr))
	})
}

func TestKernel(t *testing.T) {
	t.Parallel()
	following := follows(t, newKernel(t).Tree(), "tag")
	for name, s := range situations() {
		ofDefault := strings.Contains(s.steps, "default.tag")
		if following || !ofDefault {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k := newKernel(t)
				atStart(t, k.Tree())
				k.AddInterface("eth0")
				k.AddInterface("eth0.100")
				play(t, k, s.steps, s.want)
			})
		}
		if ofDefault {
			t.Run(name+", default written before", func(t *testing.T) {
				t.Parallel()
				playBoth(t, s.steps, s.want)
			})
		}
	}
}

// atStart gives what is not about following "default" the kernel's own values: a
// new namespace has the machine's.
func atStart(t *testing.T, tree sysctl.Tree) {
	t.Helper()
	for _, iface := range []string{"all", "default", "lo"} {
		for _, p := range []string{"arp_ignore", "arp_announce", "proxy_arp", "route_localnet", "forwarding"} {
			require.NoError(t, tree.Set(sysctl.Key("net/ipv4/conf/"+iface+"/"+p), "0"))
		}
	}
	require.NoError(t, tree.Set("net/ipv4/conf/all/accept_redirects", "1"))
}

// playBoth compares kernel and fake where "default" was written before the
// interfaces were made, as it is wherever the machine's files set it.
func playBoth(t *testing.T, steps, want string) {
	t.Helper()
	k, fake := newKernel(t), sysctltest.New()
	for _, h := range []host{k, fake} {
		require.NoError(t, h.Tree().Set("net/ipv4/conf/default/tag", "0"))
		h.AddInterface("eth0")
		h.AddInterface("eth0.100")
		play(t, h, steps, "")
	}
	for pair := range strings.FieldsSeq(want) {
		name, _, _ := strings.Cut(pair, "=")
		i := strings.LastIndexByte(name, '.')
		key := sysctl.Key("net/ipv4/conf/" + name[:i] + "/" + name[i+1:])
		if name[:i] == "lo" {
			continue // it is as old as the namespace
		}
		expected, err := fake.Tree().Get(key)
		require.NoError(t, err)
		got, err := k.Tree().Get(key)
		require.NoError(t, err)
		assert.Equal(t, expected, got, name)
	}
}

// Both have the same files, with the same permissions.
func TestSameFiles(t *testing.T) {
	t.Parallel()
	k := newKernel(t, "eth0.100")
	fake := sysctltest.New("eth0.100").FS()
	k.do(func() error {
		proc := os.DirFS("/proc/sys")
		for _, dir := range []string{"all", "default", "eth0.100"} {
			real, err := fs.ReadDir(proc, "net/ipv4/conf/"+dir)
			if err != nil {
				return err
			}
			for _, e := range real {
				name := "net/ipv4/conf/" + dir + "/" + e.Name()
				want, err := fs.Stat(proc, name)
				require.NoError(t, err)
				got, err := fs.Stat(fake, name)
				if assert.NoError(t, err, "the fake lacks it") {
					assert.Equal(t, want.Mode(), got.Mode(), name)
				}
			}
		}
		return nil
	})
}
