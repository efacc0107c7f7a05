package strictarp

// What kube-proxy does is in its cmd/kube-proxy/app (options.go,
// server_linux.go) and pkg/proxy/ipvs/proxier.go.

// kubeProxyRules are about what a configuration says.
func kubeProxyRules() []Rule {
	return []Rule{{
		ID: "strictarp-off", Title: "strictARP is off in ipvs mode", Severity: SeverityError,
		Needs: []Need{NeedKubeProxyConfig, NeedWorkloads},
		Explain: `kube-proxy in ipvs mode puts every VIP on kube-ipvs0 of every node, and unless strictARP is true it leaves
			arp_ignore and arp_announce alone, which are 0 by default: all nodes answer for VIPs that one node
			announces. An absent or null ipvs section is the same as false.

			In iptables and nftables mode VIPs are on no device and strictARP has no effect: off is right there. If the
			kernel is strict by other means nobody answers wrongly today (strictarp-residue); this is about what is
			declared.

			Set strictARP: true in the source that kube-proxy reads, restart it, and flush clients' neighbour entries.
			The edit alone does nothing until the restart.`,
	}, {
		ID: "strictarp-ignored", Title: "strictARP is set where it has no effect", Severity: SeverityWarning,
		Needs: []Need{NeedKubeProxyConfig},
		Explain: `Somebody asked for strictARP, and kube-proxy does not do it. With --config nearly all flags are ignored,
			--ipvs-strict-arp and --proxy-mode among them: the file wins. In a mode other than ipvs, an empty one
			included, which is iptables on Linux, nothing is set. A key that is indented wrongly, stands outside ipvs,
			or is written strictArp is not read: names are case-sensitive.

			It is no fault where VIPs are on no device, as in iptables mode: only the wish is misplaced. Where the mode
			is ipvs, strictarp-off comes with it.

			Write strictARP: true below ipvs in the file that --config names, or drop it where the mode does not need
			it.`,
	}, {
		ID: "kubeproxy-config-invalid", Title: "kube-proxy would refuse this configuration", Severity: SeverityError,
		Needs: []Need{NeedKubeProxyConfig},
		Explain: `kube-proxy does not start with it. What runs today started with an earlier one: the next restart or boot
			of a node takes its Services away.

			Refused are a tab in the indentation, a missing apiVersion or kind, a mode in the wrong case such as IPVS,
			and a file whose first document is something else, such as a kubeadm ClusterConfiguration: only the first
			document is read. Unknown and repeated fields are not refused: the strict decoder fails, a lenient one takes
			over with a line in the log (kubeproxy-config-ambiguous).

			Correct the line that is named, then restart one node's kube-proxy and look at it before the others.`,
	}, {
		ID: "kubeproxy-config-ambiguous", Title: "It is not plain which setting of kube-proxy wins", Severity: SeverityWarning,
		Needs: []Need{NeedKubeProxyConfig},
		Explain: `The configuration has a field twice, fields that kube-proxy does not know, several documents, or there
			are several sources. People read one value and kube-proxy may take the other.

			Of a repeated field the last counts (kube-proxy 1.37; older releases were not tried). Unknown fields are
			dropped. Both make the strict decoder fail, and kube-proxy logs that it uses lenient decoding. Of several
			ConfigMaps the one counts that the workload mounts and its --config names. A strictARP key that is not read
			is strictarp-ignored.

			Leave one value and one source. /configz of a running kube-proxy tells what it took; the kernel's settings
			tell it too, as long as nothing else wrote them.`,
	}, {
		ID: "kubeproxy-config-not-found", Title: "kube-proxy's configuration was not found", Severity: SeverityUnknown,
		Needs: []Need{NeedKubeProxyConfig, NeedWorkloads},
		Explain: `What kube-proxy is told is unknown, so it is unknown whether its nodes will be strict after the next
			restart. That there is no ConfigMap named kube-proxy does not mean that there is no kube-proxy.

			k3s runs it within its own process, with kube-proxy-arg in /etc/rancher/k3s/config.yaml; RKE2 as a static
			pod with arguments from /etc/rancher/rke2/config.yaml; MicroK8s keeps
			/var/snap/microk8s/current/args/kube-proxy; others have a systemd unit. A cluster where something has replaced
			it is kubeproxy-absent.

			Look at the arguments of the running process on a node, at the file its --config names, or ask
			127.0.0.1:10249/configz there.`,
	}}
}

