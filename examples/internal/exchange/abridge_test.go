package exchange_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/sysctl"
)

// addrs are addresses of Services, n of them.
func addrs(n int) (list []netip.Addr) {
	for i := range n {
		list = append(list, netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}))
	}
	return list
}

func address(addr netip.Addr) strictarp.Address {
	return strictarp.Address{Prefix: netip.PrefixFrom(addr, 32), Scope: strictarp.ScopeGlobal}
}

// holding are facts of a node with addresses on kube-ipvs0.
func holding(node string, list ...strictarp.Address) strictarp.Facts {
	f := factsOf(node, time.Now())
	n := f.Nodes[node]
	n.Links = append(n.Links, strictarp.Link{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Addrs: list})
	f.Nodes[node] = n
	f.Vantages[0].Links = n.Links
	return f
}

func held(list []netip.Addr) (addresses []strictarp.Address) {
	for _, addr := range list {
		addresses = append(addresses, address(addr))
	}
	return addresses
}

// TestDifferences: whatever an interface has, it comes out as it went in, and what
// Services have is not listed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	all := addrs(100)
	services := exchange.NewServices(append(all, all[3], netip.MustParseAddr("fd00::1")))
	odd := address(all[7])
	odd.NoLocalRoute = true
	for name, c := range map[string]struct {
		has  []strictarp.Address
		form string
	}{
		"exactly":     {held(all), "2"},
		"other order": {append(held(all[50:]), held(all[:50])...), "2"},
		"more":        {append(held(all), address(vip)), "2"},
		"less":        {held(all[10:]), "2"},
		"other":       {append(held(append(addrs(7), all[8:]...)), odd), "2"},
		"few":         {held(all[:20]), "1"},
		"empty":       {[]strictarp.Address{}, "1"},
		"not known":   {nil, "1"},
	} {
		f := holding("w1", c.has...)
		n := f.Nodes["w1"]
		n.Links[1].Addrs = c.has
		cm, err := exchange.Encode("strictarp", "w1", f, services)
		require.NoError(t, err, name)
		assert.Equal(t, c.form, cm.Annotations[exchange.FormatAnnotation], name)
		_, got, err := exchange.Decode(cm, services)
		require.NoError(t, err, name)
		device := got.Nodes["w1"].Links[1]
		assert.ElementsMatch(t, c.has, device.Addrs, name)
		assert.Equal(t, c.has == nil, device.Addrs == nil, name)
		assert.Equal(t, got.Nodes["w1"].Links, got.Vantages[0].Links, name)
		_, got, err = exchange.Decode(cm, nil)
		require.NoError(t, err, name)
		if c.form == "2" {
			assert.Nil(t, got.Nodes["w1"].Links[1].Addrs, "%s: without the Services it is not known", name)
		}
	}
}

// What grows with the cluster is not published: with 20,000 addresses an object is as
// large as with none, and it does not change with Services, endpoints and pods.
func TestOwnSize(t *testing.T) {
	t.Parallel()
	encode := func(services int, pods string) *corev1.ConfigMap {
		f := holding("w1", held(addrs(services))...)
		f.At = start
		n := f.Nodes["w1"]
		n.At, n.IPVS = start, &ipvs.Table{Services: make([]ipvs.Service, services)}
		n.Sysctls = &sysctl.ARP{Interfaces: map[string]sysctl.Values{"eth0": {}}}
		for i := range len(pods) {
			name := fmt.Sprintf("cali%s%d", pods, i)
			n.Links = append(n.Links, strictarp.Link{Name: name, Kind: "veth", Up: true, Addrs: []strictarp.Address{}})
			n.Sysctls.Interfaces[name] = sysctl.Values{}
			n.Neighbours = append(n.Neighbours, arpcheck.Neighbour{Addr: netip.AddrFrom4([4]byte{10, 244, 0, byte(i)}), Link: name})
		}
		f.Nodes["w1"] = n
		cm, err := exchange.Encode("strictarp", "w1", f, exchange.NewServices(addrs(services)))
		require.NoError(t, err)
		return cm
	}
	small := encode(1, "")
	large := encode(20000, strings.Repeat("x", 100))
	assert.Equal(t, small.Annotations, large.Annotations, "also the hash of what matters")
	assert.InDelta(t, len(small.BinaryData[exchange.DataKey]), len(large.BinaryData[exchange.DataKey]), 64)
}

