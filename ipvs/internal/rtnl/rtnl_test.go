package rtnl_test

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/ipvs/internal/rtnl"
)

// captured returns a reply that was captured on a little-endian machine.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the captured replies are little-endian: run this on a little-endian machine")
	}
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

func decode(t *testing.T, b []byte, d *rtnl.Decoder, index int) (list []rtnl.Address, status rtnl.Status) {
	t.Helper()
	status, err := rtnl.Reply(b, 7, func(m rtnl.Message) error {
		if !rtnl.Of(m, index) {
			return nil
		}
		a, err := d.Address(m)
		list = append(list, a)
		return err
	})
	require.NoError(t, err)
	return list, status
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	var d rtnl.Decoder
	list, status := decode(t, captured(t, "addresses.bin"), &d, 0)
	assert.Equal(t, rtnl.Status{Done: true}, status)
	type view struct {
		addr, peer byte // the last byte
		bits       uint8
		scope      uint8
		flags      uint32
		label      string
	}
	var got []view
	for _, a := range list {
		got = append(got, view{a.Addr[3], a.Peer[3], a.Bits, a.Scope, a.Flags, d.Label(a)})
	}
	assert.Equal(t, []view{
		{1, 0, 8, 254, 0x80, "lo"},
		{1, 2, 32, 253, 0x80, "eth0:ppp"},
		{11, 0, 24, 0, 0x80, "eth0"},
		{12, 0, 24, 0, 0x81, "eth0"},
		{20, 0, 32, 0, 0x80, "kube-ipvs0"},
		{21, 0, 32, 0, 0x80, "kube-ipvs0"},
		{22, 0, 32, 0, 0x80, "kube-ipvs0"},
		{23, 0, 32, 0, 0x80, "kube-ipvs0"},
	}, got)
	some, _ := decode(t, captured(t, "addresses.bin"), &d, int(list[4].Index))
	assert.Equal(t, list[4:], some)
}

func TestLinks(t *testing.T) {
	t.Parallel()
	var links []rtnl.Link
	each := func(m rtnl.Message) error {
		l, err := rtnl.ParseLink(m)
		links = append(links, l)
		return err
	}
	status, err := rtnl.Reply(captured(t, "links.bin"), 7, each)
	require.NoError(t, err)
	assert.True(t, status.Done)
	_, err = rtnl.Reply(captured(t, "link.bin"), 7, each)
	require.NoError(t, err)
	require.Len(t, links, 4)
	assert.Equal(t, rtnl.Link{Index: 1, Name: "lo", Flags: 0x10049}, links[0])
	assert.Equal(t, "eth0", links[1].Name)
	assert.Equal(t, "veth", links[1].Kind)
	assert.Equal(t, uint8(6), links[1].OperState)
	assert.Equal(t, [6]byte{2, 0, 0, 0, 1, 0}, links[1].MAC)
	assert.Equal(t, links[2], links[3], "alone and in a dump")
	assert.Equal(t, "kube-ipvs0", links[2].Name)
	assert.Equal(t, "ifb", links[2].Kind)
	assert.Equal(t, uint8(2), links[2].OperState)
	assert.Equal(t, uint32(rtnl.FlagNoARP|0x2), links[2].Flags)

	_, err = rtnl.Reply(captured(t, "nolink.bin"), 7, each)
	assert.ErrorIs(t, err, syscall.ENODEV)
}

// A bond's port: index 3, its MAC the bond's, its own in IFLA_PERM_ADDRESS.
func TestPermanentMAC(t *testing.T) {
	t.Parallel()
	body := append([]byte{0, 0, 1, 0, 3, 0, 0, 0}, make([]byte, 8)...)
	body = append(body, 9, 0, 3, 0, 'e', 'n', 'o', '2', 0, 0, 0, 0) // IFLA_IFNAME
	body = append(body, 10, 0, 1, 0, 0, 0, 0x5e, 0, 0x53, 0x0a, 0, 0)
	body = append(body, 10, 0, 54, 0, 0, 0, 0x5e, 0, 0x53, 0x1a, 0, 0)
	l, err := rtnl.ParseLink(rtnl.Message{Type: rtnl.NewLink, Body: body})
	require.NoError(t, err)
	assert.Equal(t, rtnl.Link{
		Index: 3, Name: "eno2", MAC: [6]byte{0, 0, 0x5e, 0, 0x53, 0x0a}, Permanent: [6]byte{0, 0, 0x5e, 0, 0x53, 0x1a},
	}, l)
}

