// Package exchange carries what nodes observed through the API server: the agent
// of each node publishes, a controller collects.
//
// A node has one ConfigMap with its [strictarp.Facts] as compressed JSON, which is
// written only when what matters changes, and one coordination Lease, which is
// renewed at an interval and says that the facts still hold. So a quiet cluster
// costs one small write per node and interval, and the age of a Lease tells a
// node whose facts are old.
//
// An object is of its node's own size, whatever the cluster's: addresses that Services
// have, which agents and the controller know alike, are not listed, but how the node's
// kube-ipvs0 differs from them, once it has for a minute; nor are pods' interfaces and
// the IPVS table. So a Service, an endpoint or a pod that comes has nobody write, and
// what is equal on all nodes is once in the controller's memory. This is form 2; form
// 1, which lists everything, is read too, and written by agents that may not read
// Services and where a device has few of their addresses. A program that knows form
// 1 only says of form 2 that it is to be updated: update controllers first.
//
// What is read is not trusted: it is bounded, and of a node's object only what is
// about that node is used.
package exchange
