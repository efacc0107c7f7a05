package sysctl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// UselessReason says why a setting does not do what it seems to be set for.
type UselessReason string

// Reasons.
const (
	// DefaultIsForLater is of conf/default: interfaces start with its values
	// when they are made. Later writes reach only those that never had an IPv4
	// address and whose own value nobody ever wrote (devinet_copy_dflt_conf in
	// the kernel's net/ipv4/devinet.c).
	DefaultIsForLater UselessReason = "default-is-for-later"
	// HolderReceivesNothing is of a device that only holds addresses, such as
	// kube-ipvs0: requests arrive on another interface, whose values count.
	HolderReceivesNothing UselessReason = "holder-receives-nothing"
)

// KubeIPVS0 is the device on which kube-proxy in ipvs mode holds the addresses
// of Services.
const KubeIPVS0 = "kube-ipvs0"

// Useless is a setting that does nothing for who answers.
type Useless struct {
	Key    Key           `json:"key"`
	Value  int           `json:"value"`
	Reason UselessReason `json:"reason"`
	// Without are the interfaces on which the value is not in effect, sorted.
	Without []string `json:"without,omitempty"`
	By      Source   `json:"by,omitzero"` // the line that sets it, if it is from a file
}

// String returns what is useless and why.
func (u Useless) String() string {
	if u.Reason == HolderReceivesNothing {
		return fmt.Sprintf("%s=%d: no request arrives on this device", u.Key.Dotted(), u.Value)
	}
	return fmt.Sprintf("%s=%d: is not in effect on %s: interfaces take it when they are made", u.Key.Dotted(), u.Value, strings.Join(u.Without, ", "))
}

// Useless returns values that cannot matter and were set as if they did, by key.
// Holders are the devices that only hold addresses, KubeIPVS0 if none is named.
//
// A value of "default" is named if it would do something and does not on some
// interface other than lo and the holders; one of a holder, if it would do
// something and did not come from "default".
func (a ARP) Useless(holders ...string) []Useless {
	holders = orKubeIPVS0(holders)
	var found []Useless
	for _, p := range uselessParams() {
		if value, ok := a.Default[p]; ok {
			found = a.appendDefault(found, p, value, Source{}, holders)
		}
		for _, name := range holders {
			if value, ok := a.Interfaces[name][p]; ok && value != a.Default[p] {
				found = appendHolder(found, name, p, value, Source{})
			}
		}
	}
	return sortUseless(found)
}

// Useless returns lines that cannot matter for the interfaces of a running
// machine, by key; see ARP.Useless. Lines that name a key by a pattern are not
// among them, nor those whose value another line replaces.
func (p Persisted) Useless(tool Tool, running ARP, holders ...string) []Useless {
	holders = orKubeIPVS0(holders)
	var found []Useless
	for _, param := range uselessParams() {
		for _, name := range append([]string{dflt}, holders...) {
			w, ok := p.Winner(tool, confKey(name, param))
			value, accepted := devconf.ParseWritten(w.Value)
			if !ok || !accepted || w.By.Pattern {
				continue
			}
			if name == dflt {
				found = running.appendDefault(found, param, int(value), w.By, holders)
			} else {
				found = appendHolder(found, name, param, int(value), w.By)
			}
		}
	}
	return sortUseless(found)
}

// uselessParams are those that decide about requests as they arrive, and which
// sender the host's own have.
func uselessParams() []Param {
	return []Param{ARPIgnore, ARPAnnounce, ARPFilter, ProxyARP, ProxyARPPVLAN, RPFilter, DropGratuitousARP}
}

func (a ARP) appendDefault(found []Useless, p Param, value int, by Source, holders []string) []Useless {
	if p.Explain(value).As == 0 {
		return found
	}
	var without []string
	for _, name := range slices.Sorted(maps.Keys(a.Interfaces)) {
		now, err := a.Effective(name, p)
		if err != nil || name == "lo" || slices.Contains(holders, name) {
			continue
		}
		if would, _ := Combine(p, now.All, value); would.Value > now.Value {
			without = append(without, name)
		}
	}
	if without == nil {
		return found
	}
	return append(found, Useless{confKey(dflt, p), value, DefaultIsForLater, without, by})
}

func appendHolder(found []Useless, name string, p Param, value int, by Source) []Useless {
	if p.Explain(value).As == 0 {
		return found
	}
	return append(found, Useless{Key: confKey(name, p), Value: value, Reason: HolderReceivesNothing, By: by})
}

func orKubeIPVS0(holders []string) []string {
	if len(holders) == 0 {
		return []string{KubeIPVS0}
	}
	return holders
}

func sortUseless(found []Useless) []Useless {
	slices.SortFunc(found, func(a, b Useless) int { return cmp.Compare(a.Key, b.Key) })
	return found
}
