package strictarp

// Figures in the explanations were measured with kube-proxy 1.37.2, MetalLB
// 0.16.1 and Linux 6.1, three nodes on one segment.

// respondersRules are about who answers for a VIP.
func respondersRules() []Rule {
	return []Rule{{
		ID: "multiple-responders", Title: "More than one host answers for a VIP", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedNodeLinks},
		Explain: `Each client sends its traffic to whichever host it heard first. With kube-proxy in ipvs mode without
			strictARP every node's kernel answers for the VIPs on kube-ipvs0, about 2 ms before the announcer does. A
			client that cached a wrong node does not heal: it asks that node again every 30 s or so, and the kernel
			confirms.

			Several MACs of one node are one host (same-node-many-macs). A proxy-ARP router answers for other addresses
			as well. If no kernel would answer, two announcers are at work (split-brain), or a stranger.

			What mends it is strictARP: true in kube-proxy's configuration and a restart, then a flush of the clients'
			neighbour entries: without it one stayed wrong for another 56 s. A restart of the speakers only hides it
			for a while, and one good request proves nothing.`,
	}, {
		ID: "no-responder", Title: "Nobody answers for a VIP", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedMetalLBObjects, NeedServices, NeedNodes, NeedWorkloads},
		Explain: `New clients cannot reach the VIP at all. Three rounds were silent and no frame was dropped; a control
			address that answered makes it stronger. Only replies that name the VIP as sender count.

			The cause is with the announcer: no advertisement, no serving endpoint, an excluded node, no speaker, a
			wrong interface. It is not with the kernel's settings: MetalLB answers from a raw socket, and did so with
			arp_ignore 1, 2 and 8 and with rp_filter 0, 1 and 2, even for a client of another subnet.

			So do not loosen arp_ignore, arp_announce or rp_filter: every node would answer instead. Do not put the VIP
			on a NIC. Ping proves nothing: in ipvs mode it fails through the right node too.`,
	}, {
		ID: "wrong-responder", Title: "Another host than the announcer answers for a VIP", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedNodeLinks, NeedMetalLBObjects, NeedServices, NeedNodes, NeedWorkloads},
		Explain: `All clients send their traffic to one host, which is not the one that the election gives. Under
			externalTrafficPolicy: Local connections there time out; under Cluster they may work, by an extra hop.

			It happens when the announcer is silent and one node's kernel still answers, after a partial fix for
			example, or when a speaker that lost its connections goes on announcing. A status object that names another
			node is no proof by itself: it outlives a killed speaker. If wire, endpoint and election agree, it is the
			status that is old (announcer-status-stale).

			Find out first why the announcer is silent, then silence the host that answers. Settings of the announcer's
			kernel have no part in it.`,
	}, {
		ID: "double-answer", Title: "One MAC answers each request twice", Severity: SeverityWarning,
		Needs: []Need{NeedProbes, NeedNodeLinks, NeedNodeSysctls},
		Explain: `On the announcing node both the kernel and the speaker answer. Traffic is right as long as that node
			announces; once another takes over, this kernel goes on answering and there are two responders. It is what
			is left when all other nodes were made strict and this one was not.

			Replies carry no id: a second prober on the same host draws answers too, and some drivers and mirrored ports
			repeat frames. So all requests that left the interface are counted, and the node's effective arp_ignore
			decides. On virtual links the kernel's reply has 42 bytes and MetalLB's 60, which is a hint only.

			strictARP: true and a restart of kube-proxy silence the kernel. The speaker is right.`,
	}, {
		ID: "same-node-many-macs", Title: "Several MACs of one node answer for a VIP", Severity: SeverityInfo,
		Needs: []Need{NeedProbes, NeedNodeLinks},
		Explain: `All answers come from one node, by different interfaces: a second NIC on the same segment (even one
			without any address answers), a macvlan, the ports of a bond with their permanent addresses. Traffic reaches
			the right node whichever MAC a client takes; switches may see it move between ports.

			It looks like a conflict and is none: MACs are mapped to nodes before they are counted as hosts. For that
			the interfaces of the nodes have to be known, the permanent addresses of bond ports included.

			Nothing has to be done. If one interface is to carry the traffic, name it in the interfaces of the
			L2Advertisement. arp_filter is no cure.`,
	}, {
		ID: "foreign-responder", Title: "A MAC that belongs to no node answers for a VIP", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedNodeLinks, NeedNodes},
		Explain: `Somebody else holds the address, and clients that hear it first lose their traffic to a machine that is
			none of the cluster's nodes: a host configured with it by hand or by DHCP, another cluster whose pool
			overlaps, or a former node that still holds its VIPs on kube-ipvs0.

			Nodes that were not observed look the same, so their interfaces are needed. A proxy-ARP host answers for
			addresses that nobody has as well. Virtual MACs of VRRP, 00:00:5e:00:01:xx, belong to a pair of routers or
			keepalived.

			Find the machine by the switch's MAC table, or its vendor by the first half of the MAC, and take the address
			from it; or take the address out of the pool. Nothing on the nodes helps.`,
	}, {
		ID: "proxy-arp-responder", Title: "A host answers for addresses that nobody has", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedCanaries},
		Explain: `One MAC answers for the VIP and for a canary, an address that nobody should hold: a router or host with
			proxy_arp answers for everything that it routes by another interface. Clients that keep its answer send
			their traffic there.

			Linux answers so after a random delay of up to 0.8 s, unless the request is unicast, so a short probe misses
			it and the announcer often wins the race. Without a canary it looks like multiple-responders or
			foreign-responder, which it explains. arp_ignore and strictARP have no say in it.

			Turn proxy ARP off on that interface, or narrow what it routes. A probe with sender 0.0.0.0 skips proxy ARP
			and does not see it.`,
	}, {
		ID: "split-brain", Title: "Two announcers both answer for a VIP", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedNodeLinks, NeedNodeSysctls, NeedWorkloads},
		Explain: `Two nodes answer although neither kernel would for an address that it merely holds for a service proxy.
			So two announcers each believe that the VIP is theirs: a speaker that was cut off from the API server and
			its peers but not from the segment, two kube-vip leaders, two keepalived masters that do not hear each
			other.

			If the kernels are loose, it is multiple-responders with another cause: settings have to be known before
			this can be said. Services that share an address and cannot agree on a node do the same by right
			(shared-ip-conflict).

			Fence the node that is wrong, or restart the announcer on that node alone, and mend the path between them.
			strictARP is not the cure.`,
	}, {
		ID: "responder-flapping", Title: "The first answer for a VIP changes from host to host", Severity: SeverityWarning,
		Needs: []Need{NeedSoak, NeedNodeLinks, NeedAnnouncerReports},
		Explain: `Over time different hosts are first to answer, without a fail-over. New clients land here or there;
			connections break whenever a client asks anew and hears another host first.

			It is multiple-responders with jitter: on a quiet segment the order was the same in 60 of 60 requests, and
			2 ms of jitter made it a lottery of 19, 8 and 13 out of 40. So a probe without flapping does not mean that
			one host answers. A real fail-over changes the host once, with gratuitous announcements for about 5 s.

			Silence the hosts that should not answer. Verify over a minute or more: one successful request is no
			proof.`,
	}}
}

