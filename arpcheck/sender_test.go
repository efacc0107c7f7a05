package arpcheck_test

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// Which address a probe asks under, and what the result says of it.
func TestSender(t *testing.T) {
	addr := netip.MustParseAddr
	first, second, elsewhere := addr("10.0.3.50"), addr("10.0.3.51"), addr("172.31.0.9")
	routed := func(src netip.Addr) arpcheck.Route { return arpcheck.Route{Source: src} }
	for _, row := range []struct {
		name  string
		given netip.Addr
		host  arpcheck.Host
		want  arpcheck.Sender
	}{
		{"given", elsewhere, &station{link: up(first), route: routed(second)},
			arpcheck.Sender{Addr: elsewhere, From: arpcheck.SenderGiven}},
		{"given as 4in6", netip.AddrFrom16(elsewhere.As16()), nil,
			arpcheck.Sender{Addr: elsewhere, From: arpcheck.SenderGiven}},
		{"given 0.0.0.0", netip.IPv4Unspecified(), &station{link: up(first), route: routed(first)},
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderGiven}},
		{"the route's source before the first address", netip.Addr{}, &station{link: up(first, second), route: routed(second)},
			arpcheck.Sender{Addr: second, From: arpcheck.SenderRoute}},
		{"no route: the first address, of another subnet", netip.Addr{}, &station{link: up(elsewhere, first)},
			arpcheck.Sender{Addr: elsewhere, From: arpcheck.SenderInterface}},
		{"no route and no address", netip.Addr{}, &station{link: up()},
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderUnspecified}},
		{"a route without a source", netip.Addr{}, &station{link: up(), route: routed(netip.Addr{})},
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderUnspecified}},
		{"no host to ask", netip.Addr{}, nil,
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderUnspecified}},
		{"the target is our own: another address of ours", netip.Addr{},
			&station{link: up(vip, first), route: arpcheck.Route{Source: vip, Local: true}},
			arpcheck.Sender{Addr: first, From: arpcheck.SenderInterface}},
		{"the target is our only address", netip.Addr{},
			&station{link: up(vip), route: arpcheck.Route{Source: vip, Local: true}},
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderUnspecified}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				p := &arpcheck.Prober{Conn: w, MAC: own, Link: "eth0", Host: row.host, Sender: row.given}
				r := probe(t, p)
				assert.Equal(t, row.want, r.Sender)
				for _, s := range w.sentFrames() {
					assert.Equal(t, row.want.Addr, parse(t, s.data).Sender)
				}
				assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r), "replies to that sender are answers")
			})
		})
	}
}

// The MAC that the host knows is newer than the Prober's: a bond changes its own
// on failover.
func TestMACOfTheHost(t *testing.T) {
	for _, now := range []arpcheck.MAC{{}, node(5)} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			host := &station{link: up(client)}
			host.link.MAC = now
			p := w.prober()
			p.Host = host
			want := now
			if now.IsZero() {
				want = own
			}
			w.onSend = func([]byte) { // a broadcast reply that only its target MAC tells to be ours
				q := reply(node(1), vip.Next())
				q.Dst, q.TargetMAC, q.Target = arpwire.Broadcast, want, vip
				w.later(time.Millisecond, arpcheck.Frame{Data: q.Append(nil, 0), Type: arpcheck.ToBroadcast})
			}
			r := probe(t, p)
			assert.Equal(t, want, r.MAC)
			assert.Equal(t, 3, r.Quality.OtherTargets)
			for _, s := range w.sentFrames() {
				q := parse(t, s.data)
				assert.EqualValues(t, want, q.Src)
				assert.EqualValues(t, want, q.SenderMAC)
			}
		})
	}
}

// To ask under the target's own address would be an announcement, which every
// listener believes: that must not be sent, whoever asks for it.
func TestSenderIsTheTarget(t *testing.T) {
	for _, sender := range []netip.Addr{vip, netip.AddrFrom16(vip.As16())} {
		synctest.Test(t, func(t *testing.T) {
			w := answering(time.Millisecond, node(1))
			p := w.prober()
			p.Sender = sender
			_, err := p.Probe(t.Context(), vip)
			for _, s := range w.sentFrames() {
				kind, _ := arpcheck.Classify(s.data)
				require.NotEqual(t, arpcheck.Announcement, kind, "the probe announces the target at its own MAC")
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, vip.String())
		})
	}
}