// runningKubeProxyRules are about which kube-proxies there are and how they run.
func runningKubeProxyRules() []Rule {
	return []Rule{{
		ID: "kubeproxy-absent", Title: "There is no kube-proxy", Severity: SeverityInfo,
		Needs: []Need{NeedWorkloads, NeedKubeProxyConfig},
		Explain: `Something else does the work of kube-proxy, such as Cilium, kube-router or Calico's eBPF. Then strictARP
			has no meaning: nobody reads it, and an installer that insists on it asks for nothing.

			Whether kernels answer for VIPs depends on the replacement. With eBPF the addresses are on no device.
			kube-router binds them to kube-dummy-if of every node, and the nodes answer as with kube-ipvs0 unless
			arp_ignore is 1 and arp_announce 2.

			Only a complete list of DaemonSets, and nodes without such a process, show that it is absent. A kube-ipvs0
			that is still there is a leftover. Settings are then made by sysctl and a file, not by strictARP: true.`,
	}, {
		ID: "kubeproxy-nodes-differ", Title: "Nodes run kube-proxy with different settings", Severity: SeverityWarning,
		Needs: []Need{NeedKubeProxyConfig, NeedKubeProxyRunning},
		Explain: `Mode or strictARP is not the same on all nodes. One loose node is enough for a second responder: whoever
			hears it first sends traffic there, and a test from elsewhere may not show it.

			It comes from restarts that reached some nodes only, from files that are kept per node, from a node without
			the ip_vs modules, or from an upgrade that is under way. The last passes by itself; a roll-out that hangs
			does not.

			Bring all nodes to one configuration, restart those that are behind, and compare /configz and /proxyMode of
			each. Windows nodes have a mode of their own and are left out.`,
	}, {
		ID: "kubeproxy-mode-mismatch", Title: "kube-proxy runs in another mode than configured", Severity: SeverityError,
		Needs: []Need{NeedKubeProxyConfig, NeedKubeProxyRunning, NeedKubeProxyLog},
		Explain: `The declared mode and the one that /proxyMode gives differ. If ipvs is declared and iptables runs, neither
			VIPs nor strict settings are made on that node. If ipvs still runs, VIPs stay on kube-ipvs0 and the node may
			answer for them.

			Either the process has not been restarted since the change, or it fell back: older releases take iptables
			where the ip_vs modules are missing, and say so in their log; newer ones exit. It is not
			strictarp-overridden: nothing was set that could be.

			Load ip_vs, ip_vs_rr and nf_conntrack at boot and restart kube-proxy, or declare the mode that runs. Setting
			arp_ignore by hand is of no use while VIPs are on no device.`,
	}, {
		ID: "two-service-proxies", Title: "kube-proxy runs beside what replaced it", Severity: SeverityError,
		Needs: []Need{NeedWorkloads, NeedKubeProxyConfig, NeedKubeProxyRunning},
		Explain: `Calico's eBPF, Cilium or kube-router has taken kube-proxy's place and kube-proxy still runs. Both program
			the same Services. Which of them a packet meets depends on hooks and on who was last; in ipvs mode
			kube-proxy also puts VIPs on kube-ipvs0, for which the nodes answer.

			Cilium without its kube-proxy replacement, and Calico without eBPF, run beside kube-proxy by right: what
			counts is what they are configured for.

			Stop kube-proxy (the replacement's manual says how, usually by a node selector that matches no node), then
			clean up with "kube-proxy --cleanup" on each node or reboot it. Turning strictARP on leaves the two
			fighting.`,
	}, {
		ID: "ipvs-mode-deprecated", Title: "kube-proxy's ipvs mode is deprecated", Severity: SeverityInfo,
		Needs: []Need{NeedKubeProxyConfig, NeedServerVersion},
		Explain: `kube-proxy's ipvs mode is deprecated since Kubernetes 1.35, is off by default from 1.40 on and gone in
			1.43. Nothing is wrong today; how grave this is rises with the server's version. In nftables mode VIPs are on
			no device, no kernel answers for them, and strictARP is not needed.

			A configuration that leaves the mode empty runs iptables on Linux and is not concerned.

			Plan the change to nftables, which needs kernel 5.13. It removed kube-ipvs0 and the IPVS table in
			measurements; a change to iptables left both with all addresses (leftover-kube-ipvs0). Until then keep
			strictARP: true. Do not change the mode to cure an outage.`,
	}}
}
