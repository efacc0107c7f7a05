package arpwire_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/internal/arpwire"
)

func addrsVM(tb require.TestingT, addrs []netip.Addr, ranges int) *bpf.VM {
	program := arpwire.FilterAddrs(addrs, ranges)
	_, err := bpf.Assemble(program)
	require.NoError(tb, err)
	require.LessOrEqual(tb, len(program), 4096, "BPF_MAXINSNS")
	vm, err := bpf.NewVM(program)
	require.NoError(tb, err)
	return vm
}

func genAddr(t *rapid.T) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, rapid.Byte().Draw(t, "c") & 3, rapid.Byte().Draw(t, "d")})
}

// What Parse can read is accepted just if its sender or target is among the
// addresses; with fewer ranges than needed nothing of it is lost.
func TestFilterAddrs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addrs := rapid.SliceOfN(rapid.Custom(genAddr), 0, 60).Draw(t, "addrs")
		exact := addrsVM(t, addrs, arpwire.MaxFilterRanges)
		joined := addrsVM(t, addrs, rapid.IntRange(-1, 10).Draw(t, "ranges"))
		for range 20 {
			p := arpwire.Request([6]byte{2}, rapid.Custom(genAddr).Draw(t, "sender"), rapid.Custom(genAddr).Draw(t, "target"))
			frame := p.Append(nil, 0)
			for range rapid.IntRange(0, 3).Draw(t, "tags") {
				frame = tagged(frame, tag{rapid.SampledFrom([]uint16{arpwire.TypeVLAN, arpwire.TypeQinQ}).Draw(t, "type"), 7})
			}
			_, err := arpwire.Parse(frame)
			want := err == nil && (slices.Contains(addrs, p.Sender) || slices.Contains(addrs, p.Target))
			require.Equal(t, want, accepts(t, exact, frame))
			if want {
				require.True(t, accepts(t, joined, frame))
			}
		}
		frame := genFrame(t)
		if accepts(t, exact, frame) {
			_, err := arpwire.Parse(frame)
			require.False(t, errors.Is(err, arpwire.ErrNotARP))
		}
	})
}

// However many and scattered the addresses are, the program fits.
func TestFilterAddrsIsBounded(t *testing.T) {
	t.Parallel()
	var addrs []netip.Addr
	for i := range 20_000 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, byte(i * 3 >> 16), byte(i * 3 >> 8), byte(i * 3)}))
	}
	vm := addrsVM(t, addrs, arpwire.MaxFilterRanges)
	for _, a := range []netip.Addr{addrs[0], addrs[9_999], addrs[19_999]} {
		p := arpwire.Request([6]byte{2}, netip.MustParseAddr("192.168.0.1"), a)
		assert.True(t, accepts(t, vm, p.Append(nil, 60)))
	}
	far := arpwire.Request([6]byte{2}, netip.MustParseAddr("192.168.0.1"), netip.MustParseAddr("11.0.0.1"))
	assert.False(t, accepts(t, vm, far.Append(nil, 60)))
	assert.False(t, accepts(t, addrsVM(t, nil, 1), far.Append(nil, 60)), "no address at all")
	assert.False(t, accepts(t, addrsVM(t, []netip.Addr{netip.IPv6Loopback()}, 1), far.Append(nil, 60)))
	assert.Len(t, arpwire.FilterAddrs(addrs[:1], 1), 25)
}
