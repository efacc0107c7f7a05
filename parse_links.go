package strictarp

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// ParseLinks reads what "ip addr" prints, with any of its options -d, -s and -j:
// interfaces and their IPv4 addresses. Kinds of interfaces are only known with
// -d.
//
// Lines that cannot be used are returned as warnings, at most 101. The error is
// that of reading, or ErrLimit for more than 32 MiB, or says that a JSON text is
// none; what stands before is returned with it.
func ParseLinks(r io.Reader) ([]Link, []sysctl.Warning, error) {
	in := bufio.NewReader(r)
	for {
		head, err := in.Peek(1)
		if err != nil || head[0] != ' ' && head[0] != '\n' && head[0] != '\r' && head[0] != '\t' {
			break
		}
		if _, err := in.Discard(1); err != nil {
			break
		}
	}
	if head, _ := in.Peek(1); string(head) == "[" {
		return parseLinksJSON(in)
	}
	p := linkParser{links: []Link{}}
	lines, err := eachLine(in, p.line)
	if err != nil {
		err = fmt.Errorf("strictarp: parse links: %w", err)
	}
	return p.links, p.warnings.done(lines), err
}

type linkParser struct {
	links    []Link
	warnings warnings
	// statistics says that the line is numbers below a heading of ip -s.
	statistics bool
}

func (p *linkParser) line(number int, text string) {
	if p.statistics {
		p.statistics = false
		return
	}
	w := words(strings.Fields(text))
	if text[0] >= '0' && text[0] <= '9' {
		l, err := parseLink(w)
		if err != nil {
			p.warnings.add(number, text, err.Error())
		}
		p.links = append(p.links, l)
		return
	}
	if len(p.links) == 0 {
		p.warnings.add(number, text, errNotPrinted.Error())
		return
	}
	if err := p.detail(&p.links[len(p.links)-1], w); err != nil {
		p.warnings.add(number, text, err.Error())
	}
}

// detail takes a line below that of the interface.
func (p *linkParser) detail(l *Link, w words) error {
	word := w.next()
	switch {
	case strings.HasPrefix(word, "link/"):
		if word == "link/loopback" {
			l.Loopback = true
			return nil
		}
		mac, err := arpcheck.ParseMAC(w.next())
		if err != nil && word == "link/ether" {
			return err
		}
		l.MAC = mac
		if i := slices.Index(w, "permaddr"); i >= 0 && i+1 < len(w) {
			if l.PermanentMAC, err = arpcheck.ParseMAC(w[i+1]); err != nil {
				return err
			}
		}
	case word == "inet":
		a, err := parseAddress(w)
		if err != nil {
			return err
		}
		l.Addrs = append(l.Addrs, a)
	case word == "RX:", word == "TX:", word == "RX", word == "TX": // "RX errors:" of ip -s -s
		p.statistics = true
	case slices.Contains(ignoredDetails(), word), strings.HasSuffix(word, "_slave"):
	case slices.Contains(linkKinds(), word):
		l.Kind = word
	default:
		return errNotPrinted
	}
	return nil
}

// ignoredDetails begin lines that say nothing which matters here.
func ignoredDetails() []string {
	return []string{"inet6", "valid_lft", "altname", "alias", "prog/xdp", "parentbus", "vf", "allmulti"}
}

// linkKinds begin a line of ip -d: rtnl_link_ops of the kernel's drivers.
func linkKinds() []string {
	return []string{
		"bareudp", "batadv", "bond", "bridge", "dummy", "erspan", "geneve", "gre", "gretap", "gtp", "ifb", "ip6erspan",
		"ip6gre", "ip6gretap", "ip6tnl", "ipip", "ipoib", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "netdevsim",
		"netkit", "nlmon", "openvswitch", "sit", "team", "tun", "vcan", "veth", "vlan", "vrf", "vti", "vxlan", "wireguard", "xfrm",
	}
}

// parseLink reads the line that begins an interface:
// "3: eth0.100@eth0: <BROADCAST,UP> mtu 1500 ... master br0 state UP ...".
func parseLink(w words) (Link, error) {
	w.next() // the index
	name := strings.TrimSuffix(w.next(), ":")
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	l := Link{Name: escapeName(name), Addrs: []Address{}}
	flags := w.next()
	if name == "" || !strings.HasPrefix(flags, "<") || !strings.HasSuffix(flags, ">") {
		return l, errNotPrinted
	}
	l.setFlags(strings.Split(flags[1:len(flags)-1], ","))
	for len(w) > 0 {
		if w.next() == "master" {
			l.Master = escapeName(w.next())
		}
	}
	return l, nil
}

// setFlags sets the bits of linux/if.h. RUNNING is not printed, but that it is
// missing is, as NO-CARRIER (print_link_flags of iproute2's ip/ipaddress.c).
func (l *Link) setFlags(names []string) {
	const running = 0x40
	bits := map[string]uint32{
		"UP": 0x1, "BROADCAST": 0x2, "DEBUG": 0x4, "LOOPBACK": flagLoopback, "POINTOPOINT": 0x10, "NOTRAILERS": 0x20,
		"NOARP": 0x80, "PROMISC": 0x100, "ALLMULTI": 0x200, "MASTER": 0x400, "SLAVE": 0x800, "MULTICAST": 0x1000,
		"PORTSEL": 0x2000, "AUTOMEDIA": 0x4000, "DYNAMIC": 0x8000, "LOWER_UP": 0x10000, "DORMANT": 0x20000, "ECHO": 0x40000,
	}
	for _, name := range names {
		l.Flags |= bits[name]
	}
	l.Up = l.Flags&bits["UP"] != 0
	l.NoARP = l.Flags&bits["NOARP"] != 0
	l.Loopback = l.Flags&flagLoopback != 0
	if l.Up && !slices.Contains(names, "NO-CARRIER") {
		l.Flags |= running
	}
}

// parseAddress reads what follows "inet": "10.0.3.11/24 brd 10.0.3.255 scope
// global secondary eth0", or "10.0.0.1 peer 10.0.0.2/32 scope global tun0".
func parseAddress(w words) (Address, error) {
	local, peer := w.next(), ""
	if w.peek() == "peer" {
		w.next()
		peer = w.next()
	}
	// The length is that of the peer's subnet, if there is a peer.
	length := "/32"
	if _, bits, ok := strings.Cut(cmp.Or(peer, local), "/"); ok {
		length = "/" + bits
	}
	host, _, _ := strings.Cut(local, "/")
	prefix, err := netip.ParsePrefix(host + length)
	if err != nil || !prefix.Addr().Is4() {
		return Address{}, fmt.Errorf("%q is not an IPv4 address with its prefix's length", local)
	}
	a := Address{Prefix: prefix}
	if peer != "" {
		text, _, _ := strings.Cut(peer, "/")
		if a.Peer, err = netip.ParseAddr(text); err != nil || !a.Peer.Is4() {
			return Address{}, fmt.Errorf("%q is not the IPv4 address of a peer", peer)
		}
	}
	for len(w) > 0 {
		switch w.next() {
		case "scope":
			a.Scope = Scope(strings.ToValidUTF8(w.next(), "\uFFFD"))
		case "secondary":
			a.Secondary = true
		case "noprefixroute":
			a.NoPrefixRoute = true
		}
	}
	if _, err := a.Scope.rule(); err != nil {
		return Address{}, err
	}
	return a, nil
}
