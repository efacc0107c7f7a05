package linkdump_test

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl/internal/linkdump"
)

var native = binary.NativeEndian

// message returns a netlink message, padded.
func message(typ, flags uint16, seq uint32, payload ...byte) []byte {
	b := make([]byte, 16, 16+len(payload)+3)
	native.PutUint32(b, uint32(16+len(payload)))
	native.PutUint16(b[4:], typ)
	native.PutUint16(b[6:], flags)
	native.PutUint32(b[8:], seq)
	return pad(append(b, payload...))
}

func attribute(typ uint16, value ...byte) []byte {
	b := make([]byte, 4, 4+len(value)+3)
	native.PutUint16(b, uint16(4+len(value)))
	native.PutUint16(b[2:], typ)
	return pad(append(b, value...))
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func conf(values ...int32) []byte {
	var b []byte
	for _, v := range values {
		b = native.AppendUint32(b, uint32(v))
	}
	return b
}

const nested = 0x8000

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func link(flags uint16, name string, values ...int32) []byte {
	inet := attribute(2, attribute(1, conf(values...)...)...)
	inet6 := attribute(10, attribute(1, 1, 2, 3, 4)...)
	payload := join(make([]byte, 16), attribute(4, 0, 6, 0, 0), attribute(3, append([]byte(name), 0)...), attribute(26|nested, join(inet, inet6)...))
	return message(16, flags, 1, payload...)
}

func done(errno int32) []byte { return message(3, 2, 1, conf(errno)...) }

func parse(b []byte) (map[string][]int32, linkdump.Status, error) {
	found := map[string][]int32{}
	s, err := linkdump.Parse(b, 1, func(l linkdump.Link) {
		values := []int32{}
		for i := 1; ; i++ {
			v, ok := l.Conf.Value(i)
			if !ok {
				break
			}
			values = append(values, v)
		}
		found[string(l.Name)] = values
	})
	return found, s, err
}

func TestParse(t *testing.T) {
	t.Parallel()
	eth0 := link(2, "eth0.100", 1, -1, 7)
	for name, tt := range map[string]struct {
		in          []byte
		want        map[string][]int32
		done, intr  bool
		err         error
		errContains string
	}{
		"empty":            {want: map[string][]int32{}},
		"two and done":     {in: join(eth0, link(2, "\xff"), done(0)), want: map[string][]int32{"eth0.100": {1, -1, 7}, "\xff": {}}, done: true},
		"more to come":     {in: eth0, want: map[string][]int32{"eth0.100": {1, -1, 7}}},
		"interrupted":      {in: join(link(2|0x10, "a", 5), done(0)), want: map[string][]int32{"a": {5}}, done: true, intr: true},
		"at the end":       {in: join(eth0, message(3, 2|0x10, 1, conf(0)...)), want: map[string][]int32{"eth0.100": {1, -1, 7}}, done: true, intr: true},
		"error in done":    {in: join(eth0, done(-22)), want: map[string][]int32{"eth0.100": {1, -1, 7}}, done: true, err: syscall.EINVAL},
		"error":            {in: message(2, 0, 1, conf(-1)...), want: map[string][]int32{}, done: true, err: syscall.EPERM},
		"acknowledged":     {in: message(2, 0, 1, conf(0)...), want: map[string][]int32{}, done: true},
		"done, no number":  {in: message(3, 0, 1), want: map[string][]int32{}, done: true},
		"another's":        {in: message(3, 0x10, 9, conf(-1)...), want: map[string][]int32{}},
		"not a link":       {in: message(20, 0, 1), want: map[string][]int32{}},
		"no IPv4":          {in: message(16, 0, 1, join(make([]byte, 16), attribute(3, 'a', 0), attribute(26, attribute(10)...))...), want: map[string][]int32{}},
		"no name":          {in: message(16, 0, 1, join(make([]byte, 16), attribute(26, attribute(2, attribute(1, 1, 2, 3, 4)...)...))...), want: map[string][]int32{}},
		"odd length":       {in: message(16, 0, 1, join(make([]byte, 16), attribute(3, 'a'), attribute(26, attribute(2, attribute(1, 1, 0, 0)...)...))...), want: map[string][]int32{"a": {}}},
		"short message":    {in: []byte{40, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, want: map[string][]int32{}, errContains: "16 bytes are left"},
		"length too small": {in: make([]byte, 16), want: map[string][]int32{}, errContains: "length is 0"},
		"bytes left":       {in: append(done(0)[:0:0], 1, 2, 3), want: map[string][]int32{}, errContains: "3 bytes are left"},
		"short link":       {in: message(16, 0, 1, 1, 2), want: map[string][]int32{}, errContains: "link of 2 bytes"},
		"attribute too long": {in: message(16, 0, 1, append(make([]byte, 16), 9, 0, 3, 0)...), want: map[string][]int32{},
			errContains: "attribute's length is 9"},
		"overrun":     {in: message(4, 0, 1), want: map[string][]int32{}, errContains: "overrun"},
		"short error": {in: message(2, 0, 1), want: map[string][]int32{}, done: true, errContains: "error message of 0 bytes"},
		"odd error":   {in: message(2, 0, 1, conf(7)...), want: map[string][]int32{}, done: true, errContains: "number 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, s, err := parse(tt.in)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, linkdump.Status{Done: tt.done, Interrupted: tt.intr}, s)
			switch {
			case tt.err != nil:
				assert.ErrorIs(t, err, tt.err)
			case tt.errContains != "":
				assert.ErrorContains(t, err, tt.errContains)
			default:
				assert.NoError(t, err)
			}
		})
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	b := join(link(2, "eth0", 1, 2, 3), link(2, "eth1", 1, 2, 3), done(0))
	sum := 0
	add := func(l linkdump.Link) { v, _ := l.Conf.Value(3); sum += int(v) }
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = linkdump.Parse(b, 1, add) }))
	assert.NotZero(t, sum)
}

