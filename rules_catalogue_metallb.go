package strictarp

// MetalLB's order of gates is in speaker/layer2_controller.go (ShouldAnnounce),
// what its speaker answers on in internal/layer2/announcer.go (updateInterfaces).

// silenceRules are about what is declared so that nobody announces.
func silenceRules() []Rule {
	return []Rule{{
		ID: "no-l2-advertisement", Title: "No L2Advertisement covers the VIP's pool", Severity: SeverityError,
		Needs: []Need{NeedMetalLBObjects, NeedServices},
		Explain: `The controller gives addresses from the pool, and no speaker announces them: since MetalLB 0.13 a pool
			alone does nothing. The Service looks fine, with an address and without a warning event, and nobody answers.

			An L2Advertisement covers a pool that it names or whose labels its ipAddressPoolSelectors match, and every
			pool if it has neither; it has to be in MetalLB's namespace. Its serviceSelectors must match the Service
			too. Before 0.13 layer2 was a property of the pool in a ConfigMap, and there are no such objects. With a
			BGPAdvertisement alone ARP is not expected.

			Create one for the pool. No sysctl helps.`,
	}, {
		ID: "no-pool-for-address", Title: "The VIP is in no pool", Severity: SeverityError,
		Needs: []Need{NeedMetalLBObjects, NeedServices},
		Explain: `The Service has an address that no IPAddressPool contains, and MetalLB announces only addresses of its
			pools. The speaker withdraws it and logs "IP allocated by controller not allowed by config".

			The pool was renumbered or deleted after the address was given, or another controller or a person wrote the
			status. If the Service has a loadBalancerClass that is not MetalLB's, the address is somebody else's and this
			does not apply; the same holds for external IPs.

			Put the address back into a pool, or let the Service get a new one by requesting one of a pool. The nodes'
			settings have no part in it.`,
	}, {
		ID: "service-without-address", Title: "A LoadBalancer Service has no address", Severity: SeverityWarning,
		Needs: []Need{NeedServices, NeedMetalLBObjects, NeedAnnouncerReports},
		Explain: `Nothing can be announced until the controller, not the speaker, has given the Service an address. Clients
			have nothing to connect to.

			The pools are used up, autoAssign is false, the requested address is in no pool or taken, the pool's
			serviceAllocation excludes the Service, its loadBalancerClass belongs to nobody, or the controller does not
			run. An AllocationFailed event says which. A Service that is a few seconds old is just being served, and an
			ingress entry with a host name is an address that MetalLB did not give.

			Mend what the event names. Answers on the wire and kernel settings come only after this.`,
	}, {
		ID: "no-ready-endpoint", Title: "No endpoint of the Service can serve", Severity: SeverityError,
		Needs: []Need{NeedServices},
		Explain: `MetalLB asks this before anything else: where no endpoint is ready or still serving, no node announces
			the VIP, whatever the traffic policy. The status is removed, and no event says so.

			Pods fail their readiness probe, the selector matches none, or they run on a node that was lost. An endpoint
			that terminates and still serves counts. With loose kernels the nodes go on answering, and clients get a
			refusal or a time-out in place of silence.

			Mend the pods or the selector; the announcement follows by itself within seconds. Nothing is wrong with ARP,
			and restarting speakers does nothing.`,
	}, {
		ID: "no-local-endpoint", Title: "No eligible node has an endpoint under the Local policy", Severity: SeverityError,
		Needs: []Need{NeedServices, NeedMetalLBObjects, NeedNodes, NeedWorkloads},
		Explain: `With externalTrafficPolicy: Local only nodes with a serving endpoint may announce, and those that have one
			are not eligible: the node selectors leave them out, they are excluded, or run no speaker. So nobody
			announces although pods are ready. The status is removed, without an event.

			It looks as if node selectors did not work: without them the VIP is answered. It comes before
			no-speaker-on-node where no candidate has an endpoint.

			Let pods run where announcing is allowed, allow announcing where pods run, or use the Cluster policy if the
			client's address is not needed. The selectors and pods have to agree for every replica that may move.`,
	}, {
		ID: "advertisement-selects-no-node", Title: "The node selectors of the advertisements match no node", Severity: SeverityError,
		Needs: []Need{NeedMetalLBObjects, NeedNodes},
		Explain: `Every L2Advertisement that covers the VIP has nodeSelectors, and no node has such labels. No speaker finds
			itself among the candidates; the VIP is not announced.

			A label is misspelt, was lost when a node was made anew, or is one that only the old distribution set.
			Selectors in one list are alternatives; the requirements within one must all hold. If nodes match but have
			no endpoint under the Local policy, it is no-local-endpoint.

			Label the nodes or correct the selector; it takes effect at once. If a second advertisement without
			selectors is added instead, every node may announce (advertisement-overlap).`,
	}, {
		ID: "node-excluded-from-lb", Title: "The nodes that could announce are excluded from load balancers", Severity: SeverityError,
		Needs: []Need{NeedNodes, NeedMetalLBObjects, NeedServices, NeedWorkloads},
		Explain: `Nodes with the label node.kubernetes.io/exclude-from-external-load-balancers do not announce. Only its
			presence counts: with the value "false" it excludes just as well. Here all that remain as candidates carry
			it, so nobody answers; the status is removed and no event tells.

			kubeadm puts it on control-plane nodes, which is why single-node and small clusters are hit. The speaker's
			--ignore-exclude-lb makes it look away.

			Remove the label from nodes that should announce (kubectl label node NODE LABEL-). Setting it to false
			changes nothing, static ARP entries on a switch break at the next fail-over, and sysctls have no part in it.`,
	}, {
		ID: "node-network-unavailable", Title: "A candidate is out because its network is unavailable", Severity: SeverityWarning,
		Needs: []Need{NeedNodes, NeedServices, NeedMetalLBObjects},
		Explain: `MetalLB leaves out nodes whose NetworkUnavailable condition is True. Another candidate announces if there
			is one; under the Local policy, or with narrow node selectors, there may be none.

			The condition is set by a CNI or a cloud's route controller and can be left over: a CNI that was replaced
			never takes its own back. Ready may be True all the same. A node that is only NotReady is judged by its
			endpoints and by memberlist, not by this.

			Bring the node's network agent back, which clears the condition. If it is a leftover, let the present CNI or
			a person clear it. Kernel settings do not matter.`,
	}}
}

