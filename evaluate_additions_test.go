package strictarp_test

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
	"github.com/strictarp/strictarp/sysctl"
)

// again derives what is told from objects anew, and keeps what nodes' files say.
func again(f *strictarp.Facts) {
	m, told := metallb.FromObjects(f.Cluster.Objects...), kubeproxy.FromObjects(f.Cluster.Objects...)
	m.At, m.Source = f.MetalLB.At, f.MetalLB.Source
	fromFiles := slices.DeleteFunc(slices.Clone(f.KubeProxy.Configs), func(c kubeproxy.Config) bool {
		return c.Source.Kind != kubeproxy.SourceFile && c.Source.Kind != kubeproxy.SourceFlags || c.Source.Node == ""
	})
	told.Configs = append(told.Configs, fromFiles...)
	if len(told.Configs) > 0 {
		told.Presence = kubeproxy.Present
	}
	for i := range told.Configs {
		told.Configs[i].At = f.At
	}
	f.MetalLB, f.KubeProxy = &m, &told
}

// A node that takes no part changes nothing.
func TestEvaluateWithAnotherNode(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		if f.MetalLB.Nodes == nil {
			return // the cluster's nodes were not asked for: with one they would be
		}
		c := metallbtest.Cluster{Nodes: []*metallbtest.Node{{Name: "zz-other", IP: "198.18.7.9", Excluded: true}}}
		f.Cluster.Objects = append(slices.Clone(f.Cluster.Objects), c.Objects()...)
		if f.Nodes = maps.Clone(f.Nodes); f.Nodes == nil {
			f.Nodes = map[string]strictarp.NodeFacts{}
		}
		boot, err := sysctl.ReadPersisted(fstest.MapFS{"etc/sysctl.d/90-arp.conf": text("net.ipv4.conf.all.arp_ignore=1\nnet.ipv4.conf.all.arp_announce=2\n")})
		require.NoError(t, err)
		f.Nodes["zz-other"] = strictarp.NodeFacts{
			Persisted: &boot,
			Links:     []strictarp.Link{{Name: "lo", Loopback: true, Up: true}, {Name: "eth7", MAC: mac("w7"), Up: true, Flags: 0x1043, Addrs: addrs("198.18.7.9/24")}},
			Sysctls:   &sysctl.ARP{All: values(1, 2), Default: values(0, 0), Interfaces: map[string]sysctl.Values{"eth7": values(0, 0)}},
		}
		again(&f)
		assert.ElementsMatch(t, summaries(findings), summaries(strictarp.Evaluate(f)))
	})
}

// Nor do a Service inside the cluster and a pool that nothing uses.
func TestEvaluateWithOtherObjects(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		objects := slices.Clone(f.Cluster.Objects)
		if f.MetalLB.Services != nil {
			s := &corev1.Service{ObjectMeta: meta("default", "zz-other"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.77.7"}}
			s.APIVersion, s.Kind = "v1", "Service"
			objects = append(objects, s)
		}
		if f.MetalLB.Pools != nil && !slices.ContainsFunc(f.MetalLB.Pools, func(p metallb.Pool) bool { return p.Legacy }) {
			c := metallbtest.Cluster{Namespace: f.MetalLB.Namespace, Pools: []*metallbtest.Pool{{Name: "zz-other", Addresses: []string{"198.18.9.10-198.18.9.20"}}}}
			objects = append(objects, c.Objects()...)
		}
		f.Cluster.Objects = objects
		again(&f)
		assert.ElementsMatch(t, summaries(findings), summaries(strictarp.Evaluate(f)))
	})
}

// Named subjects give their part of all findings, and all of that part.
func TestEvaluateSubjects(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		byKey := map[strictarp.Key]strictarp.Finding{}
		subjects := map[strictarp.Subject]bool{}
		for _, x := range findings {
			byKey[x.Key()] = x
		}
		for name := range f.Nodes {
			subjects[strictarp.Subject(name)] = true
		}
		for _, s := range f.MetalLB.Services {
			subjects[strictarp.Subject(s.Namespace+"/"+s.Name)] = true
			for _, a := range s.Addresses {
				if a.Is4() { // others are never found: ARP is for IPv4 only
					subjects[strictarp.Subject(a.String())] = true
				}
			}
		}
		for subject := range subjects {
			part := strictarp.Evaluate(f, subject)
			got := map[strictarp.Key]bool{}
			for _, x := range part {
				whole, ok := byKey[x.Key()]
				assert.True(t, ok, "%s alone: %s", subject, x.Key())
				assert.Equal(t, whole.Severity, x.Severity, "%s alone: %s", subject, x.Key())
				got[x.Key()] = true
			}
			wellFormed(t, part)
			for key, x := range byKey {
				if x.Subject == subject && !got[key] {
					t.Errorf("%s alone: no %s", subject, key)
				}
			}
		}
		assert.NotPanics(t, func() { strictarp.Evaluate(f, "", "nothing/there", "192.0.2.1", "\x1b[31m") })
	})
}
