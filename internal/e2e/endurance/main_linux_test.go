// Package endurance_test runs examples/agent and examples/controller for long, as
// examples/deploy has them, against a real API server and real kernels, while what
// they depend on and they themselves are stopped, killed and frozen.
//
// Real are the programs, with their service accounts, RBAC and admission policy,
// etcd, kube-apiserver, and the nodes' network namespaces with their ARP. Stand-ins
// are kube-proxy and MetalLB's speaker, which need another kernel and are run by
// package incident, and the kubelets and the DaemonSet controller.
package endurance_test

import (
	"flag"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

var lasting = flag.Duration("lasting", time.Minute, "how long faults come and go: 30m is a good while")

func TestMain(m *testing.M) {
	flag.Parse()
	netnstest.Main(m)
}
