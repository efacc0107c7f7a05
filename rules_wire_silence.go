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
	return len(p.holders) > 0 && !slices.ContainsFunc(p.holders, func(h holding) bool {
		k := v.kernel(h.node, p)
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
	return dedupe(found)
}

// sends reports whether a vantage is the host with that MAC.
func (p *Vantage) sends(v *view, mac arpcheck.MAC) bool {
	return p.hasMAC(mac) || p.Node != "" && v.nodeName(mac) == p.Node
}
