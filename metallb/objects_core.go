package metallb

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state puts together what was collected. Objects of one kind are in the order
// of namespace and name, so that equal objects make equal States.
func (c *collector) state() State {
	s := State{}
	c.readSpeakers(&s)
	c.readCustom(&s)
	c.readConfigMaps(&s)
	c.readServices(&s)
	c.readNodes(&s)
	c.readEvents(&s)
	s.Installed = s.SpeakerSet != nil || len(s.Speakers)+len(s.Pools)+len(s.L2Advertisements)+len(s.Statuses)+len(s.ConfigStates) > 0
	s.Namespace = cmp.Or(s.Namespace, c.namespaceOfObjects())
	slices.Sort(c.warnings)
	s.Warnings = slices.Compact(c.warnings)
	return s
}

func (c *collector) readServices(s *State) {
	if !c.seen["Service"] {
		return
	}
	s.Services = []Service{}
	endpoints := c.endpointsByService()
	for _, svc := range c.services {
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(svc.Spec.ExternalIPs) == 0 {
			continue
		}
		read := service(svc)
		if endpoints != nil {
			read.Endpoints = append([]Endpoint{}, endpoints[svc.Namespace+"/"+svc.Name]...)
		}
		s.Services = append(s.Services, read)
	}
	slices.SortStableFunc(s.Services, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func service(svc *corev1.Service) Service {
	read := Service{
		Namespace: svc.Namespace, Name: svc.Name, UID: string(svc.UID),
		Created: svc.CreationTimestamp.Time, Deleting: svc.DeletionTimestamp != nil,
		Type: string(svc.Spec.Type), Policy: Policy(svc.Spec.ExternalTrafficPolicy),
		Labels: svc.Labels, Selector: svc.Spec.Selector,
		ExternalIPs: addrs(svc.Spec.ExternalIPs),
		Requested:   requested(svc),
	}
	if svc.Spec.LoadBalancerClass != nil {
		read.Class = *svc.Spec.LoadBalancerClass
	}
	read.Annotations = maps.Clone(svc.Annotations)
	delete(read.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, in := range svc.Status.LoadBalancer.Ingress {
		addr, err := parseAddr(in.IP)
		if err != nil {
			read.BadIngress = append(read.BadIngress, cmp.Or(in.IP, in.Hostname))
			continue
		}
		read.Addresses = append(read.Addresses, addr)
		if in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeProxy {
			read.ProxyMode = append(read.ProxyMode, addr)
		}
	}
	for _, p := range svc.Spec.Ports {
		read.Ports = append(read.Ports, Port{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort})
	}
	return read
}

// requested reads spec.loadBalancerIP and the annotation of both prefixes that
// MetalLB had (controller/service.go).
func requested(svc *corev1.Service) []netip.Addr {
	for _, key := range []string{"metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"} {
		if text := svc.Annotations[key]; text != "" {
			return addrs(strings.Split(text, ","))
		}
	}
	return addrs([]string{svc.Spec.LoadBalancerIP})
}

// addrs leaves out what is not an address.
func addrs(texts []string) []netip.Addr {
	var read []netip.Addr
	for _, text := range texts {
		if addr, err := parseAddr(strings.TrimSpace(text)); err == nil {
			read = append(read, addr)
		}
	}
	return read
}

// endpointsByService returns nil if neither EndpointSlices nor Endpoints were
// observed. Slices win: they are what MetalLB reads, and the others their copy.
func (c *collector) endpointsByService() map[string][]Endpoint {
	if !c.seen["EndpointSlice"] && !c.seen["Endpoints"] {
		return nil
	}
	byService := map[string][]Endpoint{}
	for _, slice := range c.slices {
		name := slice.Labels[discoveryv1.LabelServiceName]
		if name == "" {
			continue
		}
		key := slice.Namespace + "/" + name
		for _, ep := range slice.Endpoints {
			byService[key] = append(byService[key], endpoint(ep))
		}
	}
	if !c.seen["EndpointSlice"] {
		for _, object := range c.endpoints {
			key := object.Namespace + "/" + object.Name
			for _, subset := range object.Subsets {
				byService[key] = append(byService[key], legacyEndpoints(subset.Addresses, true)...)
				byService[key] = append(byService[key], legacyEndpoints(subset.NotReadyAddresses, false)...)
			}
		}
	}
	for key, endpoints := range byService {
		slices.SortFunc(endpoints, func(a, b Endpoint) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Addr, b.Addr))
		})
		byService[key] = endpoints
	}
	return byService
}

