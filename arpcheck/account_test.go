package arpcheck_test

import (
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

// received is a reply of a node as it would arrive, changed.
func received(kind arpcheck.PacketType, vlan uint16, change func(*arpwire.Packet)) arpcheck.Frame {
	p := reply(node(9), vip)
	if change != nil {
		change(&p)
	}
	return arpcheck.Frame{Data: p.Append(nil, 0), Type: kind, VLAN: vlan}
}

// What is not an answer to us is counted apart: it makes no responder, wins no
// round, and ends nothing. Each row is sent before the real answer.
func TestCountedApart(t *testing.T) {
	elsewhere := netip.MustParseAddr("10.0.3.99")
	for _, row := range []struct {
		name  string
		frame arpcheck.Frame
		want  arpcheck.Quality
		claim arpcheck.Kind
	}{
		{"reply for another target", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.Sender = elsewhere }),
			arpcheck.Quality{OtherTargets: 1}, ""},
		{"reply to another of our addresses", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.Target = elsewhere }),
			arpcheck.Quality{OtherSenders: 1}, ""},
		{"broadcast reply to another of our addresses", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.Target = arpwire.Broadcast, elsewhere
		}), arpcheck.Quality{OtherSenders: 1}, ""},
		{"reply to another host", received(arpcheck.ToOther, 0, func(p *arpwire.Packet) {
			p.Dst, p.TargetMAC, p.Target = node(8), node(8), elsewhere
		}), arpcheck.Quality{OtherHosts: 1}, arpcheck.Reply},
		{"reply to another host with our address", received(arpcheck.ToOther, 0, func(p *arpwire.Packet) {
			p.Dst, p.TargetMAC = node(8), node(8)
		}), arpcheck.Quality{OtherHosts: 1}, arpcheck.Reply},
		{"reply to another host with our MAC in it", received(arpcheck.ToOther, 0, func(p *arpwire.Packet) { p.Dst = node(8) }),
			arpcheck.Quality{OtherHosts: 1}, arpcheck.Reply},
		{"broadcast reply to another host", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.TargetMAC, p.Target = arpwire.Broadcast, node(8), elsewhere
		}), arpcheck.Quality{OtherHosts: 1}, arpcheck.Reply},
		{"reply for another target to another host", received(arpcheck.ToOther, 0, func(p *arpwire.Packet) {
			p.Dst, p.TargetMAC, p.Target, p.Sender = node(8), node(8), elsewhere, elsewhere.Next()
		}), arpcheck.Quality{OtherHosts: 1}, ""},
		{"other VLAN, tag taken off", received(arpcheck.ToHost, 7, nil), arpcheck.Quality{OtherVLANs: 1}, ""},
		{"other VLAN, tag in the frame", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.VLAN = 4095 }),
			arpcheck.Quality{OtherVLANs: 1}, ""},
		{"malformed and of another VLAN", arpcheck.Frame{Data: []byte{1}, VLAN: 7}, arpcheck.Quality{OtherVLANs: 1}, ""},
		{"operation 0", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.Op = 0 }), arpcheck.Quality{Malformed: 1}, ""},
		{"operation 9", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.Op = 9 }), arpcheck.Quality{Malformed: 1}, ""},
		{"no frame at all", arpcheck.Frame{Type: arpcheck.ToHost}, arpcheck.Quality{Malformed: 1}, ""},
		{"announcement", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.Op, p.Target = arpwire.Broadcast, arpwire.OpRequest, vip
		}), arpcheck.Quality{}, arpcheck.Announcement},
		{"gratuitous reply", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) { p.Dst, p.Target = arpwire.Broadcast, vip }),
			arpcheck.Quality{}, arpcheck.GratuitousReply},
		{"gratuitous reply to us alone", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.Target = vip }),
			arpcheck.Quality{}, arpcheck.GratuitousReply},
		{"request with the VIP as sender", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.Op, p.Target = arpwire.Broadcast, arpwire.OpRequest, client
		}), arpcheck.Quality{}, arpcheck.Request},
		{"somebody else's request for the target", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.Op, p.Sender, p.Target = arpwire.Broadcast, arpwire.OpRequest, elsewhere, vip
		}), arpcheck.Quality{}, ""},
		{"somebody probes for the target", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.Op, p.Sender, p.Target = arpwire.Broadcast, arpwire.OpRequest, netip.IPv4Unspecified(), vip
		}), arpcheck.Quality{}, ""},
		{"our host answers somebody", received(arpcheck.Outgoing, 0, nil), arpcheck.Quality{}, ""},
		{"our host sends something malformed", arpcheck.Frame{Type: arpcheck.Outgoing, Data: []byte{1, 2}}, arpcheck.Quality{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				w.onSend = func([]byte) {
					w.later(time.Millisecond, row.frame)
					w.later(2*time.Millisecond, toHost(reply(node(1), vip)))
				}
				p := w.prober()
				begun := time.Now()
				r := probe(t, p)
				row.want.Requests = 3
				for _, n := range []*int{&row.want.OtherTargets, &row.want.OtherSenders, &row.want.OtherHosts,
					&row.want.OtherVLANs, &row.want.Malformed} {
					*n *= 3
				}
				assert.Equal(t, row.want, r.Quality)
				assert.Equal(t, arpcheck.Single, r.Verdict)
				require.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
				assert.Equal(t, 3, r.Responders[0].WonRounds)
				assert.Equal(t, 3, r.Responders[0].Replies)
				assert.Equal(t, 2*time.Millisecond, r.Responders[0].RTT.Mean)
				assert.Equal(t, 3*arpcheck.DefaultWait, time.Since(begun))
				if row.claim == "" {
					assert.Empty(t, r.Claims)
					return
				}
				assert.Equal(t, []arpcheck.Claim{{MAC: node(9), Kind: row.claim, Frames: 3,
					First: begun.Add(time.Millisecond), Last: begun.Add(2*arpcheck.DefaultWait + time.Millisecond)}}, r.Claims)
			})
		})
	}
}

