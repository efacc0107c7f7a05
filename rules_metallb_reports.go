package strictarp

import (
	"fmt"
	"slices"

	"github.com/strictarp/strictarp/metallb"
)

// checkReports is about who is reported to announce. That nothing reports it is a
// fault only where nobody answers.
func checkReports(v *view) []Finding {
	if !v.metallb.Installed {
		return nil
	}
	var names []string
	for _, s := range v.judgedServices() {
		names = append(names, string(serviceSubject(s)))
	}
	if len(names) == 0 && !v.all {
		return nil
	}
	if v.all {
		names = nil // of Services that are gone too
	}
	var found []Finding
	for _, st := range v.metallb.Status(v.speakerFacts(), names...) {
		for _, r := range st.Reasons {
			if r.Rule == metallb.RuleNotAnnounced && !v.silent(st.Service) {
				continue
			}
			if n := v.byNode[r.Node]; r.Rule == metallb.RuleAnnouncingInterfaceAbsent && n != nil && n.Links != nil && v.metallb.L2Advertisements != nil {
				continue // checkElections knows better: that was said once, and outlives the cure
			}
			f := v.reasonFinding(Subject(st.Service), r)
			if r.Rule == metallb.RuleAnnouncerMismatch {
				f.Message += " " + v.byTheWire(st)
			}
			if need := v.undeclared(st.Service); need != "" && r.Rule == metallb.RuleNotAnnounced {
				f.notSure(need)
			}
			found = append(found, f)
		}
	}
	return dedupe(found)
}

// byTheWire says which side of an announcer-mismatch is to be believed: the one that
// answers.
func (v *view) byTheWire(st metallb.ServiceStatus) string {
	var hosts []string
	for _, p := range v.vips {
		if !slices.ContainsFunc(p.services, func(s *metallb.Service) bool { return string(serviceSubject(s)) == st.Service }) {
			continue
		}
		for _, s := range p.seen {
			for _, a := range v.answers(s) {
				hosts = append(hosts, a.host)
			}
		}
	}
	slices.Sort(hosts)
	switch hosts = slices.Compact(hosts); {
	case len(hosts) != 1:
		return "Believe the wire: ask for the VIP, the node that answers announces it. If that is the reported one, read in the speakers' logs which nodes they count."
	case hosts[0] == st.Announcer:
		return fmt.Sprintf("On the wire %s answers, so the report is right: read in the speakers' logs which nodes they count.", hosts[0])
	case hosts[0] == st.Expected:
		return fmt.Sprintf("On the wire %s answers, so the report is out of date.", hosts[0])
	}
	return fmt.Sprintf("On the wire %s answers, which is neither: see what else announces the VIP.", hosts[0])
}

// undeclared returns what was not observed of that on which the announcement of a
// Service depends; empty if all was.
func (v *view) undeclared(service string) Need {
	for _, p := range v.vips {
		for _, e := range v.expect(p).elections {
			if e.Namespace+"/"+e.Service != service {
				continue
			}
			for _, part := range e.Unknown {
				switch part {
				case "nodes":
					return NeedNodes
				case "speakers":
					return NeedWorkloads
				case "endpoints":
					return NeedServices
				case "pools", "l2Advertisements":
					return NeedMetalLBObjects
				}
			}
		}
	}
	return ""
}

// silent reports whether VIPs of a Service were asked for and nobody answered.
func (v *view) silent(service string) bool {
	silent := false
	for _, p := range v.vips {
		if !slices.ContainsFunc(p.services, func(s *metallb.Service) bool { return string(serviceSubject(s)) == service }) {
			continue
		}
		for _, s := range p.seen {
			if len(v.answers(s)) > 0 {
				return false
			}
			silent = silent || s.silent()
		}
	}
	return silent
}
