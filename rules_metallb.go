package strictarp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp/metallb"
)

func metalLBChecks() []func(*view) []Finding {
	return []func(*view) []Finding{checkElections, checkSpeakers, checkReports, checkHygiene, checkAnnouncers, checkConfigStates}
}

// flagBroadcast is IFF_BROADCAST of linux/if.h.
const flagBroadcast = 0x2

// reasonFinding turns what package metallb says into a finding about a subject.
func (v *view) reasonFinding(subject Subject, r metallb.Reason) Finding {
	f := v.newFinding(string(r.Rule), subject, "%s", sentence(r.Message))
	f.Node = r.Node
	if r.Role == metallb.RoleAlso {
		f.Severity = min(f.Severity, SeverityWarning)
		f.Message += " It is not the first reason for silence, and would be the next."
	}
	f.Evidence = []Evidence{v.reasonEvidence(r)}
	f.Remedies = reasonRemedies(r)
	if need := v.wants(r); need != "" {
		f.notSure(need)
	}
	return f
}

// notSure makes a finding one that needs more facts.
func (f *Finding) notSure(need Need) {
	f.Severity, f.Remedies = SeverityUnknown, nil
	f.Message += " What could explain it was not observed. Collect: " + need.Collect()
}

// wants returns what was not observed without which a reason is only a guess;
// empty if all was.
func (v *view) wants(r metallb.Reason) Need {
	conflict := r.Rule == metallb.RuleAnnouncerStatusConflict // both have to be live
	switch {
	case v.metallb.Nodes == nil && (conflict || r.Rule == metallb.RuleAdvertisementSelectsNone): // by their labels
		return NeedNodes
	case v.metallb.Speakers == nil && conflict:
		return NeedWorkloads
	case v.metallb.Services == nil && conflict:
		return NeedServices
	}
	return ""
}

// reasonRemedies are what cures a reason, as far as it can be told.
func reasonRemedies(r metallb.Reason) []Remedy {
	by := func(summary, format string, args ...any) []Remedy {
		return []Remedy{NewRemedy(summary, Step{Action: DoByHand, Object: fmt.Sprintf(format, args...)})}
	}
	switch r.Rule {
	case metallb.RuleNodeExcluded:
		if !strings.Contains(r.Field, excludeFromLB) || r.Node == "" {
			return by("Remove the label "+excludeFromLB+".", "remove the label %s from a node that is to announce, or uncordon it", excludeFromLB)
		}
		return []Remedy{NewRemedy("Remove the label "+excludeFromLB+".", Step{Action: SetLabel, Node: r.Node, Object: excludeFromLB, To: Absent})}
	case metallb.RuleNoL2Advertisement:
		return by("Announce the pool.", "create an L2Advertisement for the Service's pool in %s, or name the pool in one", r.Object.Namespace)
	case metallb.RuleNoPoolForAddress:
		return by("Put the address into a pool.", "add the address to an IPAddressPool, or give the Service another one")
	case metallb.RuleServiceWithoutAddress:
		return by("See why the Service has no address.", "read the events of the Service and the log of MetalLB's controller")
	case metallb.RuleNoReadyEndpoint:
		return by("Make an endpoint ready.", "see why no pod of the Service is ready: selector, readiness probes, nodes")
	case metallb.RuleNoLocalEndpoint:
		return by("Bring endpoint and announcer together.", "run a ready pod of the Service on a node that may announce it, widen the L2Advertisement's nodeSelectors to the pods' nodes, or set externalTrafficPolicy to Cluster")
	case metallb.RuleAdvertisementSelectsNone:
		return by("Select a node.", "correct the nodeSelectors of %s, or label nodes to match", r.Object)
	case metallb.RuleNoSpeakerOnNode:
		return by("Run a speaker.", "see why no speaker is ready there: tolerations, nodeSelector, the events of its pod")
	case metallb.RuleSpeakerCannotAnswer:
		return by("Let the speaker answer.", "grant the speaker NET_RAW and hostNetwork, and see its log")
	case metallb.RuleMemberlistDisabled:
		return by("Turn memberlist on.", "set METALLB_ML_BIND_ADDR and METALLB_ML_LABELS in the speaker's DaemonSet")
	case metallb.RuleAnnouncingInterfaceAbsent, metallb.RuleAnnouncingInterfaceSkip:
		return by("Name an interface that can answer.", "let the L2Advertisement name an interface of the segment that the node has, that is up and no port of another (for a port: its bridge or bond), or let its nodeSelectors choose nodes that have it")
	case metallb.RuleSharedIPConflict:
		return by("Let one node announce all that share the address.", "give Services that share an address the same policy and selectors, or each its own address")
	case metallb.RuleNotAnnounced:
		return by("Find out why the speaker is silent.", "read the log of the speaker on %s, with --log-level=debug if need be", r.Node)
	case metallb.RuleSecondAnnouncer:
		return by("Keep one announcer.", "give the Service a loadBalancerClass that only one of them takes, or narrow the other one")
	}
	return nil
}

