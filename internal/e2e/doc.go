// Command e2e runs this SDK against real components: etcd, kube-apiserver,
// kube-proxy and MetalLB, built from their Go modules. It is a module of its own,
// so that their weight stays out of the SDK's. Run everything in this directory.
//
//	go run . -build              build the programs: minutes the first time
//	go test ./...                the API server, and agents and controllers beside it
//	go run . -short              a whole cluster in a machine: the incident and its cure
//	go run .                     the same with all scenarios
//	go run . -run 'TestIncident/(strictARP_false|no_endpoint)$'
//
// The programs are kept in strictarp-e2e below the user's cache directory, under
// names that change with versions, flags and Go: a second run builds nothing. Cold,
// on two idle cores, it is some 12 minutes and 3 GB of memory; on busy ones an hour.
//
// # The API server alone
//
// Package apiserver starts etcd and kube-apiserver in a temporary directory, with
// certificates and users of their own, and drives kubeproxy's change (conflicts,
// RBAC, dry runs, rollout, undoing, several at once), kubeproxy.Read and metallb.Read
// with client-go's clients, and has it check all kustomizations of examples/deploy. It
// takes half a minute and needs no privilege. There is no controller manager: package
// daemonset makes a DaemonSet's pods and counts them.
//
// # Agents and controllers
//
// Package endurance runs examples/agent on three nodes, which are network namespaces,
// and two of examples/controller, as their service accounts, while faults come and go
// and the API server, agents and controllers are stopped, killed and frozen. It
// demands that each fault was told of once each time it came and went, that memory
// stays flat, that the controller's remedy works, and that the rights of the manifests
// are those that are used. It takes four minutes, or as long as it is told to:
//
//	go test ./endurance -v -timeout 1h -lasting 30m
//
// # Thousands of nodes
//
// Package thousands runs the agents of many invented nodes in one process, each with a
// token and connections of its own, and examples/controller, and demands that facts are
// written only when and by whom something changed. It tells what that costs. By default
// there are 50 nodes, which takes two minutes:
//
//	go test ./thousands -v -timeout 1h -nodes 1000 -services 2000 -pods 60 -quiet 1m -away 1m
//
// # A whole cluster
//
// The command boots Debian's kernel in QEMU, as command vmtest does and with the same
// needs (apt-get, qemu-system-x86, no privilege), with the programs, iptables and
// ipset in its first file system, and runs the tests of package incident there, on
// the cluster of package cluster: each fault is brought about, observed live, judged,
// cured by the SDK where it has a remedy, and observed again. The output ends with the
// table scenario, findings, cure, seconds. The exit status is 0 if all passed, 1 if
// not, and 2 if it could not get as far.
//
// Processors are emulated. On two cores that others use too, with the programs there,
// the short run takes some three minutes and the whole one some twelve; time limits
// are made for worse.
package main
