// Package kubeproxy compares what package kubeproxy makes of configurations with
// what kube-proxy's own loader, of Kubernetes 1.37.2, makes of them. It is a
// module of its own, because the loader brings all of Kubernetes with it; run
//
//	cd internal/oracle/kubeproxy && go test ./...
package kubeproxy
