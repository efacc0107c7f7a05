package strictarp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
)

// silent reports whether all probes are sure that nobody answers.
func (s sighting) silent() bool {
	return !slices.ContainsFunc(s.results, func(i int) bool { return s.vantage.Probes[i].Verdict != arpcheck.None })
}

// checkSilence is about VIPs that nobody answers for, or of which that cannot be
// told.
func checkSilence(v *view, p *vip, s sighting) []Finding {
	subject := Subject(p.addr.String())
	for _, i := range s.results {
		if verdict := s.vantage.Probes[i].Verdict; verdict == arpcheck.Single || verdict == arpcheck.Multiple {
			return nil
		}
	}
	last := &s.vantage.Probes[s.results[len(s.results)-1]]
	at := Evidence{Source: s.vantage.Name + ": " + s.vantage.Source, At: last.Ended}
	if !s.silent() {
		var why []string
		for _, r := range last.Reasons {
			why = append(why, r.Explain())
		}
		f := v.newFinding("probe-inconclusive", subject, "The probe of %s from %s cannot decide: %s.", p.addr, s.vantage.Name, strings.Join(why, "; "))
		f.Message += " Collect: " + NeedProbes.Collect()
		at.Observed = fmt.Sprintf("%d rounds, %d frames dropped", last.Rounds, last.Quality.Drops)
		f.Evidence = append(f.Evidence, at)
		return []Finding{f}
	}
	if v.canary(p.addr) {
		return nil // silence is right
	}
	f := v.newFinding("no-responder", subject, "Nobody answers for %s. %s", p.addr, v.sentence(v.expect(p)))
	if v.strictlyHeld(p) {
		f.Message += " The settings of the kernels that hold it are right and not the cause: do not loosen them."
	}
	at.Observed = fmt.Sprintf("%d silent rounds from %s", last.Rounds, last.Sender.Addr)
	if last.Control != nil && last.Control.Answered {
		at.Observed += fmt.Sprintf(", while %s answered", last.Control.Target)
	}
	f.Evidence = append(f.Evidence, at)
	f.Avoid = v.silenceCautions(p)
	return []Finding{f}
}

// strictlyHeld reports whether nodes hold a VIP for a service proxy and their kernels
// are silent about it, as they should be.
func (v *view) strictlyHeld(p *vip) bool {
	nodes := p.nodes()
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *node) bool {
		k := v.kernel(n, p)
		return !k.known || k.answers || k.onNIC
	})
}

// checkUnderlay: a node is seen to answer, and the answer does not arrive where it
// was asked.
func checkUnderlay(v *view) []Finding {
	var found []Finding
	for i := range v.Vantages {
		w := &v.Vantages[i]
		for _, c := range w.Claims {
			p := v.judged(c.Addr)
			if p == nil || c.Kind != arpcheck.Reply || !w.sends(v, c.MAC) {
				continue
			}
			for _, s := range p.seen {
				if s.vantage == w || !s.vantage.hasMAC(c.To) || len(v.answers(s)) > 0 {
					continue
				}
				f := v.newFinding("underlay-drops-arp", Subject(p.addr.String()), "%s answers %s for %s, and no answer arrives there: a switch, hypervisor or Wi-Fi in between filters ARP.",
					v.owners.name(c.MAC), s.vantage.Name, p.addr)
				f.Node, f.Vantage = v.nodeName(c.MAC), s.vantage.Name
				f.Evidence = []Evidence{
					{Observed: fmt.Sprintf("%d replies from %s to %s", c.Frames, c.MAC, c.To), Source: w.Name + ": " + w.Source, At: c.Last},
					{Observed: "no answer", Source: s.vantage.Name + ": " + s.vantage.Source, At: s.vantage.Probes[s.results[0]].Ended},
				}
				f.Remedies = []Remedy{NewRemedy("Let ARP through.", Step{Action: DoByHand, Object: fmt.Sprintf(
					"allow ARP replies with the sender %s from %s: port security, anti-spoofing of the hypervisor or cloud, ARP suppression, Wi-Fi isolation", p.addr, f.Node)})}
				found = append(found, f)
			}
		}
	}
	for _, p := range v.vips {
		for _, s := range p.seen {
			if e := v.expect(p); e.known && s.silent() {
				found = append(append(found, v.unheard(p, e, s)...), v.unarrived(p, e, s)...)
			}
		}
	}
	return dedupe(found)
}

