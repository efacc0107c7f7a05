package strictarp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// BenchmarkReadBundle reads 200 nodes that hold 5,000 addresses each, with the
// Services that these are of.
func BenchmarkReadBundle(b *testing.B) {
	const nodes, services = 200, 5000
	settings, err := os.ReadFile(cases + "/a01/nodes/node-a/sysctl.txt")
	require.NoError(b, err)
	var held, objects strings.Builder
	held.WriteString("2: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default\n    link/ether 00:00:5e:00:53:e0 brd ff:ff:ff:ff:ff:ff\n")
	for i := range services {
		addr := fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
		fmt.Fprintf(&held, "    inet %s/32 scope global kube-ipvs0\n       valid_lft forever preferred_lft forever\n", addr)
		fmt.Fprintf(&objects, "apiVersion: v1\nkind: Service\nmetadata:\n  name: s%d\n  namespace: default\nspec:\n  type: LoadBalancer\n  clusterIP: %s\n  ports: [{port: 80}]\nstatus:\n  loadBalancer:\n    ingress: [{ip: %s}]\n---\n", i, addr, addr)
	}
	files := fstest.MapFS{"cluster/services.yaml": text(objects.String())}
	for i := range nodes {
		files[fmt.Sprintf("nodes/w%d/sysctl.txt", i)] = &fstest.MapFile{Data: settings}
		files[fmt.Sprintf("nodes/w%d/ip-addr.txt", i)] = text(held.String())
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := strictarp.ReadBundle(files)
		require.NoError(b, err)
		require.Len(b, f.MetalLB.Services, services)
		require.Len(b, f.Nodes, nodes)
	}
}