// speakerRules are about announcements that do not come although they are declared, or
// come from more than was meant.
func speakerRules() []Rule {
	return []Rule{{
		ID: "not-announced", Title: "Nothing forbids the announcement, and nobody announces", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedMetalLBObjects, NeedServices, NeedNodes, NeedWorkloads, NeedAnnouncerReports, NeedSpeakerLog, NeedSpeakerMetrics},
		Explain: `Pool, advertisement, endpoints, nodes and speakers are all in order, so one node should announce. Yet there
			is no status, no nodeAssigned event, no serviceAnnounced line, and nobody answers. The cause is not among
			the facts.

			arp_ignore 1, arp_announce 2 and rp_filter 1 are right and not the cause: the speaker answered under all of
			them. Loosening them lets every node's kernel answer, which looks like a cure and is the worse outage.

			Look next at the log of the speaker on the expected node (configuration not loaded, lost connection to the
			API server, a version that does not match its CRDs), then at metallb_speaker_announced and
			metallb_k8s_client_config_stale_bool of its metrics.`,
	}, {
		ID: "no-speaker-on-node", Title: "No candidate runs a ready speaker", Severity: SeverityError,
		Needs: []Need{NeedWorkloads, NeedNodes, NeedServices, NeedMetalLBObjects},
		Explain: `The nodes that may announce have no speaker that works, so nobody does. Controller and address are fine.

			The DaemonSet's nodeSelector or missing tolerations keep it off those nodes, its pods hang (a missing
			memberlist Secret gives CreateContainerConfigError), crash, or were evicted; or memberlist does not see a
			speaker that runs. The status of a killed speaker stays until its pod is collected, so it proves nothing.
			With loose kernels the nodes answer all the same.

			Mend what the pods' status says, or add the toleration. If no node has a local endpoint, no-local-endpoint
			comes first. Sysctls cannot replace a speaker.`,
	}, {
		ID: "speaker-cannot-answer", Title: "A speaker runs but cannot answer", Severity: SeverityError,
		Needs: []Need{NeedWorkloads, NeedSpeakerLog},
		Explain: `The speaker takes part in the election and can win it, but has no ARP responder on the VIP's segment. No
			other node takes over, for to its peers it is alive.

			It may not open a raw socket: NET_RAW is missing, or a seccomp, SELinux or AppArmor policy forbids it; its
			log says "failed to create ARP responder". Without the host's network it hears only its pod. Or its scan of
			interfaces stopped with an error. A healthy one logs createARPResponder for each interface.

			Give the pod hostNetwork and NET_RAW, or mend the policy, then restart that pod. Status and nodeAssigned
			events look right and prove nothing.`,
	}, {
		ID: "memberlist-disabled", Title: "Speakers do not watch each other", Severity: SeverityWarning,
		Needs: []Need{NeedWorkloads, NeedNodes},
		Explain: `memberlist is off: the speaker has no --ml-bindaddr or --ml-labels, in the usual manifests METALLB_ML_BIND_ADDR
			and METALLB_ML_LABELS. Then every node that the selectors allow counts as one with a speaker. A node without
			one, or with a dead one, can win the election, and its VIPs fall silent until it is gone from the API;
			fail-over waits for Kubernetes in place of seconds.

			A missing secret key alone does not turn it off: traffic is then not encrypted, and the log has a warning.

			Set both variables, or keep speakers on all nodes that may announce. A restart of the speakers is needed.`,
	}, {
		ID: "advertisement-overlap", Title: "A wider L2Advertisement undoes a narrower one", Severity: SeverityInfo,
		Needs: []Need{NeedMetalLBObjects},
		Explain: `Two L2Advertisements cover the same pool. Their nodes and interfaces add up: one without nodeSelectors lets
			every node announce, one without interfaces lets it answer on all. What the narrow one seems to restrict is
			not restricted.

			Often it is an empty one of a quick start, which covers all pools; it is easily overlooked, being in
			MetalLB's namespace under another name. That several nodes answer has another cause: one node is elected
			however many advertisements there are.

			Delete or narrow the wide one. If both are meant, for different pools or Services, give each its
			ipAddressPools or serviceSelectors.`,
	}, {
		ID: "announcing-interface-missing", Title: "The elected node has none of the named interfaces", Severity: SeverityError,
		Needs: []Need{NeedMetalLBObjects, NeedNodeLinks, NeedServices, NeedNodes, NeedWorkloads, NeedAnnouncerReports},
		Explain: `The L2Advertisements name interfaces, and the node that wins the election has none of them. It announces
			nothing, and no other node takes over: interfaces play no part in the election. So it works until such a
			node is elected.

			The Service has an announceFailed event, and a nodeAssigned one that means nothing; ConfigurationState stays
			Valid. A speaker that announced before the edit goes on until it is restarted, so the fault may show much
			later. An interface that exists and is skipped is announcing-interface-skipped.

			Name the interface of every node, or restrict nodeSelectors to nodes that have it; one advertisement for
			each kind of node does both.`,
	}, {
		ID: "announcing-interface-skipped", Title: "MetalLB skips the interface that should announce", Severity: SeverityError,
		Needs: []Need{NeedNodeLinks, NeedMetalLBObjects, NeedSpeakerLog, NeedServices},
		Explain: `The speaker has no responder on the interface: it is down, has a master (port of a bridge, bond, VRF or Open
			vSwitch), is NOARP, not broadcast, or matches the metallb-excludel2 ConfigMap, whose default takes veth,
			docker, cali, cni, dummy, virbr and more. Or an earlier interface gave an error, at which the scan of every
			10 s stops.

			Status and nodeAssigned name the interface as if it worked. The speaker's log lacks createARPResponder for
			it. A bridge itself is not skipped, only its ports.

			Name the bridge or bond that has the address, bring the link up, or take it off the exclude list. For a
			stopped scan remove the interface that errs.`,
	}}
}

