// Package exchange carries what nodes observed through the API server: the agent
// of each node publishes, a controller collects.
//
// A node has one ConfigMap with its [strictarp.Facts] as compressed JSON, which is
// written only when what matters changes, and one coordination Lease, which is
// renewed at an interval and says that the facts still hold. So a quiet cluster
// costs one small write per node and interval, and the age of a Lease tells a
// node whose facts are old.
//
// What is read is not trusted: it is bounded, and of a node's object only what is
// about that node is used.
package exchange
