package kubeproxy

import (
	"strconv"
	"strings"
)

// Minor versions of Kubernetes 1 in which something changed for kube-proxy.
const (
	ipvsDeprecated     = 35 // KEP-5495: a warning in the log and an event
	ipvsGateAdded      = 37 // kubernetes/kubernetes#139397: the feature gate KubeProxyIPVS
	ipvsOff            = 40 // server_linux.go of 1.37: the gate is off by default
	ipvsRemoved        = 43 // server_linux.go of 1.37
	fallbackRemoved    = 26 // kubernetes/kubernetes#111806
	userspaceRemoved   = 26 // kubernetes/kubernetes#112133
	nftablesAdded      = 29 // KEP-3866: alpha, behind NFTablesProxyMode
	nftablesBeta       = 31 // on by default
	supportIPVSRemoved = 20 // kubernetes/kubernetes#94514

	gateIPVS        = "KubeProxyIPVS"
	gateNFTables    = "NFTablesProxyMode"
	gateSupportIPVS = "SupportIPVSProxyMode"
)

// Stage is how far Kubernetes has given up the ipvs mode.
type Stage string

// Stages of the ipvs mode (KEP-5495).
const (
	StageUnknown    Stage = ""           // the version is not known
	StageSupported  Stage = "supported"  // before 1.35
	StageDeprecated Stage = "deprecated" // from 1.35: it works, and logs a warning
	StageOff        Stage = "off"        // from 1.40: only with the feature gate KubeProxyIPVS
	StageRemoved    Stage = "removed"    // from 1.43
)

// Lifecycle says how far the given version of Kubernetes or kube-proxy, such as
// v1.37.2, has given up the ipvs mode.
func Lifecycle(version string) Stage {
	minor, ok := minorOf(version)
	switch {
	case !ok:
		return StageUnknown
	case minor >= ipvsRemoved:
		return StageRemoved
	case minor >= ipvsOff:
		return StageOff
	case minor >= ipvsDeprecated:
		return StageDeprecated
	}
	return StageSupported
}

// Advice returns what somebody who runs or plans the given mode with the given
// version should know, the most pressing first. It is nil if there is nothing.
func Advice(mode Mode, version string) []string {
	if mode != ModeIPVS {
		return nil
	}
	var list []string
	switch Lifecycle(version) {
	case StageRemoved:
		list = append(list, "Kubernetes 1.43 has removed the ipvs mode: kube-proxy refuses it; use nftables")
	case StageOff:
		list = append(list, "ipvs is off by default since Kubernetes 1.40: it needs the feature gate KubeProxyIPVS, and 1.43 removes it; move to nftables")
	case StageDeprecated:
		list = append(list, "ipvs is deprecated since Kubernetes 1.35, off by default in 1.40 and removed in 1.43 (KEP-5495): plan to move to nftables")
	}
	if before(version, fallbackRemoved) {
		list = append(list, "kube-proxy before 1.26 falls back to iptables on a node without the ip_vs modules: compare /proxyMode on each node")
	}
	return append(list,
		"leaving ipvs for iptables leaves kube-ipvs0 and its addresses behind, and every node goes on answering ARP for them: run kube-proxy --cleanup or reboot; nftables removes it",
		"turning strictARP off does not revert arp_ignore and arp_announce: they stay until the node boots")
}

// flagAdvice says why a flag beside --config has no effect.
const flagAdvice = "kube-proxy reads the file that --config names and ignores this flag: set %s in the file"

// modeRefused says why kube-proxy would not start in a mode; empty if it would.
// It compares modes with regard to case.
func modeRefused(mode Mode, gates map[string]bool, o ParseOptions) string {
	known := []Mode{ModeIPTables, ModeIPVS, ModeNFTables}
	if o.Windows {
		known = []Mode{ModeKernelspace}
	}
	if before(o.Version, userspaceRemoved) {
		known = append(known, ModeUserspace)
	}
	ipvs, set := gates[gateIPVS]
	nftables, nftablesSet := gates[gateNFTables]
	old := before(o.Version, nftablesAdded)
	switch {
	case mode == "":
		return ""
	case o.Windows || mode == ModeUserspace || mode == ModeIPTables:
	case mode == ModeIPVS && Lifecycle(o.Version) == StageRemoved:
		return "Kubernetes 1.43 has removed this mode"
	case mode == ModeIPVS && (set && !ipvs || !set && Lifecycle(o.Version) == StageOff):
		return "the feature gate KubeProxyIPVS is off"
	case mode == ModeNFTables && old:
		return "kube-proxy has this mode since 1.29"
	case mode == ModeNFTables && (nftablesSet && !nftables || !nftablesSet && before(o.Version, nftablesBeta)):
		return "the feature gate NFTablesProxyMode is off"
	}
	names := make([]string, len(known))
	for i, k := range known {
		if k == mode {
			return ""
		}
		names[i] = string(k)
	}
	return "kube-proxy knows " + strings.Join(names, ", ") + " only, spelled so"
}

// minorOf reads 1.37.2, v1.37 and v1.32.6+rke2r1.
func minorOf(version string) (int, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	if !ok {
		return 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	minor, err := strconv.Atoi(rest)
	return minor, err == nil
}

// before reports whether the version is known and older than 1.minor.
func before(version string, minor int) bool {
	m, ok := minorOf(version)
	return ok && m < minor
}
