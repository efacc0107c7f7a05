package exchange

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
)

// Services are the addresses that Services of the cluster have, as a service proxy in
// ipvs mode puts them on its device. Nodes and their controller know them alike, so
// that a node need not list what it has of them. It does not change.
type Services struct {
	addrs []strictarp.Address // by address
}

// NewServices returns the Services that have IPv4 addresses of a list, in any order.
func NewServices(addrs []netip.Addr) *Services {
	sorted := slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare)
	s := &Services{addrs: make([]strictarp.Address, 0, len(sorted))}
	for _, addr := range slices.Compact(sorted) {
		if addr.Is4() {
			s.addrs = append(s.addrs, strictarp.Address{Prefix: netip.PrefixFrom(addr, addr.BitLen()), Scope: strictarp.ScopeGlobal})
		}
	}
	return s
}

func (s *Services) find(addr netip.Addr) (int, bool) {
	return slices.BinarySearchFunc(s.addrs, addr, func(a strictarp.Address, addr netip.Addr) int { return a.Prefix.Addr().Compare(addr) })
}

// AddressesOf returns the addresses of a Service that kube-proxy in ipvs mode binds:
// its ClusterIPs, external IPs, and those of the load balancer but where that forwards
// to nodes' addresses (k8s.io/kubernetes v1.37.2 pkg/proxy/ipvs/proxier.go,
// syncProxyRules, and serviceport.go). Should a proxy do otherwise, nodes say so.
func AddressesOf(s *corev1.Service) (addrs []netip.Addr) {
	texts := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	if len(s.Spec.ClusterIPs) == 0 {
		texts = append(texts, s.Spec.ClusterIP)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, i := range s.Status.LoadBalancer.Ingress {
			if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
				texts = append(texts, i.IP)
			}
		}
	}
	for _, text := range texts { // "None" of a headless one is no address
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}
