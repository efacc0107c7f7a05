// Package ipvs reads what kube-proxy in ipvs mode leaves in a node's kernel: the
// addresses on kube-ipvs0, and the IPVS table.
//
// kube-proxy binds the address of every Service, LoadBalancer IPs included, to
// the interface kube-ipvs0 of every node, where each node's kernel answers ARP
// for it unless strictARP is on. So what is on that interface is what a node
// may answer for, also after kube-proxy has left ipvs mode: addresses and table
// stay behind.
//
// [ReadDevice] reads the interface, [ReadDevices] all interfaces, so that
// [Devices.Holders] can tell where else VIPs are; a [Conn] reads again and again
// at less cost, and its Watch tells of changes. An interface that is not there is
// an error that matches fs.ErrNotExist; one without addresses is not.
//
// [ReadTable] and [ReadTableNetlink] read the IPVS table, [ParseTable] the text
// of a captured /proc/net/ip_vs, and [Table.Backing] tells whether a VIP has a
// real server on the node.
//
// # Complete under change
//
// The kernel gives neither addresses nor services at one moment. It may skip
// some that were there all the time while others are removed, and does not
// always say so. This package notices, reads again a few times, and marks the
// result Partial where it is not sure in the end.
//
// # Network namespaces
//
// Devices and tables are those of a network namespace: that of the thread that
// calls Open, ReadDevice, ReadDevices, ReadTable or ReadTableNetlink. A Conn may
// be used anywhere later. To read another namespace's, such as a container's,
// call them on a locked thread that has entered it.
//
// # Out of scope
//
// IPv6 addresses of interfaces, which strictARP does not matter to; IPVS
// connections and statistics; any change of either. Package ipvstest has devices
// and tables in memory, for tests.
package ipvs
