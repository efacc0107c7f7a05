package arpcheck_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

var (
	vip    = netip.MustParseAddr("10.0.3.20")
	client = netip.MustParseAddr("10.0.3.50")
	own    = arpcheck.MAC{2, 0, 0, 0, 0, 0x50} // of a wire's Prober
)

// node returns the MAC of the n-th station of a wire.
func node(n int) arpcheck.MAC { return arpcheck.MAC{2, 1, 0, 0, byte(n >> 8), byte(n)} }

// wire is a Conn whose every frame and error a test decides, to the
// nanosecond: a segment of hosts would not send most of them.
type wire struct {
	// onSend, if set, is called for each frame that was taken; it may deliver
	// frames, now or later.
	onSend func(frame []byte)
	// take, if set, says how many frames a Send takes, and its error.
	take func(frames int) (int, error)

	mu       sync.Mutex // guards what follows
	waiting  []arpcheck.Frame
	down     bool // ErrLinkDown is owed
	deadline time.Time
	closed   bool
	changed  chan struct{} // closed and made anew when there is news
	sent     []sending
	drops    uint64
}

type sending struct {
	at   time.Time
	data []byte
}

func newWire() *wire { return &wire{changed: make(chan struct{})} }

// prober returns a Prober on the wire that asks as client.
func (w *wire) prober() *arpcheck.Prober {
	return &arpcheck.Prober{Conn: w, MAC: own, Link: "eth0", Sender: client}
}

func (w *wire) news() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// deliver puts frames into the receive queue, without a limit.
func (w *wire) deliver(frames ...arpcheck.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range frames {
		if f.At.IsZero() {
			f.At = time.Now()
		}
		if f.Length == 0 {
			f.Length = len(f.Data)
		}
		w.waiting = append(w.waiting, f)
	}
	w.news()
}

// later delivers frames after a time.
func (w *wire) later(d time.Duration, frames ...arpcheck.Frame) {
	time.AfterFunc(d, func() { w.deliver(frames...) })
}

// goDown lets the link go down, as Receive tells once.
func (w *wire) goDown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	w.news()
}

func (w *wire) sentFrames() []sending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *wire) Send(frames [][]byte) (int, error) {
	n, err := len(frames), error(nil)
	if w.take != nil {
		n, err = w.take(n)
	}
	for _, f := range frames[:n] {
		w.mu.Lock()
		w.sent = append(w.sent, sending{time.Now(), slices.Clone(f)})
		w.mu.Unlock()
		if w.onSend != nil {
			w.onSend(f)
		}
	}
	return n, err
}

func (w *wire) Receive(frames []arpcheck.Frame) (int, error) {
	for {
		n, changed, deadline, err := w.look(frames)
		if n > 0 || err != nil {
			return n, err
		}
		wait(changed, deadline)
	}
}

func (w *wire) look(frames []arpcheck.Frame) (int, <-chan struct{}, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return 0, nil, time.Time{}, net.ErrClosed
	case len(w.waiting) > 0:
		n := copy(frames, w.waiting)
		w.waiting = w.waiting[n:]
		return n, nil, time.Time{}, nil
	case w.down:
		w.down = false
		return 0, nil, time.Time{}, arpcheck.ErrLinkDown
	case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
		return 0, nil, time.Time{}, os.ErrDeadlineExceeded
	}
	return 0, w.changed, w.deadline, nil
}

func wait(changed <-chan struct{}, deadline time.Time) {
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-changed:
	case <-expired:
	}
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return net.ErrClosed
	}
	w.deadline = t
	w.news()
	return nil
}

func (w *wire) Drops() (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drops, nil
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.news()
	return nil
}

// reply is the answer of a station to client, who asks for target.
func reply(from arpcheck.MAC, target netip.Addr) arpwire.Packet {
	return arpwire.Request(own, client, target).Reply(from)
}

// toHost is a frame as the interface with the MAC own receives it.
func toHost(p arpwire.Packet) arpcheck.Frame {
	return arpcheck.Frame{Data: p.Append(nil, 0), Type: arpcheck.ToHost}
}

// otherAsks is a request that another program, or the kernel, of the prober's
// host sends to a MAC.
func otherAsks(target netip.Addr, to arpcheck.MAC) arpcheck.Frame {
	p := arpwire.Request(own, client, target)
	p.Dst = to
	return arpcheck.Frame{Data: p.Append(nil, 0), Type: arpcheck.Outgoing}
}

// answering returns a wire whose stations answer each request after a time, in
// order. One that is named twice answers twice.
func answering(after time.Duration, stations ...arpcheck.MAC) *wire {
	w := newWire()
	w.onSend = func(frame []byte) {
		p, err := arpwire.Parse(frame)
		if err != nil {
			panic(err)
		}
		replies := make([]arpcheck.Frame, 0, len(stations))
		for _, mac := range stations {
			replies = append(replies, toHost(p.Reply(mac)))
		}
		w.later(after, replies...)
	}
	return w
}

// probe probes the VIP and fails the test on an error.
func probe(t *testing.T, p *arpcheck.Prober) arpcheck.Result {
	t.Helper()
	r, err := p.Probe(t.Context(), vip)
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	return r
}

// macs returns who answers, in order.
func macs(r arpcheck.Result) []arpcheck.MAC {
	all := make([]arpcheck.MAC, 0, len(r.Responders))
	for _, responder := range r.Responders {
		all = append(all, responder.MAC)
	}
	return all
}
