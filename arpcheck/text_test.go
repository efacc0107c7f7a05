package arpcheck_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck"
)

// A Result in which every field is set.
func fullResult() arpcheck.Result {
	at := time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)
	return arpcheck.Result{
		Target: vip, Verdict: arpcheck.Multiple, Reasons: reasons(arpcheck.KernelDrops, arpcheck.CutShort),
		Vantage: "client-1", Interface: "eth0.100", MAC: own,
		Sender:  arpcheck.Sender{Addr: client, From: arpcheck.SenderRoute},
		Started: at, Ended: at.Add(time.Minute), Rounds: 3,
		Responders: []arpcheck.Responder{{
			MAC: node(1), Replies: 6, First: at.Add(1), Last: at.Add(2),
			RTT:       arpcheck.RTT{Min: 1, Mean: 2, Max: 3, StdDev: 4},
			WonRounds: 3, DoubleAnswers: 2, DoubleAnswer: true,
			FrameSources: []arpcheck.MAC{node(2)}, Lengths: []arpcheck.LengthCount{{Length: 42, Frames: 6}},
		}},
		Claims:  []arpcheck.Claim{{MAC: node(3), Kind: arpcheck.Announcement, Frames: 5, First: at, Last: at.Add(3)}},
		Control: &arpcheck.Control{Target: vip.Next(), Answered: true},
		Quality: arpcheck.Quality{Requests: 1, OtherRequests: 2, Drops: 3, ExcessReplies: 4, OtherTargets: 5,
			OtherSenders: 6, OtherHosts: 7, OtherVLANs: 8, Malformed: 9},
	}
}

func TestResultJSON(t *testing.T) {
	want := fullResult()
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var got arpcheck.Result
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, want, got)
	for _, part := range []string{`"target":"10.0.3.20"`, `"verdict":"multiple"`, `"mac":"02:01:00:00:00:01"`,
		`"reasons":["kernel-drops","cut-short"]`, `"doubleAnswer":true`, `"from":"route"`, `"kind":"announcement"`} {
		assert.Contains(t, string(text), part)
	}
}

// Silence is an empty list, not null, and what was not observed is left out.
func TestSilentResultJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := probe(t, newWire().prober())
		text, err := json.Marshal(r)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"responders":[]`)
		for _, part := range []string{"reasons", "claims", "control", "vantage"} {
			assert.NotContains(t, string(text), `"`+part+`"`)
		}
		var back arpcheck.Result
		require.NoError(t, json.Unmarshal(text, &back))
		again, err := json.Marshal(back)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(again))
	})
}

func TestMACText(t *testing.T) {
	for text, want := range map[string]arpcheck.MAC{
		"52:54:00:12:34:56": {0x52, 0x54, 0, 0x12, 0x34, 0x56},
		"AA-BB-CC-DD-EE-FF": {0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
		"5254.0012.3456":    {0x52, 0x54, 0, 0x12, 0x34, 0x56},
		"00:00:00:00:00:00": {},
	} {
		got, err := arpcheck.ParseMAC(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		assert.Equal(t, want.IsZero(), text == "00:00:00:00:00:00")
	}
	assert.Equal(t, "aa:0b:cc:dd:ee:ff", arpcheck.MAC{0xaa, 0x0b, 0xcc, 0xdd, 0xee, 0xff}.String())
	assert.False(t, arpcheck.MAC{0, 0, 0, 0, 0, 1}.IsZero())
	assert.Equal(t, "ff:ff:ff:ff:ff:ff", arpcheck.Broadcast.String())
}

func TestBadMACText(t *testing.T) {
	for _, text := range []string{
		"", " ", "52:54:00:12:34", "52:54:00:12:34:5g", "52:54:00:12:34:56:", "52:54-00:12:34:56",
		"52:54:00:12:34:56:78:9a",                                     // EUI-64
		"00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01", // InfiniBand
		" 52:54:00:12:34:56", "52:54:00:12:34:56\n", "5２:54:00:12:34:56", "10.0.3.20", "eth0\x00\x1b[31m",
		strings.Repeat("52:", 100_000) + "54",
	} {
		_, err := arpcheck.ParseMAC(text)
		require.Error(t, err, text)
		require.ErrorContains(t, err, "arpcheck: ")
		require.NotContains(t, err.Error(), "\x1b", "control characters reach the terminal")
		mac := node(1)
		require.Error(t, mac.UnmarshalText([]byte(text)))
		assert.Equal(t, node(1), mac, "changed by text that is none")
	}
	_, err := arpcheck.ParseMAC("52:54:00:12:34:56:78:9a")
	require.ErrorContains(t, err, "8 bytes")
	require.ErrorContains(t, err, "6")
	_, err = arpcheck.ParseMAC("w1")
	require.ErrorContains(t, err, `"w1"`)
	require.ErrorContains(t, err, "52:54:00:12:34:56", "an example of what is wanted")
	var r arpcheck.Result
	require.Error(t, json.Unmarshal([]byte(`{"mac":"AAAAAAAA"}`), &r), "base64, as net.HardwareAddr has it")
}

func TestMACRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mac := arpcheck.MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac"))
		text, err := json.Marshal(map[arpcheck.MAC]arpcheck.MAC{mac: mac})
		require.NoError(t, err)
		var back map[arpcheck.MAC]arpcheck.MAC
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, map[arpcheck.MAC]arpcheck.MAC{mac: mac}, back)
		parsed, err := arpcheck.ParseMAC(mac.String())
		require.NoError(t, err)
		require.Equal(t, mac, parsed)
	})
}

// PacketType has packet(7)'s numbers.
func TestPacketTypeNumbers(t *testing.T) {
	assert.Equal(t, []arpcheck.PacketType{0, 1, 2, 3, 4}, []arpcheck.PacketType{
		arpcheck.ToHost, arpcheck.ToBroadcast, arpcheck.ToMulticast, arpcheck.ToOther, arpcheck.Outgoing})
}

// An address that was not given is told apart from 0.0.0.0.
func TestZeroTargetIsNotUnspecified(t *testing.T) {
	p := newWire().prober()
	_, zero := p.Probe(t.Context(), netip.Addr{})
	_, unspecified := p.Probe(t.Context(), netip.IPv4Unspecified())
	require.Error(t, zero)
	require.Error(t, unspecified)
	assert.NotEqual(t, zero.Error(), unspecified.Error())
}
