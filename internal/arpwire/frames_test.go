package arpwire_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// captured returns the frames of testdata/frames.txt by name.
func captured(tb testing.TB) map[string][]byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/frames.txt")
	require.NoError(tb, err)
	frames := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		require.Len(tb, fields, 2, "line %q", line)
		frames[fields[0]], err = hex.DecodeString(fields[1])
		require.NoError(tb, err, "line %q", line)
	}
	return frames
}

// tag is a VLAN tag as it stands in a frame.
type tag struct {
	kind uint16 // EtherType
	tci  uint16 // priority, drop eligible, VLAN ID
}

// tagged returns a copy of frame with tags put before its EtherType, outermost
// first.
func tagged(frame []byte, tags ...tag) []byte {
	var b []byte
	for _, t := range tags {
		b = binary.BigEndian.AppendUint16(b, t.kind)
		b = binary.BigEndian.AppendUint16(b, t.tci)
	}
	return slices.Insert(slices.Clone(frame), 12, b...)
}

// with returns a copy of frame with one byte changed.
func with(frame []byte, offset int, value byte) []byte {
	b := slices.Clone(frame)
	b[offset] = value
	return b
}
