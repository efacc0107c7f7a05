package metallb

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Annotations by which kube-vip is told how to elect for a Service
// (pkg/kubevip/annotations.go and pkg/lease/lease.go, 1.0).
const (
	kubeVIPLease    = "kube-vip.io/leaseName" // [NAMESPACE/]NAME, which Services may share
	kubeVIPElection = "kube-vip.io/forcePerServiceElection"
)

// Chosen returns the node that the controller has chosen for the VIP, and what says
// so: its leases, what it notes on the Service, or its election. Leases that ran out
// before at do not count. Empty: nothing says so.
func (c Controller) Chosen(svc Service, vip netip.Addr, at time.Time) (node, because string) {
	for _, h := range c.Holds {
		if !h.Live(at) || !c.about(h, svc, vip) {
			continue
		}
		if c.idle(h.Node, svc) {
			return "", ""
		}
		return h.Node, h.Object
	}
	for _, key := range chosenAnnotations(c.Kind) {
		if node := noted(c.Kind, svc.Annotations[key], vip); node != "" {
			return node, "the annotation " + key
		}
	}
	if node := c.elect(svc, vip); node != "" {
		return node, "its election among the nodes where its speaker is ready"
	}
	return "", ""
}

// about returns whether a hold is the one that decides about the VIP.
func (c Controller) about(h Hold, svc Service, vip netip.Addr) bool {
	key := svc.Namespace + "/" + svc.Name
	switch {
	case h.Addr.IsValid() && h.Addr != vip || h.Service != "" && h.Service != key:
		return false
	case c.Kind == KindCilium:
		return strings.HasSuffix(h.Object, "/cilium-l2announce-"+svc.Namespace+"-"+svc.Name)
	case c.Kind == KindKubeVIP && !h.Addr.IsValid():
		// An election for each Service leaves the common lease without a meaning, and
		// the other way round.
		return c.electsFor(svc) == (h.Service != "")
	}
	return true
}

// electsFor returns whether kube-vip has an election for this Service.
func (c Controller) electsFor(svc Service) bool {
	return c.PerService || svc.Annotations[kubeVIPElection] == "true"
}

// idle returns whether a node holds a lease and yet does not announce: with one lease
// for all, kube-vip starts a Local Service only where it has an endpoint
// (pkg/endpoints/endpoints.go), and so may announce it nowhere.
func (c Controller) idle(node string, svc Service) bool {
	return c.Kind == KindKubeVIP && !c.electsFor(svc) && svc.Policy == PolicyLocal && svc.Endpoints != nil &&
		!slices.ContainsFunc(svc.Endpoints, func(e Endpoint) bool { return e.Node == node && (e.Ready || e.Serving) })
}

// chosenAnnotations are those by which a program notes the node on the Service.
func chosenAnnotations(kind ControllerKind) []string {
	switch kind {
	case KindKubeVIP:
		return []string{"kube-vip.io/vipHost"}
	case KindPureLB:
		return []string{"purelb.io/announcing-IPv4", "purelb.io/announcing-IPv6", "purelb.io/announcing-node"}
	case KindOpenELB: // up to 0.5
		return []string{"layer2.openelb.kubesphere.io/v1alpha1"}
	}
	return nil
}

// noted returns the node that an annotation names for the VIP. PureLB's holds
// NODE,INTERFACE,ADDRESS for each of the Service's addresses, separated by spaces;
// in older versions it was NODE,INTERFACE alone.
func noted(kind ControllerKind, value string, vip netip.Addr) string {
	if kind != KindPureLB {
		return strings.TrimSpace(value)
	}
	slots := strings.Fields(value)
	for _, slot := range slots {
		node, rest, _ := strings.Cut(slot, ",")
		addr, err := netip.ParseAddr(rest[strings.LastIndexByte(rest, ',')+1:])
		if err != nil && len(slots) == 1 || err == nil && (addr == vip || !vip.IsValid()) {
			return node
		}
	}
	return ""
}

// elect returns the node with the lowest hash of node and VIP, of those that the
// controller runs on and that, for a Local Service, have a ready endpoint (SetBalancer
// of pkg/speaker/layer2/memberlist.go and getServiceNodes of pkg/speaker/manager.go,
// OpenELB 0.6). Endpoints that were not observed leave it open.
func (c Controller) elect(svc Service, vip netip.Addr) (first string) {
	if !c.Hashes || !vip.IsValid() || svc.Policy == PolicyLocal && svc.Endpoints == nil {
		return ""
	}
	var lowest [sha256.Size]byte
	for _, node := range c.Nodes {
		if svc.Policy == PolicyLocal && !slices.ContainsFunc(svc.Endpoints, func(e Endpoint) bool { return e.Node == node && e.Ready }) {
			continue
		}
		hash := sha256.Sum256([]byte(node + "#" + vip.String()))
		if first == "" || bytes.Compare(hash[:], lowest[:]) < 0 {
			first, lowest = node, hash
		}
	}
	return first
}