// A reply counts as ours if it was sent to this interface, or if the interface
// heard it and it names us: some drivers and relays broadcast replies.
func TestRepliesToUs(t *testing.T) {
	broadcast := func(p *arpwire.Packet) { p.Dst = arpwire.Broadcast }
	for _, row := range []struct {
		name  string
		frame arpcheck.Frame
	}{
		{"unicast", received(arpcheck.ToHost, 0, nil)},
		{"unicast, wrong target MAC", received(arpcheck.ToHost, 0, func(p *arpwire.Packet) { p.TargetMAC = node(8) })},
		{"broadcast", received(arpcheck.ToBroadcast, 0, broadcast)},
		{"multicast", received(arpcheck.ToMulticast, 0, broadcast)},
		{"broadcast with our address alone", received(arpcheck.ToBroadcast, 0, func(p *arpwire.Packet) {
			p.Dst, p.TargetMAC = arpwire.Broadcast, arpwire.Broadcast
		})},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				w.onSend = func([]byte) { w.later(time.Millisecond, row.frame) }
				r := probe(t, w.prober())
				assert.Equal(t, []arpcheck.MAC{node(9)}, macs(r))
				assert.Equal(t, arpcheck.Quality{Requests: 3}, r.Quality)
				assert.Empty(t, r.Claims)
			})
		})
	}
}

// A frame cut off at any length is malformed, tagged or not, and no more.
func TestEveryLengthOfFrame(t *testing.T) {
	for _, vlan := range []uint16{0, 7} {
		synctest.Test(t, func(t *testing.T) {
			whole := reply(node(9), vip)
			whole.VLAN = vlan
			data := whole.Append(nil, 0)
			w := newWire()
			w.onSend = func([]byte) {
				for n := range data {
					w.deliver(arpcheck.Frame{Data: data[:n:n], Type: arpcheck.ToHost})
				}
				w.later(time.Millisecond, toHost(reply(node(1), vip)))
			}
			p := w.prober()
			p.Rounds = 1
			r := probe(t, p)
			assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
			assert.Equal(t, len(data), r.Quality.Malformed+r.Quality.OtherVLANs)
			if vlan == 0 {
				assert.Equal(t, len(data), r.Quality.Malformed)
			}
		})
	}
}

