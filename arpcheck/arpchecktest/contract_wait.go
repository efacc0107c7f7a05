package arpchecktest

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
)

func checkPastDeadline(t testing.TB, w Wire) {
	first, second := w.request(w.FarMAC, 2).Append(nil, 0), w.request(w.FarMAC, 3).Append(nil, 0)
	w.send(t, w.Far, first, second)
	w.want(t, w.Conn, first, arpcheck.ToBroadcast) // so the second is there, too
	w.deadline(t, w.Conn, -time.Hour)
	n, err := w.Conn.Receive(make([]arpcheck.Frame, 1))
	if n != 1 || err != nil {
		t.Errorf("Receive past the deadline returned %d frames and %v although one waits", n, err)
	}
}

func checkDeadline(t testing.TB, w Wire) {
	for _, d := range []time.Duration{-time.Hour, w.Patience} {
		start := time.Now()
		w.deadline(t, w.Conn, d)
		err := w.receiveAll(w.Conn)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Receive with a deadline in %v returned %v", d, err)
		}
		if waited := time.Since(start); waited < d {
			t.Errorf("Receive with a deadline in %v returned after %v", d, waited)
		}
	}
}

func checkLaterDeadline(t testing.TB, w Wire) {
	w.deadline(t, w.Conn, 0)
	ended := w.receiveLater(w.Conn)
	w.deadline(t, w.Conn, w.Patience)
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Receive returned %v", err)
	}
}

func checkBlocking(t testing.TB, w Wire) {
	w.deadline(t, w.Conn, w.Patience)
	w.deadline(t, w.Conn, 0) // takes the first one back
	frame := w.request(w.FarMAC, 2).Append(nil, 0)
	sent := make(chan error, 1)
	time.AfterFunc(2*w.Patience, func() {
		_, err := w.Far.Send([][]byte{frame})
		sent <- err
	})
	start := time.Now()
	for {
		if n, err := w.Conn.Receive(make([]arpcheck.Frame, 1)); n != 1 || err != nil {
			t.Fatalf("Receive without a deadline returned %d frames and %v", n, err)
		}
		if time.Since(start) >= 2*w.Patience { // earlier ones are the kernels'
			break
		}
	}
	if err := <-sent; err != nil {
		t.Errorf("Send: %v", err)
	}
}

func checkClose(t testing.TB, w Wire) {
	ended := w.receiveLater(w.Conn)
	if err := w.Conn.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive that waited returned %v", err)
	}
	if _, err := w.Conn.Receive(make([]arpcheck.Frame, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive after Close returned %v", err)
	}
	if _, err := w.Conn.Send([][]byte{w.request(w.MAC, 2).Append(nil, 0)}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after Close returned %v", err)
	}
	if err := w.Conn.SetReadDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetReadDeadline after Close returned %v", err)
	}
}

func checkDrops(t testing.TB, w Wire) {
	w.send(t, w.Far, w.request(w.FarMAC, 2).Append(nil, 0))
	w.next(t, w.Conn)
	if n, err := w.Conn.Drops(); n != 0 || err != nil {
		t.Errorf("Drops returned %d and %v", n, err)
	}
}

// receiveAll receives until there is an error.
func (w Wire) receiveAll(c arpcheck.Conn) error {
	for {
		if _, err := c.Receive(make([]arpcheck.Frame, 8)); err != nil {
			return err
		}
	}
}

// receiveLater is receiveAll in a goroutine that has had time to begin to wait.
func (w Wire) receiveLater(c arpcheck.Conn) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- w.receiveAll(c) }()
	time.Sleep(w.Patience)
	return ended
}
