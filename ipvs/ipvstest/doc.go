// Package ipvstest is a node's network devices and IPVS table in memory, for
// tests of programs that use package ipvs.
//
// A [Node] is state that is edited: devices, addresses and virtual servers come
// and go by its methods. [Node.Open] gives what ipvs.Open gives, with the same
// methods and the same errors, so that a program which takes an interface such
// as
//
//	interface{ Device(name string) (ipvs.Device, error) }
//
// can be given either. [Node.ReadTable] is what ipvs.ReadTable returns, and
// [Proc] the text of /proc/net/ip_vs that ipvs.ParseTable reads.
//
// # Limits
//
// Nothing is forwarded and nobody answers ARP. Addresses are IPv4, and a
// device's are in the order in which they were added. A subnet's second address
// is not marked as secondary, and removing the first one does not remove it.
// Reads are never disturbed: a result is Partial only if Node.SetPartial says
// so. Events are never lost but by Node.Overrun, however slow the reader is.
// Numbers of connections stay as they are set. The kernel's tick is taken to be
// 4 ms.
package ipvstest
