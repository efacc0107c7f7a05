package arpcheck_test

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// The packet socket keeps the promises of Conn.
func TestPacketConnKeepsConnsPromises(t *testing.T) {
	t.Parallel()
	for name, open := range receivers {
		for _, check := range arpchecktest.ConnChecks() {
			t.Run(name+"/"+check.Name, func(t *testing.T) {
				nodes, from := lab(t, 1)
				check.Run(t, arpchecktest.Wire{
					Conn: open(t, from).Conn, Beside: openIn(t, from, "eth0").Conn, Far: openIn(t, nodes[0], "eth0").Conn,
					MAC: from.MAC(), FarMAC: nodes[0].MAC(), Patience: 50 * time.Millisecond,
				})
			})
		}
	}
}

// A socket that is not read drops what does not fit, counts it, and gives what
// it holds although the deadline has passed.
//
// Not in parallel: the kernel's backlog of 1,000 frames is the machine's, and
// other labs would lose theirs.
func TestPacketConnDrops(t *testing.T) {
	for name, open := range receivers {
		t.Run(name, func(t *testing.T) { drops(t, open) })
	}
}

func drops(t *testing.T, open func(testing.TB, *netnstest.Host) *arpcheck.Prober) {
	t.Helper()
	const sent = 20_000
	nodes, from := lab(t, 1)
	p := open(t, from)
	frame := arpwire.Request(nodes[0].MAC(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"))
	for range sent {
		require.NoError(t, nodes[0].Inject(frame.Append(nil, 0)))
	}
	drops, err := p.Conn.Drops()
	require.NoError(t, err)
	assert.Positive(t, drops)
	require.NoError(t, p.Conn.SetReadDeadline(time.Unix(1, 0)))
	received, frames := 0, make([]arpcheck.Frame, 64)
	for {
		n, err := p.Conn.Receive(frames)
		received += n
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
		require.Positive(t, n)
	}
	assert.GreaterOrEqual(t, received, 250, "what a default buffer holds")
	assert.LessOrEqual(t, received+int(drops), sent)
	again, err := p.Conn.Drops()
	require.NoError(t, err)
	assert.Equal(t, drops, again, "the count goes on from what it was")

	r := probe(t, p)
	assert.Equal(t, arpcheck.Single, r.Verdict, "drops before the pass mean nothing: %v", r.Reasons)
}

// A Prober whose Conn waits is closed from elsewhere.
func TestPacketConnCloseWhileProbing(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 0)
	p, err := from.OpenOn(netnstest.NIC)
	require.NoError(t, err)
	ended := make(chan error, 1)
	p.Wait = time.Minute
	go func() {
		_, err := p.Probe(t.Context(), vip)
		ended <- err
	}()
	time.Sleep(labWait) // a real socket has to wait in real time
	begun := time.Now()
	require.NoError(t, p.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	assert.Less(t, time.Since(begun), 10*time.Second)
	require.NoError(t, p.Close())
	_, err = p.Conn.Drops()
	require.ErrorIs(t, err, net.ErrClosed)
}

// Nothing but ARP reaches the socket.
func TestPacketConnFilter(t *testing.T) {
	t.Parallel()
	nodes, from := lab(t, 1)
	p := openIn(t, from, "eth0")
	arp := arpwire.Request(nodes[0].MAC(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")).Append(nil, 0)
	for _, kind := range []uint16{0x0800, 0x86dd, 0x88cc, 0x0600} {
		other := append([]byte(nil), arp...)
		other[12], other[13] = byte(kind>>8), byte(kind)
		require.NoError(t, nodes[0].Inject(other))
	}
	require.NoError(t, nodes[0].Inject(arp))
	require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	frames := make([]arpcheck.Frame, 8)
	n, err := p.Conn.Receive(frames)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	assert.Equal(t, arp, frames[0].Data)
}

// What the kernel says of a frame: when it came, though it is read later; how
// long it was, though not all of it is copied; and its VLAN, which the next frame
// in the same place does not inherit.
func TestPacketConnDescribesFrames(t *testing.T) {
	t.Parallel()
	for name, open := range receivers {
		t.Run(name, func(t *testing.T) { describes(t, open) })
	}
}

func describes(t *testing.T, open func(testing.TB, *netnstest.Host) *arpcheck.Prober) {
	t.Helper()
	nodes, from := lab(t, 1)
	p := open(t, from)
	q := arpwire.Request(nodes[0].MAC(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"))
	tagged := q
	tagged.VLAN = 7
	require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	frames := make([]arpcheck.Frame, 1)
	for _, row := range []struct {
		data         []byte
		vlan, length int
	}{
		{tagged.Append(nil, 64), 7, 60}, // without its tag
		{q.Append(nil, 0), 0, 42},
		{q.Append(nil, 1400), 0, 1400},
		{q.Append(nil, 60), 0, 60},
	} {
		before := time.Now()
		require.NoError(t, nodes[0].Inject(row.data))
		after := time.Now()
		time.Sleep(50 * time.Millisecond) // it waits in a real kernel
		n, err := p.Conn.Receive(frames)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.EqualValues(t, row.vlan, frames[0].VLAN)
		assert.Equal(t, row.length, frames[0].Length)
		assert.Equal(t, arpcheck.ToBroadcast, frames[0].Type)
		assert.Less(t, frames[0].At.Sub(after), 40*time.Millisecond, "when it was received, not read")
		assert.Greater(t, frames[0].At.Sub(before), -40*time.Millisecond)
		got := parse(t, frames[0].Data)
		got.VLAN = 0
		assert.Equal(t, q, got)
	}
}

// That the interface goes down ends a Receive that waits, or the next one, once; when
// it is up again frames come as before.
func TestPacketConnTellsThatTheLinkWentDown(t *testing.T) {
	t.Parallel()
	for name, open := range receivers {
		t.Run(name, func(t *testing.T) {
			nodes, from := lab(t, 1)
			conn := open(t, from).Conn
			frames := make([]arpcheck.Frame, 8)
			for _, waits := range []bool{false, true} {
				deadline := time.Unix(1, 0)
				if waits {
					deadline = time.Now().Add(10 * time.Second)
					time.AfterFunc(labWait, func() { _ = from.SetLink("eth0", false) })
				} else {
					require.NoError(t, from.SetLink("eth0", false))
				}
				require.NoError(t, conn.SetReadDeadline(deadline))
				_, err := conn.Receive(frames)
				require.ErrorIs(t, err, arpcheck.ErrLinkDown)
				require.NoError(t, conn.SetReadDeadline(time.Unix(1, 0)))
				_, err = conn.Receive(frames)
				require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is told once")

				require.NoError(t, from.SetLink("eth0", true))
				request := arpwire.Request(nodes[0].MAC(), vip.Next(), vip.Next().Next())
				require.NoError(t, nodes[0].Inject(request.Append(nil, 60)))
				require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
				for seen := false; !seen; { // the kernel may ask for something itself
					n, err := conn.Receive(frames)
					require.NoError(t, err)
					for _, f := range frames[:n] {
						seen = seen || parse(t, f.Data).Sender == vip.Next()
					}
				}
			}
		})
	}
}