func FuzzParse(f *testing.F) {
	f.Add(join(link(2, "eth0.100", 1, -1, 7), done(0)))
	f.Add(link(0x12, "a"))
	f.Add(done(-22))
	f.Add([]byte{16, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		found, _, err := parse(b)
		if string(b) != before {
			t.Fatal("the bytes were changed")
		}
		for name, values := range found {
			if name == "" || len(values)*4 > len(b) {
				t.Fatalf("%q has %d values of %d bytes, %v", name, len(values), len(b), err)
			}
		}
	})
}

// script is a kernel that answers as it is told, one datagram a Receive.
type script struct {
	dumps    [][][]byte // per request
	sent     [][]byte
	pending  [][]byte
	sendErr  error
	tooLarge bool
}

func (s *script) Send(msg []byte) error {
	s.sent = append(s.sent, msg)
	if len(s.dumps) > 0 {
		s.pending, s.dumps = s.dumps[0], s.dumps[1:]
	}
	return s.sendErr
}

func (s *script) Receive(b []byte) (int, error) {
	if s.tooLarge {
		return len(b) + 1, nil
	}
	if len(s.pending) == 0 {
		return 0, syscall.ENOBUFS
	}
	n := copy(b, s.pending[0])
	native.PutUint32(b[8:], uint32(len(s.sent))) // the sequence number asked for
	s.pending = s.pending[1:]
	return n, nil
}

func dump(s *script) (names []string, starts int, err error) {
	err = linkdump.Dump(s, func() { names, starts = nil, starts+1 }, func(l linkdump.Link) { names = append(names, string(l.Name)) })
	return names, starts, err
}

func TestDump(t *testing.T) {
	t.Parallel()
	clean := [][]byte{link(2, "a"), link(2, "b"), done(0)}
	interrupted := [][]byte{link(2|0x10, "a"), done(0)}
	for name, tt := range map[string]struct {
		s      *script
		names  []string
		starts int
		err    error
	}{
		"clean":             {&script{dumps: [][][]byte{clean}}, []string{"a", "b"}, 1, nil},
		"interrupted once":  {&script{dumps: [][][]byte{interrupted, clean}}, []string{"a", "b"}, 2, nil},
		"always":            {&script{dumps: [][][]byte{interrupted, interrupted, interrupted, clean}}, []string{"a"}, 3, linkdump.ErrInterrupted},
		"error in done":     {&script{dumps: [][][]byte{{link(2, "a"), done(-95)}}}, []string{"a"}, 1, syscall.EOPNOTSUPP},
		"socket fails":      {&script{dumps: [][][]byte{{link(2, "a")}}}, []string{"a"}, 1, syscall.ENOBUFS},
		"request fails":     {&script{sendErr: syscall.EPERM}, nil, 1, syscall.EPERM},
		"error before INTR": {&script{dumps: [][][]byte{{link(2|0x10, "a"), done(-12)}}}, []string{"a"}, 1, syscall.ENOMEM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, starts, err := dump(tt.s)
			assert.Equal(t, tt.names, names)
			assert.Equal(t, tt.starts, starts)
			assert.ErrorIs(t, err, tt.err)
		})
	}
}

func TestDumpThatDoesNotFit(t *testing.T) {
	t.Parallel()
	_, _, err := dump(&script{tooLarge: true})
	require.ErrorContains(t, err, "do not fit")
	assert.False(t, errors.Is(err, linkdump.ErrInterrupted))
}

func TestRequest(t *testing.T) {
	t.Parallel()
	b := linkdump.Request(7)
	assert.Equal(t, append(message(18, 0x301, 7, make([]byte, 16)...)[4:], attribute(29, conf(8)...)...), b[4:])
	assert.EqualValues(t, len(b), native.Uint32(b))
}
