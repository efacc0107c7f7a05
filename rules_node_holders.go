package strictarp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

// checkNeedsKernel: the node is strict and holds addresses that nothing but its
// kernel would answer for.
func checkNeedsKernel(v *view, n *node) []Finding {
	var need []*vip
	why := ""
	for _, p := range v.onDevice(n) {
		w := v.unannounced(p)
		if w == "" { // first: it is so of most, and asked soonest
			continue
		}
		if k := v.kernel(n, p); k.known && !k.answers && !k.onNIC && len(v.answering(p)) == 0 {
			need, why = append(need, p), w
		}
	}
	if len(need) == 0 {
		return nil
	}
	f := v.newFinding("needs-kernel-answer", "", "%s holds %s, which nothing announces (%s): clients on the segment reached it only while kernels answered, and strict settings stop that. It needs one owner.",
		n.name, joinAddrs(addrsOf(need)), why)
	f.Evidence = n.evidence("%s is on %s", need[0].addr, n.deviceOf(need[0]))
	f.Remedies = []Remedy{NewRemedy("Give the address one owner that announces it.", Step{Action: DoByHand, Object: fmt.Sprintf(
		"make %s the address of a LoadBalancer Service from a MetalLB pool with an L2Advertisement, route it to one node, or use an announcer of the tool that holds it", joinAddrs(addrsOf(need)))})}
	f.Avoid = v.looseningCautions(n)
	return []Finding{f}
}

// unannounced says why nothing but kernels answers for an address; empty if
// something announces it, or that is not known.
func (v *view) unannounced(p *vip) string {
	if v.MetalLB == nil || len(v.expect(p).elections) > 0 {
		return ""
	}
	for _, c := range v.takers(p) {
		if c.Protocol == metallb.ProtocolLayer2 && !slices.Contains(c.Handles.Addresses, p.addr) {
			return ""
		}
	}
	switch {
	case p.external:
		return "an external IP of " + string(serviceSubject(p.services[0]))
	case len(p.services) > 0:
		return "" // waiting for an announcer is another matter
	}
	for _, c := range v.takers(p) {
		return fmt.Sprintf("an address of %s", c.Kind)
	}
	return "it belongs to no Service"
}

// deviceOf returns the device on which a node has a VIP.
func (n *node) deviceOf(p *vip) string {
	for _, h := range p.on(n) {
		if !h.link.segment() {
			return h.link.Name
		}
	}
	return ""
}

// checkStaleAddresses: kube-ipvs0 has an address of the segment that is no
// Service's. ClusterIPs are not looked at: they are on no segment.
func checkStaleAddresses(v *view, n *node) []Finding {
	if v.metallb.Services == nil {
		return nil
	}
	device, ok := n.Link(sysctl.KubeIPVS0)
	if !ok {
		return nil
	}
	var stale []netip.Addr
	for _, addr := range v.strays(&device) {
		onSegment := slices.ContainsFunc(n.Links, func(l Link) bool { return l.segment() && l.subnet(addr) })
		if onSegment || v.poolOf(addr) != nil {
			stale = append(stale, addr)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	f := v.newFinding("stale-vip-on-device", "", "%s of %s has %s, which no Service has.", device.Name, n.name, joinAddrs(stale))
	f.Evidence = n.evidence("%d addresses on %s, %d of no Service", len(device.Addrs), device.Name, len(stale))
	var steps []Step
	for _, addr := range stale {
		steps = append(steps, Step{Action: SetAddress, Node: n.name, Object: hostPrefix(addr) + " dev " + device.Name, From: Present, To: Absent})
	}
	f.Remedies = []Remedy{NewRemedy("Remove them. A kube-proxy that runs in ipvs mode does that by itself within seconds: see why it did not.", steps...)}
	return []Finding{f}
}

// checkRealInterface: a VIP is on a NIC or lo.
func checkRealInterface(v *view, n *node) []Finding {
	var found []Finding
	for i := range n.Links {
		l := &n.Links[i]
		if l.NoARP || !l.segment() && !l.Loopback && l.Kind == "dummy" {
			continue
		}
		for _, a := range l.Addrs {
			p := v.byVIP[a.Prefix.Addr()]
			if p == nil || !v.looksAt(n, p) || !slices.ContainsFunc(p.on(n), func(h holding) bool { return h.link == l }) || v.elected(n, p) {
				continue
			}
			if l.Loopback && v.unannounced(p) != "" {
				continue // needs-kernel-answer says so
			}
			f := v.newFinding("vip-on-real-interface", "", "%s has %s on %s: its kernel answers for it whatever arp_ignore is, besides whoever announces it.", n.name, p.addr, l.Name)
			f.Evidence = n.evidence("%s dev %s", a.Prefix, l.Name)
			f.Remedies = []Remedy{v.takeOff(n, p, a, l)}
			found = append(found, f)
		}
	}
	return mergeBySubject(found)
}

// takeOff removes an address from a NIC. Of an address that no Service has and several
// nodes hold, such as keepalived's, one may be right, and which is not known.
func (v *view) takeOff(n *node, p *vip, a Address, l *Link) Remedy {
	if on := p.onSegment(); len(p.services) == 0 && on > 1 && !v.expect(p).known {
		return NewRemedy("Leave it on one host.", Step{Action: DoByHand, Object: fmt.Sprintf(
			"%d nodes have %s: find out why what put it there is active on more than one of them, such as VRRP routers that do not hear each other", on, p.addr)})
	}
	return NewRemedy("Remove it, after whatever put it there is stopped.", Step{
		Action: SetAddress, Node: n.name, Object: fmt.Sprintf("%s dev %s", a.Prefix, l.Name), From: Present, To: Absent})
}

// onSegment returns on how many NICs the VIP is.
func (p *vip) onSegment() (on int) {
	for _, h := range p.holders {
		if h.link.segment() {
			on++
		}
	}
	return on
}

// elected reports whether another announcer that works by putting a VIP on the NIC of
// one node has rightly put it there. An address of no Service, that one node has and
// nobody else answers for, is taken for one of these: keepalived leaves no object.
func (v *view) elected(n *node, p *vip) bool {
	if len(v.expect(p).elections) > 0 || len(v.takers(p)) == 0 && len(p.services) > 0 {
		return false
	}
	if e := v.expect(p); e.known {
		return e.right(n.name)
	}
	return p.onSegment() == 1 && (len(v.takers(p)) > 0 || len(p.services) == 0 && len(v.answering(p)) < 2)
}
