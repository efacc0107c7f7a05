package strictarp

import (
	"errors"
	"net/netip"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

func (b *bundle) readVantages() {
	names := b.folders("vantage")
	if names == nil {
		return
	}
	b.facts.Vantages = make([]Vantage, 0, len(names))
	for _, name := range names {
		v := Vantage{Name: name, Source: path.Join("vantage", name)}
		if node, ok := b.facts.Nodes[name]; ok || b.isNode(name) {
			v.Node, v.Links = name, node.Links
		}
		var capture []byte
		b.readParts(v.Source, name, vantageParts(&v, &capture))
		if capture != nil { // after the addresses, which tell the prober
			b.replay(&v, capture)
		}
		b.facts.Vantages = append(b.facts.Vantages, v)
	}
}

func (b *bundle) isNode(name string) bool {
	return b.facts.Cluster != nil && slices.ContainsFunc(b.facts.Cluster.Objects, func(o runtime.Object) bool {
		node, ok := o.(*corev1.Node)
		return ok && node.Name == name
	})
}

func vantageParts(v *Vantage, capture *[]byte) []part {
	links := func(text []byte) (warned []sysctl.Warning, err error) {
		v.Links, warned, err = ParseLinks(reader(text))
		return warned, err
	}
	frames := func(text []byte) ([]sysctl.Warning, error) {
		*capture = text
		return nil, nil
	}
	return []part{
		{"ip-addr.txt", "interfaces and addresses", "ip -d addr", links},
		{"ip-addr.json", "interfaces and addresses", "ip -d -j addr", links},
		{"ip-neigh.txt", "neighbours", "ip neigh", func(text []byte) (warned []sysctl.Warning, err error) {
			v.Neighbours, _, warned, err = ParseNeighbours(reader(text))
			return warned, err
		}},
		{"arp.pcap", "captured ARP frames", collectCapture, frames},
		{"arp.pcapng", "captured ARP frames", collectCapture, frames},
	}
}

const collectCapture = "tcpdump -i INTERFACE -w arp.pcap arp, while asking for the VIPs"

func (b *bundle) replay(v *Vantage, capture []byte) {
	o := arpcheck.ReplayOptions{Vantage: v.Name}
	for _, l := range v.Links {
		for _, mac := range []arpcheck.MAC{l.MAC, l.PermanentMAC} {
			if !mac.IsZero() && !slices.Contains(o.MACs, mac) {
				o.MACs = append(o.MACs, mac)
			}
		}
		for _, a := range l.Addrs {
			o.Addrs = append(o.Addrs, a.Prefix.Addr())
		}
	}
	c, err := arpcheck.ReplayPCAP(reader(capture), o)
	if err != nil {
		b.miss("captured ARP frames", v.Name, collectCapture, err)
	}
	if errors.Is(err, arpcheck.ErrNotCapture) {
		return
	}
	b.saw(c.Ended)
	v.At, v.Probes, v.Claims, v.Capture = c.Ended, c.Results, c.Claims, &c.Quality
	for i := range v.Probes {
		if r := &v.Probes[i]; r.Interface == "" {
			r.Interface = v.linkOf(r.MAC, r.Sender.Addr)
		}
	}
}

// linkOf returns the interface that asks with a MAC, the one with the sender's
// address if several have that MAC, as a bond and its VLANs.
func (v *Vantage) linkOf(mac arpcheck.MAC, sender netip.Addr) string {
	name := ""
	for _, l := range v.Links {
		if l.MAC != mac || l.NoARP {
			continue
		}
		if slices.ContainsFunc(l.Addrs, func(a Address) bool { return a.Prefix.Addr() == sender }) {
			return l.Name
		}
		if name == "" {
			name = l.Name
		}
	}
	return name
}
