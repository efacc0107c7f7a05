package arpcheck_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

// firstOf returns a capture's frames of the time from its first one on.
func firstOf(t *testing.T, path string, d time.Duration) *bytes.Buffer {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	in, err := pcapgo.NewReader(f)
	require.NoError(t, err)
	var buf bytes.Buffer
	out := pcapgo.NewWriterNanos(&buf)
	require.NoError(t, out.WriteFileHeader(in.Snaplen(), in.LinkType()))
	for began := (time.Time{}); ; {
		data, ci, err := in.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return &buf
		}
		require.NoError(t, err)
		if began.IsZero() {
			began = ci.Timestamp
		}
		if ci.Timestamp.Sub(began) > d {
			return &buf
		}
		require.NoError(t, out.WritePacket(ci, data))
	}
}

// The outage as tcpdump has recorded it (testdata/ORIGIN.md): one broadcast request
// gets four answers from three hosts, w3's, w2's and w1's kernel and then w1's
// speaker, in this order each of 60 times.
func TestReplayOfTheRealOutage(t *testing.T) {
	t.Parallel()
	w3 := arpcheck.MAC{0x2a, 0xfd, 0x5f, 0x8f, 0x3f, 0x8b}
	w2 := arpcheck.MAC{0x06, 0x75, 0x02, 0x33, 0xd2, 0x90}
	w1 := arpcheck.MAC{0x5a, 0x6d, 0x65, 0x27, 0xbd, 0xf8}
	for file, asking := range map[string]time.Duration{
		"arp_race_client.pcap":  17 * time.Second, // then the other client asks
		"arp_race_haproxy.pcap": 40 * time.Second,
	} {
		c, err := arpcheck.ReplayPCAP(firstOf(t, "testdata/"+file, asking), arpcheck.ReplayOptions{})
		require.NoError(t, err)
		r := resultOf(t, c, vip.String())
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		assert.Empty(t, r.Reasons)
		assert.Equal(t, 60, r.Quality.Requests)
		require.Equal(t, []arpcheck.MAC{w3, w2, w1}, macs(r))
		for i, want := range []struct{ replies, won int }{{60, 60}, {60, 0}, {120, 0}} {
			assert.Equal(t, want.replies, r.Responders[i].Replies)
			assert.Equal(t, want.won, r.Responders[i].WonRounds)
			assert.Equal(t, i == 2, r.Responders[i].DoubleAnswer)
		}
		assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 60}, {Length: 60, Frames: 60}}, r.Responders[2].Lengths,
			"the kernel's and the speaker's")
		assert.Empty(t, c.Claims)
	}
	// Later in the same file arp_announce was 0 on w2, whose kernel asked under the VIP.
	whole := replayFile(t, "testdata/arp_race_client.pcap", arpcheck.ReplayOptions{})
	i := slices.IndexFunc(whole.Claims, func(c arpcheck.AddrClaim) bool { return c.MAC == w2 && c.Kind == arpcheck.Request })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, vip, whole.Claims[i].Addr)
	assert.Equal(t, client, whole.Claims[i].Target)
	assert.Equal(t, 3, whole.Claims[i].Frames)
}

// TCP that went to the wrong node: there is no ARP in it, which is not taken for
// silence.
func TestReplayOfTrafficToTheWrongNode(t *testing.T) {
	t.Parallel()
	for file, frames := range map[string]int{"wrong_node_client.pcap": 40, "wrong_node_w1.pcap": 60, "wrong_node_w2.pcap": 60} {
		c := replayFile(t, "testdata/"+file, arpcheck.ReplayOptions{})
		assert.Empty(t, c.Results, file)
		assert.Empty(t, c.Claims, file)
		assert.Equal(t, arpcheck.CaptureQuality{NotARP: frames}, c.Quality, file)
	}
}
