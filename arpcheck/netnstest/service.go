package netnstest

import (
	"errors"
	"fmt"
	"net/netip"
)

// Forwarding says what becomes of connections to a VIP on a node that holds it
// but has no endpoint of its service.
type Forwarding string

// Ways of forwarding. The zero Forwarding means that the node forwards none.
const (
	// Forward is what IPVS does with externalTrafficPolicy: Local, as was
	// captured: the packet is sent on to the endpoint under the endpoint's
	// address, without masquerading. So the endpoint answers under its own
	// address, which the client knows nothing of, and the client resets. The
	// connection times out.
	Forward Forwarding = "forward"
	// StandIn is what is done where the kernel has no nf_tables: the packet is
	// dropped. The connection times out too, but nothing reaches the endpoint.
	StandIn Forwarding = "stand-in: drop"
)

// Service is a Service of type LoadBalancer with externalTrafficPolicy: Local,
// as clients on the segment see it.
type Service struct {
	VIP netip.AddrPort
	// Node is the host with the endpoint: the only one whose clients get
	// through, and the one that ought to announce the VIP.
	Node *Host
	// Endpoint is the pod's address. Default: 10.244.N.2:8080, with N the number
	// of the host.
	Endpoint netip.AddrPort
}

// Expose sets a service up on all hosts that are there: every node holds the VIP
// on kube-ipvs0, as kube-proxy has it in ipvs mode; svc.Node serves it; other
// nodes forward to the endpoint; and clients have a route to the endpoint's
// network, so that their resets get there. Nobody announces the VIP yet. Names
// that clients get from the service are svc.Node's.
func (s *Segment) Expose(svc Service) error {
	if svc.Node == nil || svc.Node.segment != s || !svc.VIP.Addr().Is4() {
		return fmt.Errorf("netnstest: expose %s: want an IPv4 VIP and a node of this segment", svc.VIP)
	}
	if !svc.Endpoint.IsValid() {
		svc.Endpoint = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(svc.Node.index), 2}), 8080)
	}
	pod := netip.PrefixFrom(svc.Endpoint.Addr(), 32)
	if err := svc.Node.AddAddr("lo", pod); err != nil {
		return err
	}
	for _, h := range s.Hosts() {
		if err := h.takePart(svc, pod); err != nil {
			return err
		}
	}
	for _, on := range []netip.AddrPort{svc.VIP, svc.Endpoint} {
		if _, err := svc.Node.Serve(on); err != nil {
			return err
		}
	}
	return nil
}

// takePart does a host's part of Expose.
func (h *Host) takePart(svc Service, pod netip.Prefix) error {
	if h != svc.Node {
		if err := h.AddRoute(pod, svc.Node.addr, NIC); err != nil {
			return err
		}
	}
	if !h.node {
		return nil
	}
	if err := h.HoldVIP(svc.VIP.Addr()); err != nil || h == svc.Node {
		return err
	}
	return h.ForwardVIP(svc.VIP, svc.Endpoint)
}

// ForwardVIP makes the host forward TCP connections to a VIP as IPVS does on a
// node without an endpoint: to the endpoint, to which it needs a route. Where
// the kernel has no nf_tables it does DropVIPTraffic; Forwarding says which.
// ARP is not affected.
func (h *Host) ForwardVIP(vip, endpoint netip.AddrPort) error {
	if !vip.Addr().Is4() || !endpoint.Addr().Is4() {
		return h.failed(fmt.Sprintf("forward %s to %s", vip, endpoint), errors.New("want IPv4 addresses"))
	}
	err := h.forward(vip, endpoint)
	if errors.Is(err, errors.ErrUnsupported) {
		return h.DropVIPTraffic(vip)
	}
	if err == nil {
		h.setForwarding(Forward)
	}
	return h.failed(fmt.Sprintf("forward %s to %s", vip, endpoint), err)
}

// DropVIPTraffic makes the host drop TCP packets to a VIP before they reach it:
// a stand-in for ForwardVIP that needs nothing but policy routing.
func (h *Host) DropVIPTraffic(vip netip.AddrPort) error {
	err := h.blackhole(vip)
	if err == nil {
		h.setForwarding(StandIn)
	}
	return h.failed(fmt.Sprintf("drop packets to %s", vip), err)
}

// Forwarding says what the host does with connections to VIPs that are served
// elsewhere.
func (h *Host) Forwarding() Forwarding {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forwarding
}

func (h *Host) setForwarding(f Forwarding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forwarding = f
}
