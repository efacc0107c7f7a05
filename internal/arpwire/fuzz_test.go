package arpwire_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// FuzzParse holds Parse against mdlayher/arp, and the filter against Parse.
func FuzzParse(f *testing.F) {
	for _, frame := range captured(f) {
		f.Add(frame)
		f.Add(tagged(frame, tag{arpwire.TypeVLAN, 0xe064}))
		f.Add(tagged(frame, tag{arpwire.TypeQinQ, 7}, tag{arpwire.TypeVLAN, 100}))
		f.Add(frame[:len(frame)/2])
		f.Add(with(frame, 18, 255))
		f.Add(with(frame, 19, 16))
	}
	vm := newVM(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		require.Equal(t, isARP(frame), accepts(t, vm, frame), "filter")
		got, err := arpwire.Parse(frame)
		var eth ethernet.Frame
		if eth.UnmarshalBinary(frame) != nil || (eth.ServiceVLAN == nil && eth.VLAN != nil && isTag(eth.EtherType)) {
			// Not asked: it refuses VLAN ID 4095 and an 802.1ad tag that no
			// 802.1Q tag follows, and does not look behind an 802.1Q tag for
			// another. Frames too short for their tags are both's to refuse.
			return
		}
		if eth.EtherType != ethernet.EtherTypeARP {
			require.ErrorIs(t, err, arpwire.ErrNotARP)
			return
		}
		var want arp.Packet
		wantErr := want.UnmarshalBinary(eth.Payload)
		switch {
		case err == nil:
			require.NoError(t, wantErr)
			require.Equal(t, toOracle(got), want)
			require.Equal(t, vlanOf(eth), got.VLAN)
		case errors.Is(err, arpwire.ErrTruncated):
			require.Error(t, wantErr)
		case wantErr == nil:
			// It takes any hardware and protocol type, and any lengths as long
			// as the addresses are IPv4 or IPv6.
			require.ErrorIs(t, err, arpwire.ErrForeign)
			require.True(t, want.HardwareType != 1 || want.ProtocolType != arpwire.TypeIPv4 ||
				want.HardwareAddrLength != 6 || want.IPLength != 4, "called foreign: %+v", want)
		default:
			require.ErrorIs(t, err, arpwire.ErrForeign)
		}
	})
}

func isTag(e ethernet.EtherType) bool {
	return e == ethernet.EtherTypeVLAN || e == ethernet.EtherTypeServiceVLAN
}

func vlanOf(f ethernet.Frame) uint16 {
	switch {
	case f.ServiceVLAN != nil && f.ServiceVLAN.ID != 0:
		return f.ServiceVLAN.ID
	case f.VLAN != nil:
		return f.VLAN.ID
	}
	return 0
}

func toOracle(p arpwire.Packet) arp.Packet {
	return arp.Packet{
		HardwareType: 1, ProtocolType: arpwire.TypeIPv4, HardwareAddrLength: 6, IPLength: 4,
		Operation:          arp.Operation(p.Op),
		SenderHardwareAddr: p.SenderMAC[:], SenderIP: p.Sender,
		TargetHardwareAddr: p.TargetMAC[:], TargetIP: p.Target,
	}
}

// TestOracleWrites decodes what mdlayher/arp and mdlayher/ethernet encode.
func TestOracleWrites(t *testing.T) {
	t.Parallel()
	packet, err := arp.NewPacket(arp.OperationReply, w1[:], vip, client[:], asker)
	require.NoError(t, err)
	payload, err := packet.MarshalBinary()
	require.NoError(t, err)
	frame, err := (&ethernet.Frame{
		Destination: client[:], Source: w1[:], EtherType: ethernet.EtherTypeARP, Payload: payload,
		VLAN: &ethernet.VLAN{ID: 100, Priority: ethernet.PriorityVoice},
	}).MarshalBinary()
	require.NoError(t, err)
	want := arpwire.Request(client, asker, netip.MustParseAddr("10.0.3.20")).Reply(w1)
	want.VLAN = 100
	got, err := arpwire.Parse(frame)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