// announcementRules are about reports that disagree and announcers that do.
func announcementRules() []Rule {
	return []Rule{{
		ID: "announcer-mismatch", Title: "The reported announcer is not the elected one", Severity: SeverityWarning,
		Needs: []Need{NeedAnnouncerReports, NeedMetalLBObjects, NeedServices, NeedNodes, NeedWorkloads},
		Explain: `A live status names one node, and the election from the present facts gives another. Since MetalLB 0.11 the
			lowest sha256 of node, "#" and first IP wins among the candidates; before, it was the Service's name.
			preferredNodeSelectors sort first where the version has them.

			The facts may be a moment older than a fail-over; memberlist may know fewer speakers than the API server;
			the version may be another than assumed. Only if the wire shows the reported node answering is traffic
			certain to go there; else see announcer-status-stale.

			Collect status, endpoints and nodes again at one time. If it stays, read the log of both speakers. Do not
			restart them before that.`,
	}, {
		ID: "announcer-status-conflict", Title: "Two live reports name different announcers", Severity: SeverityError,
		Needs: []Need{NeedAnnouncerReports, NeedWorkloads, NeedNodes},
		Explain: `Two ServiceL2Status objects, or events of the same time, name different nodes for one Service, and both
			speakers are alive. Each believes that it won, so clients hear both: candidates are not the same for both,
			because memberlist is split or one has an older view of the API.

			A status whose speaker pod is gone, or whose node is lost, is stale and not in conflict
			(announcer-status-stale). nodeAssigned events outlive the assignment: only the newest counts. A probe tells
			whether both answer (split-brain).

			Mend memberlist's port 7946 (TCP and UDP) between nodes, or the connection of the speaker that lags.`,
	}, {
		ID: "announcer-status-stale", Title: "A status names an announcer that cannot be", Severity: SeverityWarning,
		Needs: []Need{NeedAnnouncerReports, NeedNodes, NeedServices, NeedWorkloads},
		Explain: `A ServiceL2Status names a node or Service that is gone or not eligible, or an older assignment. Whoever
			reads it looks at the wrong node; traffic is not touched by it.

			An orderly stop removes the status, a kill leaves it until the speaker's pod is collected. A node that was
			lost keeps its own. Some versions cannot update the node in it, and the speaker logs "Value is immutable":
			then wire, endpoint and election agree on another node.

			Delete the old object; the announcing speaker makes a new one. Restarting speakers moves announcements about
			for nothing. Judge by what answers, never by the status alone.`,
	}, {
		ID: "shared-ip-conflict", Title: "Services that share a VIP cannot agree on one announcer", Severity: SeverityError,
		Needs: []Need{NeedServices, NeedMetalLBObjects, NeedWorkloads},
		Explain: `Services with one address have to be announced from one node, and these are not: under
			externalTrafficPolicy: Local with different selectors each may have its endpoints elsewhere, or kube-vip
			elects a node for each Service. Two nodes answer, both by right, and each drops the other's connections.

			allow-shared-ip together with serviceSelectors on the advertisement is refused: nobody announces, and the
			speaker logs it as a warning.

			Give the Services the same policy and selector, use the Cluster policy for all, or give each its own
			address. Drop serviceSelectors where addresses are shared. strictARP makes no difference: no kernel is
			involved.`,
	}}
}

