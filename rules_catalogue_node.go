package strictarp

// What the kernel does is in net/ipv4/arp.c (arp_ignore, arp_solicit,
// arp_process) and net/ipv4/fib_frontend.c (fib_validate_source); it was
// measured on Linux 6.1 and 6.18.

// kernelRules are about the settings that decide for which addresses a node's
// kernel speaks.
func kernelRules() []Rule {
	return []Rule{{
		ID: "kernel-answers-vip", Title: "The node's kernel would answer for VIPs it merely holds", Severity: SeverityError,
		Needs: []Need{NeedNodeSysctls, NeedNodeLinks, NeedNodeRoutes},
		Explain: `The node holds VIPs on a device such as kube-ipvs0 and answers requests for them on the segment's
			interface, whoever announces them. That the device is DOWN and NOARP does not matter.

			What counts is the larger of conf/all and the receiving interface. 1, 2 and 8 are strict; 0 answers; 3
			answers for addresses of global and link scope, which those of kube-ipvs0 are; 4 to 7 and from 9 act as 0.
			So all=1 with 4 on the interface answers again. On a bridge the bridge's settings count, not its port's.

			strictARP: true and a restart of kube-proxy mend it in ipvs mode; elsewhere arp_ignore=1 and arp_announce=2
			in conf/all, at boot too. conf/default, conf/kube-ipvs0 and arp_filter do nothing here.`,
	}, {
		ID: "arp-announce-off", Title: "The kernel may use a VIP as sender of its own requests", Severity: SeverityWarning,
		Needs: []Need{NeedNodeSysctls, NeedNodeLinks},
		Explain: `Effective arp_announce, the larger of conf/all and the interface's, is below 2 while the node holds VIPs.
			When it sends a packet with a VIP as source and has to resolve the next hop, its request names the VIP as
			sender, and who hears it sends the VIP's traffic to this node. 0 and 1 both did so in measurements; 2 did
			not.

			It stays unseen until such a packet is sent, and a probe does not show it: only requests that were heard do
			(vip-in-request-sender). arp_ignore=1 does not cover it; that is half a fix.

			strictARP: true sets arp_announce=2 in conf/all. Without kube-proxy in ipvs mode set it by sysctl, and in a
			file for the next boot.`,
	}, {
		ID: "strictarp-overridden", Title: "Something loosened the settings after kube-proxy made them strict", Severity: SeverityError,
		Needs: []Need{NeedKubeProxyConfig, NeedKubeProxyRunning, NeedNodeSysctls},
		Explain: `kube-proxy runs in ipvs mode with strictARP true, and yet effective arp_ignore is 0, 3 or reserved, or
			arp_announce below 2. kube-proxy writes 1 and 2 to conf/all once, as it starts, and does not watch them: a
			sysctl file, a tuning daemon, another agent or a person changed them since, or an interface has a larger
			value of its own that is not strict.

			If the running process has strictARP false it is strictarp-pending. With another mode than ipvs kube-proxy
			sets nothing. 2 and 8 are strict.

			Find what writes the value and stop it, then write 1 and 2. Restarting kube-proxy alone lasts until the next
			write. Never loosen them because an address looked dead.`,
	}, {
		ID: "strictarp-pending", Title: "kube-proxy has to be restarted for strictARP to take effect", Severity: SeverityError,
		Needs: []Need{NeedKubeProxyConfig, NeedKubeProxyRunning},
		Explain: `The declared configuration says strictARP: true, but the process that runs has false or began before the
			last change. Until it restarts, the node goes on answering for its VIPs.

			kube-proxy does not notice a change of its ConfigMap. (A mounted file that is rewritten in place makes it
			exit.) /configz tells what the process has; the flag dump in its log does not: --ipvs-strict-arp stays false
			there even when the file says true. Settings that are strict already, by hand, do not make the restart
			unnecessary.

			Restart what runs it: the DaemonSet, the static pod, or the systemd unit on each node. Then flush clients'
			neighbour entries. Another edit of the configuration does nothing.`,
	}, {
		ID: "strictarp-residue", Title: "The kernel is strict although strictARP is off", Severity: SeverityWarning,
		Needs: []Need{NeedKubeProxyConfig, NeedNodeSysctls, NeedPersistedSysctls},
		Explain: `The configuration says false, or nothing, but arp_ignore and arp_announce are still 1 and 2. Today one
			host answers; after the next boot of a node its kernel answers again.

			kube-proxy sets the two when strictARP is true and never takes them back: after a change to false and a
			restart they stay. A value that somebody set by hand looks the same. One that a sysctl file sets at boot is
			no residue: it will be there again.

			Turn strictARP on, so that the state that works is the one that is declared. Setting the two to 0 to match
			the configuration would bring all the answers back.`,
	}, {
		ID: "persisted-sysctl-loosens", Title: "A sysctl file sets a value below strict", Severity: SeverityWarning,
		Needs: []Need{NeedPersistedSysctls, NeedNodeSysctls, NeedNodeLinks},
		Explain: `A line of sysctl.d or sysctl.conf would set arp_ignore or arp_announce so that the kernel answers for, or
			speaks as, VIPs. It does so at boot or when somebody runs "sysctl --system", even hours after kube-proxy
			made them strict.

			The same file name in /etc hides that in /run and /usr/lib; among the files the last name wins; systemd
			knows globs and a "-" that excludes. What counts is the larger of conf/all and the interface, so a 0 for an
			interface under all=1 does no harm. kube-proxy starts later than boot's settings are made, but before a
			later "sysctl --system".

			Change that line to 1 or 2, or take it out. A later file that overrides it works too.`,
	}, {
		ID: "useless-sysctl", Title: "A setting is made where it cannot matter", Severity: SeverityInfo,
		Needs: []Need{NeedNodeSysctls, NeedPersistedSysctls, NeedNodeLinks},
		Explain: `Somebody set a value as if it decided who answers, and it does not. Values of conf/kube-ipvs0 never count:
			no request arrives on that device. Values of conf/default are what interfaces start with that are made
			later; those that exist and have an address keep their own.

			Whether the node answers is decided by the larger of conf/all and the interface that receives the request. A
			new interface under all=1 shows 0 and is strict all the same, so an own 0 is no fault.

			Nothing is broken by it, but it does not protect: see kernel-answers-vip for whether the node is strict. Put
			the value in conf/all and take the useless line out.`,
	}, {
		ID: "arp-ignore-side-effects", Title: "arp_ignore has a value that does more or less than 1", Severity: SeverityWarning,
		Needs: []Need{NeedNodeSysctls, NeedNodeLinks},
		Explain: `Effective arp_ignore is 2, 3 or 8 where 1 is meant. 2 also wants the sender in the subnet of the address
			that is asked for, so nodes and pods on /32 links get no answer from each other any more. 8 answers for
			nothing, the node's own addresses included, so that nobody can resolve the node. 3 looks stricter than 1 and
			is not: addresses on kube-ipvs0 have global scope and are answered for.

			Hardening guides set such values, for "all" or for one interface; the larger counts, so 1 in conf/all does
			not lower them. The announcer answers under all of them.

			Set 1, where the larger value stands. Not 0: every node would answer.`,
	}, {
		ID: "needs-kernel-answer", Title: "Something here needs the kernel to answer, which strictARP stops", Severity: SeverityWarning,
		Needs: []Need{NeedServices, NeedWorkloads, NeedNodeLinks, NeedNodeSysctls},
		Explain: `An address has no announcer and was reachable only because nodes answered for what they merely hold: an
			external IP that no controller announces, a VIP on lo, the egress address of a CNI without a responder of
			its own. With strictARP its clients have a FAILED neighbour entry.

			It is not a fault of strictARP: before, every node answered and a race decided. LoadBalancer IPs of an
			announcer are not concerned, and neither is proxy ARP for pods, which arp_ignore does not touch.

			Give the address one owner: a LoadBalancer Service, a controller that announces it (newer releases of some
			CNIs do), or one node's NIC managed by keepalived. Loosening arp_ignore breaks every other VIP.`,
	}}
}

