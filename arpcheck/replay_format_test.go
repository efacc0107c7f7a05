package arpcheck_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

var (
	captureStart = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	asker        = netip.MustParseAddr("192.0.2.10")
	asked        = netip.MustParseAddr("192.0.2.240")
)

// exchange is three rounds, two seconds apart: a request, and a reply after 1 ms.
func exchange(vlan uint16) (frames [][]byte, at []time.Time) {
	request := arpwire.Request(doc(0x99), asker, asked)
	request.VLAN = vlan
	for round := range 3 {
		start := captureStart.Add(time.Duration(round) * 2 * time.Second)
		frames = append(frames, request.Append(nil, 0), request.Reply(doc(0x0a)).Append(nil, arpwire.MinFrame))
		at = append(at, start, start.Add(time.Millisecond))
	}
	return frames, at
}

// ngCapture is a pcapng file by another program's writer, with two interfaces: on
// the first one requests are untagged, on the second they have VLAN 7.
func ngCapture(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	link := func(name string) pcapgo.NgInterface {
		return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
	}
	w, err := pcapgo.NewNgWriterInterface(&out, link("eth0"), pcapgo.DefaultNgWriterOptions)
	require.NoError(t, err)
	_, err = w.AddInterface(link("eth1"))
	require.NoError(t, err)
	for i, vlan := range []uint16{0, 7} {
		frames, at := exchange(vlan)
		for n, frame := range frames {
			ci := gopacket.CaptureInfo{Timestamp: at[n], CaptureLength: len(frame), Length: len(frame), InterfaceIndex: i}
			require.NoError(t, w.WritePacket(ci, frame))
		}
	}
	require.NoError(t, w.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		LastUpdate: captureStart.Add(time.Minute), EndTime: captureStart.Add(time.Minute), PacketsReceived: 6, PacketsDropped: 0,
	}))
	require.NoError(t, w.Flush())
	return out.Bytes()
}

// cookedCapture is the exchange as tcpdump -i any writes it.
func cookedCapture(t testing.TB, linkType uint32) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	require.NoError(t, w.WriteFileHeader(65535, layers.LinkType(linkType)))
	frames, at := exchange(0)
	for n, frame := range frames {
		packetType := byte(arpcheck.ToHost)
		if n%2 == 0 {
			packetType = byte(arpcheck.Outgoing)
		}
		var cooked []byte
		if linkType == 113 {
			cooked = append([]byte{0, packetType, 0, 1, 0, 6}, frame[6:12]...)
			cooked = append(append(cooked, 0, 0), frame[12:]...)
		} else {
			cooked = append(bytes.Clone(frame[12:14]), 0, 0, 0, 0, 0, 4, 0, 1, packetType, 6)
			cooked = append(append(cooked, frame[6:12]...), 0, 0)
			cooked = append(cooked, frame[14:]...)
		}
		require.NoError(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: at[n], CaptureLength: len(cooked), Length: len(cooked)}, cooked))
	}
	return out.Bytes()
}

func TestReplayPCAPNG(t *testing.T) {
	t.Parallel()
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(ngCapture(t)), arpcheck.ReplayOptions{})
	require.NoError(t, err)
	assert.Equal(t, []arpcheck.MAC{doc(0x99)}, c.MACs)
	assert.Equal(t, captureStart, c.Started)
	assert.Equal(t, captureStart.Add(time.Minute), c.Ended, "as the statistics say")
	require.Len(t, c.Results, 2)
	for i, r := range c.Results {
		assert.Equal(t, []string{"eth0", "eth1"}[i], r.Interface)
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Equal(t, 3, r.Rounds, "the capture went on after the last request")
		assert.Equal(t, 3, r.Responders[0].Replies)
		assert.Equal(t, time.Millisecond, r.Responders[0].RTT.Max)
		assert.Zero(t, r.Quality.OtherVLANs)
	}
}

// The file says which frames are outgoing, so that the prober is not guessed: all
// that the others do here is more than what it does.
func TestReplayPCAPNGOutgoing(t *testing.T) {
	t.Parallel()
	var file []byte
	for _, word := range []uint32{0x0a0d0d0a, 28, 0x1a2b3c4d, 1, ^uint32(0), ^uint32(0), 28, 1, 20, 1, 0, 20} {
		file = binary.LittleEndian.AppendUint32(file, word)
	}
	packet := func(at time.Duration, direction uint32, frame []byte) {
		micros := uint64(captureStart.Add(at).UnixMicro())
		padded := append(bytes.Clone(frame), make([]byte, -len(frame)&3)...)
		size := uint32(32 + len(padded) + 12)
		for _, word := range []uint32{6, size, 0, uint32(micros >> 32), uint32(micros), uint32(len(frame)), uint32(len(frame))} {
			file = binary.LittleEndian.AppendUint32(file, word)
		}
		file = append(file, padded...)
		for _, word := range []uint32{2 | 4<<16, direction, 0, size} {
			file = binary.LittleEndian.AppendUint32(file, word)
		}
	}
	const inbound, outbound = 1, 2
	packet(0, outbound, arpwire.Request(doc(0x99), asker, asked).Append(nil, 0))
	for range 5 {
		packet(time.Millisecond, inbound, arpwire.Request(doc(0x01), netip.MustParseAddr("192.0.2.1"), asked).Append(nil, 0))
	}
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(file), arpcheck.ReplayOptions{})
	require.NoError(t, err)
	assert.Equal(t, []arpcheck.MAC{doc(0x99)}, c.MACs)
	assert.Len(t, c.Results, 1)
	assert.Equal(t, 5, c.Claims[0].Frames)
}

