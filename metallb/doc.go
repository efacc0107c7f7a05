// Package metallb says who should answer ARP for a LoadBalancer address (VIP) that
// MetalLB announces in layer-2 mode, and why nobody does.
//
// A [State] is what MetalLB is told and reports. [Read] makes it from an API
// server, through client-go's clients or others of their shape, and [FromObjects]
// from objects that the caller holds, such as a controller's cache or a dump.
//
// [State.Elect] elects as the installed version of MetalLB does, from 0.9 on. The
// [Election] names the announcer, says for every node why it is in or out, and if
// nobody is expected to answer which object and field to change. An [Elector] does
// that for thousands of Services. [State.CheckInterfaces] goes on where the
// election ends, at the interfaces of the elected node, and [State.After] with
// what would be if nodes left.
//
// [State.Controllers] are the other programs that can announce VIPs, and
// [Controller.Chosen] says which node they chose: kube-vip and Cilium by leases, PureLB
// and OpenELB up to 0.5 by annotations, OpenELB from 0.6 on by an election that is
// computed here. ServiceLB uses nodes' own addresses. What keepalived elects no object
// shows.
//
// What speakers report is read but not believed: see [State.Statuses] and
// [State.Events]. Announcing by BGP, IPv6 neighbour discovery on the wire and the
// allocation of addresses are out of scope.
package metallb
