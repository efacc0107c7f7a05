package arpwire_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/internal/arpwire"
)

func newVM(tb testing.TB) *bpf.VM {
	tb.Helper()
	vm, err := bpf.NewVM(arpwire.FilterARP())
	require.NoError(tb, err)
	return vm
}

// accepts runs the filter and checks that an accepted frame is cut to no less
// than Parse needs.
func accepts(tb require.TestingT, vm *bpf.VM, frame []byte) bool {
	n, err := vm.Run(frame)
	require.NoError(tb, err)
	if n == 0 {
		return false
	}
	whole, wholeErr := arpwire.Parse(frame)
	cut, cutErr := arpwire.Parse(frame[:min(n, len(frame))])
	require.Equal(tb, wholeErr, cutErr)
	require.Equal(tb, whole, cut)
	return true
}

func isARP(frame []byte) bool {
	_, err := arpwire.Parse(frame)
	return !errors.Is(err, arpwire.ErrNotARP)
}

func TestFilterARP(t *testing.T) {
	t.Parallel()
	frames := captured(t)
	reply, tcp := frames["reply-speaker"], frames["tcp-syn"]
	const q, ad = arpwire.TypeVLAN, arpwire.TypeQinQ
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"kernel's reply":   {frames["reply-kernel"], true},
		"padded reply":     {reply, true},
		"802.1Q":           {tagged(reply, tag{q, 100}), true},
		"802.1ad":          {tagged(reply, tag{ad, 7}), true},
		"QinQ":             {tagged(reply, tag{ad, 7}, tag{q, 100}), true},
		"802.1Q twice":     {tagged(reply, tag{q, 7}, tag{q, 100}), true},
		"three tags":       {tagged(reply, tag{ad, 7}, tag{q, 100}, tag{q, 101}), false},
		"IPv4":             {tcp, false},
		"IPv4, 802.1Q":     {tagged(tcp, tag{q, 100}), false},
		"IPv4, QinQ":       {tagged(tcp, tag{ad, 7}, tag{q, 100}), false},
		"IPv6":             {with(with(tcp, 12, 0x86), 13, 0xdd), false},
		"IPv4, tag 0x0806": {tagged(tcp, tag{q, arpwire.TypeARP}), false},
		"RARP":             {with(reply, 13, 0x35), false},
		"foreign ARP":      {with(reply, 18, 8), true}, // counted as malformed
		"truncated ARP":    {reply[:14], true},         // likewise
		"header cut":       {reply[:13], false},
		"nothing":          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, accepts(t, newVM(t), c.frame))
			assert.Equal(t, c.want, isARP(c.frame), "Parse")
		})
	}
}

// genFrame draws frames that look enough like ARP to reach every branch, of any
// length.
func genFrame(t *rapid.T) []byte {
	kind := rapid.SampledFrom([]uint16{
		arpwire.TypeIPv4, arpwire.TypeARP, arpwire.TypeVLAN, arpwire.TypeQinQ, 0x86dd, 0x0805, 0x0807,
	})
	frame := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
	for offset := 12; offset+2 <= len(frame) && offset <= 24; offset += 4 {
		k := kind.Draw(t, "kind")
		frame[offset], frame[offset+1] = byte(k>>8), byte(k)
	}
	return frame
}

func TestFilterAgreesWithParse(t *testing.T) {
	t.Parallel()
	vm := newVM(t)
	rapid.Check(t, func(t *rapid.T) {
		frame := genFrame(t)
		require.Equal(t, isARP(frame), accepts(t, vm, frame))
	})
}

func TestRawFilterARP(t *testing.T) {
	t.Parallel()
	raw, err := arpwire.RawFilterARP()
	require.NoError(t, err)
	got, decoded := bpf.Disassemble(raw)
	assert.True(t, decoded)
	assert.Equal(t, arpwire.FilterARP(), got)
}