// judgedServices are those whose VIPs are judged, and those without an address if
// all are.
func (v *view) judgedServices() []*metallb.Service {
	var list []*metallb.Service
	for i := range v.metallb.Services {
		s := &v.metallb.Services[i]
		if v.all || v.subjects[serviceSubject(s)] || slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return v.judged(a) != nil }) {
			list = append(list, s)
		}
	}
	return list
}

// unclaimed: a Service waits for an address, and nothing that was found serves its
// loadBalancerClass.
func (v *view) unclaimed(s *metallb.Service) []Finding {
	if s.Type != string(corev1.ServiceTypeLoadBalancer) || s.Class == "" || s.Deleting || len(s.Addresses)+len(s.BadIngress) > 0 ||
		len(v.elector.Announcers(s, netip.Addr{}, nil)) > 0 {
		return nil
	}
	const rule = "service-without-address"
	text := fmt.Sprintf("No program that was found serves the loadBalancerClass %q, so nobody gives the Service an address", s.Class)
	if v.metallb.Speakers == nil {
		return []Finding{v.unknown(rule, serviceSubject(s), NeedWorkloads, "%s.", text)}
	}
	return []Finding{v.reasonFinding(serviceSubject(s), metallb.Reason{Rule: metallb.RuleServiceWithoutAddress,
		Object: metallb.Object{Kind: "Service", Namespace: s.Namespace, Name: s.Name}, Field: "spec.loadBalancerClass", Message: text})}
}

// checkElections is about why nobody is to announce a Service, or who is and
// cannot.
func checkElections(v *view) []Finding {
	var found []Finding
	hosts := map[string]metallb.Host{} // of the nodes that announce
	for _, s := range v.judgedServices() {
		e := v.elect(s)
		if !e.Mine {
			found = append(found, v.unclaimed(s)...)
			continue
		}
		reasons := e.Reasons
		if n := v.byNode[e.Announcer]; n != nil {
			h, ok := hosts[n.name]
			if !ok {
				h = n.host()
				hosts[n.name] = h
			}
			reasons = append(slices.Clip(reasons), v.metallb.CheckInterfaces(e, h)...)
		}
		for _, r := range reasons {
			found = append(found, v.reasonFinding(serviceSubject(s), r))
		}
	}
	return dedupe(found)
}

// host is a node as MetalLB's speaker sees it.
func (n *node) host() metallb.Host {
	var h metallb.Host
	if !wholeLinks(n.Links) {
		return h // what is not in the list may be there all the same
	}
	for i := range n.Links {
		l := &n.Links[i]
		in := metallb.Interface{Name: l.Name, Up: l.Up, NoARP: l.NoARP, Master: l.Master, Broadcast: l.Flags == 0 && !l.Loopback || l.Flags&flagBroadcast != 0}
		for _, a := range l.Addrs {
			in.Addresses = append(in.Addresses, a.Prefix)
		}
		h.Interfaces = append(h.Interfaces, in)
	}
	if n.Speaker != nil && n.Speaker.Log != nil {
		h.ScanStopped = n.Speaker.Log.ScanStopped()
	}
	return h
}

// checkSpeakers is about what speakers' logs say.
func checkSpeakers(v *view) []Finding {
	var found []Finding
	for _, n := range v.nodes {
		if n.Speaker == nil || n.Speaker.Log == nil {
			continue
		}
		for _, r := range n.Speaker.Log.Reasons() {
			if r.Rule == metallb.RuleAnnouncingInterfaceSkip && n.Links != nil {
				continue // checkElections says whose address it is about
			}
			f := v.reasonFinding(Subject(n.name), r)
			f.Evidence = []Evidence{logEvidence(n.Speaker.Log)}
			found = append(found, f)
		}
	}
	return found
}