// A host that precedes each answer with hostile frames is still one responder.
func TestHostileFramesFromTheSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		nodes[1].SetFault(arpchecktest.Fault{VLAN: 100})
		nodes[2].SetFault(arpchecktest.Fault{Silent: true})
		nodes[0].SetFault(arpchecktest.Fault{Malformed: 12})
		p, err := from.Open()
		require.NoError(t, err)
		r := probe(t, p)
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Equal(t, []arpcheck.MAC{nodes[0].MAC()}, macs(r))
		assert.Equal(t, 3, r.Quality.OtherVLANs-3*hostileTagged(t))
		assert.Equal(t, 3*(12-hostileTagged(t)), r.Quality.Malformed)
	})
}

// hostileTagged is how many of arpchecktest's malformed frames carry a tag.
func hostileTagged(t *testing.T) (n int) {
	t.Helper()
	for _, frame := range arpchecktest.MalformedReplies(own, node(1), client, vip) {
		if p, _ := arpwire.Parse(frame); p.VLAN != 0 {
			n++
		}
	}
	return n
}

// What waits in the queue from before the pass is not of the pass.
func TestFramesFromBeforeThePass(t *testing.T) {
	for _, row := range []struct {
		name   string
		frames int
	}{{"one", 1}, {"as many as a default buffer holds", 256}, {"as many as a large buffer holds", 10083}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := answering(time.Millisecond, node(1))
				for range row.frames {
					stale := toHost(reply(node(9), vip))
					stale.At = time.Now()
					w.deliver(stale)
				}
				w.deliver(arpcheck.Frame{Data: []byte{1}}, received(arpcheck.ToHost, 7, nil))
				time.Sleep(time.Minute)
				r := probe(t, w.prober())
				assert.Equal(t, []arpcheck.MAC{node(1)}, macs(r))
				assert.Equal(t, arpcheck.Single, r.Verdict)
				assert.Equal(t, arpcheck.Quality{Requests: 3}, r.Quality)
				assert.Empty(t, r.Claims)
			})
		})
	}
}

// Claims of a real announcer: it begins with gratuitous requests and replies.
func TestClaimsOfAnAnnouncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		for _, n := range nodes {
			require.NoError(t, n.SetStrictARP(true))
		}
		p, err := from.Open()
		require.NoError(t, err)
		time.AfterFunc(time.Millisecond, func() { _, _ = nodes[0].Announce(vip) })
		r := probe(t, p)
		kinds := map[arpcheck.Kind]int{}
		for _, c := range r.Claims {
			require.Equal(t, nodes[0].MAC(), c.MAC)
			kinds[c.Kind] += c.Frames
		}
		assert.Equal(t, map[arpcheck.Kind]int{arpcheck.Announcement: 5, arpcheck.GratuitousReply: 5}, kinds)
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Equal(t, 2, r.Responders[0].Replies, "gratuitous replies are no answers")
	})
}

// With arp_announce below 2 a node's own request carries the VIP as sender.
func TestClaimByANodesOwnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() {
			_ = nodes[2].Forget(client) // it learnt who asks
			_ = nodes[2].SendFrom(vip, client)
		})
		r := probe(t, p)
		require.Len(t, r.Claims, 1)
		assert.Equal(t, nodes[2].MAC(), r.Claims[0].MAC)
		assert.Equal(t, arpcheck.Request, r.Claims[0].Kind)
		assert.Equal(t, r.Started.Add(time.Second), r.Claims[0].First)
	})
}
