package arpcheck_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

func TestNeighbourMatch(t *testing.T) {
	t.Parallel()
	right, alsoRight, wrong := node(1), node(2), node(3)
	for _, row := range []struct {
		mac   arpcheck.MAC
		state arpcheck.NeighbourState
		want  arpcheck.NeighbourMatch
	}{
		{right, arpcheck.NeighbourReachable, arpcheck.NeighbourFresh},
		{alsoRight, arpcheck.NeighbourStale, arpcheck.NeighbourFresh},
		{wrong, arpcheck.NeighbourStale, arpcheck.NeighbourStaleWrong},
		{wrong, arpcheck.NeighbourReachable, arpcheck.NeighbourStaleWrong},
		{wrong, arpcheck.NeighbourProbe, arpcheck.NeighbourStaleWrong},
		{wrong, "", arpcheck.NeighbourStaleWrong},
		{right, arpcheck.NeighbourPermanent, arpcheck.NeighbourByHand},
		{wrong, arpcheck.NeighbourPermanent, arpcheck.NeighbourByHand},
		{wrong, arpcheck.NeighbourFailed, arpcheck.NeighbourMissing},
		{arpcheck.MAC{}, arpcheck.NeighbourIncomplete, arpcheck.NeighbourMissing},
		{arpcheck.MAC{}, "", arpcheck.NeighbourMissing},
	} {
		n := arpcheck.Neighbour{Addr: vip, MAC: row.mac, Link: "eth0", State: row.state}
		assert.Equal(t, row.want, n.Match(right, alsoRight), "%+v", n)
	}
	assert.Empty(t, arpcheck.Neighbour{MAC: wrong}.Match(), "nobody knows which MAC is right")
}

func ExampleNeighbour_Match() {
	announcer := arpcheck.MAC{2, 0, 0, 0, 0, 1}
	cached := arpcheck.Neighbour{MAC: arpcheck.MAC{2, 0, 0, 0, 0, 2}, State: arpcheck.NeighbourReachable}
	fmt.Println(cached.Match(announcer))
	// Output: stale-wrong
}

func TestNeighbourJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(arpcheck.Neighbour{Addr: vip, MAC: node(1), Link: "eth0", State: arpcheck.NeighbourStale})
	require.NoError(t, err)
	assert.JSONEq(t, `{"addr":"10.0.3.20","mac":"02:01:00:00:00:01","link":"eth0","state":"stale"}`, string(text))
}

// neighbourMessage is a message as the kernel sends it (rtnetlink(7)).
func neighbourMessage(kind uint16, family byte, state uint16, attrs ...[]byte) []byte {
	body := make([]byte, 12)
	body[0] = family
	binary.NativeEndian.PutUint32(body[4:], 7) // interface
	binary.NativeEndian.PutUint16(body[8:], state)
	for _, a := range attrs {
		body = append(body, a...)
	}
	b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(append(b, make([]byte, 10)...), body...)
}

func netlinkAttr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestNeighbourMessages(t *testing.T) {
	t.Parallel()
	const newNeigh, delNeigh, overrun, ipv4, ipv6 = 28, 29, 4, 2, 10
	dst, mac := netlinkAttr(1, 10, 0, 3, 20), netlinkAttr(2, 2, 1, 0, 0, 0, 1)
	changed := arpcheck.NeighbourEvent{Type: arpcheck.NeighbourChanged, Neighbour: arpcheck.Neighbour{
		Addr: vip, MAC: node(1), State: arpcheck.NeighbourReachable}}
	gone := changed
	gone.Type = arpcheck.NeighbourGone
	good := neighbourMessage(newNeigh, ipv4, 2, dst, mac)
	for _, row := range []struct {
		name string
		b    []byte
		want []arpcheck.NeighbourEvent
		lost bool
	}{
		{"nothing", nil, nil, false},
		{"new", good, []arpcheck.NeighbourEvent{changed}, false},
		{"gone after new", append(append([]byte(nil), good...), neighbourMessage(delNeigh, ipv4, 2, mac, dst)...),
			[]arpcheck.NeighbourEvent{changed, gone}, false},
		{"IPv6", neighbourMessage(newNeigh, ipv6, 2, dst, mac), nil, false},
		{"another kind", neighbourMessage(16, ipv4, 2, dst, mac), nil, false},
		{"no address", neighbourMessage(newNeigh, ipv4, 2, mac), nil, false},
		{"an address of 5 bytes", neighbourMessage(newNeigh, ipv4, 2, netlinkAttr(1, 1, 2, 3, 4, 5)), nil, false},
		{"cut", good[:len(good)-1], nil, false},
		{"an attribute that is too long", neighbourMessage(newNeigh, ipv4, 2, []byte{99, 0, 1, 0}), nil, false},
		{"an attribute of no length", neighbourMessage(newNeigh, ipv4, 2, dst, mac, []byte{0, 0, 1, 0}),
			[]arpcheck.NeighbourEvent{changed}, false},
		{"an overrun", neighbourMessage(overrun, 0, 0), nil, true},
	} {
		got, lost := arpcheck.NeighbourMessages(row.b)
		assert.Equal(t, row.want, got, row.name)
		assert.Equal(t, row.lost, lost, row.name)
	}
}

func FuzzNeighbourMessages(f *testing.F) {
	dst, mac := netlinkAttr(1, 10, 0, 3, 20), netlinkAttr(2, 2, 1, 0, 0, 0, 1)
	f.Add(neighbourMessage(28, 2, 2, dst, mac))
	f.Add(append(neighbourMessage(29, 2, 0x80, mac, dst), neighbourMessage(4, 0, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		told, _ := arpcheck.NeighbourMessages(b)
		require.LessOrEqual(t, len(told), len(b)/28, "each takes a header, an ndmsg")
		for _, e := range told {
			require.True(t, e.Neighbour.Addr.Is4())
		}
	})
}