// speakerFacts are what speakers say outside the API server.
func (v *view) speakerFacts() metallb.SpeakerFacts {
	var facts metallb.SpeakerFacts
	for _, name := range v.names {
		s := v.byNode[name].Speaker
		if s == nil {
			continue
		}
		if s.Log != nil {
			facts.Logs = append(facts.Logs, *s.Log)
		}
		if s.Metrics != nil {
			facts.Metrics = append(facts.Metrics, *s.Metrics)
		}
	}
	return facts
}

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

// checkHygiene is about pools and shared addresses.
func checkHygiene(v *view) []Finding {
	var around metallb.Surroundings
	for _, name := range v.names {
		n := v.byNode[name]
		for i := range n.Links {
			l := &n.Links[i]
			for _, a := range l.Addrs {
				if p := a.Prefix.Masked(); l.segment() && p.Addr().Is4() && p.Bits() < 31 && !slices.Contains(around.Segments, p) {
					around.Segments = append(around.Segments, p)
				}
			}
		}
		for _, r := range n.Routes {
			if r.Gateway.IsValid() && r.Dst.Bits() == 0 && !slices.Contains(around.Gateways, r.Gateway) {
				around.Gateways = append(around.Gateways, r.Gateway)
			}
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(v.byVIP), netip.Addr.Compare) {
		p := v.byVIP[addr]
		for _, s := range p.seen {
			proxies := v.proxies(s.vantage)
			for _, a := range v.answers(s) {
				if v.stranger(p, a.MAC) && len(proxies[a.MAC]) == 0 && len(v.withoutMAC()) == 0 {
					around.Used = append(around.Used, metallb.UsedAddr{Addr: p.addr, By: "the host " + a.MAC.String()})
				}
			}
		}
	}
	var found []Finding
	judged := map[Subject]bool{}
	for _, s := range v.judgedServices() {
		judged[serviceSubject(s)] = true
	}
	for _, r := range v.metallb.Hygiene(around) {
		if subject := objectSubject(r.Object); v.all || judged[subject] {
			found = append(found, v.reasonFinding(subject, r))
		}
	}
	return dedupe(found)
}

func objectSubject(o metallb.Object) Subject {
	if o.Namespace == "" {
		return Subject(o.Name)
	}
	return Subject(o.Namespace + "/" + o.Name)
}

// checkAnnouncers is about announcers besides or instead of MetalLB.
func checkAnnouncers(v *view) []Finding {
	var found []Finding
	for _, p := range v.vips {
		if len(p.services) == 0 {
			for _, r := range v.elector.AnnouncerReasons(nil, p.addr, nil) {
				found = append(found, v.reasonFinding(Subject(p.addr.String()), r))
			}
		}
		for _, s := range p.services {
			for _, r := range v.elector.AnnouncerReasons(s, p.addr, nil) {
				found = append(found, v.reasonFinding(serviceSubject(s), r))
			}
		}
	}
	return dedupe(found)
}

// checkConfigStates: MetalLB says that it refuses its configuration.
func checkConfigStates(v *view) []Finding {
	var found []Finding
	for _, c := range v.metallb.ConfigStates {
		if c.Result != "Invalid" && c.Error == "" {
			continue
		}
		f := v.newFinding("metallb-config-invalid", Subject(c.Namespace+"/"+c.Name), "MetalLB's %s refuses its configuration and goes on with the one it had: %s.", c.Component, c.Error)
		f.Node = c.Node
		f.Evidence = []Evidence{{Observed: c.Result + ": " + c.Error, Source: "ConfigurationState " + c.Namespace + "/" + c.Name, At: c.Updated}}
		found = append(found, f)
	}
	refused := func(kind, namespace, name, why string) {
		f := v.newFinding("metallb-config-invalid", Subject(namespace+"/"+name), "MetalLB refuses this %s, and with it its whole configuration: %s.", kind, why)
		f.Evidence = []Evidence{{Observed: why, Source: kind + " " + namespace + "/" + name, At: v.metallb.At}}
		found = append(found, f)
	}
	for _, ad := range v.metallb.L2Advertisements {
		if ad.Invalid != "" {
			refused("L2Advertisement", ad.Namespace, ad.Name, ad.Invalid)
		}
	}
	for _, p := range v.metallb.Pools {
		if len(p.Invalid) > 0 {
			refused("IPAddressPool", p.Namespace, p.Name, strings.Join(p.Invalid, "; "))
		}
	}
	return dedupe(found)
}
