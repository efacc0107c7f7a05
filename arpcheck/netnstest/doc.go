// Package netnstest is a lab: an Ethernet segment with hosts on it, made of
// Linux network namespaces. What answers there is the real kernel, over real
// sockets.
//
// A [Segment] is a bridge; each [Host] on it is a network namespace with an
// interface eth0. Hosts can hold a VIP as kube-proxy makes nodes hold it
// ([Host.HoldVIP]), be strict about it ([Host.SetStrictARP]), announce it as
// MetalLB's speaker does ([Host.Announce]), and serve it or wrongly forward it
// ([Segment.Expose]). So the lab shows what happens on a network where several
// nodes answer ARP for one LoadBalancer IP, without a cluster and, where user
// namespaces are allowed, without root.
//
// It is for tests and for programs. Tests call [Main] in TestMain and [New];
// programs call [Enter] first thing in main, and [NewSegment]. No program is
// run but the same one once more, nothing outside of the namespaces is changed,
// and nothing is left behind: the kernel removes the namespaces when the process
// ends, however it does.
//
// # Limits
//
// The kernel is the machine's: what it lacks, the lab lacks. Without a dummy
// device, kube-ipvs0 is an ifb or a bridge, which makes no difference to ARP.
// There is no IPVS: the right node serves the VIP itself, and the other ones
// forward by a stateless rewriting of addresses that looks the same on the wire;
// see [Forwarding]. There is no jitter: on a Linux bridge the port that joined
// last gets a broadcast first, so who answers first is settled by the order in
// which hosts are added, except that an announcer comes after its own kernel.
// There is one segment, IPv4 only.
//
// On systems other than Linux everything compiles, and fails with an error that
// matches errors.ErrUnsupported.
package netnstest
