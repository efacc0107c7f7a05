package sysctl

import (
	"cmp"
	"maps"
	"slices"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// Drift is a running value that is not what a tool would write now.
type Drift struct {
	Key       Key    `json:"key"`
	Running   int    `json:"running"`
	Persisted int    `json:"persisted"`
	By        Source `json:"by"`
}

// Drift returns the running values that differ from what a tool would write if
// it ran now, sorted by key. Values that no line is about are not in it: AtBoot
// tells what becomes of them.
func (p Persisted) Drift(tool Tool, running ARP) []Drift {
	drift := map[Key]Drift{}
	for _, w := range p.Writes(tool, append(ARPKeys(running.names()...), ipForward)) {
		iface, param, _ := w.Key.conf()
		value, accepted := devconf.ParseWritten(w.Value)
		now, observed := running.own(iface)[param]
		if !accepted || !observed {
			continue
		}
		k := confKey(iface, param)
		drift[k] = Drift{k, now, int(value), w.By}
	}
	maps.DeleteFunc(drift, func(_ Key, d Drift) bool { return d.Running == d.Persisted })
	return slices.SortedFunc(maps.Values(drift), func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })
}
