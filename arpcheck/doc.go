// Package arpcheck asks who answers ARP for an address, and tells all who do.
//
// A Prober sends broadcast requests on one interface and collects every reply
// over a whole window, in several rounds. It does so because the first reply is
// not the only one: on a cluster whose kube-proxy binds LoadBalancer IPs to
// kube-ipvs0 without strictARP, every node's kernel answers besides the node
// that MetalLB chose, and clients keep whichever answer was first. A Result says
// which MACs answered, how often, who was first, and whether one MAC answered
// more often than it was asked, as a node does whose kernel and MetalLB speaker
// both answer. Its Verdict is None, Single, Multiple or Inconclusive.
//
// Several MACs are not always several nodes, and one MAC that answers twice is
// not always kernel and speaker: who stands behind a MAC is not decided here.
//
// Some things cannot be seen from everywhere. A host does not hear its own
// kernel's answer, so a node that holds an address cannot probe it
// conclusively. Whether a kernel answers depends on the sender of the request
// (see Prober.Sender).
//
// The package speaks Ethernet through the Conn interface. Open returns a Prober
// on a packet socket, which needs CAP_NET_RAW and Linux; package arpchecktest
// has a segment in memory, and package netnstest one made of network namespaces.
//
// A probe socket listens to all protocols with a socket filter for ARP, since
// only there the requests of other programs on the same host are seen, which
// draw replies that look the same.
package arpcheck
