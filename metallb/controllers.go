package metallb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Controller is a program that can announce VIPs, as the cluster's objects show
// it.
type Controller struct {
	Kind      ControllerKind `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	// Name is the object that shows it, such as daemonset/kube-vip.
	Name     string   `json:"name"`
	Nodes    []string `json:"nodes,omitempty"` // where it runs, as far as pods and node selectors show it
	Why      string   `json:"why"`             // what shows that it can announce
	Protocol Protocol `json:"protocol,omitempty"`
	// PerService says that it elects a node for every Service by itself, so that
	// Services that share an IP can end up on different nodes.
	PerService bool `json:"perService,omitempty"`
	// Hashes says that it elects among Nodes by the hash of node and VIP, as OpenELB's
	// speakers do from 0.6 on.
	Hashes  bool    `json:"hashes,omitempty"`
	Handles Handles `json:"handles"`
	Holds   []Hold  `json:"holds,omitempty"` // which node it has chosen, where objects say so
}

// ControllerKind is the program that a Controller is. The zero ControllerKind is
// not known.
type ControllerKind string

// Kinds of controllers.
const (
	KindMetalLB    ControllerKind = "metallb"
	KindKubeVIP    ControllerKind = "kube-vip"
	KindCilium     ControllerKind = "cilium"
	KindPureLB     ControllerKind = "purelb"
	KindOpenELB    ControllerKind = "openelb"
	KindServiceLB  ControllerKind = "servicelb" // of k3s
	KindCalico     ControllerKind = "calico"
	KindAntrea     ControllerKind = "antrea"
	KindKeepalived ControllerKind = "keepalived"
	KindKubeRouter ControllerKind = "kube-router"
)

// Protocol is how a Controller draws traffic. The zero Protocol is not known.
type Protocol string

// Protocols.
const (
	ProtocolLayer2 Protocol = "layer2" // it answers ARP itself, or puts the VIP on a NIC of one node
	ProtocolBGP    Protocol = "bgp"    // it tells routers
	ProtocolKernel Protocol = "kernel" // it puts the VIP on a device of every node, where the kernel answers as arp_ignore lets it
	ProtocolNode   Protocol = "node"   // it opens ports on nodes' own addresses, and these become the Service's
)

// Handles says which Services a Controller takes.
type Handles struct {
	All      bool     `json:"all,omitempty"`      // LoadBalancer Services without a class
	AnyClass bool     `json:"anyClass,omitempty"` // LoadBalancer Services, whatever their class
	Classes  []string `json:"classes,omitempty"`  // those with one of these loadBalancerClass values
	// ExternalIPs are Services with external IPs, whatever their type.
	ExternalIPs bool `json:"externalIPs,omitempty"`
	// Selectors narrow all of the above: one has to match the Service's labels.
	// None: no narrowing. Prefixes narrow in the same way by address.
	Selectors []Selector     `json:"selectors,omitempty"`
	Prefixes  []netip.Prefix `json:"prefixes,omitempty"`

	Annotations []string `json:"annotations,omitempty"` // Services with one of these, each a key or key=value
	Services    []string `json:"services,omitempty"`    // these, as namespace/name
	Ignores     []string `json:"ignores,omitempty"`     // but none with one of these annotations
	// Addresses are held whatever Services say, such as egress addresses.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Unclear says that its configuration is out of sight: it may hold any address.
	Unclear bool `json:"unclear,omitempty"`
}

// Hold is what an object says about the node that a Controller has chosen.
type Hold struct {
	Object   string        `json:"object"`            // such as lease/kube-system/plndr-svcs-lock
	Node     string        `json:"node"`              // the holder
	Service  string        `json:"service,omitempty"` // namespace/name; empty: for all that the Controller takes
	Addr     netip.Addr    `json:"addr,omitzero"`     // zero: for all addresses
	Renewed  time.Time     `json:"renewed,omitzero"`
	Duration time.Duration `json:"duration,omitempty"` // nanoseconds; after that without renewal nobody holds it
}

// Live returns whether the hold was in force at that time. One without a renewal
// time or a duration is, and every one is at the zero time.
func (h Hold) Live(at time.Time) bool {
	return at.IsZero() || h.Renewed.IsZero() || h.Duration <= 0 || !at.After(h.Renewed.Add(h.Duration))
}

// Taking says whether a Controller takes a Service. The zero Taking is no.
type Taking string

// Degrees of Taking.
const (
	TakesNot Taking = ""
	Takes    Taking = "yes"
	MayTake  Taking = "maybe" // what is needed to decide is out of sight
)

// Takes returns whether the controller takes the Service's address vip, and why
// in a clause, which is empty for TakesNot. A zero vip stands for any of the
// Service's addresses.
func (c Controller) Takes(svc Service, vip netip.Addr) (Taking, string) {
	h := c.Handles
	if a := annotated(svc, h.Ignores); a != "" {
		return TakesNot, ""
	}
	if vip.IsValid() && slices.Contains(h.Addresses, vip) {
		return Takes, "it holds this address itself"
	}
	if slices.Contains(h.Services, svc.Namespace+"/"+svc.Name) {
		return Takes, "it runs for this Service"
	}
	if a := annotated(svc, h.Annotations); a != "" {
		return Takes, fmt.Sprintf("the Service is annotated %q", a)
	}
	if why := h.takesByType(svc); why != "" && h.narrows(svc, vip) {
		return Takes, why
	}
	if h.Unclear {
		return MayTake, "its configuration is out of sight"
	}
	return TakesNot, ""
}

func (h Handles) takesByType(svc Service) string {
	balanced := svc.Type == "LoadBalancer"
	switch {
	case balanced && h.AnyClass:
		return "it takes every LoadBalancer Service"
	case balanced && svc.Class == "" && h.All:
		return "it takes LoadBalancer Services that name no class"
	case balanced && svc.Class != "" && slices.Contains(h.Classes, svc.Class):
		return fmt.Sprintf("it takes the loadBalancerClass %q", svc.Class)
	case h.ExternalIPs && len(svc.ExternalIPs) > 0:
		return "it takes external IPs"
	}
	return ""
}

func (h Handles) narrows(svc Service, vip netip.Addr) bool {
	inPrefix := func(a netip.Addr) bool {
		return slices.ContainsFunc(h.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	switch {
	case len(h.Prefixes) == 0:
	case vip.IsValid():
		if !inPrefix(vip) {
			return false
		}
	case !slices.ContainsFunc(svc.Addresses, inPrefix) && !slices.ContainsFunc(svc.ExternalIPs, inPrefix):
		return false
	}
	if len(h.Selectors) == 0 {
		return true
	}
	labels := serviceLabels(svc)
	return slices.ContainsFunc(h.Selectors, func(s Selector) bool { return s.Matches(labels) })
}

// serviceLabels returns the labels that Cilium's policies select by: it adds the
// Service's name and namespace (pkg/l2announcer, svcAndMetaLabels). Only Cilium
// has such selectors.
func serviceLabels(svc Service) Labels {
	labels := make(Labels, len(svc.Labels)+2)
	for k, v := range svc.Labels {
		labels[k] = v
	}
	labels["io.kubernetes.service.name"] = svc.Name
	labels["io.kubernetes.service.namespace"] = svc.Namespace
	return labels
}

// annotated returns the first of the wanted annotations, each a key or
// key=value, that the Service has.
func annotated(svc Service, wanted []string) string {
	for _, w := range wanted {
		key, value, exact := strings.Cut(w, "=")
		if got, ok := svc.Annotations[key]; ok && (!exact || got == value) {
			return w
		}
	}
	return ""
}
