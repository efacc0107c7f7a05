package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// asked runs the program on a host of a segment with the nodes w1 to w3, of which
// w1 announces 10.0.3.20, with what objects tell of the cluster on standard input.
func asked(t *testing.T, edit func([]*arpchecktest.Host), args ...string) ran {
	t.Helper()
	return askedOn(t, edit, func(ctx context.Context, _ *world, _ *arpchecktest.Host) context.Context { return ctx }, args...)
}

// askedOn does so on a client's machine, which a test can change, in a context that it
// can end.
func askedOn(t *testing.T, edit func([]*arpchecktest.Host), machine func(context.Context, *world, *arpchecktest.Host) context.Context, args ...string) ran {
	t.Helper()
	c := metallbtest.New("w1", "w2", "w3")
	c.AddService("default/web", "10.0.3.20", "w1").Local = true
	state := metallb.FromObjects(c.Objects()...)
	state.At = metallbtest.Start()
	facts, err := json.Marshal(strictarp.Facts{At: metallbtest.Start(), MetalLB: &state})
	require.NoError(t, err)
	var r ran
	synctest.Test(t, func(t *testing.T) {
		s := arpchecktest.New(t)
		vip := netip.MustParseAddr("10.0.3.20")
		var nodes []*arpchecktest.Host
		for i := range 3 {
			n := s.AddNode(fmt.Sprint("w", i+1), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
			require.NoError(t, n.HoldVIP(vip))
			require.NoError(t, n.SetStrictARP(true))
			nodes = append(nodes, n)
		}
		_, err := nodes[0].Announce(vip)
		require.NoError(t, err)
		edit(nodes)
		w := quietWorld()
		w.in = bytes.NewReader(facts)
		client := s.AddClient("balancer", netip.MustParsePrefix("10.0.3.50/24"))
		w.open = client.OpenOn
		r = w.run(machine(t.Context(), &w, client), append(args, "--bundle", "-")...)
	})
	return r
}

func strict([]*arpchecktest.Host) {}

func loose(nodes []*arpchecktest.Host) {
	for _, n := range nodes {
		_ = n.SetStrictARP(false)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	r := asked(t, strict, "verify", "10.0.3.20", "--soak", "30s")
	assert.Equal(t, exitClean, r.code, r.out+r.err)
	assert.Contains(t, r.out, "Verified: 10.0.3.20 was good for 30s")

	r = asked(t, loose, "verify", "10.0.3.20", "--soak", "30s")
	assert.Equal(t, exitFound, r.code, r.out+r.err)
	assert.Contains(t, r.out, "multiple-responders")
	assert.Contains(t, r.out, "Not verified")

	for _, format := range []string{"json", "yaml", "name", "wide"} {
		r = asked(t, loose, "verify", "10.0.3.20", "-o", format)
		assert.Equal(t, exitFound, r.code, format)
		assert.Contains(t, r.out, "multiple-responders", format)
	}
}

// Of an address that is no VIP nothing can be found, which proves nothing.
func TestVerifyNoVIP(t *testing.T) {
	t.Parallel()
	r := asked(t, strict, "verify", "10.0.3.250", "--soak", "30s")
	assert.Equal(t, exitFound, r.code, r.out+r.err)
	assert.Contains(t, r.out, "subject-not-found")
	assert.Contains(t, r.out, "Not verified")
}

// What goes wrong later, after many good looks, is seen.
func TestVerifySoaks(t *testing.T) {
	t.Parallel()
	r := asked(t, func(nodes []*arpchecktest.Host) {
		time.AfterFunc(40*time.Second, func() { _ = nodes[1].SetStrictARP(false) })
	}, "verify", "10.0.3.20", "--soak", "60s")
	assert.Equal(t, exitFound, r.code, r.out+r.err)
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	r := asked(t, loose, "who", "10.0.3.20", "--interface", "eth0")
	assert.Equal(t, exitFound, r.code, r.err)
	for _, node := range []string{"w1", "w2", "w3"} {
		assert.Regexp(t, `(?m)^  `+node+` +02:00:00:00:00:0`, r.out)
	}
}

func TestVerifyWithoutPermission(t *testing.T) {
	t.Parallel()
	w := quietWorld()
	r := w.run(t.Context(), "verify", "192.0.2.240", "--bundle", cases+"/a01")
	assert.Equal(t, exitError, r.code)
	assert.Contains(t, r.err, "ask on eth0: permission denied")
}