// What a dump says of itself may be in any of its messages.
func TestReplyStatus(t *testing.T) {
	t.Parallel()
	const addr, done, failed = rtnl.NewAddr, 3, 2
	none := int32(0)
	tests := map[string]struct {
		bytes []byte
		want  rtnl.Status
		err   error
		seen  int
	}{
		"more to come":           {message(addr, 2, 7, nil), rtnl.Status{}, nil, 1},
		"interrupted":            {message(addr, 0x12, 7, nil), rtnl.Status{Interrupted: true}, nil, 1},
		"interrupted at the end": {message(done, 0x12, 7, &none), rtnl.Status{Done: true, Interrupted: true}, nil, 0},
		"of another request":     {message(addr, 0x12, 6, nil), rtnl.Status{}, nil, 0},
		"end of another request": {message(done, 0x12, 6, &none), rtnl.Status{}, nil, 0},
		"end without payload":    {message(done, 2, 7, nil), rtnl.Status{Done: true}, nil, 0},
		"error in the end":       {message(done, 2, 7, errno(22)), rtnl.Status{Done: true}, syscall.Errno(22), 0},
		"error":                  {message(failed, 0, 7, errno(1)), rtnl.Status{Done: true}, syscall.Errno(1), 0},
		"acknowledgement":        {message(failed, 0, 7, errno(0)), rtnl.Status{Done: true}, nil, 0},
		"error without number":   {message(failed, 0, 7, nil), rtnl.Status{Done: true}, rtnl.ErrMalformed, 0},
		"no error number":        {message(failed, 0, 7, errno(1<<20)), rtnl.Status{Done: true}, rtnl.ErrMalformed, 0},
		"short header":           {[]byte{16, 0, 0, 0}, rtnl.Status{}, rtnl.ErrMalformed, 0},
		"cut":                    {message(addr, 2, 7, &none)[:18], rtnl.Status{}, rtnl.ErrMalformed, 0},
		"two":                    {append(message(addr, 2, 7, nil), message(addr, 0x12, 7, nil)...), rtnl.Status{Interrupted: true}, nil, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := 0
			got, err := rtnl.Reply(test.bytes, 7, func(rtnl.Message) error {
				seen++
				return nil
			})
			assert.ErrorIs(t, err, test.err)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.seen, seen)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kube-ipvs0", "eth0.100", "ünïcode", "a", "fifteen-bytes-x", "\xff"} {
		_, err := rtnl.LinkByName(1, name)
		assert.NoError(t, err, name)
	}
	for _, name := range []string{"", "sixteen-bytes-xy", "a/b", "a b", "a\x00b", "a:b", ".", "..", "a\n"} {
		_, err := rtnl.LinkByName(1, name)
		assert.ErrorIs(t, err, fs.ErrInvalid, "%q", name)
	}
}

// Whatever bytes come, nothing panics, and what is accepted makes sense.
func FuzzReply(f *testing.F) {
	for _, name := range []string{"addresses.bin", "links.bin", "link.bin", "nolink.bin"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d rtnl.Decoder
		_, _ = rtnl.Reply(b, 7, func(m rtnl.Message) error {
			if a, err := d.Address(m); err == nil {
				require.LessOrEqual(t, a.Bits, uint8(32))
				require.Positive(t, a.Index)
				require.True(t, rtnl.Of(m, int(a.Index)) || m.Type != rtnl.NewAddr && m.Type != rtnl.DelAddr)
				require.NotContains(t, d.Label(a), "\x00")
			} else {
				require.ErrorIs(t, err, rtnl.ErrMalformed)
			}
			if l, err := rtnl.ParseLink(m); err == nil {
				require.Positive(t, l.Index)
				require.NotEmpty(t, l.Name)
			} else {
				require.ErrorIs(t, err, rtnl.ErrMalformed)
			}
			return nil
		})
	})
}

func errno(n int32) *int32 {
	n = -n
	return &n
}

// message returns a message with a number as body, or without.
func message(typ, flags uint16, seq uint32, body *int32) []byte {
	var b []byte
	if body != nil {
		b = binary.NativeEndian.AppendUint32(nil, uint32(*body))
	}
	out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(b)))
	out = binary.NativeEndian.AppendUint16(out, typ)
	out = binary.NativeEndian.AppendUint16(out, flags)
	out = binary.NativeEndian.AppendUint32(out, seq)
	out = binary.NativeEndian.AppendUint32(out, 0)
	return append(out, b...)
}
