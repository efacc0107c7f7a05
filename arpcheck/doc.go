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
//
// # Bridges, bonds, VLANs, macvlans and VRFs
//
// LinkTo names the interface that the host's routes to an address leave by, which is
// the one to probe on unless there is a gateway or a VRF. It asks as for a packet
// without a mark or a source address, so rules that look at those take no part.
//
//   - Bridge: probe on the bridge. What is sent on one of its ports reaches only what
//     is behind that port, and asks as 0.0.0.0, since a port has no address. Which
//     nodes answer is up to the bridge's settings, not its port's.
//   - VLAN: probe on the VLAN's interface (eth0.100), where frames have no tag. Its
//     parent is the untagged segment; tagged frames that are seen there are counted in
//     Quality.OtherVLANs. A node with arp_ignore 0 answers on both for its addresses
//     of either.
//   - Bond: probe on the bond. If its MAC changes when it fails over, the next probe
//     asks with the new one.
//   - Macvlan: probe on it as on any interface. A host and its own macvlans in bridge
//     mode do not hear each other, so a pod's address has to be asked for from another
//     host. A node with arp_ignore 0 answers on its macvlans, too, with their MACs:
//     several responders, one node.
//   - VRF: name the interface, since LinkTo looks where hosts without VRFs do. The
//     Prober then goes by the VRF's routes. The VRF device itself does no ARP (ErrNoARP).
package arpcheck