func TestSenderIsNotIPv4(t *testing.T) {
	w := newWire()
	p := w.prober()
	p.Sender = netip.MustParseAddr("2001:db8::1")
	_, err := p.Probe(t.Context(), vip)
	require.ErrorContains(t, err, "2001:db8::1")
	require.ErrorContains(t, err, "eth0")
	require.ErrorContains(t, err, "IPv4")
	assert.Empty(t, w.sentFrames())
}

func TestNegativeSettings(t *testing.T) {
	for name, set := range map[string]func(*arpcheck.Prober){
		"Rounds":        func(p *arpcheck.Prober) { p.Rounds = -1 },
		"Wait":          func(p *arpcheck.Prober) { p.Wait = -1 },
		"Interval":      func(p *arpcheck.Prober) { p.Interval = -1 },
		"MaxResponders": func(p *arpcheck.Prober) { p.MaxResponders = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			p := w.prober()
			set(p)
			_, err := p.Probe(t.Context(), vip)
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, "negative")
			require.ErrorContains(t, err, "eth0")
			assert.Empty(t, w.sentFrames())
		})
	}
}

// A host that cannot tell is an error: the probe would ask under a wrong sender.
func TestHostErrors(t *testing.T) {
	broken := errors.New("netlink is broken")
	for _, row := range []struct {
		name string
		host arpcheck.Host
		says string
	}{
		{"Link", &station{err: broken}, "state of the interface"},
		{"Route", &station{link: up(client), errOf: broken}, "route to 10.0.3.20"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWire()
			p := w.prober()
			p.Host = row.host
			_, err := p.Probe(t.Context(), vip)
			require.ErrorIs(t, err, broken)
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, "eth0")
			assert.Empty(t, w.sentFrames())
		})
	}
	t.Run("Link at the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			host := &station{link: up(client)}
			p := newWire().prober()
			p.Host = host
			host.later(time.Second, up(client), broken)
			_, err := p.Probe(t.Context(), vip)
			require.ErrorIs(t, err, broken)
		})
	})
}

// On a segment of hosts: who the kernel would ask as.
func TestSenderOnASegment(t *testing.T) {
	prefix := netip.MustParsePrefix
	for _, row := range []struct {
		name     string
		prefixes []netip.Prefix
		want     arpcheck.Sender
	}{
		{"on the subnet", []netip.Prefix{prefix("192.0.2.9/24"), prefix("10.0.3.50/24")},
			arpcheck.Sender{Addr: client, From: arpcheck.SenderRoute}},
		{"of another subnet", []netip.Prefix{prefix("192.0.2.9/24")},
			arpcheck.Sender{Addr: netip.MustParseAddr("192.0.2.9"), From: arpcheck.SenderInterface}},
		{"without an address", nil,
			arpcheck.Sender{Addr: netip.IPv4Unspecified(), From: arpcheck.SenderUnspecified}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := arpchecktest.New(t)
				n := s.AddNode("w1", prefix("10.0.3.11/24"))
				require.NoError(t, n.HoldVIP(vip))
				p, err := s.AddClient("client", row.prefixes...).Open()
				require.NoError(t, err)
				r := probe(t, p)
				assert.Equal(t, row.want, r.Sender)
				assert.Equal(t, arpcheck.Single, r.Verdict)
				assert.Equal(t, "client", r.Vantage)
			})
		})
	}
	t.Run("the prober's host holds the target", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			nodes, _ := cluster(t, vip)
			p, err := nodes[0].Open()
			require.NoError(t, err)
			r := probe(t, p)
			assert.Equal(t, arpcheck.Multiple, r.Verdict, "of the other two")
			assert.Equal(t, reasons(arpcheck.HeldHere), r.Reasons)
			require.NoError(t, nodes[1].SetStrictARP(true))
			assert.Equal(t, arpcheck.Inconclusive, probe(t, p).Verdict)
		})
	})
}
