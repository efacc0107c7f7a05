// Package cluster is a whole cluster on one machine: a real control plane, MetalLB's
// controller, and three nodes w1 to w3 that are network namespaces with a real
// kube-proxy and MetalLB speaker each, on one bridge with two clients.
//
//	client   10.0.3.50      of the nodes' subnet
//	haproxy  172.31.9.9     of another subnet on the same segment
//	w1 .. w3 10.0.3.11-13   ens33; the one endpoint, 10.244.1.2, is on w1
//	router   10.0.3.1       the machine itself, with the API server
//
// The Service default/web has the VIP 10.0.3.20 and externalTrafficPolicy Local.
// Nodes, EndpointSlices and the pods of what is no DaemonSet are made by hand;
// package daemonset stands for the DaemonSet controller and the kubelets.
//
// It needs a kernel with dummy, IPVS, ip_set and iptables as modules that are
// loaded, and it takes over the machine: it is for package vmtest's machine.
package cluster

const (
	// Programs is the directory in which the components are found by their names.
	Programs = "/usr/local/bin"
	// CRDs is the file of MetalLB's custom resource definitions.
	CRDs = "/etc/metallb-crds.yaml"
	// MachineEnv is set to 1 in a machine that a Cluster may take over.
	MachineEnv = "STRICTARP_E2E_MACHINE"
)
