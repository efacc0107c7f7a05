package strictarp

import (
	"fmt"
	"slices"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
)

func wireChecks() []func(*view) []Finding {
	return []func(*view) []Finding{
		eachSighting(checkResponders), eachSighting(checkSilence), eachSighting(checkDoubleAnswer), eachSighting(checkFrames),
		eachSighting(checkFlapping), checkClaims, checkNeighbours, checkLocalPolicy, checkUnderlay,
	}
}

// eachSighting makes a check of one that looks at a VIP from one vantage.
func eachSighting(check func(*view, *vip, sighting) []Finding) func(*view) []Finding {
	return func(v *view) []Finding {
		var found []Finding
		for _, p := range v.vips {
			for _, s := range p.seen {
				for _, f := range check(v, p, s) {
					f.Vantage = s.vantage.Name
					found = append(found, f)
				}
			}
		}
		return found
	}
}

// answer is a responder as one vantage saw it, over all of its probes of the VIP.
type answer struct {
	arpcheck.Responder
	result *arpcheck.Result
	host   string // the node that it belongs to, or its MAC
}

// answers returns who answered, each MAC once, with the newest result it is in.
func (v *view) answers(s sighting) []answer {
	var list []answer
	for _, i := range s.results {
		r := &s.vantage.Probes[i]
		for _, p := range r.Responders {
			a := answer{p, r, v.owners.host(p.MAC)}
			if j := slices.IndexFunc(list, func(b answer) bool { return b.MAC == p.MAC }); j >= 0 {
				list[j] = a
			} else {
				list = append(list, a)
			}
		}
	}
	if len(list) < 2 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(a answer) bool {
		return slices.ContainsFunc(list, func(b answer) bool { return s.tookOver(a, b) })
	})
}

// tookOver reports whether b announced itself after the last answer of a and only
// then began to answer: a fail-over, after which a is the owner no more.
func (s sighting) tookOver(a, b answer) bool {
	if a.host == b.host || !b.First.After(a.Last) {
		return false
	}
	return slices.ContainsFunc(b.result.Claims, func(c arpcheck.Claim) bool {
		return c.MAC == b.MAC && (c.Kind == arpcheck.Announcement || c.Kind == arpcheck.GratuitousReply) && c.First.After(a.Last) && c.First.Before(b.First)
	})
}

// evidence of a responder.
func (v *view) evidence(s sighting, a answer) Evidence {
	text := fmt.Sprintf("%s answered %s %s, first in %s", v.owners.name(a.MAC), a.result.Target, times(a.Replies), counted(a.WonRounds, "round", "rounds"))
	if a.RTT.Mean > 0 {
		text += fmt.Sprintf(", after %s", a.RTT.Mean.Round(100*time.Microsecond))
	}
	return Evidence{Observed: text, Source: s.vantage.Name + ": " + s.vantage.Source, At: a.Last}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// hosts groups answers by host.
func hosts(list []answer) map[string][]answer {
	byHost := map[string][]answer{}
	for _, a := range list {
		byHost[a.host] = append(byHost[a.host], a)
	}
	return byHost
}

func (p *Vantage) hasMAC(mac arpcheck.MAC) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool { return l.MAC == mac })
}

// nodeName returns the node a MAC belongs to; empty if that is not known.
func (v *view) nodeName(mac arpcheck.MAC) string {
	who, _ := v.owners.of(mac)
	return who.node
}

// dedupe keeps the first finding of each key.
func dedupe(found []Finding) []Finding {
	seen := map[Key]bool{}
	return slices.DeleteFunc(found, func(f Finding) bool {
		again := seen[f.Key()]
		seen[f.Key()] = true
		return again
	})
}
