// Package kubeproxy says what kube-proxy is told about strictARP, what it runs
// with, and changes it safely.
//
// In mode ipvs, kube-proxy puts every LoadBalancer IP on the interface kube-ipvs0
// of every node, and the kernel answers ARP for it there, beside the announcer.
// strictARP makes kube-proxy set arp_ignore and arp_announce so that it does not.
//
// [FromObjects] finds the configurations in API objects that the caller holds,
// [Read] through clients and [FromFS] in a node's files; [Parse] reads one text and
// [ParseArgs] one command line, as kube-proxy does. [Edit] changes strictARP in a
// text and nothing else. A running kube-proxy is read by [ReadRunning] and compared
// by [Judge]. [Cluster] carries a change through: back up, apply, restart, verify,
// and take back.
//
// The package imports neither client-go nor kube-proxy's own types; its interfaces
// fit client-go's typed clients as they are.
package kubeproxy