// holderRules are about which addresses a node holds, and where.
func holderRules() []Rule {
	return []Rule{{
		ID: "leftover-kube-ipvs0", Title: "kube-ipvs0 is left although kube-proxy does not use it", Severity: SeverityError,
		Needs: []Need{NeedNodeLinks, NeedKubeProxyRunning, NeedKubeProxyConfig},
		Explain: `kube-proxy is not in ipvs mode on this node, or is gone, and kube-ipvs0 still holds addresses. The kernel
			goes on answering for them, deleted Services included, and new ones are not added. Where the settings are
			still strict the node is silent all the same. The device does not outlive a boot.

			A change from ipvs to iptables without clean-up leaves device and IPVS table; a change to nftables removed
			both. A stopped kube-proxy leaves them, and so does an uninstalled node that still has power.

			"kube-proxy --cleanup" removed it even though it exited with an error, and deleting the link works: nothing
			puts it back. strictARP: true does nothing in another mode. Restarts of kube-proxy do not help.`,
	}, {
		ID: "stale-vip-on-device", Title: "kube-ipvs0 holds an address of no Service", Severity: SeverityWarning,
		Needs: []Need{NeedNodeLinks, NeedServices, NeedKubeProxyRunning},
		Explain: `The node accepts, and with loose settings answers for, an address that no Service has: traffic for it ends
			here although somebody else may own it by now.

			A running kube-proxy in ipvs mode takes the address of a deleted Service off within seconds, so it is
			stopped, hangs, has lost the API server, or left the mode. Only ingress addresses whose ipMode is VIP or
			unset are bound; cluster IPs and external IPs are on the device by right. An address that a CNI holds for
			egress is no Service's either, but has an owner.

			Mend kube-proxy, which then cleans up by itself. Only where it is gone for good does deleting the address
			last: a running one puts back what it wants, after 21 s in one run.`,
	}, {
		ID: "vip-on-real-interface", Title: "A VIP is configured on an interface of a node", Severity: SeverityError,
		Needs: []Need{NeedNodeLinks, NeedServices, NeedWorkloads},
		Explain: `An address that an announcer should give away stands on a NIC, lo or another device. On the receiving
			interface the kernel answers for it whatever arp_ignore says, so there is a second responder, or a double
			answer on the announcing node.

			Somebody bound it to make a silent VIP work, or kube-vip or keepalived left it. Not meant: a node's own
			address, a service proxy's dummy device, and the NIC of the node that another announcer rightly elected. Two
			keepalived masters both have it: which one is right cannot be told from that.

			Stop what put it there and remove it, from the network configuration too. arp_ignore=1 does not silence it;
			the silent announcer needs its own cure.`,
	}, {
		ID: "proxy-arp-on-node", Title: "A node answers for addresses that it routes elsewhere", Severity: SeverityWarning,
		Needs: []Need{NeedNodeSysctls, NeedNodeRoutes, NeedNodeLinks},
		Explain: `proxy_arp is effective on the interface of the VIPs' segment: on if either conf/all or the interface has
			it. With forwarding on, the kernel answers there for every address that it does not hold and routes by
			another interface, VIPs outside the interface's subnet and other people's addresses included, after up to
			0.8 s.

			arp_ignore does not restrain it, so strictARP does not either. Proxy neighbour entries answer in the same
			way, even with arp_ignore 8. On interfaces to pods, such as cali*, CNIs need proxy_arp=1: that is right and
			another matter.

			Turn it off in conf/all and on that interface, and leave it on where the CNI set it. Look for what set it in
			all, often a VPN or a router's set-up.`,
	}}
}

