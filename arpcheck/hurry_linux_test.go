package arpcheck_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// A sweep asks the kernel for less, and yet tells frames of VLANs from others, how
// long frames are, and when they came if they had to wait for a slow caller.
func TestLabSweepDescribesFrames(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 2)
	p := openIn(t, from, "eth0")
	p.Wait = labWait
	other := vip.Next() // nobody answers for it, so it is settled later than the VIP
	answer := arpwire.Request(p.MAC, client, other).Reply(node(7))
	tagged := answer
	tagged.VLAN, tagged.SenderMAC = 7, node(8)
	priority := tagged.Append(nil, 64)
	priority[14], priority[15] = 0xe0, 0 // VLAN 0, as IEEE 802.1Q calls a frame without one
	priority[arpwire.EthernetHeader+arpwire.VLANTag+8+5] = 9
	var before time.Time
	results := map[netip.Addr]arpcheck.Result{}
	for r, err := range p.Sweep(t.Context(), slices.Values([]netip.Addr{vip, other})) {
		require.NoError(t, err)
		results[r.Target] = r
		if r.Target != vip {
			continue
		}
		before = time.Now()
		for _, data := range [][]byte{tagged.Append(nil, 64), answer.Append(nil, 0), answer.Append(nil, 60), answer.Append(nil, 1400), priority} {
			require.NoError(t, nodes[0].Inject(data))
		}
		time.Sleep(50 * time.Millisecond) // the frames wait in a real kernel
	}
	r := results[other]
	assert.Equal(t, 1, r.Quality.OtherVLANs)
	assert.Zero(t, r.Quality.Malformed)
	require.Len(t, r.Responders, 2)
	assert.Equal(t, node(7), r.Responders[0].MAC)
	assert.Equal(t, []arpcheck.LengthCount{{Length: 42, Frames: 1}, {Length: 60, Frames: 1}, {Length: 1400, Frames: 1}}, r.Responders[0].Lengths)
	assert.Less(t, r.Responders[0].Last.Sub(before), 40*time.Millisecond, "when it was received, not read")
	assert.Equal(t, priority[26:32], r.Responders[1].MAC[:])

	// Afterwards the Conn is as before.
	require.NoError(t, nodes[0].Inject(tagged.Append(nil, 64)))
	require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	frames := make([]arpcheck.Frame, 1)
	_, err := p.Conn.Receive(frames)
	require.NoError(t, err)
	assert.EqualValues(t, 7, frames[0].VLAN)
	assert.Len(t, frames[0].Data, 60)
}
