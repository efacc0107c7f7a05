package strictarp

import (
	"slices"
	"strings"
)

// Rule is an entry of the catalogue: a kind of conclusion that findings
// can be.
type Rule struct {
	// ID is in kebab case, as in Finding.Rule. It never changes its meaning: a new
	// meaning gets a new ID.
	ID       string   `json:"id"`
	Title    string   `json:"title"`    // a few words without a full stop
	Severity Severity `json:"severity"` // the usual one: what was observed can change it
	// Explain says what it means for traffic, how it comes about, what looks like
	// it, and what mends it and what does not. Paragraphs have an empty line between
	// them and no other line breaks: whoever prints it wraps it.
	Explain string `json:"explain"`
	// Needs are the facts that the rule looks at. Where one is missing without which
	// it cannot be decided, the finding is of SeverityUnknown.
	Needs []Need `json:"needs"`
}

// Rules returns all rules, in the same order every time: what is seen on the
// wire, what a node would do, what kube-proxy is told, what MetalLB is told and
// says, what is to be judged. The slice is the caller's.
func Rules() []Rule {
	rules := catalogue()
	for i := range rules {
		rules[i].Explain = unwrap(rules[i].Explain)
	}
	return rules
}

// RuleByID returns the rule of an ID, and whether there is one.
func RuleByID(id string) (Rule, bool) {
	rules := catalogue()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	rules[i].Explain = unwrap(rules[i].Explain)
	return rules[i], true
}

// catalogue returns all rules with their explanations as they are wrapped in the
// source.
func catalogue() []Rule {
	return slices.Concat(
		respondersRules(), wireFaultRules(),
		kernelRules(), holderRules(), pathRules(),
		kubeProxyRules(), runningKubeProxyRules(),
		silenceRules(), speakerRules(), announcementRules(), configurationRules(),
		subjectRules(),
	)
}

// unwrap takes the line breaks within paragraphs out.
func unwrap(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// Need is a kind of fact that rules look at. The zero Need is none.
type Need string

// Needs.
const (
	NeedProbes     Need = "probes"     // who answers ARP, seen from a vantage point
	NeedSoak       Need = "soak"       // the same over minutes
	NeedClaims     Need = "claims"     // ARP that others send unasked
	NeedCanaries   Need = "canaries"   // who answers for addresses that nobody has
	NeedNeighbours Need = "neighbours" // a vantage point's neighbour cache

	NeedNodeLinks        Need = "node-links"        // interfaces, MACs and addresses
	NeedNodeSysctls      Need = "node-sysctls"      // IPv4 settings in force
	NeedNodeRoutes       Need = "node-routes"       // routes and policy routing
	NeedPersistedSysctls Need = "persisted-sysctls" // settings that files make at boot
	NeedCounters         Need = "counters"          // of the network stack

	NeedKubeProxyConfig  Need = "kubeproxy-config"  // what kube-proxy is told
	NeedKubeProxyRunning Need = "kubeproxy-running" // what a running kube-proxy says, and since when it runs
	NeedKubeProxyLog     Need = "kubeproxy-log"     // what kube-proxy logs
	NeedServerVersion    Need = "server-version"    // of Kubernetes

	NeedNodes            Need = "nodes"             // Node objects: labels, conditions, addresses
	NeedServices         Need = "services"          // with their EndpointSlices
	NeedWorkloads        Need = "workloads"         // DaemonSets, Deployments, their pods, and leases
	NeedMetalLBObjects   Need = "metallb-objects"   // pools and advertisements
	NeedAnnouncerReports Need = "announcer-reports" // statuses, events and configuration states
	NeedSpeakerLog       Need = "speaker-log"       // what MetalLB's speaker logs
	NeedSpeakerMetrics   Need = "speaker-metrics"   // what it counts
)

// Needs returns all needs, in a fixed order. The slice is the caller's.
func Needs() []Need {
	return []Need{
		NeedProbes, NeedSoak, NeedClaims, NeedCanaries, NeedNeighbours,
		NeedNodeLinks, NeedNodeSysctls, NeedNodeRoutes, NeedPersistedSysctls, NeedCounters,
		NeedKubeProxyConfig, NeedKubeProxyRunning, NeedKubeProxyLog, NeedServerVersion,
		NeedNodes, NeedServices, NeedWorkloads, NeedMetalLBObjects, NeedAnnouncerReports, NeedSpeakerLog, NeedSpeakerMetrics,
	}
}

// Collect says how to get the facts: the command that prints them and where it
// is to be run, or what to grant. Words in capitals stand for names. It is empty
// for what is not among Needs.
func (n Need) Collect() string {
	switch n {
	case NeedProbes:
		return "on a host of the VIP's segment that is not a node, capture with: tcpdump -ni IF -w arp.pcap arp; and ask meanwhile with: arping -b -I IF -c 4 VIP"
	case NeedSoak:
		return "on a host of the VIP's segment that is not a node, capture for some minutes with: tcpdump -ni IF -w arp.pcap arp; and ask meanwhile with: arping -b -I IF -c 120 VIP"
	case NeedClaims:
		return "on a host of the VIP's segment, capture for some minutes with: tcpdump -ni IF -w arp.pcap arp"
	case NeedCanaries:
		return "in the same capture as for the VIP, ask for an address of the subnet that nobody has: arping -b -I IF -c 4 ADDRESS"
	case NeedNeighbours:
		return "on the client: ip neigh"
	case NeedNodeLinks:
		return "on the node: ip -d -j addr"
	case NeedNodeSysctls:
		return "on the node: sysctl -a"
	case NeedNodeRoutes:
		return "on the node: ip route; and: ip rule"
	case NeedPersistedSysctls:
		return "copy from the node: /etc/sysctl.conf, and the files of /etc/sysctl.d, /run/sysctl.d, /usr/local/lib/sysctl.d and /usr/lib/sysctl.d"
	case NeedCounters:
		return "on the node: nstat -az"
	}
	return n.collectFromCluster()
}

func (n Need) collectFromCluster() string {
	switch n {
	case NeedKubeProxyConfig:
		return "kubectl get configmaps,daemonsets,pods -n kube-system -o yaml; or, where it is no pod, on the node: the arguments of kube-proxy and the file that its --config names"
	case NeedKubeProxyRunning:
		return "on the node: curl -s http://127.0.0.1:10249/configz; curl -s http://127.0.0.1:10249/proxyMode; and when it started: ps -o lstart= -C kube-proxy"
	case NeedKubeProxyLog:
		return "kubectl logs POD -n kube-system, of kube-proxy on the node; or, for a systemd unit, on the node: journalctl -u kube-proxy"
	case NeedServerVersion:
		return "kubectl version -o json"
	case NeedNodes:
		return "kubectl get nodes -o yaml"
	case NeedServices:
		return "kubectl get services,endpointslices -A -o yaml"
	case NeedWorkloads:
		return "kubectl get daemonsets,deployments,pods,leases -A -o yaml"
	case NeedMetalLBObjects:
		return "kubectl get ipaddresspools,l2advertisements -A -o yaml; and, before MetalLB 0.13: kubectl get configmap config -n metallb-system -o yaml"
	case NeedAnnouncerReports:
		return "kubectl get servicel2statuses,configurationstates,events -A -o yaml"
	case NeedSpeakerLog:
		return "kubectl logs POD -c speaker -n metallb-system, of the speaker on the node"
	case NeedSpeakerMetrics:
		return "curl -s http://ADDRESS:7472/metrics, with the node's address"
	}
	return ""
}
