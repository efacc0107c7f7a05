package arpcheck_test

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// What doc.go says of bridges, VLANs, macvlans, bonds and VRFs. Kernels without a
// kind of interface skip its test and say where it runs.

// linkLab is a segment with a node w1 and a client.
func linkLab(t *testing.T) (s *netnstest.Segment, w1, from *netnstest.Host) {
	t.Helper()
	s = netnstest.New(t)
	w1, err := s.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	require.NoError(t, err)
	require.NoError(t, w1.HoldVIP(vip))
	from, err = s.AddClient("client", netip.PrefixFrom(client, 24))
	require.NoError(t, err)
	return s, w1, from
}

// addLink makes an interface on a host and sets it up, with addresses.
func addLink(t *testing.T, h *netnstest.Host, link netlink.Link, addrs ...string) {
	t.Helper()
	err := h.Do(func() error { return netlink.LinkAdd(link) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("this kernel has no interfaces of type %s. On one that has: go run ./internal/vmtest "+
			"-load veth,bridge,ifb,macvlan,8021q,bonding,vrf -run TestLabLink ./arpcheck", link.Type())
	}
	require.NoError(t, err)
	name := link.Attrs().Name
	require.NoError(t, h.Do(func() error { return netlink.LinkSetUp(link) }))
	for _, addr := range addrs {
		require.NoError(t, h.AddAddr(name, netip.MustParsePrefix(addr)))
	}
}

// on does something with an interface of a host.
func on(t *testing.T, h *netnstest.Host, name string, do func(netlink.Link) error) {
	t.Helper()
	require.NoError(t, h.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return do(link)
	}), name)
}

func indexOf(t *testing.T, h *netnstest.Host, name string) (index int) {
	t.Helper()
	on(t, h, name, func(l netlink.Link) error {
		index = l.Attrs().Index
		return nil
	})
	return index
}

func linkToIn(t *testing.T, h *netnstest.Host, target string) (hop arpcheck.Hop, err error) {
	t.Helper()
	_ = h.Do(func() error {
		hop, err = arpcheck.LinkTo(netip.MustParseAddr(target))
		return nil
	})
	return hop, err
}

// probeOn asks on an interface of a host.
func probeOn(t *testing.T, h *netnstest.Host, link, target string) arpcheck.Result {
	t.Helper()
	r, err := openIn(t, h, link).Probe(t.Context(), netip.MustParseAddr(target))
	require.NoError(t, err)
	return r
}

// settled waits until an interface carries frames.
func settled(t *testing.T, h *netnstest.Host, link, target string) {
	t.Helper()
	p := openIn(t, h, link)
	require.Eventually(t, func() bool {
		r, err := p.Probe(t.Context(), netip.MustParseAddr(target))
		return err == nil && r.Verdict == arpcheck.Single
	}, 30*time.Second, time.Millisecond)
}

// A bridge is asked through as a whole; through a port only what is behind it is
// asked, without an address.
func TestLabLinkBridge(t *testing.T) {
	t.Parallel()
	s, w1, _ := linkLab(t)
	host, err := s.AddClient("hypervisor", netip.MustParsePrefix("10.0.3.60/24"))
	require.NoError(t, err)
	require.NoError(t, host.DelAddr(netnstest.NIC, netip.MustParsePrefix("10.0.3.60/24")))
	addLink(t, host, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}, "10.0.3.60/24")
	br0 := indexOf(t, host, "br0")
	on(t, host, netnstest.NIC, func(l netlink.Link) error { return netlink.LinkSetMasterByIndex(l, br0) })
	settled(t, host, "br0", "10.0.3.20")

	hop, err := linkToIn(t, host, "10.0.3.20")
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Hop{Link: "br0"}, hop)
	r := probeOn(t, host, "br0", "10.0.3.20")
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, arpcheck.Sender{Addr: netip.MustParseAddr("10.0.3.60"), From: arpcheck.SenderRoute}, r.Sender)
	assert.Equal(t, []arpcheck.MAC{w1.MAC()}, macs(r))

	r = probeOn(t, host, netnstest.NIC, "10.0.3.20")
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, arpcheck.SenderUnspecified, r.Sender.From)

	// Behind another port is nobody who could answer.
	addLink(t, host, &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tap0", MasterIndex: br0}, PeerName: "guest0"})
	on(t, host, "guest0", netlink.LinkSetUp)
	r = probeOn(t, host, "tap0", "10.0.3.20")
	assert.Empty(t, r.Responders)
}

// A macvlan is probed through as any interface is. A node answers for its
// addresses on its macvlan, too: two MACs, one node.
func TestLabLinkMacvlan(t *testing.T) {
	t.Parallel()
	_, w1, from := linkLab(t)
	macvlan := func(h *netnstest.Host) *netlink.Macvlan {
		return &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "mv0", ParentIndex: indexOf(t, h, netnstest.NIC)}, Mode: netlink.MACVLAN_MODE_BRIDGE}
	}
	addLink(t, from, macvlan(from), "10.0.3.61/32")
	r := probeOn(t, from, "mv0", "10.0.3.20")
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, []arpcheck.MAC{w1.MAC()}, macs(r))
	assert.Equal(t, "10.0.3.61", r.Sender.Addr.String())
	assert.NotEqual(t, from.MAC(), r.MAC)

	addLink(t, w1, macvlan(w1))
	r = probeOn(t, from, netnstest.NIC, "10.0.3.20")
	assert.Equal(t, arpcheck.Multiple, r.Verdict)
	assert.Len(t, r.Responders, 2)
}

