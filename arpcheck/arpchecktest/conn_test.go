package arpchecktest_test

import (
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

var (
	subnet = netip.MustParsePrefix("10.0.3.0/24")
	vip    = netip.MustParseAddr("10.0.3.20")
	at     = netip.AddrPortFrom(vip, 80)
)

// addr returns an address of the nodes' subnet with its prefix length.
func addr(last byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, last}), 24)
}

func openConn(t *testing.T, h *arpchecktest.Host) *arpchecktest.Conn {
	t.Helper()
	c, err := h.OpenConn("eth0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func wire(t *testing.T) arpchecktest.Wire {
	seg := arpchecktest.New(t)
	near, far := seg.AddClient("near", addr(50)), seg.AddNode("far", addr(11))
	return arpchecktest.Wire{
		Conn: openConn(t, near), Beside: openConn(t, near), Far: openConn(t, far),
		MAC: near.MAC(), FarMAC: far.MAC(), Patience: 10 * time.Millisecond,
	}
}

func ask(t *testing.T, h *arpchecktest.Host, c *arpchecktest.Conn, target netip.Addr) {
	t.Helper()
	n, err := c.Send([][]byte{arpwire.Request(h.MAC(), h.Addr(), target).Append(nil, 0)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// reply is what a test looks at of a frame.
type reply struct {
	After  time.Duration
	MAC    arpcheck.MAC
	Length int
}

// collect receives for d and returns the ARP replies.
func collect(t *testing.T, c *arpchecktest.Conn, d time.Duration) []reply {
	t.Helper()
	start := time.Now()
	var got []reply
	for _, f := range frames(t, c, d) {
		if p, err := arpwire.Parse(f.Data); err == nil && p.Op == arpwire.OpReply {
			got = append(got, reply{f.At.Sub(start), p.SenderMAC, f.Length})
		}
	}
	return got
}

// frames receives for d and returns everything.
func frames(t *testing.T, c *arpchecktest.Conn, d time.Duration) []arpcheck.Frame {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(d)))
	var got []arpcheck.Frame
	for {
		batch := make([]arpcheck.Frame, 64)
		n, err := c.Receive(batch)
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return got
		}
		for _, f := range batch[:n] {
			f.Data = append([]byte(nil), f.Data...)
			got = append(got, f)
		}
	}
}

func TestReceiveQueueDropsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire(t)
		conn := w.Conn.(*arpchecktest.Conn)
		frame := arpwire.Request(w.FarMAC, vip, vip).Append(nil, 0)
		for range arpchecktest.DefaultReceiveQueue + 3 {
			_, err := w.Far.Send([][]byte{frame})
			require.NoError(t, err)
		}
		drops, err := conn.Drops()
		require.NoError(t, err)
		assert.EqualValues(t, 3, drops)
		assert.Len(t, frames(t, conn, 0), arpchecktest.DefaultReceiveQueue)

		conn.SetReceiveQueue(1)
		_, err = w.Far.Send([][]byte{frame, frame})
		require.NoError(t, err)
		drops, err = conn.Drops()
		require.NoError(t, err)
		assert.EqualValues(t, 4, drops)
	})
}

func TestSendQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire(t)
		conn, far := w.Conn.(*arpchecktest.Conn), w.Far.(*arpchecktest.Conn)
		frame := arpwire.Request(w.MAC, vip, vip).Append(nil, 0)
		batch := [][]byte{frame, frame, frame, frame}

		conn.SetSendQueue(3, time.Millisecond)
		n, err := conn.Send(batch)
		require.NoError(t, err)
		assert.Equal(t, 3, n, "the queue holds three")
		start := time.Now()
		var sent []time.Duration
		for _, f := range frames(t, far, time.Second) {
			sent = append(sent, f.At.Sub(start))
		}
		assert.Equal(t, []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}, sent)
		n, err = conn.Send(batch)
		require.NoError(t, err)
		assert.Equal(t, 3, n, "it is empty again")

		conn.SetSendQueue(0, time.Millisecond)
		n, err = conn.Send(batch)
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

func TestDataIsStaleAfterTheNextReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire(t)
		frame := arpwire.Request(w.FarMAC, vip, vip).Append(nil, 0)
		_, err := w.Far.Send([][]byte{frame})
		require.NoError(t, err)
		kept := make([]arpcheck.Frame, 1)
		_, err = w.Conn.Receive(kept)
		require.NoError(t, err)
		require.Equal(t, frame, kept[0].Data)
		require.NoError(t, w.Conn.SetReadDeadline(time.Now()))
		_, err = w.Conn.Receive(make([]arpcheck.Frame, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.NotEqual(t, frame, kept[0].Data, "whoever keeps Data too long must notice")
	})
}

func TestLinkDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seg := arpchecktest.New(t)
		client, node := seg.AddClient("client", addr(50)), seg.AddNode("w1", addr(11))
		conn := openConn(t, client)
		p, err := client.Open()
		require.NoError(t, err)
		require.NoError(t, client.SetLink("eth0", false))

		_, err = conn.Receive(make([]arpcheck.Frame, 1))
		require.ErrorIs(t, err, arpcheck.ErrLinkDown)
		require.NoError(t, conn.SetReadDeadline(time.Now()))
		_, err = conn.Receive(make([]arpcheck.Frame, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is said once")
		_, err = conn.Send([][]byte{make([]byte, 60)})
		require.ErrorIs(t, err, arpcheck.ErrLinkDown)
		_, err = client.OpenConn("eth0")
		require.ErrorIs(t, err, arpcheck.ErrLinkDown)
		require.ErrorIs(t, client.Inject(make([]byte, 60)), arpcheck.ErrLinkDown)
		state, err := p.Host.Link()
		require.NoError(t, err)
		assert.False(t, state.Up)

		require.NoError(t, client.SetLink("eth0", true))
		ask(t, client, conn, node.Addr())
		assert.Len(t, collect(t, conn, time.Second), 1, "up again, it works as before")
	})
}

func TestBadUseOfAConn(t *testing.T) {
	w := wire(t)
	_, err := w.Conn.Receive(nil)
	require.ErrorIs(t, err, os.ErrInvalid)
	n, err := w.Conn.Send([][]byte{make([]byte, 60), make([]byte, 13)})
	require.ErrorIs(t, err, os.ErrInvalid)
	assert.Equal(t, 1, n)
	require.NoError(t, w.Conn.Close())
	require.NoError(t, w.Conn.Close())
	_, err = w.Conn.Drops()
	require.Error(t, err)
}
