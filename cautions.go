package strictarp

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/strictarp/strictarp/sysctl"
)

// Why a step is no cure. Figures were measured with kube-proxy 1.37.2, MetalLB
// 0.16.1 and Linux 6.1, three nodes on one segment.
const (
	whyNotARPIgnore0 = "the announcer answers from a raw socket whatever arp_ignore is (measured with 1, 2 and 8): with 0 the kernel of every node that holds the VIP answers as well, " +
		"about 2 ms before the announcer"
	whyNotARPIgnore2        = "1 is enough: 2 also wants the sender in the subnet of the address asked for, so that links with /32 addresses, as between pods and their node, get no answer any more"
	whyNotARPIgnore3        = "it looks stricter than 1 and is not: addresses on kube-ipvs0 have global scope, and 3 answers for them"
	whyNotARPIgnore8        = "1 is enough: with 8 nobody can resolve the node's own addresses any more"
	whyNotARPIgnoreReserved = "the value is reserved and behaves as 0; being the larger it undoes a strict one of conf/all or the interface, and every node that holds the VIP answers"
	whyNotARPAnnounce       = "arp_announce keeps no announcer from answering: below 2 (measured with 0 and 1) a node's own requests name the VIP as sender, and clients then send its traffic there; " +
		"the kernel takes values above 2 for 0"
	whyNotRPFilter0 = "rp_filter does not silence the announcer: it answered with 0, 1 and 2 alike, also a client of another subnet; where 1 drops clients' packets " +
		"a route back by the receiving interface mends it, and else 2 on that interface is enough"
	whyNotARPFilter = "arp_filter only asks whether the route back to the sender leaves by the receiving interface, which it does for every client of the segment: all nodes go on answering"
	whyNotProxyARP  = "the node would answer for addresses that it routes elsewhere, whoever has them, and arp_ignore does not restrain it"
	whyNotDropGARP  = "the host would not learn of fail-overs, which the announcer makes known by gratuitous ARP"
	whyNotHolder    = "no request arrives on this device: the larger of conf/all and the receiving interface decides"
	whyNotDefault   = "interfaces take the values of conf/default when they are made: those that exist and have an address keep their own"

	whyNotStrictARPFalse = "kube-proxy never takes the strict settings back, so nothing changes today, and after the next boot every node that holds the VIP answers for it"
	whyNotBindVIP        = "the kernel of that node then answers besides the announcer, whatever arp_ignore is, and goes on when another node announces; " +
		"bound on a second node the VIP had two responders at once"
	whyNotStaticNeighbour = "it leads to one MAC for good and breaks at the next fail-over, and it hides on this host that others get no answer or a wrong one"
	whyNotExcludeLabel    = "the presence of the label excludes the node, whatever its value: with the value false nobody answered; remove the label instead"
	whyNotDeleteHeld      = "kube-proxy puts it back (after 21 s when measured), and the node answers again"
	whyNotRestart         = "it mends nothing: new announcements put right what clients have cached for a while, which hides the fault, and while nobody announces it loses the speaker's log of why"
	whyNotOneSuccess      = "which host is heard first can change from request to request (the right one 8 to 19 times out of 40 with 2 ms of jitter), " +
		"and a new announcement heals for a while: ask for all responders, for a minute or more"
)

// excludeFromLB is the label by which Kubernetes keeps nodes out of load
// balancers.
const excludeFromLB = "node.kubernetes.io/exclude-from-external-load-balancers"

// loosenCautions warn of loosening the kernel's settings because nobody answers,
// in "all" and for the interfaces named.
func loosenCautions(ifaces ...string) []Caution {
	return slices.Concat(
		sysctlCautions(sysctl.ARPIgnore, 0, whyNotARPIgnore0, ifaces),
		sysctlCautions(sysctl.ARPAnnounce, 0, whyNotARPAnnounce, ifaces),
		sysctlCautions(sysctl.RPFilter, 0, whyNotRPFilter0, ifaces),
	)
}

// arpFilterCautions warn of arp_filter as a means to make one host answer, in
// "all" and for the interfaces named.
func arpFilterCautions(ifaces ...string) []Caution {
	return sysctlCautions(sysctl.ARPFilter, 1, whyNotARPFilter, ifaces)
}

// uselessSysctlCautions warn of writing the strict settings where they do
// nothing: conf/default and the device that holds the VIPs.
func uselessSysctlCautions(holder string) []Caution {
	var cautions []Caution
	for _, c := range []struct{ iface, why string }{{"default", whyNotDefault}, {holder, whyNotHolder}} {
		cautions = appendSysctlCaution(cautions, c.iface, sysctl.ARPIgnore, 1, c.why)
		cautions = appendSysctlCaution(cautions, c.iface, sysctl.ARPAnnounce, 2, c.why)
	}
	return cautions
}

// strictARPFalseCaution warns of turning strictARP off.
func strictARPFalseCaution() Caution {
	return caution(Step{Action: SetStrictARP, To: "false"}, whyNotStrictARPFalse)
}

// bindVIPCaution warns of putting a VIP on an interface so that it is answered.
func bindVIPCaution(vip netip.Addr, iface string) Caution {
	return caution(Step{Action: SetAddress, Object: hostPrefix(vip) + " dev " + iface, To: Present}, whyNotBindVIP)
}

// deleteHeldCaution warns of taking a VIP off the device on which a running
// kube-proxy holds it.
func deleteHeldCaution(vip netip.Addr, holder string) Caution {
	return caution(Step{Action: SetAddress, Object: hostPrefix(vip) + " dev " + holder, To: Absent}, whyNotDeleteHeld)
}

// staticNeighbourCaution warns of a permanent entry for a VIP in the neighbour
// cache of a client. Its Step has the word MAC where one has to be put in.
func staticNeighbourCaution(vip netip.Addr, iface string) Caution {
	return Caution{Step: "ip neigh add " + vip.String() + " lladdr MAC dev " + iface, Why: whyNotStaticNeighbour}
}

// excludeLabelCaution warns of setting the exclude label to false.
func excludeLabelCaution(node string) Caution {
	return caution(Step{Action: SetLabel, Node: node, Object: excludeFromLB, To: "=false"}, whyNotExcludeLabel)
}

// restartCaution warns of restarting announcers that are not at fault. Workload
// is their kind and name, such as daemonset/speaker.
func restartCaution(namespace, workload string) Caution {
	return caution(Step{Action: RestartRollout, Namespace: namespace, Object: workload}, whyNotRestart)
}

// oneSuccessCaution warns of taking one success for a cure.
func oneSuccessCaution() Caution {
	return caution(Step{Action: DoByHand, Object: "call it healthy after one successful request"}, whyNotOneSuccess)
}

func caution(s Step, why string) Caution { return Caution{Step: s.String(), Why: why} }

func hostPrefix(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

func sysctlCautions(p sysctl.Param, value int, why string, ifaces []string) []Caution {
	cautions := appendSysctlCaution(nil, "all", p, value, why)
	for _, iface := range ifaces {
		cautions = appendSysctlCaution(cautions, iface, p, value, why)
	}
	return cautions
}

// appendSysctlCaution leaves out names that no interface can have.
func appendSysctlCaution(cautions []Caution, iface string, p sysctl.Param, value int, why string) []Caution {
	key, err := sysctl.ConfKey(iface, p)
	if err != nil {
		return cautions
	}
	return append(cautions, caution(Step{Action: SetSysctl, Object: string(key), To: strconv.Itoa(value)}, why))
}
