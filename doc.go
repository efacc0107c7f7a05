// Package strictarp holds what is known about who answers ARP for the
// LoadBalancer IPs (VIPs) of a bare-metal Kubernetes cluster, and what is
// concluded from it. It is for programs that diagnose such clusters: checks,
// controllers, support tools.
//
// Facts are what was observed, wherever it was: on nodes, and from vantage
// points that ask for VIPs on the wire. They are plain data that can be written
// as JSON in one place and judged in another. A Finding is one conclusion, with
// the evidence for it and remedies for it as data: each step says what it
// changes from what to what, and what undoes it.
//
// The packages below do one part each and can be used alone: arpcheck asks who
// answers on the wire, sysctl reads and writes the kernel's settings.
//
// Nothing in this package changes a system or writes a log. IPv6 is out of
// scope: Linux does not answer neighbour solicitations for addresses it merely
// holds for a service proxy.
package strictarp
