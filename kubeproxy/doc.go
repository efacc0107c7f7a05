// Package kubeproxy says what kube-proxy is told about strictARP, what it runs
// with, and changes it safely.
package kubeproxy