func TestReplayPCAPNGDrops(t *testing.T) {
	t.Parallel()
	var stats []byte // an Interface Statistics Block with 3 frames lost to the system
	for _, word := range []uint32{5, 40, 0, 0, 0, 7 | 8<<16, 3, 0, 0, 40} {
		stats = binary.LittleEndian.AppendUint32(stats, word)
	}
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(append(ngCapture(t), stats...)), arpcheck.ReplayOptions{})
	require.NoError(t, err)
	assert.Equal(t, uint64(3), c.Quality.Drops)
	assert.Equal(t, arpcheck.Inconclusive, c.Results[0].Verdict)
	assert.Equal(t, []arpcheck.Reason{arpcheck.KernelDrops}, c.Results[0].Reasons)
}

func TestReplayCooked(t *testing.T) {
	t.Parallel()
	for linkType, link := range map[uint32]string{113: "", 276: "interface 4"} {
		c, err := arpcheck.ReplayPCAP(bytes.NewReader(cookedCapture(t, linkType)), arpcheck.ReplayOptions{})
		require.NoError(t, err)
		require.Len(t, c.Results, 1)
		r := c.Results[0]
		assert.Equal(t, link, r.Interface)
		assert.Equal(t, arpcheck.Single, r.Verdict)
		assert.Equal(t, []arpcheck.MAC{doc(0x0a)}, responders(r))
		assert.Equal(t, []arpcheck.LengthCount{{Length: 60, Frames: 3}}, r.Responders[0].Lengths)
		assert.Empty(t, c.Claims)
	}
}

func TestReplayBigEndianMicroseconds(t *testing.T) {
	t.Parallel()
	var file []byte
	for _, word := range []uint32{0xa1b2c3d4, 2<<16 | 4, 0, 0, 65535, 1} {
		file = binary.BigEndian.AppendUint32(file, word)
	}
	frames, at := exchange(0)
	for n, frame := range frames {
		for _, word := range []uint32{uint32(at[n].Unix()), uint32(at[n].Nanosecond() / 1000), uint32(len(frame)), uint32(len(frame))} {
			file = binary.BigEndian.AppendUint32(file, word)
		}
		file = append(file, frame...)
	}
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(file), arpcheck.ReplayOptions{})
	require.NoError(t, err)
	assert.Equal(t, captureStart.Truncate(time.Microsecond), c.Started)
	assert.Equal(t, arpcheck.Single, resultOf(t, c, asked.String()).Verdict)
}

// A host that answers late answers several requests at once. That is no double
// answer, however fast the requests follow each other.
func TestReplayLateAnswersAreNotDouble(t *testing.T) {
	t.Parallel()
	request := arpwire.Request(doc(0x99), asker, asked)
	for name, test := range map[string]struct {
		every   int // replies come after this many requests
		replies int // that many at a time
		double  bool
	}{
		"each in time":      {1, 1, false},
		"each twice":        {1, 2, true},
		"late by four":      {5, 5, false},
		"late, and doubled": {5, 10, true},
	} {
		var out bytes.Buffer
		w := pcapgo.NewWriterNanos(&out)
		require.NoError(t, w.WriteFileHeader(65535, layers.LinkTypeEthernet))
		write := func(at time.Time, frame []byte) {
			require.NoError(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame)}, frame))
		}
		for n := range 20 {
			at := captureStart.Add(time.Duration(n) * 100 * time.Millisecond)
			write(at, request.Append(nil, 0))
			if n%test.every == test.every-1 {
				for i := range test.replies {
					write(at.Add(time.Duration(1+i)*time.Millisecond), request.Reply(doc(0x0a)).Append(nil, 0))
				}
			}
		}
		c, err := arpcheck.ReplayPCAP(&out, arpcheck.ReplayOptions{})
		require.NoError(t, err)
		r := resultOf(t, c, asked.String()).Responders[0]
		assert.Equal(t, test.double, r.DoubleAnswers > 0, name)
	}
}

// A flood of made-up claims and questions is cut and counted.
func TestReplayIsBounded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	require.NoError(t, w.WriteFileHeader(65535, layers.LinkTypeEthernet))
	buf := make([]byte, 0, arpwire.FrameSize)
	for n := range 1<<18 + 10 {
		addr := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		frame := arpwire.Request(doc(0x99), asker, addr) // a question
		if n%2 == 1 {
			frame = arpwire.Request(doc(byte(n>>8)), addr, addr) // a claim
		}
		buf = frame.Append(buf[:0], 0)
		ci := gopacket.CaptureInfo{Timestamp: captureStart.Add(time.Duration(n) * time.Millisecond), CaptureLength: len(buf), Length: len(buf)}
		require.NoError(t, w.WritePacket(ci, buf))
	}
	c, err := arpcheck.ReplayPCAP(&out, arpcheck.ReplayOptions{MACs: []arpcheck.MAC{doc(0x99)}})
	require.NoError(t, err)
	assert.True(t, c.Quality.Cut)
	assert.Equal(t, 1<<18, c.Quality.Frames)
	assert.Len(t, c.Results, 1<<14)
	assert.Len(t, c.Claims, 4096)
	assert.NotZero(t, c.Quality.Excess)
	assert.Equal(t, captureStart.Add((1<<18-1)*time.Millisecond), c.Ended)
}
