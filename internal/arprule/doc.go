// Package arprule states, as pure functions, how Linux answers ARP requests and
// which sender address it puts in its own.
//
// It is the only statement of these rules in this module: fakes answer by it,
// explanations are made from it, and the lab and the measured truth table check
// it. [Reply] follows one request through the kernel: whether the interface
// hears it, whether the target is local, whether the sender passes the source
// check, then arp_ignore and arp_filter, or proxy ARP. [Solicit] is the other
// direction and follows arp_announce.
//
// The rules were written from the kernel's sources, which comments name as
// file and function, and agree with measurements of kernels 6.1 and 6.18.
// Older kernels differ where a comment says so.
//
// Out of scope, because a [Host] does not carry them: policy routing rules
// other than the one that every VRF brings, arptables and nftables, the
// medium_id, send_redirects and bc_forwarding sysctls (taken as default), ARP
// suppression of bridge ports, next hops that are known to be dead, and answers
// that are not the kernel's, such as those of a MetalLB speaker.
package arprule