// sends reports whether a vantage is the host with that MAC.
func (p *Vantage) sends(v *view, mac arpcheck.MAC) bool {
	return p.hasMAC(mac) || p.Node != "" && v.nodeName(mac) == p.Node
}

// unheard: the announcer's gratuitous frames arrive where its answers do not.
func (v *view) unheard(p *vip, e expectation, s sighting) []Finding {
	last := s.last()
	claims := slices.Clone(last.Claims)
	for _, c := range s.vantage.Claims {
		if c.Addr == p.addr {
			claims = append(claims, c.Claim)
		}
	}
	for _, c := range claims {
		if c.Kind != arpcheck.Announcement && c.Kind != arpcheck.GratuitousReply || !e.right(v.nodeName(c.MAC)) {
			continue
		}
		f := v.dropped(p, s, v.nodeName(c.MAC), fmt.Sprintf("%s announces %s to %s and does not answer it: requests do not arrive there, or answers are dropped", v.owners.name(c.MAC), p.addr, s.vantage.Name))
		f.Evidence = append(f.Evidence, Evidence{Observed: fmt.Sprintf("%d gratuitous frames from %s", c.Frames, c.MAC), Source: s.vantage.Name + ": " + s.vantage.Source, At: c.Last})
		return []Finding{f}
	}
	return nil
}

// unarrived: at the announcer's node other ARP frames were captured while a client
// asked, and none of its requests.
func (v *view) unarrived(p *vip, e expectation, s sighting) (found []Finding) {
	last := s.last()
	for i := range v.Vantages {
		w := &v.Vantages[i]
		if w.Node == "" || w.Node == s.vantage.Node || !e.right(w.Node) {
			continue
		}
		if slices.ContainsFunc(w.Claims, func(c arpcheck.AddrClaim) bool { return c.Target == p.addr || c.Addr == p.addr }) {
			continue
		}
		k := slices.IndexFunc(w.Claims, func(c arpcheck.AddrClaim) bool { return !c.Last.Before(last.Started) && !c.First.After(last.Ended) })
		if k < 0 {
			continue // what was captured is of another time
		}
		f := v.dropped(p, s, w.Node, fmt.Sprintf("%s asks for %s, and its requests do not arrive at %s, where other ARP frames do", s.vantage.Name, p.addr, w.Node))
		f.Evidence = append(f.Evidence, Evidence{Observed: "other ARP frames, and no request for it", Source: w.Name + ": " + w.Source, At: w.Claims[k].Last})
		found = append(found, f)
	}
	return found
}

// dropped is a finding that something between a vantage and a node filters ARP.
func (v *view) dropped(p *vip, s sighting, node, what string) Finding {
	f := v.newFinding("underlay-drops-arp", Subject(p.addr.String()), "%s.", what)
	f.Node, f.Vantage = node, s.vantage.Name
	f.Evidence = []Evidence{{Observed: "no answer", Source: s.vantage.Name + ": " + s.vantage.Source, At: s.last().Ended}}
	f.Remedies = []Remedy{NewRemedy("Let ARP through.", Step{Action: DoByHand, Object: fmt.Sprintf(
		"allow ARP for %s between %s and %s: port security, anti-spoofing of the hypervisor or cloud, ARP suppression, Wi-Fi isolation", p.addr, s.vantage.Name, node)})}
	return f
}

// last returns the newest result of a sighting.
func (s sighting) last() *arpcheck.Result { return &s.vantage.Probes[s.results[len(s.results)-1]] }
