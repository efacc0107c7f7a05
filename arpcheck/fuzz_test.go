package arpcheck_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// encodeFrames writes frames as FuzzPass reads them: type, VLAN, length, data.
func encodeFrames(frames ...arpcheck.Frame) []byte {
	var b []byte
	for _, f := range frames {
		b = append(b, byte(f.Type))
		b = binary.BigEndian.AppendUint16(b, f.VLAN)
		b = append(b, byte(len(f.Data)))
		b = append(b, f.Data...)
	}
	return b
}

func decodeFrames(b []byte) []arpcheck.Frame {
	var frames []arpcheck.Frame
	for len(b) >= 4 {
		f := arpcheck.Frame{Type: arpcheck.PacketType(b[0] % 5), VLAN: binary.BigEndian.Uint16(b[1:]) % 4096}
		n := min(int(b[3]), len(b)-4)
		f.Data, b = b[4:4+n:4+n], b[4+n:]
		frames = append(frames, f)
	}
	return frames
}

// FuzzPass feeds arbitrary frames into a pass of two targets: nothing panics,
// and every frame is accounted for, once.
func FuzzPass(f *testing.F) {
	for _, row := range kinds() {
		all := []arpcheck.Frame{{Data: tag(row.packet.Append(nil, 0), 5)}}
		for kind := arpcheck.ToHost; kind <= arpcheck.Outgoing; kind++ {
			frame := arpcheck.Frame{Data: row.packet.Append(nil, 0), Type: kind}
			all = append(all, frame, frame)
		}
		all[3].VLAN = 9
		f.Add(encodeFrames(all...))
	}
	var malformed []arpcheck.Frame
	for _, data := range arpchecktest.MalformedReplies(own, node(1), client, vip) {
		malformed = append(malformed, arpcheck.Frame{Data: data})
	}
	f.Add(encodeFrames(malformed...))
	f.Add(encodeFrames(toHost(reply(node(1), vip)), toHost(reply(node(2), vip)), toHost(reply(node(1), client.Next())),
		toHost(reply(node(3), netip.IPv4Unspecified())), otherAsks(vip, node(1)), otherAsks(client.Next(), arpcheck.Broadcast)))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames := decodeFrames(data)
		w := newWire()
		w.onSend = func([]byte) {
			if len(w.sentFrames()) == 2 { // both targets have been asked
				w.deliver(frames...)
			}
		}
		p := w.prober()
		p.Rounds, p.Wait, p.MaxResponders = 1, time.Nanosecond, 4
		targets := []netip.Addr{vip, client.Next()}
		results, err := p.ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		checkAccount(t, frames, targets, results)
	})
}

// account is how a pass that asks as client accounts for frames.
type account struct {
	quality          arpcheck.Quality // without what is of one target
	answers, claims  map[netip.Addr]int
	requestsOfOthers map[netip.Addr]int
	isTarget         func(netip.Addr) bool
}

// expect says the same as the engine, the long way.
func expect(frames []arpcheck.Frame, isTarget func(netip.Addr) bool) account {
	a := account{answers: map[netip.Addr]int{}, claims: map[netip.Addr]int{},
		requestsOfOthers: map[netip.Addr]int{}, isTarget: isTarget}
	for _, f := range frames {
		p, _ := arpwire.Parse(f.Data)
		kind, err := arpcheck.Classify(f.Data)
		tagged := f.VLAN != 0 || p.VLAN != 0
		switch {
		case f.Type == arpcheck.Outgoing:
			if err == nil && kind != arpcheck.Reply && !tagged {
				a.claims[p.Sender]++
				if p.Op == arpwire.OpRequest && p.Sender == client && p.SenderMAC == own {
					a.requestsOfOthers[p.Target]++
				}
			}
		case tagged:
			a.quality.OtherVLANs++
		case err != nil:
			a.quality.Malformed++
		case kind == arpcheck.Reply:
			a.reply(f.Type, p)
		default:
			a.claims[p.Sender]++
		}
	}
	return a
}

func (a *account) reply(kind arpcheck.PacketType, p arpwire.Packet) {
	group := kind == arpcheck.ToBroadcast || kind == arpcheck.ToMulticast
	named := p.TargetMAC == own || a.isTarget(p.Sender) && p.Target == client
	switch {
	case kind != arpcheck.ToHost && (!group || !named):
		a.quality.OtherHosts++
		a.claims[p.Sender]++
	case !a.isTarget(p.Sender):
		a.quality.OtherTargets++
	case p.Target != client:
		a.quality.OtherSenders++
	default:
		a.answers[p.Sender]++
	}
}

func checkAccount(t *testing.T, frames []arpcheck.Frame, targets []netip.Addr, results []arpcheck.Result) {
	t.Helper()
	want := expect(frames, func(a netip.Addr) bool { return slices.Contains(targets, a) })
	for i, r := range results {
		answers, claims, wins := r.Quality.ExcessReplies, 0, 0
		for _, responder := range r.Responders {
			answers += responder.Replies
			wins += responder.WonRounds
			checkResponder(t, responder)
		}
		for _, c := range r.Claims {
			claims += c.Frames
		}
		require.Equal(t, want.answers[targets[i]], answers)
		require.Equal(t, min(answers, 1), wins, "rounds won")
		require.LessOrEqual(t, len(r.Responders), 4)
		if len(r.Claims) < 64 {
			require.Equal(t, want.claims[targets[i]], claims)
		}
		q := want.quality
		q.Requests, q.ExcessReplies, q.OtherRequests = 1, r.Quality.ExcessReplies, want.requestsOfOthers[targets[i]]
		require.Equal(t, q, r.Quality)
	}
}

func checkResponder(t *testing.T, r arpcheck.Responder) {
	t.Helper()
	require.Positive(t, r.Replies)
	require.False(t, r.Last.Before(r.First))
	require.LessOrEqual(t, r.RTT.Min, r.RTT.Mean)
	require.LessOrEqual(t, r.RTT.Mean, r.RTT.Max)
	require.GreaterOrEqual(t, r.RTT.Min, time.Duration(0))
	require.LessOrEqual(t, r.RTT.Max, time.Minute)
	require.LessOrEqual(t, r.DoubleAnswers, 1)
	require.NotContains(t, r.FrameSources, r.MAC)
}
