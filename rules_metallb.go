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