// wireFaultRules are about what clients learn, and about what does not arrive.
func wireFaultRules() []Rule {
	return []Rule{{
		ID: "vip-in-request-sender", Title: "A host asks with a VIP as its own address", Severity: SeverityError,
		Needs: []Need{NeedClaims, NeedNodeLinks, NeedMetalLBObjects},
		Explain: `A node that does not announce the VIP sent an ARP request with the VIP as sender. Who hears it takes the
			node's MAC for the VIP and sends its traffic there, even if the node never answers a request for it.

			It needs effective arp_announce 0 or 1 and a packet that leaves with the VIP as source; arp_ignore has no
			part in it, so arp_ignore=1 alone is half a fix. Gratuitous announcements name the VIP as sender and as
			target: from the announcer they are right.

			What mends it is arp_announce=2, which strictARP: true sets together with arp_ignore=1; then flush the
			clients' entries. Flushing alone lasts until the next request.`,
	}, {
		ID: "stale-neighbour", Title: "A neighbour cache holds the wrong MAC for a VIP", Severity: SeverityError,
		Needs: []Need{NeedNeighbours, NeedNodeLinks, NeedMetalLBObjects, NeedServices},
		Explain: `This host sends what is for the VIP to a MAC that should not get it, while others may work. Under
			externalTrafficPolicy: Local that is a time-out.

			The entry was learned from a wrong answer, or from the announcer before a fail-over whose gratuitous
			announcements did not arrive. While a wrong node answers it never heals, for the host asks that node again
			by unicast and is confirmed; over 120 s it did not. Once nobody confirms, it takes its unicast probes to
			fail: 42 to 56 s.

			Silence the wrong responder first, then flush the entry, which heals at once. In the other order the entry
			comes back. A static entry breaks at the next fail-over.`,
	}, {
		ID: "frame-source-mismatch", Title: "A reply is sent by another MAC than it names", Severity: SeverityWarning,
		Needs: []Need{NeedProbes, NeedNodeLinks},
		Explain: `The Ethernet source of a reply and the hardware address within it differ. Clients send their traffic to
			the one within; switches learn the other. If the one within belongs to nobody who is there, traffic is lost
			or flooded.

			Something answers on behalf of another host: a relay such as an announcer that answers for other nodes, a
			Wi-Fi bridge, a switch with ARP suppression, a bond that balances by ARP. Who counts as responder is the
			address within the reply.

			If both MACs belong to one node, nothing is wrong. Else find out who relays, and whether what it answers
			with is current. Settings of the nodes' kernels do not change it.`,
	}, {
		ID: "answer-from-other-nic", Title: "The right host answers with the MAC of a NIC on another segment", Severity: SeverityWarning,
		Needs: []Need{NeedProbes, NeedNodeLinks},
		Explain: `The announcing node answers, but by a NIC whose subnet is not the VIP's. So requests of the VIP's segment
			reach that NIC too: the segments are joined somewhere, by a switch, a trunk with a wrong native VLAN or a
			bridge. Traffic then comes in by an interface where routes and rp_filter were made for something else.

			MetalLB answers on every interface that is up, unless the L2Advertisement names some. It is neither another
			host nor a stale entry.

			Part the segments, or name the right interface in the L2Advertisement, which hides the joint. arp_filter=1
			does not help: the announcer answers from a raw socket and does not obey it.`,
	}, {
		ID: "local-policy-drop", Title: "Traffic can reach a node without an endpoint under the Local policy", Severity: SeverityError,
		Needs: []Need{NeedProbes, NeedNeighbours, NeedServices},
		Explain: `The Service has externalTrafficPolicy: Local, and a host that answers, or that a client has cached, has
			no serving endpoint. Connections by it time out: packets are dropped there, or ipvs forwards the SYN without
			masquerading, so that the answer comes from the pod's address and the client resets it. Clients of other
			subnets time out too. None of it is a refusal.

			The health check node port tells nodes apart: 200 with a local endpoint, 503 without. The right node works,
			so it looks as if the Service failed now and then.

			Mend what leads traffic there: multiple-responders, wrong-responder or stale-neighbour. The Cluster policy
			would hide it at the cost of the client's address.`,
	}, {
		ID: "probe-inconclusive", Title: "The probe cannot decide who answers", Severity: SeverityUnknown,
		Needs: []Need{NeedProbes, NeedNodeLinks},
		Explain: `What was heard proves neither that nobody answers nor who does. Frames were dropped by the kernel, the
			window was shorter than answers may take, the interface was down, or the prober is itself a node that holds
			the VIP: a host does not hear its own kernel or speaker.

			Silence in such a probe is not no-responder, and one answer is not proof of a single one.

			Probe from a host of the VIP's segment that is no node, with at least three rounds of more than a second,
			and ask for a control address that is known to answer.`,
	}, {
		ID: "underlay-drops-arp", Title: "The network loses ARP between the announcer and clients", Severity: SeverityWarning,
		Needs: []Need{NeedProbes, NeedClaims, NeedNodeLinks, NeedMetalLBObjects, NeedAnnouncerReports},
		Explain: `The announcer is the right one and sends its replies, yet the client does not get them, or the requests
			do not arrive at the node. What lies between filters ARP: port security or dynamic ARP inspection on a
			switch, a hypervisor that allows a guest only its own addresses or MAC, a Wi-Fi access point, a cloud
			network that has no layer 2.

			Two captures tell: one on the node shows request and reply, one on the client shows the request only. With
			one capture it looks like no-responder.

			Allow the VIPs on that port (address pairs, MAC spoofing, promiscuous mode). Where that is not possible,
			announce by BGP. No setting of the node helps, and binding the VIP to a NIC does not pass the filter
			either.`,
	}}
}
