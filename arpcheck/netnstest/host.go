package netnstest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/sysctl"
)

// Names of interfaces. Each host has eth0; the other two are made when needed.
const (
	NIC        = "eth0"       // in the segment
	VIPDevice  = "kube-ipvs0" // see HoldVIP
	UplinkLink = "uplink0"    // see SetProxyARP
)

// Link is a network interface of a host.
type Link struct {
	Name string
	MAC  arpcheck.MAC
}

// Host is a host of a Segment: a network namespace with an interface in it.
// Every setting starts at the kernel's own default, whatever the machine's are,
// and IPv6 is off. Its methods may be called from several goroutines.
type Host struct {
	segment *Segment
	name    string
	node    bool
	index   int // from 1
	addr    netip.Addr
	ns      *netns.NS

	mu         sync.Mutex // guards what follows
	links      []Link     // in the segment, eth0 first
	forwarding Forwarding

	plumbing hostboard
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Addr returns the address the host was added with.
func (h *Host) Addr() netip.Addr { return h.addr }

// IsNode reports whether the host was added by AddNode.
func (h *Host) IsNode() bool { return h.node }

// MAC returns the hardware address of eth0. It is locally administered and tells
// the host: 02:00:00:00:HOST:LINK, with hosts counted from 1 and links from 0.
func (h *Host) MAC() arpcheck.MAC { return h.Links()[0].MAC }

// Links returns the host's interfaces in the segment, eth0 first.
func (h *Host) Links() []Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.links)
}

// nextMAC returns the hardware address of the next interface.
func (h *Host) nextMAC() arpcheck.MAC {
	return arpcheck.MAC{0x02, 0, 0, byte(h.index >> 8), byte(h.index), byte(len(h.links))}
}

// Do calls f on a thread in the host's network namespace and returns its error.
// Sockets that f opens stay the host's wherever they are used later. Goroutines
// that f starts are not in the namespace. A panic of f passes to the caller, and
// so does the end of its goroutine by testing's FailNow.
func (h *Host) Do(f func() error) error { return h.ns.Do(f) }

// Open returns a Prober on the host's eth0, with the host's name as vantage. The
// caller must close it.
func (h *Host) Open() (*arpcheck.Prober, error) { return h.OpenOn(NIC) }

// OpenOn is Open on another interface of the host.
func (h *Host) OpenOn(link string) (p *arpcheck.Prober, err error) {
	err = h.Do(func() error {
		p, err = arpcheck.Open(link)
		return err
	})
	if err != nil {
		return nil, h.failed("open prober on "+link, err)
	}
	p.Vantage = h.name
	return p, nil
}

// AddNIC adds another interface in the segment, with addresses or without any,
// and returns its hardware address. By default the kernel answers there for all
// addresses of the host: two MACs, one node. The error matches fs.ErrExist if the
// name is taken.
func (h *Host) AddNIC(name string, prefixes ...netip.Prefix) (arpcheck.MAC, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	link, err := h.plug(name, prefixes)
	return link.MAC, h.failed("add interface "+name, err)
}

// AddAddr adds an address to an interface.
func (h *Host) AddAddr(link string, prefix netip.Prefix) error {
	return h.failed(fmt.Sprintf("add %s to %s", prefix, link), h.addAddr(link, prefix))
}

// DelAddr removes an address from an interface.
func (h *Host) DelAddr(link string, prefix netip.Prefix) error {
	return h.failed(fmt.Sprintf("remove %s from %s", prefix, link), h.delAddr(link, prefix))
}

// BindOnNIC adds a VIP to eth0, which is the wrong cure for silence that makes
// one more host answer.
func (h *Host) BindOnNIC(vip netip.Addr) error {
	return h.AddAddr(NIC, netip.PrefixFrom(vip, 32))
}

// AddRoute adds a route by way of a gateway on an interface's segment, or, if via
// is the zero Addr, to hosts on the segment itself. The gateway need not be in a
// subnet of the interface.
func (h *Host) AddRoute(dst netip.Prefix, via netip.Addr, link string) error {
	return h.failed(fmt.Sprintf("add route to %s", dst), h.addRoute(dst, via, link))
}

// SetLink brings an interface up or down. When it is up, it has carrier and
// frames pass.
func (h *Host) SetLink(link string, up bool) error {
	return h.failed(fmt.Sprintf("set %s up=%t", link, up), h.setLink(link, up))
}