// endpoint reads unset conditions as discovery.k8s.io/v1 defines them.
func endpoint(ep discoveryv1.Endpoint) Endpoint {
	read := Endpoint{Ready: true}
	if ep.NodeName != nil {
		read.Node = *ep.NodeName
	} else {
		read.Node = ep.DeprecatedTopology[corev1.LabelHostname]
	}
	if len(ep.Addresses) > 0 {
		read.Addr = ep.Addresses[0]
	}
	if ep.Conditions.Ready != nil {
		read.Ready = *ep.Conditions.Ready
	}
	read.Serving = read.Ready
	if ep.Conditions.Serving != nil {
		read.Serving = *ep.Conditions.Serving
	}
	read.Terminating = ep.Conditions.Terminating != nil && *ep.Conditions.Terminating
	return read
}

func legacyEndpoints(addresses []corev1.EndpointAddress, ready bool) []Endpoint {
	var read []Endpoint
	for _, a := range addresses {
		ep := Endpoint{Addr: a.IP, Ready: ready, Serving: ready}
		if a.NodeName != nil {
			ep.Node = *a.NodeName
		}
		read = append(read, ep)
	}
	return read
}

func (c *collector) readNodes(s *State) {
	if !c.seen["Node"] {
		return
	}
	s.Nodes = []Node{}
	for _, n := range c.nodes {
		read := Node{
			Name: n.Name, Created: n.CreationTimestamp.Time, Labels: n.Labels,
			Unschedulable: n.Spec.Unschedulable,
		}
		for _, cond := range n.Status.Conditions {
			switch cond.Type {
			case corev1.NodeReady:
				read.Ready = Condition(cond.Status)
			case corev1.NodeNetworkUnavailable:
				read.NetworkUnavailable = Condition(cond.Status)
			}
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
				read.Addresses = append(read.Addresses, addrs([]string{a.Address})...)
			}
		}
		for _, t := range n.Spec.Taints {
			read.Taints = append(read.Taints, Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
		s.Nodes = append(s.Nodes, read)
	}
	slices.SortStableFunc(s.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	s.Nodes = slices.CompactFunc(s.Nodes, func(a, b Node) bool { return a.Name == b.Name })
}

func (c *collector) readEvents(s *State) {
	if !c.seen["Event"] {
		return
	}
	s.Events = []Event{}
	for _, e := range c.events {
		namespace, _, _ := strings.Cut(e.Object, "/")
		if e.Kind == "Service" || s.Namespace != "" && namespace == s.Namespace {
			s.Events = append(s.Events, e)
		}
	}
	slices.SortStableFunc(s.Events, func(a, b Event) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}

func coreEvent(e *corev1.Event) Event {
	read := Event{
		Kind: e.InvolvedObject.Kind, Object: e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name,
		ObjectUID: string(e.InvolvedObject.UID), Type: e.Type, Reason: e.Reason, Message: e.Message,
		Component: cmp.Or(e.Source.Component, e.ReportingController), Node: e.Source.Host,
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time, Count: e.Count,
	}
	fillTimes(&read, e.EventTime, e.CreationTimestamp, e.Series != nil)
	if e.Series != nil {
		read.Last, read.Count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return read
}

func newEvent(e *eventsv1.Event) Event {
	read := Event{
		Kind: e.Regarding.Kind, Object: e.Regarding.Namespace + "/" + e.Regarding.Name,
		ObjectUID: string(e.Regarding.UID), Type: e.Type, Reason: e.Reason, Message: e.Note,
		Component: cmp.Or(e.ReportingController, e.DeprecatedSource.Component), Node: e.DeprecatedSource.Host,
		First: e.DeprecatedFirstTimestamp.Time, Last: e.DeprecatedLastTimestamp.Time, Count: e.DeprecatedCount,
	}
	fillTimes(&read, e.EventTime, e.CreationTimestamp, e.Series != nil)
	if e.Series != nil {
		read.Last, read.Count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return read
}

// fillTimes takes the newer fields where the older ones are empty.
func fillTimes(e *Event, at metav1.MicroTime, created metav1.Time, series bool) {
	for _, t := range []time.Time{at.Time, created.Time} {
		if e.First.IsZero() {
			e.First = t
		}
	}
	if e.Last.IsZero() && !series {
		e.Last = e.First
	}
}
