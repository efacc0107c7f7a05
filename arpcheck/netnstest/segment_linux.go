package netnstest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/sysctl"
)

// switchboard is the namespace with the bridge.
type switchboard struct {
	ns     *netns.NS
	rt     rtnetlink
	bridge int // interface index
}

func newSegment() (*Segment, error) {
	s := &Segment{}
	err := func() (err error) {
		if s.plumbing.ns, err = newNamespace(&s.plumbing.rt, false); err != nil {
			return err
		}
		noSnooping := false // it would hold back multicast; there is none, but its queries are noise
		bridge := &netlink.Bridge{LinkAttrs: attrs("bridge"), MulticastSnooping: &noSnooping}
		err = s.plumbing.rt.do(func(nl *netlink.Handle) error { return nl.LinkAdd(bridge) })
		if err != nil {
			return fmt.Errorf("add bridge: %w", err)
		}
		s.plumbing.bridge = bridge.Index
		return s.plumbing.rt.up("bridge")
	}()
	if err != nil {
		return nil, errors.Join(diagnose(remembered(err)), s.closeSwitch())
	}
	return s, nil
}

func (s *Segment) closeSwitch() error {
	s.plumbing.rt.close()
	if s.plumbing.ns == nil {
		return nil
	}
	return s.plumbing.ns.Close()
}

// newNamespace makes a network namespace with the kernel's default settings,
// and opens rt in it.
func newNamespace(rt *rtnetlink, forwarding bool) (*netns.NS, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	err = ns.Do(func() error {
		if err := rt.open(); err != nil {
			return err
		}
		return reset(forwarding)
	})
	if err != nil {
		rt.close()
		return nil, errors.Join(err, ns.Close())
	}
	return ns, nil
}

// reset gives the calling thread's namespace the kernel's default settings. A
// new namespace starts with a copy of the machine's, see
// net.core.devconf_inherit_init_net.
func reset(forwarding bool) error {
	tree := sysctl.Live()
	set := func(k sysctl.Key, value string) error {
		now, err := tree.Get(k)
		if errors.Is(err, unix.ENOENT) || now == value {
			return nil // this kernel does not have it, such as IPv6
		}
		return tree.Set(k, value)
	}
	for _, iface := range []string{"all", "default", "lo"} {
		for _, p := range sysctl.Params() {
			k, err := sysctl.ConfKey(iface, p)
			if err != nil {
				return err
			}
			value := "0"
			if p == sysctl.SendRedirects {
				value = "1" // the only one of them that is on
			}
			if err := set(k, value); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, iface := range []string{"all", "default"} {
		// Neighbour discovery and multicast listener reports are noise here.
		errs = append(errs, set(sysctl.Key("net/ipv6/conf/"+iface+"/disable_ipv6"), "1"))
		if forwarding {
			errs = append(errs,
				set(sysctl.Key("net/ipv4/conf/"+iface+"/forwarding"), "1"),
				// IPVS sends none when it forwards, and here it is stood in for by routing.
				set(sysctl.Key("net/ipv4/conf/"+iface+"/send_redirects"), "0"))
		}
	}
	return errors.Join(errs...)
}

// join gives a new host its namespace and plugs it in. The segment is locked.
func (s *Segment) join(h *Host, prefix netip.Prefix) (err error) {
	if h.ns, err = newNamespace(&h.plumbing.rt, h.node); err != nil {
		return err
	}
	if err := h.plumbing.rt.up("lo"); err != nil {
		return err
	}
	_, err = h.plug(NIC, []netip.Prefix{prefix})
	return err
}

// plug adds an interface that is connected to a new port of the bridge. The
// host is locked, or known to nobody yet.
func (h *Host) plug(name string, prefixes []netip.Prefix) (Link, error) {
	link := Link{Name: name, MAC: h.nextMAC()}
	port := fmt.Sprintf("port%d.%d", h.index, len(h.links))
	sw := &h.segment.plumbing
	err := h.ns.FD(func(fd int) error {
		return sw.rt.do(func(nl *netlink.Handle) error {
			a := attrs(port)
			a.MasterIndex = sw.bridge
			return nl.LinkAdd(&netlink.Veth{
				LinkAttrs: a, PeerName: name, PeerNamespace: netlink.NsFd(fd),
				PeerHardwareAddr: net.HardwareAddr(link.MAC[:]),
			})
		})
	})
	if err != nil {
		return Link{}, fmt.Errorf("add veth: %w", err)
	}
	h.plumbing.ports = append(h.plumbing.ports, port)
	h.links = append(h.links, link)
	for _, p := range prefixes {
		if err := h.addAddr(name, p); err != nil {
			return Link{}, err
		}
	}
	if err := sw.rt.up(port); err != nil {
		return Link{}, err
	}
	return link, h.raise(name, port)
}
