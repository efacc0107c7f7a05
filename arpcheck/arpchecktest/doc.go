// Package arpchecktest has an Ethernet segment in memory whose hosts answer ARP
// as Linux does. It is for tests of programs that use package arpcheck, on any
// system and without privileges, and for showing what strictARP is about.
//
// A [Segment] has [Host]s, whose state is edited while they run: interfaces,
// addresses, routes and sysctls. Whether a kernel answers follows from these by
// the same rules that the rest of this module explains kernels by. An
// [Announcer] answers from a raw socket whatever the kernel does, as MetalLB's
// speaker. A [Fault] is what goes wrong with replies. [Host.Open] returns an
// [arpcheck.Prober] that asks on the segment:
//
//	seg := arpchecktest.New(t)
//	node := seg.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
//	client := seg.AddClient("client", netip.MustParsePrefix("10.0.3.50/24"))
//	node.HoldVIP(netip.MustParseAddr("10.0.3.20"))
//	prober, err := client.Open()
//
// Hosts also have a neighbour cache ([Host.Resolve], [Host.Neighbour],
// [Host.Forget]) and as much of TCP as it takes to see that a wrong entry
// breaks connections ([Host.Serve], [Host.Visit]).
//
// Package netnstest has the same hosts made of network namespaces. Methods of the
// same name do the same. Some take or return other things there, where a kernel
// knows more or more can fail, such as adding hosts; announcers there are on one
// interface and answer as soon as they get to it.
//
// # Time
//
// Answers take their time, by timers. In a testing/synctest bubble that is the
// bubble's: nothing is waited for, and equal seeds make equal traces to the
// nanosecond. Outside of one it is real time. Frames due at a deadline are
// received before it ends a Receive, however busy the machine is.
//
// # Limits
//
// The switch knows where each MAC is, from the start; there are no VLANs but
// tags in frames. Hosts take no notice of tagged frames. Of the kernel there
// are the sysctls that [Host.Sysctl] lists, neither policy routing, bonds,
// bridges and VRFs nor firewalls. Neighbour entries do not age and are not
// revalidated by unicast: a client with a wrong entry heals only by an ARP
// packet that changes it, such as a gratuitous one, or by Forget. Entries are
// made by asking and by answering, not by arp_accept. No IP packets are sent: a
// connection reaches a host by the MAC in the cache or times out, gateways
// forward nothing, and no time passes while it is established. Announcers
// neither elect nor look at interfaces' names.
package arpchecktest