// pathRules are about the way of packets to a node and back.
func pathRules() []Rule {
	return []Rule{{
		ID: "rp-filter-strict", Title: "Strict rp_filter drops packets of known clients", Severity: SeverityWarning,
		Needs: []Need{NeedNodeSysctls, NeedNodeRoutes, NeedNodeLinks, NeedCounters},
		Explain: `Effective rp_filter on the receiving interface is 1, and the route back to a known client leaves by
			another one. The kernel drops such packets without a word but a counter (TcpExtIPReversePathFilter), and
			does not answer their ARP requests. The announcer does answer: its socket is raw. So ARP is fine and
			connections time out.

			The larger of conf/all and the interface counts, so 2 on either is loose and drops only what has no route
			back. A value of 1 alone, with a fitting route, is no fault.

			Mend the route, by policy routing if need be; or set 2 on that interface. 0 there changes nothing under
			all=1. It has nothing to do with who announces.`,
	}, {
		ID: "asymmetric-return-path", Title: "Replies leave by another interface than requests arrive on", Severity: SeverityWarning,
		Needs: []Need{NeedNodeRoutes, NeedNodeLinks, NeedServices},
		Explain: `Clients' packets for a VIP arrive on one interface and the node's route back to them leaves by another,
			usually the default route. Firewalls that saw only half of the connection drop it, and strict rp_filter drops
			the first packet already. Clients of the VIP's own subnet work; those behind the router do not.

			ARP looks right throughout: one answer, from the right node. It is common where VIPs are in a VLAN of their
			own on the nodes.

			Give the replies their way: a routing table for the VIPs' VLAN and rules by source address or mark, on all
			nodes that can announce. Loosening rp_filter alone moves the loss to the next firewall.`,
	}, {
		ID: "node-not-observed", Title: "A node was not observed", Severity: SeverityUnknown,
		Needs: []Need{NeedNodes, NeedNodeLinks, NeedNodeSysctls},
		Explain: `The cluster has this node, but its interfaces, addresses or settings are not among the facts. Whether its
			kernel answers for VIPs, and which MACs are its own, cannot be said: a MAC of it looks foreign, and it can
			be the one loose node among strict ones.

			Absent facts are not good facts. What the wire shows of it still counts, such as an answer of a known MAC.

			Collect its interfaces and settings on the node itself, or by an agent in the host's network namespace: from
			within a pod the pod's own are read. A node that is down can be left out knowingly; one that only lost the
			API server can still answer.`,
	}}
}
