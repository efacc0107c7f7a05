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
// Package arpchecktest has the same hosts in memory, on any system. Methods of the
// same name do the same. Some take or return other things there, where a fault can
// be made that a kernel does not have, or nothing can fail; announcers there are
// on all interfaces and answer 2 ms after their kernel unless told otherwise.
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
// last gets a broadcast first, so which kernel answers first is settled by the
// order in which hosts are added. An announcer nearly always comes after all
// kernels; on a busy machine it overtakes them now and then, so a test that needs
// a wrong answer to be first asks again where it is not. There is one segment,
// IPv4 only.
//
// On systems other than Linux everything compiles, and fails with an error that
// matches errors.ErrUnsupported.
package netnstest