// A host and its own macvlans in another namespace, as a pod's, do not hear each
// other.
func TestLabLinkMacvlanOfAPod(t *testing.T) {
	t.Parallel()
	s, w1, from := linkLab(t)
	pod, err := s.AddClient("pod", netip.MustParsePrefix("10.0.9.9/24"))
	require.NoError(t, err)
	require.NoError(t, pod.SetLink(netnstest.NIC, false)) // where its kernel would answer, too
	var ns *os.File
	require.NoError(t, pod.Do(func() (err error) {
		ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	}))
	defer ns.Close()
	mv := &netlink.Macvlan{Mode: netlink.MACVLAN_MODE_BRIDGE, LinkAttrs: netlink.LinkAttrs{
		Name: "mv0", ParentIndex: indexOf(t, w1, netnstest.NIC), Namespace: netlink.NsFd(ns.Fd()),
	}}
	err = w1.Do(func() error { return netlink.LinkAdd(mv) })
	require.NoError(t, err)
	on(t, pod, "mv0", netlink.LinkSetUp)
	require.NoError(t, pod.AddAddr("mv0", netip.MustParsePrefix("10.0.3.62/24")))
	assert.Equal(t, arpcheck.Single, probeOn(t, from, netnstest.NIC, "10.0.3.62").Verdict)
	assert.Equal(t, arpcheck.None, probeOn(t, w1, netnstest.NIC, "10.0.3.62").Verdict)
}

// A VLAN interface is the VLAN's segment, its parent the untagged one.
func TestLabLinkVLAN(t *testing.T) {
	t.Parallel()
	_, w1, from := linkLab(t)
	for h, addr := range map[*netnstest.Host]string{w1: "10.100.0.11/24", from: "10.100.0.50/24"} {
		addLink(t, h, &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "eth0.100", ParentIndex: indexOf(t, h, netnstest.NIC)}, VlanId: 100}, addr)
	}
	settled(t, from, "eth0.100", "10.100.0.11")
	hop, err := linkToIn(t, from, "10.100.0.11")
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Hop{Link: "eth0.100"}, hop)
	r := probeOn(t, from, "eth0.100", "10.100.0.11")
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Zero(t, r.Quality.OtherVLANs)
	assert.Equal(t, arpcheck.Single, probeOn(t, from, netnstest.NIC, "10.100.0.11").Verdict, "arp_ignore is 0")
	require.NoError(t, w1.SetStrictARP(true))
	assert.Equal(t, arpcheck.None, probeOn(t, from, netnstest.NIC, "10.100.0.11").Verdict, "it is not on the untagged segment")

	// On the parent, what is tagged is set aside.
	p, tagged := openIn(t, from, netnstest.NIC), openIn(t, from, "eth0.100")
	done := make(chan error, 1)
	go func() {
		_, err := tagged.Probe(t.Context(), netip.MustParseAddr("10.100.0.11"))
		done <- err
	}()
	r, err = p.Probe(t.Context(), netip.MustParseAddr("10.0.3.11"))
	require.NoError(t, err)
	require.NoError(t, <-done)
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.NotZero(t, r.Quality.OtherVLANs)
}

// A bond is probed through as a whole, also when it fails over and changes its MAC.
func TestLabLinkBond(t *testing.T) {
	t.Parallel()
	_, w1, from := linkLab(t)
	_, err := from.AddNIC("eth1")
	require.NoError(t, err)
	require.NoError(t, from.DelAddr(netnstest.NIC, netip.PrefixFrom(client, 24)))
	bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond0"})
	bond.Mode, bond.Miimon, bond.FailOverMac = netlink.BOND_MODE_ACTIVE_BACKUP, 10, netlink.BOND_FAIL_OVER_MAC_ACTIVE
	addLink(t, from, bond, client.String()+"/24")
	for _, nic := range []string{netnstest.NIC, "eth1"} {
		on(t, from, nic, func(l netlink.Link) error {
			return errors.Join(netlink.LinkSetDown(l), netlink.LinkSetMasterByIndex(l, indexOf(t, from, "bond0")), netlink.LinkSetUp(l))
		})
	}
	settled(t, from, "bond0", "10.0.3.20")
	hop, err := linkToIn(t, from, "10.0.3.20")
	require.NoError(t, err)
	assert.Equal(t, arpcheck.Hop{Link: "bond0"}, hop)
	p := openIn(t, from, "bond0")
	before := probe(t, p)
	assert.Equal(t, []arpcheck.MAC{w1.MAC()}, macs(before))
	on(t, from, netnstest.NIC, netlink.LinkSetDown)
	require.Eventually(t, func() bool {
		after := probe(t, p)
		return after.MAC != before.MAC && after.Verdict == arpcheck.Single
	}, 30*time.Second, time.Millisecond)
}

// In a VRF the interface is named, and the VRF's routes count.
func TestLabLinkVRF(t *testing.T) {
	t.Parallel()
	_, w1, from := linkLab(t)
	addLink(t, from, &netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Name: "blue"}, Table: 10})
	blue := indexOf(t, from, "blue")
	on(t, from, netnstest.NIC, func(l netlink.Link) error { return netlink.LinkSetMasterByIndex(l, blue) })
	_, err := linkToIn(t, from, "10.0.3.20")
	require.ErrorIs(t, err, arpcheck.ErrNoRoute)
	r := probeOn(t, from, netnstest.NIC, "10.0.3.20")
	assert.Equal(t, arpcheck.Single, r.Verdict)
	assert.Equal(t, arpcheck.Sender{Addr: client, From: arpcheck.SenderRoute}, r.Sender)
	assert.Equal(t, []arpcheck.MAC{w1.MAC()}, macs(r))
	assert.Equal(t, []arpcheck.Reason{arpcheck.HeldHere}, probeOn(t, from, netnstest.NIC, client.String()).Reasons)
	_, err = from.OpenOn("blue")
	require.ErrorIs(t, err, arpcheck.ErrNoARP)
}
