// Package metallbtest makes the Kubernetes objects of a small cluster with
// MetalLB, for tests of programs that use package metallb.
//
// A [Cluster] is plain state that a test edits: nodes, Services with their
// endpoints, pools, advertisements, speakers, and what speakers report. [New]
// makes one in which all is well:
//
//	c := metallbtest.New("w1", "w2", "w3")
//	web := c.AddService("default/web", "10.0.3.20", "w1")
//	web.Local = true
//	c.Node("w1").Excluded = true
//	state := metallb.FromObjects(c.Objects()...)
//
// [Cluster.Clients] has the methods of client-go's clients that metallb.Read
// calls, with pages, and with the errors of an API server that forbids a resource
// or does not know it.
//
// # Limits
//
// Nothing happens by itself: no address is given, no node is elected, and a
// status or an event is there only if the test says so, by [Cluster.Announce] or
// as a field. Objects have the fields that MetalLB and package metallb read and no
// others. Objects of other programs are for the test to make ([Cluster.Extra]).
// Lists know no selectors, no resource versions and no watches. Names are not
// checked, so that a test can make hostile ones. A Cluster is not safe for
// concurrent use while it is edited.
package metallbtest
