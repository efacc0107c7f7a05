// Controller judges a whole cluster: it joins what the agents of all nodes publish
// with what the API server has of kube-proxy, MetalLB and Services, and tells who
// answers ARP for LoadBalancer IPs and should not.
//
//	controller [--namespace NAME] [--watch-namespaces NAMES] [--remedy strict]
//
// # What it writes
//
// A ConfigMap in its own namespace for each Service and Node of which something was
// found, and one for the cluster, with the findings as JSON (key findings.json,
// labels app.kubernetes.io/component=findings, strictarp.github.io/kind,
// .../service-namespace, .../service-name, annotation .../name). It is written when
// a finding appears, goes or changes its severity, for other words at most every
// ten minutes, and deleted with the Service or Node.
//
// An event on the Service or Node, for those of severity warning and error, when a
// finding appears (type Warning, the rule as the reason), changes its severity, or
// is resolved (type Normal). What is found of the cluster is told on its ConfigMap.
// A finding is not resolved while what shows it is not observed: an agent that
// fell silent mends nothing.
//
// All state is in these ConfigMaps. An event is noted there before it is written,
// and has a name that its number there gives: a replica that is restarted or takes
// over finishes what was begun, and the API server refuses what was done before.
//
// # How it scales
//
// All replicas watch, and the one that holds the Lease strictarp-controller judges
// and writes. A change of a Service, its EndpointSlices, or of what a node saw of
// its VIP has that Service judged; what bears on everything, such as a Node or an
// L2Advertisement, has everything judged, at most every 10 s and for at most a tenth
// of the time. So does --resync, whatever was missed.
//
// What nodes publish does not grow or change with the Services, endpoints and pods of
// the cluster (package exchange). Nodes beyond a hundred share in asking for VIPs: all
// together send a thousand requests a second, and have as many results as a hundred
// nodes with 1,024 VIPs.
//
// Measured by internal/e2e/thousands against a real API server, on two processors that
// others used as well; "before" is with form 1 alone and with all nodes asking for all:
//
//	                                  before: 200 nodes,      now: 1,000 nodes,
//	                                  2,000 Services          2,000 Services
//	a node's object                   92 KiB                  3 KiB
//	a Service or endpoint comes       all write: 18 MiB       nobody writes
//	nothing happens                                           16 Leases a second, 14 KiB/s
//	controller's memory               850 to 1,500 MiB        375 MiB, at most 431
//	processors, nothing happening     1.4                     0.01
//	one node's fault                  not found in 4 min      found in 11 to 26 s, one write
//	a fault of all nodes at once                              1,000 writes, at most 439
//	                                                          calls/s; told after 83 s
//
//	BenchmarkJudge with 1,000 nodes and 4,000 Services
//	heap                              490 MiB                 50 MiB
//	to judge everything               5.1 s                   2.0 s
//	to judge one Service              1.1 s                   0.36 s
//
// With 10,000 Services an object of form 1 had 105 KiB, and routes did not fit into it;
// one of form 2 does not grow. A fault of all nodes at once is told of by an object and
// an event each, at a hundred calls a second (--qps): 5,000 nodes take two and a half
// minutes, in which nothing else is judged. When the API server comes back after a
// while, agents return at times of their own, in up to a minute and a half.
//
// So the manifests' limits, 512 MiB, are for up to 1,000 nodes and 2,000 Services. With
// 5,000 and 10,000, of which the simulation needs a larger machine than it had, what is
// in memory has 165 MiB besides the probes (BenchmarkJudge), and on that machine, with
// seven times as much to do as it could, one Service was judged in 2.5 s and everything
// in 112 s: give the controller two processors and 1 GiB, and set --resync 1h. Routes
// are published: where a CNI plugin makes one to each node, as Flannel's and Calico's
// overlays do, objects and memory grow with these.
//
// All agents are one user to priority and fairness, by default of the level
// workload-low: of a storm of them the API server queues or refuses what is too much,
// and others are not kept waiting. Each agent watches Services, as its node's
// kube-proxy does: when the API server is restarted, both list them again.
//
// # The remedy
//
// Nothing in the cluster is changed unless --remedy strict is set. Then, if
// strictarp-off is found, nothing speaks against it, and all nodes are observed,
// strictARP is set in kube-proxy's ConfigMap by package kubeproxy (with its copy in
// the cluster; not where Argo CD or another owner would undo it), and the kube-proxy
// pods are deleted one at a time, so that their DaemonSet makes new ones that read
// it. The next one's turn comes when the node's agent published facts that are newer
// than the new pod and free of what is to be cured, and no error is new anywhere
// for --remedy-soak, in which agents probe VIPs again. If that does not come about
// within --remedy-patience, the text is put back byte by byte, the kube-proxies that
// were restarted are once more, and it stops. What a strict kube-proxy set in a
// kernel stays until that boots. The state is in the ConfigMap strictarp-remedy;
// delete it to have it tried again. The agent's own --remedy is another thing: it
// sets a node's sysctls and needs no controller.
//
// # Permissions
//
//	group                verbs                    resources                 where
//	                     list watch               nodes, services           cluster
//	discovery.k8s.io     list watch               endpointslices            cluster
//	apps                 list watch               daemonsets                cluster
//	                     list watch               pods, configmaps          each of --watch-namespaces
//	                     list watch get create    configmaps                own namespace
//	                     update delete
//	coordination.k8s.io  list watch get create    leases                    own namespace
//	                     update
//	                     create                   events                    cluster
//	metallb.io           list watch               ipaddresspools,           cluster
//	                                              l2advertisements,
//	                                              bgpadvertisements,
//	                                              servicel2statuses,
//	                                              configurationstates
//	cilium.io            list watch               ciliuml2announcement-     cluster; these five only
//	                                              policies                  where they are installed,
//	crd.antrea.io        list watch               egresses                  and without them what they
//	crd.projectcalico.org list watch              bgpconfigurations,        tell is among what is missing
//	                                              felixconfigurations
//	network.kubesphere.io list watch              eips                      cluster
//	redhatcop.redhat.io  list watch               keepalivedgroups          cluster
//
// and with --remedy strict, in kube-proxy's namespace:
//
//	                     get create update        configmaps
//	                     delete                   pods
//	apps                 get                      daemonsets
//
// Discovery (/api, /apis, /version) and selfsubjectaccessreviews are open to every
// service account (system:discovery, system:basic-user). It reads no Secret.
//
// # Limits
//
// Of Events, Deployments and Leases of other namespaces nothing is read: a MetalLB
// before 0.14, which has no ServiceL2Status, is known by what agents read of its
// speakers. kube-vip's Lease per Service is not followed.
package main
