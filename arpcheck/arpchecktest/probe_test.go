package arpchecktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// seen is what a test looks at of a Result.
type seen struct {
	verdict arpcheck.Verdict
	macs    []arpcheck.MAC
	double  []arpcheck.MAC
}

func probe(t *testing.T, p *arpcheck.Prober) (arpcheck.Result, seen) {
	t.Helper()
	r, err := p.Probe(t.Context(), vip)
	require.NoError(t, err)
	s := seen{verdict: r.Verdict}
	for _, responder := range r.Responders {
		s.macs = append(s.macs, responder.MAC)
		if responder.DoubleAnswer {
			s.double = append(s.double, responder.MAC)
		}
	}
	return r, s
}

// The engine sees what the segment does, in its usual situations.
func TestProbeThroughTheEngine(t *testing.T) {
	announce := func(t *testing.T, h *arpchecktest.Host) {
		_, err := h.Announce(vip)
		require.NoError(t, err)
	}
	w1, all := []arpcheck.MAC{mac(1)}, []arpcheck.MAC{mac(3), mac(2), mac(1)}
	for _, row := range []struct {
		name string
		set  func(*testing.T, cluster)
		want seen
	}{
		{"loose", func(t *testing.T, c cluster) { announce(t, c.w1) }, seen{arpcheck.Multiple, all, w1}},
		{"strict", func(t *testing.T, c cluster) { c.setStrict(t); announce(t, c.w1) }, seen{arpcheck.Single, w1, nil}},
		{"double answer", func(t *testing.T, c cluster) {
			c.setStrict(t)
			require.NoError(t, c.w1.SetStrictARP(false))
			announce(t, c.w1)
		}, seen{arpcheck.Single, w1, w1}},
		{"silence", func(t *testing.T, c cluster) { c.setStrict(t) }, seen{arpcheck.None, nil, nil}},
		{"other VLAN and malformed frames", func(t *testing.T, c cluster) {
			c.w3.SetFault(arpchecktest.Fault{VLAN: 9})
			c.w2.SetFault(arpchecktest.Fault{Silent: true})
			c.w1.SetFault(arpchecktest.Fault{Malformed: 3})
		}, seen{arpcheck.Single, w1, nil}},
		{"split brain", func(t *testing.T, c cluster) {
			c.setStrict(t)
			announce(t, c.w1)
			announce(t, c.w2)
		}, seen{arpcheck.Multiple, []arpcheck.MAC{mac(2), mac(1)}, nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				row.set(t, c)
				p, err := c.client.Open()
				require.NoError(t, err)
				r, got := probe(t, p)
				assert.Equal(t, row.want, got)
				assert.Equal(t, arpcheck.Sender{Addr: c.client.Addr(), From: arpcheck.SenderRoute}, r.Sender)
			})
		})
	}
}

// What the kernel and a second prober ask on the same interface makes nobody
// answer double.
func TestOthersAskToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p, err := c.client.Open()
		require.NoError(t, err)
		beside := openConn(t, c.client)
		for k := range 4 {
			time.AfterFunc(time.Duration(k)*time.Second+200*time.Millisecond, func() {
				ask(t, c.client, beside, vip)
				assert.NoError(t, c.client.Forget(vip))
				assert.NoError(t, c.client.SendFrom(c.client.Addr(), vip))
			})
		}
		r, got := probe(t, p)
		assert.Equal(t, seen{arpcheck.Multiple, []arpcheck.MAC{mac(3), mac(2), mac(1)}, nil}, got)
		assert.Equal(t, 3, r.Quality.Requests)
		assert.Positive(t, r.Quality.OtherRequests)
	})
}

// As a bond's on failover, an interface's MAC may change under a Prober.
func TestProbeAfterSetMAC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p, err := c.client.Open()
		require.NoError(t, err)
		c.client.SetMAC(mac(99))
		r, got := probe(t, p)
		assert.Equal(t, seen{arpcheck.Multiple, []arpcheck.MAC{mac(3), mac(2), mac(1)}, nil}, got)
		assert.Equal(t, mac(99), r.MAC)
		assert.Zero(t, r.Quality.OtherHosts)
	})
}

func BenchmarkProbe(b *testing.B) {
	seg := arpchecktest.New(b)
	client := seg.AddClient("client", addr(50))
	for k := range byte(3) {
		node := seg.AddNode("w"+string('1'+k), addr(11+k))
		require.NoError(b, node.HoldVIP(vip))
		node.SetLatency(0)
	}
	p, err := client.Open()
	require.NoError(b, err)
	p.Rounds, p.Wait = 1, time.Nanosecond
	b.ReportAllocs()
	for b.Loop() {
		r, err := p.Probe(b.Context(), vip)
		if err != nil || len(r.Responders) != 3 {
			b.Fatalf("%d responders: %v", len(r.Responders), err)
		}
	}
}
