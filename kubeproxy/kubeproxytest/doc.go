// Package kubeproxytest has a cluster in memory, as package kubeproxy sees one:
// its API objects behind the methods of client-go's typed clients, a DaemonSet
// controller that works when the test says so, and on every node a kube-proxy
// that reads the ConfigMap when its pod starts, answers /configz and /proxyMode,
// and sets the kernel's settings as the real one does.
//
// It behaves as an API server does in resource versions, conflicts, generations,
// UIDs, dry runs, label selectors and pagination. It does not validate objects,
// keeps no managed fields, knows no admission, watches, field selectors or
// unstructured content, runs one DaemonSet pod a node, and deletes pods at once.
package kubeproxytest
