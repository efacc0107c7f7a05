package arpwire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/internal/arpwire"
)

var (
	client = [6]byte{0x9e, 0x86, 0x37, 0x31, 0x26, 0x74}
	w1     = [6]byte{0x5a, 0x6d, 0x65, 0x27, 0xbd, 0xf8}
	w2     = [6]byte{0x06, 0x75, 0x02, 0x33, 0xd2, 0x90}
	w3     = [6]byte{0x2a, 0xfd, 0x5f, 0x8f, 0x3f, 0x8b}
	vip    = netip.MustParseAddr("10.0.3.20")
	asker  = netip.MustParseAddr("10.0.3.50")
)

func TestParseCaptured(t *testing.T) {
	t.Parallel()
	frames := captured(t)
	for name, want := range map[string]arpwire.Packet{
		"request-arping":  arpwire.Request(client, asker, vip),
		"request-kernel":  arpwire.Request(client, asker, vip),
		"request-unicast": {Dst: w1, Src: client, Op: arpwire.OpRequest, SenderMAC: client, Sender: asker, TargetMAC: w1, Target: vip},
		// A node with arp_announce 0 that asks under the VIP.
		"request-from-vip":   arpwire.Request(w2, vip, asker),
		"reply-speaker":      arpwire.Request(client, asker, vip).Reply(w1),
		"gratuitous-request": {Dst: arpwire.Broadcast, Src: w1, Op: arpwire.OpRequest, SenderMAC: w1, Sender: vip, TargetMAC: arpwire.Broadcast, Target: vip},
		"gratuitous-reply":   {Dst: arpwire.Broadcast, Src: w1, Op: arpwire.OpReply, SenderMAC: w1, Sender: vip, TargetMAC: arpwire.Broadcast, Target: vip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frame := frames[name]
			got, err := arpwire.Parse(frame)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, frame, want.Append(nil, len(frame)), "written back")
		})
	}
}

func TestParseTags(t *testing.T) {
	t.Parallel()
	reply := captured(t)["reply-speaker"]
	const q, ad = arpwire.TypeVLAN, arpwire.TypeQinQ
	for name, c := range map[string]struct {
		tags []tag
		vlan uint16
		err  error
	}{
		"untagged":                     {},
		"802.1Q":                       {tags: []tag{{q, 100}}, vlan: 100},
		"802.1Q with priority and DEI": {tags: []tag{{q, 0xf000 | 100}}, vlan: 100},
		"priority tag":                 {tags: []tag{{q, 0xe000}}},
		"highest ID":                   {tags: []tag{{q, 0xffff}}, vlan: 4095},
		"single 802.1ad":               {tags: []tag{{ad, 7}}, vlan: 7},
		"QinQ":                         {tags: []tag{{ad, 7}, {q, 100}}, vlan: 7},
		"802.1Q twice":                 {tags: []tag{{q, 7}, {q, 100}}, vlan: 7},
		"priority tag before a VLAN":   {tags: []tag{{q, 0x2000}, {q, 100}}, vlan: 100},
		"three tags":                   {tags: []tag{{ad, 7}, {q, 100}, {q, 101}}, vlan: 7, err: arpwire.ErrNotARP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := arpwire.Parse(tagged(reply, c.tags...))
			require.ErrorIs(t, err, c.err)
			assert.Equal(t, c.vlan, got.VLAN)
			if c.err == nil {
				assert.Equal(t, vip, got.Sender)
				assert.Equal(t, asker, got.Target)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	frames := captured(t)
	reply := frames["reply-kernel"]
	for name, c := range map[string]struct {
		frame []byte
		err   error
	}{
		"nothing":            {nil, arpwire.ErrNotARP},
		"TCP":                {frames["tcp-syn"], arpwire.ErrNotARP},
		"RARP":               {with(reply, 13, 0x35), arpwire.ErrNotARP},
		"hardware type":      {with(reply, 15, 6), arpwire.ErrForeign}, // IEEE 802
		"protocol type":      {with(reply, 16, 0x86), arpwire.ErrForeign},
		"hardware length 0":  {with(reply, 18, 0), arpwire.ErrForeign},
		"hardware length 8":  {with(reply, 18, 8), arpwire.ErrForeign}, // EUI-64
		"protocol length 16": {with(reply, 19, 16), arpwire.ErrForeign},
		"protocol length 0":  {with(reply, 19, 0), arpwire.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := arpwire.Parse(c.frame)
			require.ErrorIs(t, err, c.err)
		})
	}
}

// A reserved operation is for callers to judge, not for the codec.
func TestParseKeepsOperation(t *testing.T) {
	t.Parallel()
	got, err := arpwire.Parse(with(captured(t)["reply-kernel"], 21, 9))
	require.NoError(t, err)
	assert.Equal(t, uint16(9), got.Op)
}

func TestParseTruncated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tags   []tag
		header int
	}{
		"untagged": {nil, 14},
		"802.1Q":   {[]tag{{arpwire.TypeVLAN, 100}}, 18},
		"QinQ":     {[]tag{{arpwire.TypeQinQ, 7}, {arpwire.TypeVLAN, 100}}, 22},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frame := tagged(captured(t)["reply-kernel"], c.tags...)
			require.Len(t, frame, c.header+arpwire.PacketSize)
			for n := range frame {
				want := arpwire.ErrTruncated
				if n < c.header {
					want = arpwire.ErrNotARP
				}
				got, err := arpwire.Parse(frame[:n:n])
				require.ErrorIs(t, err, want, "%d bytes", n)
				if n >= c.header {
					assert.Equal(t, w3, got.Src, "%d bytes", n)
				}
			}
		})
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	p := arpwire.Request(client, asker, vip)
	for name, c := range map[string]struct {
		vlan       uint16
		size, want int
	}{
		"as the kernel sends it":    {0, 0, 42},
		"shorter than the packet":   {0, 41, 42},
		"padded":                    {0, arpwire.MinFrame, 60},
		"tagged":                    {100, 0, 46},
		"tagged and padded":         {100, 64, 64},
		"no more than 12 bits used": {0xf000 | 100, 0, 46},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p
			p.VLAN = c.vlan
			before := []byte("before")
			b := p.Append(before, c.size)
			assert.Equal(t, before, b[:len(before)])
			assert.Len(t, b[len(before):], c.want)
			got, err := arpwire.Parse(b[len(before):])
			require.NoError(t, err)
			p.VLAN = c.vlan & 0xfff
			assert.Equal(t, p, got)
			if c.vlan != 0 {
				assert.Equal(t, []byte{0x81, 0x00, 0, 100}, b[len(before)+12:][:4])
			}
		})
	}
}

