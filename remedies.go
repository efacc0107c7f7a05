package strictarp

import (
	"fmt"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// flushRemedies make a vantage forget what it has cached of a VIP. It helps once
// only the announcer answers.
func (v *view) flushRemedies(p *vip, s sighting) []Remedy {
	var steps []Step
	for _, e := range s.vantage.Neighbours {
		if e.Addr == p.addr && !e.MAC.IsZero() && v.wrongHost(p, e.MAC) {
			steps = append(steps, Step{Action: ForgetNeighbour, Node: s.vantage.Node, Object: fmt.Sprintf("%s dev %s", e.Addr, e.Link), From: e.MAC.String()})
		}
	}
	if steps == nil {
		return nil
	}
	return []Remedy{NewRemedy("Once only the announcer answers, make the client ask again.", steps...)}
}

// proxyRemedies switch proxy ARP off where it is known.
func (v *view) proxyRemedies(mac arpcheck.MAC) []Remedy {
	who, ok := v.owners.of(mac)
	if n := v.byNode[who.node]; ok && n != nil && who.link != "" {
		if e, known := n.effective(who.link, sysctl.ProxyARP); known && e.Value != 0 {
			return []Remedy{n.proxyOff(who.link, e)}
		}
	}
	return []Remedy{NewRemedy("Switch proxy ARP off there.", Step{Action: DoByHand, Object: fmt.Sprintf(
		"find the router or host with MAC %s and switch its proxy ARP off on this segment, or correct the subnet mask or route by which it thinks that the addresses are elsewhere", mac)})}
}

// silenceCautions warn of what people try when nobody answers.
func (v *view) silenceCautions(p *vip) []Caution {
	links := v.segmentLinks(p)
	cautions := append(loosenCautions(links...), strictARPFalseCaution())
	if len(links) > 0 {
		cautions = append(cautions, bindVIPCaution(p.addr, links[0]))
	}
	return append(cautions, staticNeighbourCaution(p.addr, "IF"))
}

// severalCautions warn of what people try when several hosts answer.
func (v *view) severalCautions(p *vip) []Caution {
	cautions := append(arpFilterCautions(), staticNeighbourCaution(p.addr, "IF"), oneSuccessCaution())
	if set := v.metallb.SpeakerSet; set != nil {
		cautions = append(cautions, restartCaution(set.Namespace, "daemonset/"+set.Name))
	}
	return cautions
}

// segmentLinks are the names of interfaces on which nodes are asked for a VIP.
func (v *view) segmentLinks(p *vip) []string {
	const most = 4 // nodes are mostly alike
	var links []string
	for _, name := range v.names {
		for _, l := range v.receiving(v.byNode[name], p) {
			if !slices.Contains(links, l.Name) && len(links) < most {
				links = append(links, l.Name)
			}
		}
	}
	return links
}

// looseningCautions warn of loosening a node for addresses that only kernels
// answer for.
func (v *view) looseningCautions(n *node) []Caution {
	var links []string
	for i := range n.Links {
		if l := &n.Links[i]; l.segment() && len(l.Addrs) > 0 {
			links = append(links, l.Name)
		}
	}
	return append(loosenCautions(links...), strictARPFalseCaution())
}