// Sysctls returns the host's kernel settings.
func (h *Host) Sysctls() sysctl.Tree { return sysctl.Live().Within(h.Do) }

// Sysctl returns net.ipv4.conf.LINK.PARAM, where link is an interface, "all" or
// "default". It is what was set there, not what is in effect. The error matches
// fs.ErrNotExist if there is no such interface or parameter.
func (h *Host) Sysctl(link string, p sysctl.Param) (int, error) {
	value, err := readSysctl(h.Sysctls(), link, p)
	return value, h.failed("read sysctl", err)
}

func readSysctl(from sysctl.Tree, link string, p sysctl.Param) (int, error) {
	k, err := sysctl.ConfKey(link, p)
	if err != nil {
		return 0, err
	}
	text, err := from.Get(k)
	if err != nil {
		return 0, err
	}
	return sysctl.ParseValue(text)
}

// SetSysctl sets what Sysctl returns, with its errors.
func (h *Host) SetSysctl(link string, p sysctl.Param, value int) error {
	k, err := sysctl.ConfKey(link, p)
	if err == nil {
		err = h.Sysctls().Set(k, strconv.Itoa(value))
	}
	return h.failed("set sysctl", err)
}

// SetStrictARP sets arp_ignore and arp_announce of "all" to what kube-proxy sets
// with strictARP, 1 and 2, or to 0 and 0.
func (h *Host) SetStrictARP(on bool) error {
	ignore, announce := 0, 0
	if on {
		ignore, announce = 1, 2
	}
	return errors.Join(h.SetSysctl("all", sysctl.ARPIgnore, ignore), h.SetSysctl("all", sysctl.ARPAnnounce, announce))
}

// SetProxyARP makes the host answer for addresses that it routes elsewhere: by
// default all that are in none of its subnets, otherwise those in the prefixes.
// They are routed to an interface uplink0 that leads nowhere. A kernel answers a
// broadcast request by proxy only after a random time of up to 0.8 s.
//
// Turning it off leaves the routes and forwarding as they are.
func (h *Host) SetProxyARP(on bool, prefixes ...netip.Prefix) error {
	if !on {
		return h.SetSysctl(NIC, sysctl.ProxyARP, 0)
	}
	if len(prefixes) == 0 {
		prefixes = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	}
	if err := h.uplink(prefixes); err != nil {
		return h.failed("set proxy ARP", err)
	}
	return errors.Join(h.SetSysctl(NIC, sysctl.Forwarding, 1), h.SetSysctl(NIC, sysctl.ProxyARP, 1))
}

// HoldVIP adds a VIP to kube-ipvs0, as kube-proxy in ipvs mode does: a /32 on an
// interface that is down and does no ARP. The interface is made if needed. The
// kernel answers for the VIP on other interfaces if arp_ignore lets it.
func (h *Host) HoldVIP(vip netip.Addr) error {
	return h.failed(fmt.Sprintf("hold VIP %s", vip), h.holdVIP(vip))
}

// DropVIP removes a VIP from kube-ipvs0.
func (h *Host) DropVIP(vip netip.Addr) error {
	return h.DelAddr(VIPDevice, netip.PrefixFrom(vip, 32))
}

// VIPDeviceKind returns the kind of interface that kube-ipvs0 is: "dummy" as
// kube-proxy's, or "ifb" or "bridge" where the kernel has no dummy. They make no
// difference to ARP. It is empty if there is no kube-ipvs0.
func (h *Host) VIPDeviceKind() (string, error) {
	kind, err := h.vipDeviceKind()
	return kind, h.failed("look at "+VIPDevice, err)
}

// Inject sends an Ethernet frame from eth0 just as it is.
func (h *Host) Inject(frame []byte) error { return h.InjectOn(NIC, frame) }

// InjectOn sends an Ethernet frame from an interface just as it is.
func (h *Host) InjectOn(link string, frame []byte) error {
	return h.failed(fmt.Sprintf("send frame of %d bytes on %s", len(frame), link), h.inject(link, frame))
}

// failed says which host could not do what.
func (h *Host) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("netnstest: host %q: %s: %w", h.name, what, err)
}

func (h *Host) close() error {
	h.unplug()
	if h.ns == nil {
		return nil
	}
	return h.ns.Close()
}
