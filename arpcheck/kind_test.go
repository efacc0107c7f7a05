package arpcheck_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// kinds has a packet of each kind.
func kinds() []struct {
	name   string
	packet arpwire.Packet
	want   arpcheck.Kind
} {
	zero := netip.IPv4Unspecified()
	ask := func(sender, target netip.Addr) arpwire.Packet { return arpwire.Request(own, sender, target) }
	answer := func(sender, target netip.Addr) arpwire.Packet {
		p := ask(target, sender)
		return p.Reply(node(1))
	}
	unicast := ask(client, vip)
	unicast.Dst = node(1)
	broadcast := answer(vip, client)
	broadcast.Dst = arpwire.Broadcast
	return []struct {
		name   string
		packet arpwire.Packet
		want   arpcheck.Kind
	}{
		{"request", ask(client, vip), arpcheck.Request},
		{"unicast request", unicast, arpcheck.Request},
		{"request for 0.0.0.0", ask(client, zero), arpcheck.Request},
		{"probe", ask(zero, vip), arpcheck.ProbeRequest},
		{"probe for 0.0.0.0", ask(zero, zero), arpcheck.ProbeRequest},
		{"announcement", ask(vip, vip), arpcheck.Announcement},
		{"reply", answer(vip, client), arpcheck.Reply},
		{"broadcast reply", broadcast, arpcheck.Reply},
		{"reply to a probe", answer(vip, zero), arpcheck.Reply},
		{"gratuitous reply", answer(vip, vip), arpcheck.GratuitousReply},
	}
}

func TestClassify(t *testing.T) {
	for _, row := range kinds() {
		t.Run(row.name, func(t *testing.T) {
			for _, vlan := range []uint16{0, 1, 4095} {
				row.packet.VLAN = vlan
				for _, size := range []int{0, arpwire.MinFrame, 1500} {
					got, err := arpcheck.Classify(row.packet.Append(nil, size))
					require.NoError(t, err)
					assert.Equal(t, row.want, got)
				}
			}
			row.packet.VLAN = 0
			twice := tag(tag(row.packet.Append(nil, 0), 0), 7) // a priority tag within a tag
			got, err := arpcheck.Classify(twice)
			require.NoError(t, err)
			assert.Equal(t, row.want, got)
		})
	}
}

// tag puts an 802.1Q tag in front of what a frame has.
func tag(frame []byte, vlan uint16) []byte {
	t := binary.BigEndian.AppendUint16([]byte{0x81, 0x00}, vlan)
	return slices.Insert(slices.Clone(frame), 12, t...)
}

func TestClassifyErrors(t *testing.T) {
	whole := kinds()[0].packet.Append(nil, 0)
	frames := arpchecktest.MalformedReplies(own, node(1), client, vip)
	for n := range whole {
		frames = append(frames, whole[:n])
	}
	frames = append(frames, nil, tag(tag(tag(whole, 1), 2), 3), append(slices.Clone(whole[:12]), 0x08, 0x00, 0x45))
	for _, frame := range frames {
		kind, err := arpcheck.Classify(frame)
		require.Error(t, err, "% x", frame)
		assert.Empty(t, kind)
		assert.ErrorContains(t, err, "arpcheck: classify frame of")
	}
	_, err := arpcheck.Classify(func() []byte { p := kinds()[0].packet; p.Op = 3; return p.Append(nil, 0) }())
	require.ErrorContains(t, err, "operation 3")
}

func FuzzClassify(f *testing.F) {
	for _, row := range kinds() {
		f.Add(row.packet.Append(nil, 0))
		f.Add(tag(row.packet.Append(nil, arpwire.MinFrame), 100))
	}
	for _, frame := range arpchecktest.MalformedReplies(own, node(1), client, vip) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := slices.Clone(frame)
		kind, err := arpcheck.Classify(frame)
		require.Equal(t, before, frame, "the frame was changed")
		require.Equal(t, err != nil, kind == "")
		if err != nil {
			return
		}
		p, err := arpwire.Parse(frame)
		require.NoError(t, err)
		// What a kind says of the packet, the other way round.
		require.Equal(t, p.Op == arpwire.OpReply, kind == arpcheck.Reply || kind == arpcheck.GratuitousReply)
		switch kind {
		case arpcheck.Request, arpcheck.Reply:
			require.NotEqual(t, p.Sender, p.Target)
		case arpcheck.ProbeRequest:
			require.True(t, p.Sender.IsUnspecified())
		case arpcheck.Announcement, arpcheck.GratuitousReply:
			require.Equal(t, p.Sender, p.Target)
		default:
			t.Fatalf("unknown kind %q", kind)
		}
		// Neither a tag nor padding changes what a frame is for.
		again, err := arpcheck.Classify(append(slices.Clone(frame), 1, 2, 3))
		require.NoError(t, err)
		require.Equal(t, kind, again)
	})
}
