package arprule_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/arprule"
)

// largeNode holds 20,000 VIPs on kube-ipvs0 and as many veth links as a full
// node has pods.
func largeNode() arprule.Host {
	h := truthNode()
	for range 250 {
		h.Interfaces = append(h.Interfaces, arprule.Interface{Name: "veth"})
	}
	addr := netip.MustParseAddr("10.96.0.1")
	for range 20000 {
		h.Addresses = append(h.Addresses, arprule.Address{Prefix: netip.PrefixFrom(addr, 32), Interface: "kube-ipvs0"})
		addr = addr.Next()
	}
	return h
}

func TestReplyDoesNotAllocate(t *testing.T) {
	h := truthNode()
	h.All.RpFilter, h.All.ArpFilter, h.All.ArpIgnore = 1, 1, 2
	r := arprule.Request{Interface: "ens33", Sender: ip(client), Target: ip(nic)}
	yes, why := arprule.Reply(h, r)
	require.True(t, yes, "%s", why)
	assert.Zero(t, testing.AllocsPerRun(100, func() { arprule.Reply(h, r) }))
}

func BenchmarkReply(b *testing.B) {
	r := arprule.Request{Interface: "ens33", Sender: ip(client), Target: ip(vip)}
	for name, h := range map[string]arprule.Host{"typical": truthNode(), "20000 VIPs": largeNode()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				arprule.Reply(h, r)
			}
		})
	}
}
