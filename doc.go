// Package strictarp says who answers ARP for the LoadBalancer IPs (VIPs) of a
// bare-metal Kubernetes cluster, who should, what makes the difference, and how to
// mend it. It is for programs that diagnose such clusters: checks, controllers,
// support tools.
//
// Facts are what was observed, wherever it was: on nodes by Observe, from vantage
// points that ask for VIPs on the wire, at the API server, or by people whose files
// ReadBundle reads. Facts.SetCluster makes them of Kubernetes objects from any client
// or cache. They are plain data that can be written as JSON in one place, joined by
// Merge and judged in another.
//
// Evaluate is the judgement, a pure function. A Finding is one conclusion by one
// of the Rules, with the evidence for it, its causes, and remedies as data: each
// step says what it changes from what to what, and what undoes it. Roots puts
// findings below what causes them, for people to read. NewPlan puts
// remedies into one order; Apply carries a plan out, verifies it by observing
// again, and leaves an undo. Verify does that part alone.
//
// The packages below do one part each and can be used alone: arpcheck asks who
// answers on the wire, sysctl reads and writes the kernel's settings, ipvs reads
// what kube-proxy put there, kubeproxy and metallb say what these are told.
//
// Nothing in this package changes a system but Apply and its Executors, and
// nothing writes a log. IPv6 is out of scope: Linux does not answer neighbour
// solicitations for addresses it merely holds for a service proxy.
package strictarp