// configurationRules are about pools, MetalLB's own verdict, and announcers beside it.
func configurationRules() []Rule {
	return []Rule{{
		ID: "pool-overlaps-node", Title: "A pool contains an address that is used otherwise", Severity: SeverityError,
		Needs: []Need{NeedMetalLBObjects, NeedNodes, NeedNodeRoutes},
		Explain: `A pool has the address of a node, a gateway, another pool or a host that answers on the segment. Sooner or
			later a Service gets it, and traffic for the node or gateway goes to a pod, or the Service's to that host; a
			gateway's address takes every client's way out with it.

			It shows up as foreign-responder, or as a node that loses its API server. A pool of another cluster on the
			same LAN is in nobody's objects here: only the wire shows it.

			Take those addresses out of the pool, and out of the DHCP server's range. A Service that has such an address
			already needs a new one: shrinking the pool leaves it with an address in no pool.`,
	}, {
		ID: "pool-awkward-address", Title: "A pool can give away .0, .255, or a subnet's own addresses", Severity: SeverityInfo,
		Needs: []Need{NeedMetalLBObjects, NeedNodeLinks},
		Explain: `The pool contains addresses that end in .0 or .255, or the network or broadcast address of the segment. The
			first are valid in a subnet wider than /24, but some consumer devices and firewalls drop them. The others are
			never usable: hosts of the segment send nothing to a single machine there, and do not ask by ARP.

			The Service gets the address, is announced, and some or all clients cannot reach it, which looks like
			no-responder.

			Set avoidBuggyIPs: true for .0 and .255, and shorten the range so that it leaves out the subnet's first and
			last. A Service that has one needs a new address.`,
	}, {
		ID: "second-announcer", Title: "Another controller can announce the same VIP", Severity: SeverityWarning,
		Needs: []Need{NeedWorkloads, NeedServices, NeedMetalLBObjects},
		Explain: `Besides MetalLB something else handles this Service: kube-vip, ServiceLB of k3s, keepalived, Cilium, OpenELB,
			PureLB, Calico, Antrea or a second MetalLB. Each elects by itself; sooner or later two nodes answer. It shows
			as answers that go on with all speakers scaled away.

			kube-vip with svc_enable takes every LoadBalancer Service unless it is told to heed a class, and puts the
			VIP on a NIC, where arp_ignore does not silence it. Controllers of other classes, or for the API server's
			address only, are no rivals.

			Give each its own loadBalancerClass, or turn one off, and remove the addresses that it left.`,
	}, {
		ID: "metallb-config-invalid", Title: "MetalLB holds its configuration to be invalid or stale", Severity: SeverityError,
		Needs: []Need{NeedAnnouncerReports, NeedMetalLBObjects, NeedSpeakerLog, NeedSpeakerMetrics},
		Explain: `MetalLB refuses its objects as a whole if one of them is wrong, and goes on with the last good set, or with
			none after a restart. So edits have no effect, and the next restart of a speaker silences its VIPs.

			ConfigurationState (from 0.15.3 on), metallb_k8s_client_config_stale_bool and the log tell, each for one
			component: the controller may be content and a speaker not. Overlapping pools, an address that cannot be
			read or a missing Secret are common. That it is Valid does not mean that an interface exists
			(announcing-interface-missing).

			Correct the object that the error names; it is read again at once. Do not restart speakers before it is
			valid.`,
	}, {
		ID: "other-announcer", Title: "The VIP is announced by something other than MetalLB", Severity: SeverityInfo,
		Needs: []Need{NeedWorkloads, NeedServices, NeedAnnouncerReports},
		Explain: `This VIP belongs to another controller, by its class, annotation or configuration. Which node should answer
			follows from that one's rules, such as the holder of its lease, and what MetalLB lacks (a pool, an
			advertisement, a speaker) is no fault here.

			Some answer from a raw socket as MetalLB does; kube-vip and keepalived put the VIP on the NIC of one node, so
			that its kernel answers by right; others put it on every node and rely on routes.

			Nothing has to be done. Loose kernels disturb these announcers in the same way, so kernel-answers-vip still
			matters on nodes with kube-ipvs0.`,
	}}
}
