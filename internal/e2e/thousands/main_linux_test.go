// Package thousands_test runs agents of thousands of nodes and a controller against
// a real API server, and measures what they cost it and how soon things are found.
//
//	go test ./thousands                                50 nodes, 200 Services: two minutes
//	go test ./thousands -v -timeout 1h -nodes 1000 -services 2000 -pods 60 -quiet 1m -away 1m
//
// An invented node takes 2 MiB of memory and the kubelets' own heartbeats are not there.
//
// Real are etcd, kube-apiserver with RBAC, admission and priority and fairness,
// examples/controller as a process, and of examples/agent all that decides what the
// API server is told and when, each agent with connections and a token of its own.
// Invented are nodes, their kernels and kube-proxies; and one watch of the Services
// serves all agents.
package thousands_test

import (
	"flag"
	"os"
	"testing"
	"time"
)

var (
	nodes    = flag.Int("nodes", 50, "how many nodes")
	services = flag.Int("services", 200, "how many Services of type LoadBalancer")
	pods     = flag.Int("pods", 10, "pods of each node")
	every    = flag.Duration("every", time.Minute, "the agents' --every: on a small machine 5,000 of them cannot look each minute")
	quiet    = flag.Duration("quiet", 20*time.Second, "how long nothing happens, to see what that costs")
	away     = flag.Duration("away", 5*time.Second, "how long the API server is away")
	qps      = flag.Int("qps", 0, "the controller's --qps; 0: its default")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}