// TestStanding: a Service comes, and the service proxy follows; one that does not
// follow is told of after a minute, and an agent that is started anew does not take it
// back.
func TestStanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, cms, _ := publisher("w1")
		publish := func(f strictarp.Facts, services int) bool {
			t.Helper()
			written, err := p.Publish(t.Context(), f, exchange.NewServices(addrs(services)))
			require.NoError(t, err)
			return written
		}
		assert.True(t, publish(holding("w1", held(addrs(10))...), 10))
		assert.False(t, publish(holding("w1", held(addrs(10))...), 11), "the proxy is behind")
		time.Sleep(50 * time.Second)
		assert.False(t, publish(holding("w1", held(addrs(11))...), 11))
		assert.False(t, publish(holding("w1", held(addrs(11))...), 10), "the Service is gone")
		time.Sleep(50 * time.Second)
		assert.False(t, publish(holding("w1", held(addrs(10))...), 10))

		stale := holding("w1", held(addrs(11))...)
		assert.False(t, publish(stale, 10))
		time.Sleep(time.Minute)
		assert.True(t, publish(stale, 10), "it stays")
		_, got, err := exchange.Decode(cms.objects[exchange.Name("w1")], exchange.NewServices(addrs(10)))
		require.NoError(t, err)
		assert.Len(t, got.Nodes["w1"].Links[1].Addrs, 11)
		p = &exchange.Publisher{ConfigMaps: cms, Namespace: p.Namespace, Node: p.Node}
		assert.False(t, publish(stale, 10), "it is known")

		// What else changes is told at once, without what is new on the interface.
		other := holding("w1", held(addrs(13))...)
		other.Nodes["w1"].Links[0].Up = false
		assert.True(t, publish(other, 10))
		_, got, err = exchange.Decode(cms.objects[exchange.Name("w1")], exchange.NewServices(addrs(10)))
		require.NoError(t, err)
		assert.Len(t, got.Nodes["w1"].Links[1].Addrs, 11)
	})
}

// TestShared: nodes that hold the same have one list in memory, also where it is not
// that of the Services.
func TestShared(t *testing.T) {
	t.Parallel()
	services := exchange.NewServices(addrs(1000))
	var c exchange.Collector
	more := append(held(addrs(1000)), address(vip))
	for node, list := range map[string][]strictarp.Address{"w1": held(addrs(1000)), "w2": held(addrs(1000)), "w3": more, "w4": more} {
		cm, err := exchange.Encode("strictarp", node, holding(node, list...), services)
		require.NoError(t, err)
		_, _, err = c.Put(cm, time.Now())
		require.NoError(t, err)
	}
	f := c.Facts(time.Now(), services)
	first := func(node string) *strictarp.Address { return &f.Nodes[node].Links[1].Addrs[0] }
	assert.Same(t, first("w1"), first("w2"))
	assert.Same(t, first("w3"), first("w4"))
	assert.Len(t, f.Nodes["w4"].Links[1].Addrs, 1001)

	own, lacks, ok := c.Published("w4")
	assert.True(t, ok)
	assert.Empty(t, lacks)
	assert.Equal(t, []strictarp.Address{address(vip)}, own.Nodes["w4"].Links[1].Addrs, "as it was written")
	_, _, ok = c.Published("w5")
	assert.False(t, ok)
}

// A program that knows form 1 alone says so, and one that knows both reads both.
func TestForms(t *testing.T) {
	t.Parallel()
	services := exchange.NewServices(addrs(10))
	old, err := exchange.Encode("strictarp", "w1", holding("w1", held(addrs(10))...), nil)
	require.NoError(t, err)
	assert.Equal(t, "1", old.Annotations[exchange.FormatAnnotation])
	_, got, err := exchange.Decode(old, services)
	require.NoError(t, err)
	assert.Len(t, got.Nodes["w1"].Links[1].Addrs, 10)
	newer := old.DeepCopy()
	newer.Annotations[exchange.FormatAnnotation] = fmt.Sprint(exchange.Format + 1)
	_, _, err = exchange.Decode(newer, services)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, "update it to the agents' version")
}

func TestAddressesOf(t *testing.T) {
	t.Parallel()
	proxied := corev1.LoadBalancerIPModeProxy
	s := &corev1.Service{}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1", "fd00::1"}
	s.Spec.ExternalIPs = []string{"192.0.2.1", "x"}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.3.20"}, {IP: "10.0.3.21", IPMode: &proxied}, {Hostname: "lb.example.com"}}
	assert.Equal(t, "[10.96.0.1 192.0.2.1 10.0.3.20]", fmt.Sprint(exchange.AddressesOf(s)))
	s.Spec.Type = corev1.ServiceTypeClusterIP
	assert.Equal(t, "[10.96.0.1 192.0.2.1]", fmt.Sprint(exchange.AddressesOf(s)))
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.2", nil
	assert.Equal(t, "[192.0.2.1 10.96.0.2]", fmt.Sprint(exchange.AddressesOf(s)), "an old object")
	assert.Empty(t, exchange.AddressesOf(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "None"}}))
}
