package arpchecktest

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// Wire is what a ConnCheck needs: Conns on a segment with two hosts. The checks
// use addresses of 192.0.2.0/24, which no host may have.
type Wire struct {
	Conn     arpcheck.Conn // the one that is checked
	Beside   arpcheck.Conn // another one on the same interface
	Far      arpcheck.Conn // one of the same kind on the other host
	MAC      arpcheck.MAC  // of Conn's and Beside's interface
	FarMAC   arpcheck.MAC
	Patience time.Duration // how long a frame takes at most; the checks wait that long for what must not come
}

// ConnCheck is one point of the contract of arpcheck.Conn.
type ConnCheck struct {
	Name string
	Run  func(testing.TB, Wire)
}

// ConnChecks returns the contract of arpcheck.Conn as tests that any
// implementation can be run through, each with a new Wire. They wait; within a
// testing/synctest bubble that takes no time for a Conn in memory.
func ConnChecks() []ConnCheck {
	return []ConnCheck{
		{"frames arrive as they were sent", checkDelivery},
		{"unicast is for one host", checkUnicast},
		{"a VLAN tag is taken off", checkVLAN},
		{"others' frames are outgoing, the Conn's own are not seen", checkOutgoing},
		{"frames of one batch do not share memory", checkBatch},
		{"frames that wait are returned past the deadline", checkPastDeadline},
		{"the deadline ends a Receive that waits", checkDeadline},
		{"a deadline set later ends a Receive that waits", checkLaterDeadline},
		{"without a deadline Receive waits for a frame", checkBlocking},
		{"Close ends a Receive that waits", checkClose},
		{"nothing is dropped without need", checkDrops},
	}
}

func (w Wire) request(from arpcheck.MAC, last byte) arpwire.Packet {
	return arpwire.Request(from, netip.AddrFrom4([4]byte{192, 0, 2, 1}), netip.AddrFrom4([4]byte{192, 0, 2, last}))
}

// send fails the test unless all frames are taken.
func (w Wire) send(t testing.TB, c arpcheck.Conn, frames ...[]byte) {
	t.Helper()
	if n, err := c.Send(frames); n != len(frames) || err != nil {
		t.Fatalf("Send took %d of %d frames: %v", n, len(frames), err)
	}
}

// next returns the next frame of the checks that c receives; frames of the
// hosts' kernels are passed over. Its data is a copy.
func (w Wire) next(t testing.TB, c arpcheck.Conn) (arpcheck.Frame, bool) {
	t.Helper()
	w.deadline(t, c, w.Patience)
	for one := make([]arpcheck.Frame, 1); ; {
		n, err := c.Receive(one)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return arpcheck.Frame{}, false
		case err != nil || n != 1:
			t.Fatalf("Receive returned %d frames for 1 asked for: %v", n, err)
		}
		if p, err := arpwire.Parse(one[0].Data); err == nil && p.Sender.As4()[0] == 192 {
			one[0].Data = bytes.Clone(one[0].Data)
			return one[0], true
		}
	}
}

func (w Wire) want(t testing.TB, c arpcheck.Conn, data []byte, kind arpcheck.PacketType) arpcheck.Frame {
	t.Helper()
	f, ok := w.next(t, c)
	switch {
	case !ok:
		t.Fatalf("no frame after %v", w.Patience)
	case !bytes.Equal(f.Data, data):
		t.Fatalf("received % x, want % x", f.Data, data)
	case f.Length != len(data):
		t.Errorf("Length is %d, want %d", f.Length, len(data))
	case f.Type != kind:
		t.Errorf("Type is %d, want %d", f.Type, kind)
	}
	return f
}

func (w Wire) wantNone(t testing.TB, c arpcheck.Conn) {
	t.Helper()
	if f, ok := w.next(t, c); ok {
		t.Errorf("received % x of type %d, want nothing", f.Data, f.Type)
	}
}

func (w Wire) deadline(t testing.TB, c arpcheck.Conn, d time.Duration) {
	t.Helper()
	at := time.Time{}
	if d != 0 {
		at = time.Now().Add(d)
	}
	if err := c.SetReadDeadline(at); err != nil {
		t.Fatalf("SetReadDeadline: %v", err)
	}
}

func checkDelivery(t testing.TB, w Wire) {
	for _, size := range []int{arpwire.FrameSize, arpwire.MinFrame} {
		frame := w.request(w.MAC, 2).Append(nil, size)
		before := time.Now()
		w.send(t, w.Conn, frame)
		f := w.want(t, w.Far, frame, arpcheck.ToBroadcast)
		if f.At.Before(before.Add(-time.Second)) || f.At.After(time.Now().Add(time.Second)) {
			t.Errorf("At is %v, sent at %v", f.At, before)
		}
		if f.VLAN != 0 {
			t.Errorf("VLAN is %d of an untagged frame", f.VLAN)
		}
	}
}

func checkUnicast(t testing.TB, w Wire) {
	p := w.request(w.FarMAC, 2)
	p.Dst = w.MAC
	w.send(t, w.Far, p.Append(nil, 0))
	w.want(t, w.Conn, p.Append(nil, 0), arpcheck.ToHost)
}

func checkVLAN(t testing.TB, w Wire) {
	p := w.request(w.FarMAC, 2)
	p.VLAN = 7
	w.send(t, w.Far, p.Append(nil, 0))
	p.VLAN = 0
	if f, ok := w.next(t, w.Conn); !ok || f.VLAN != 7 || !bytes.Equal(f.Data, p.Append(nil, 0)) {
		t.Errorf("received %+v, want VLAN 7 and the frame without its tag", f)
	}
}

func checkOutgoing(t testing.TB, w Wire) {
	frame := w.request(w.MAC, 2).Append(nil, 0)
	w.send(t, w.Beside, frame)
	w.want(t, w.Conn, frame, arpcheck.Outgoing)
	w.wantNone(t, w.Beside)
}

func checkBatch(t testing.TB, w Wire) {
	var sent [][]byte
	for last := range byte(20) {
		sent = append(sent, w.request(w.FarMAC, last).Append(nil, 0))
	}
	w.send(t, w.Far, sent...)
	w.deadline(t, w.Conn, w.Patience)
	batch, got := make([]arpcheck.Frame, 8), 0
	for got < len(sent) {
		n, err := w.Conn.Receive(batch)
		if err != nil || n < 1 || n > len(batch) {
			t.Fatalf("Receive returned %d frames for %d asked for, after %d: %v", n, len(batch), got, err)
		}
		for _, f := range batch[:n] {
			if p, err := arpwire.Parse(f.Data); err != nil || p.Sender.As4()[0] != 192 {
				continue
			}
			if !bytes.Equal(f.Data, sent[got]) {
				t.Fatalf("frame %d is % x, want % x", got, f.Data, sent[got])
			}
			got++
		}
	}
}
