package arpcheck_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// block is a block of a pcapng file, read without the code under test.
type block struct {
	kind    uint32
	frame   []byte // of an enhanced packet block
	options map[uint16][]byte
}

// blocksOf reads a file and checks the lengths and paddings in it.
func blocksOf(t require.TestingT, file []byte) []block {
	var all []block
	le := binary.LittleEndian
	for len(file) > 0 {
		require.GreaterOrEqual(t, len(file), 12)
		size := int(le.Uint32(file[4:]))
		require.Zero(t, size%4)
		require.LessOrEqual(t, size, len(file))
		require.EqualValues(t, size, le.Uint32(file[size-4:]), "the length stands at both ends")
		b, body := block{kind: le.Uint32(file), options: map[uint16][]byte{}}, file[8:size-4]
		file = file[size:]
		fixed := map[uint32]int{0x0a0d0d0a: 16, 1: 8, 5: 12, 6: 20}[b.kind]
		require.NotZero(t, fixed, "block type %d", b.kind)
		if b.kind == 6 {
			n := int(le.Uint32(body[12:]))
			require.GreaterOrEqual(t, le.Uint32(body[16:]), uint32(n))
			b.frame = body[20 : 20+n]
			fixed += (n + 3) / 4 * 4
		}
		options := body[fixed:]
		for {
			require.GreaterOrEqual(t, len(options), 4, "options have an end")
			code, n := le.Uint16(options), int(le.Uint16(options[2:]))
			if code == 0 {
				require.Len(t, options, 4)
				break
			}
			b.options[code] = options[4 : 4+n]
			options = options[4+(n+3)/4*4:]
		}
		all = append(all, b)
	}
	return all
}

// What tcpdump and Wireshark are told of a probe.
func TestRecordFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.onSend = func(frame []byte) {
			reply := parse(t, frame).Reply(node(1))
			w.later(1234567*time.Nanosecond,
				arpcheck.Frame{Data: reply.Append(nil, 60), Type: arpcheck.ToHost},
				arpcheck.Frame{Data: arpwire.Request(node(2), client, vip).Append(nil, 0), Type: arpcheck.ToBroadcast, VLAN: 12, Length: 60},
				arpcheck.Frame{Data: arpwire.Request(own, client, vip).Append(nil, 0), Type: arpcheck.Outgoing},
			)
		}
		p := w.prober()
		p.Rounds = 1
		begun := time.Now()
		var file bytes.Buffer
		r, err := p.Record(&file)
		require.NoError(t, err)
		require.NoError(t, r.Conclude(probe(t, p)))
		assert.Equal(t, arpcheck.DefaultWait, time.Since(begun))
		r.Note(vip, "an event\nwith \xff bytes "+strings.Repeat("x", 600))
		require.NoError(t, r.Conclude())
		require.NoError(t, p.Close())

		blocks := blocksOf(t, file.Bytes())
		var kinds []uint32
		for _, b := range blocks {
			kinds = append(kinds, b.kind)
		}
		require.Equal(t, []uint32{0x0a0d0d0a, 1, 6, 6, 6, 6, 5, 5, 5, 5}, kinds)
		link := blocks[1]
		assert.Equal(t, "eth0", string(link.options[2]))
		assert.Equal(t, own[:], link.options[6])
		var flags []uint32
		for _, b := range blocks[2:6] {
			flags = append(flags, binary.LittleEndian.Uint32(b.options[2]))
		}
		assert.Equal(t, []uint32{2, 1 | 1<<2, 1 | 3<<2, 2}, flags)
		assert.Equal(t, "10.0.3.20 on eth0: single in 1 rounds; "+node(1).String()+": 1 replies", string(blocks[2].options[1]))
		for _, b := range blocks[3:7] {
			assert.Empty(t, b.options[1])
		}
		note := string(blocks[7].options[1])
		assert.True(t, strings.HasPrefix(note, "an event\nwith \uFFFD bytes xxx"))
		assert.LessOrEqual(t, len(note), 520)

		ng, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
		require.NoError(t, err)
		assert.Equal(t, layers.LinkTypeEthernet, ng.LinkType())
		var lengths []int
		for _, want := range []time.Duration{0, 1234567, 1234567, 1234567} {
			data, ci, err := ng.ReadPacketData()
			require.NoError(t, err)
			assert.Equal(t, begun.Add(want).UnixNano(), ci.Timestamp.UnixNano())
			assert.LessOrEqual(t, len(data), ci.Length)
			lengths = append(lengths, ci.Length)
		}
		assert.Equal(t, []int{42, 60, 64, 42}, lengths, "a tag that was taken off is back")
		_, _, err = ng.ReadPacketData()
		require.ErrorIs(t, err, io.EOF)
		stats, err := ng.Interface(0)
		require.NoError(t, err)
		assert.Equal(t, begun.UnixNano(), stats.Statistics.StartTime.UnixNano())
		assert.Equal(t, begun.Add(arpcheck.DefaultWait).UnixNano(), stats.Statistics.EndTime.UnixNano())
	})
}
