package strictarp_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb/metallbtest"
	"github.com/strictarp/strictarp/sysctl"
)

// large is a cluster of 200 nodes and 5,000 LoadBalancer Services, whose addresses
// and cluster IPs are on each node's kube-ipvs0, asked for from one client. The
// kernels of the first loose nodes answer for all of them.
func large(t testing.TB, loose int) strictarp.Facts {
	const nodes, services = 200, 5000
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	s := newScene(t)
	s.Cluster = metallbtest.New(names...)
	s.Pools[0].Addresses, s.Pools[0].AvoidBuggyIPs = []string{"10.16.0.1-10.16.255.200"}, true
	s.nodes, s.client.Neighbours, s.client.Probes = map[string]*strictarp.NodeFacts{}, nil, nil
	s.client.Links[0].Addrs = addrs("10.16.255.250/12")
	held := addrs()
	for i := range services {
		vip := netip.AddrFrom4([4]byte{10, 16, byte(i / 250), byte(i%250 + 1)})
		key := fmt.Sprintf("ns%d/s%d", i%50, i)
		s.AddService(key, vip.String(), names[i%nodes], names[(i+7)%nodes])
		s.Announce(key, names[i%nodes], "ens33")
		cluster := netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)})
		s.service(fmt.Sprintf("c%d", i), corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: cluster.String()})
		held = append(held, addrs(vip.String()+"/32", cluster.String()+"/32")...)
	}
	for i, name := range names {
		n := s.node(name, 1)
		own := fmt.Sprintf("10.17.%d.%d/12", i/250, i%250+1)
		n.Links[1].MAC, n.Links[1].Addrs, n.Links[2].Addrs = arpcheck.MAC{2, 0, 0, 1, byte(i / 250), byte(i % 250)}, addrs(own), held
		n.Routes[1].Dst = netip.MustParsePrefix("10.16.0.0/12")
		if s.Node(name).IP = netip.MustParsePrefix(own).Addr().String(); i < loose {
			n.Sysctls = &sysctl.ARP{All: values(0, 0), Default: values(0, 0), Interfaces: map[string]sysctl.Values{"ens33": values(0, 0)}}
		}
		s.nodes[name] = n
	}
	s.Statuses, s.Events = nil, nil
	f := s.facts()
	e := f.MetalLB.Elector()
	for i := range f.MetalLB.Services {
		svc := &f.MetalLB.Services[i]
		if len(svc.Addresses) == 0 {
			continue
		}
		answers := []arpcheck.Responder{{MAC: f.Nodes[e.Announcer(svc)].Links[1].MAC, Replies: 4}}
		for j := range loose {
			answers = append(answers, arpcheck.Responder{MAC: f.Nodes[names[j]].Links[1].MAC, Replies: 4})
		}
		probed(&f.Vantages[0], svc.Addresses[0].String(), answers...)
	}
	return f
}

// BenchmarkEvaluate judges a cluster of 200 nodes and 5,000 VIPs: all, one VIP, one
// node.
func BenchmarkEvaluate(b *testing.B) {
	for _, c := range []struct {
		name     string
		loose    int
		subjects []strictarp.Subject
	}{
		{"healthy", 0, nil}, {"healthy/VIP", 0, []strictarp.Subject{"10.16.7.7"}}, {"healthy/node", 0, []strictarp.Subject{"w7"}},
		{"5loose", 5, nil}, {"5loose/VIP", 5, []strictarp.Subject{"10.16.7.7"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := large(b, c.loose)
			found := strictarp.Evaluate(f, c.subjects...)
			require.Equal(b, c.loose > 0, len(found) > 0, summaries(found)[:min(len(found), 10)])
			b.ReportAllocs()
			for b.Loop() {
				strictarp.Evaluate(f, c.subjects...)
			}
		})
	}
}