func TestReplyKeepsVLAN(t *testing.T) {
	t.Parallel()
	request := arpwire.Request(client, asker, vip)
	request.VLAN = 100
	assert.Equal(t, arpwire.Packet{
		Dst: client, Src: w1, VLAN: 100, Op: arpwire.OpReply,
		SenderMAC: w1, Sender: vip, TargetMAC: client, Target: asker,
	}, request.Reply(w1))
}

func genPacket(t *rapid.T) arpwire.Packet {
	mac := rapid.Custom(func(t *rapid.T) [6]byte {
		return [6]byte(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "bytes"))
	})
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
	})
	return arpwire.Packet{
		Dst: mac.Draw(t, "dst"), Src: mac.Draw(t, "src"),
		VLAN: rapid.Uint16Range(0, 4095).Draw(t, "vlan"), Op: rapid.Uint16().Draw(t, "op"),
		SenderMAC: mac.Draw(t, "senderMAC"), Sender: addr.Draw(t, "sender"),
		TargetMAC: mac.Draw(t, "targetMAC"), Target: addr.Draw(t, "target"),
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPacket(t)
		got, err := arpwire.Parse(p.Append(nil, rapid.IntRange(0, 1500).Draw(t, "size")))
		require.NoError(t, err)
		require.Equal(t, p, got)
	})
}

// Not parallel: AllocsPerRun counts the whole program's allocations.
func TestAllocations(t *testing.T) {
	frames := captured(t)
	reply := frames["reply-speaker"]
	for name, frame := range map[string][]byte{
		"reply":     reply,
		"QinQ":      tagged(reply, tag{arpwire.TypeQinQ, 7}, tag{arpwire.TypeVLAN, 100}),
		"not ARP":   frames["tcp-syn"],
		"truncated": reply[:20],
		"foreign":   with(reply, 18, 8),
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = arpwire.Parse(frame) }), "Parse %s", name)
	}
	p, buffer := arpwire.Request(client, asker, vip), make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() { buffer = p.Append(buffer[:0], 64) }), "Append")
}

func BenchmarkDecode(b *testing.B) {
	frame := captured(b)["reply-speaker"]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := arpwire.Parse(frame); err != nil {
			b.Fatal(err)
		}
	}
}
