package sysctl

import (
	"maps"
	"slices"
	"strconv"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// Boot is what the files lead to at the next boot, before anything else changes
// it: kube-proxy, for one, sets its values when it starts.
type Boot struct {
	ARP ARP `json:"arp"`
	// By is the line each value comes from. Values that are not in it are the
	// kernel's own.
	By map[Key]Source `json:"by"`
}

// AtBoot returns what a tool leaves behind at boot on a machine that gets these
// interfaces. With systemd-sysctl they appear after it has run for "all",
// "default" and lo, and each gets what the files say of it as it appears; with
// procps they are there already, as for "sysctl --system" on a machine that has
// just come up without any settings.
func (p Persisted) AtBoot(tool Tool, interfaces ...string) Boot {
	n := devconf.New()
	b := Boot{By: map[Key]Source{}}
	n.Add("lo")
	if tool == ProcpsSysctl {
		for _, name := range interfaces {
			n.Add(name)
		}
	}
	b.write(tool, n, p.Writes(tool, append(ARPKeys(n.Names()...), ipForward)))
	if tool == SystemdSysctl {
		for _, name := range interfaces {
			if n.Add(name) {
				b.inherit(name)
				b.write(tool, n, p.Writes(tool, ARPKeys(name)))
			}
		}
	}
	b.ARP = ARP{Interfaces: map[string]Values{}}
	for _, name := range n.Names() {
		values := Values{}
		for _, param := range Params() {
			v, _ := n.Value(devconf.Cell{Interface: name, Param: string(param)})
			values[param] = int(v)
		}
		b.ARP.set(name, values)
	}
	return b
}

// write lets the kernel's rules decide what each write sets.
func (b *Boot) write(tool Tool, n *devconf.Net, writes []Write) {
	for _, w := range writes {
		iface, param, ok := w.Key.conf()
		if !ok {
			continue
		}
		c := devconf.Cell{Interface: iface, Param: string(param)}
		// systemd-sysctl does not write what is there already, so that the
		// kernel goes on taking the interface for one that follows "default".
		if v, _ := n.Value(c); tool == SystemdSysctl && strconv.Itoa(int(v)) == w.Value {
			b.By[confKey(iface, param)] = w.By
			continue
		}
		set, err := n.Write(c, w.Value)
		if err != nil {
			continue // as the tools do
		}
		for _, c := range set {
			b.By[confKey(c.Interface, Param(c.Param))] = w.By
		}
	}
}

// inherit notes where a new interface's values come from.
func (b *Boot) inherit(iface string) {
	for _, p := range Params() {
		if by, ok := b.By[confKey(dflt, p)]; ok {
			b.By[confKey(iface, p)] = by
		}
	}
}

// BootChange is a parameter that will not be in effect on an interface as it is
// now.
type BootChange struct {
	Interface string    `json:"interface"`
	Param     Param     `json:"param"`
	Now       Effective `json:"now"`
	Next      Effective `json:"next"`
	By        []Source  `json:"by"` // the lines that decide; none if the kernel's own value does
}

// Changes returns what will be different on the interfaces of a running machine,
// as far as the boot says something of them, by interface and then in the order
// of Params.
func (b Boot) Changes(running ARP) []BootChange {
	var changes []BootChange
	for _, name := range slices.Sorted(maps.Keys(running.Interfaces)) {
		for _, p := range Params() {
			now, err := running.Effective(name, p)
			if err != nil {
				continue // not observed
			}
			next, err := b.ARP.Effective(name, p)
			if err != nil || p.Explain(next.Value).As == p.Explain(now.Value).As {
				continue
			}
			changes = append(changes, BootChange{name, p, now, next, b.deciders(name, p, next.DecidedBy)})
		}
	}
	return changes
}

func (b Boot) deciders(iface string, p Param, d Decider) []Source {
	by := []Source{}
	for _, from := range []struct {
		name string
		not  Decider
	}{{all, DecidedByInterface}, {iface, DecidedByAll}} {
		if s, ok := b.By[confKey(from.name, p)]; ok && d != from.not && !slices.Contains(by, s) {
			by = append(by, s)
		}
	}
	return by
}

// Loosening is a value that files set and that leaves an interface loose.
type Loosening struct {
	Interface string    `json:"interface"`
	Param     Param     `json:"param"` // ARPIgnore or ARPAnnounce
	Next      Effective `json:"next"`
	By        []Source  `json:"by"` // the lines that decide, at least one
}

// Loosening returns the values of arp_ignore and arp_announce that will not be
// strict on an interface because a line says so, by interface. Where no line
// does, the kernel's own value, which is loose too, is not among them. Lo and
// the holders, KubeIPVS0 if none is named, are left out.
func (b Boot) Loosening(holders ...string) []Loosening {
	var found []Loosening
	for _, name := range slices.Sorted(maps.Keys(b.ARP.Interfaces)) {
		if name == "lo" || slices.Contains(orKubeIPVS0(holders), name) {
			continue
		}
		for _, s := range strictParams() {
			next, err := b.ARP.Effective(name, s.param)
			if err != nil || s.param.IsStrict(next.Value) {
				continue
			}
			if by := b.deciders(name, s.param, next.DecidedBy); len(by) > 0 {
				found = append(found, Loosening{name, s.param, next, by})
			}
		}
	}
	return found
}

// ARPKeys returns the keys of all Params of the named interfaces; "all" and
// "default" are names too.
func ARPKeys(names ...string) []Key {
	keys := make([]Key, 0, len(names)*len(Params()))
	for _, name := range names {
		for _, p := range Params() {
			keys = append(keys, confKey(name, p))
		}
	}
	return keys
}

// names returns "all", "default" and all interfaces.
func (a ARP) names() []string {
	return append([]string{all, dflt}, slices.Sorted(maps.Keys(a.Interfaces))...)
}

// own returns the values of an interface, "all" or "default", nil if there are none.
func (a ARP) own(name string) Values {
	switch name {
	case all:
		return a.All
	case dflt:
		return a.Default
	}
	return a.Interfaces[name]
}
