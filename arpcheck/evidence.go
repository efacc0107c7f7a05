package arpcheck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// DefaultRecordBytes is how much a Recorder writes at most: 256 MiB, some 2.5
	// million frames, which is eight hours of a segment with 90 of them a second.
	DefaultRecordBytes = 256 << 20
	// Limits of what a Recorder holds back until it is written.
	maxPendingFrames = 1 << 14
	maxPendingBytes  = 1 << 20
	maxNotes         = 1 << 14
	maxNote          = 512 // bytes
	maxNoteMACs      = 8
)

// Recorder is a Conn that keeps a record of another's frames, as a pcapng file:
// what was sent and received, when to the nanosecond, in which direction, how many
// frames the kernel dropped, and what was concluded. tcpdump and Wireshark read it,
// and so does ReplayPCAP.
//
// A probe is not kept waiting: frames are gathered in memory, some MiB at most, and
// written when Conclude or Close is called, or when that much has gathered. So the
// io.Writer should be one that does not wait for long, such as a file. A failed write
// ends the record, not the probe, and is told once, by the next Conclude or by Close.
//
// Conclude and Note may be called at any time, from any goroutine.
type Recorder struct {
	// MaxBytes is how much is written at most; default DefaultRecordBytes, 256 MiB.
	// Frames beyond are counted in the file as dropped. It must not be changed once
	// anything was sent or received.
	MaxBytes int64

	conn Conn

	mu        sync.Mutex // guards what follows
	file      evidenceFile
	pending   []evidenceFrame
	data      []byte // of the pending frames
	notes     map[netip.Addr]string
	baseDrops uint64 // of conn, when the record began
	drops     uint64 // of conn
	missed    uint64 // frames that are left out
	err       error  // the failed write
	told      bool   // err was returned
	closed    bool
}

// evidenceFrame is a frame that is to be written.
type evidenceFrame struct {
	at     time.Time
	start  int // in Recorder.data
	size   int
	length int // on the link
	flags  uint32
}

// Record makes p send and receive through a Recorder, which writes to w. It must not
// be called while p is used. Closing p completes the record; w stays open.
//
// A record of one probe, replayed with the same Wait, gives the same verdict, with
// these exceptions: what only the host knows (HeldHere) has to be told in
// ReplayOptions, and that a probe was cut short or its interface went down, or that
// the control address was silent, is only in the Recorder's comments.
func (p *Prober) Record(w io.Writer) (*Recorder, error) {
	if p.Conn == nil {
		return nil, errors.New("arpcheck: record without a Conn: get the Prober from Open, or set its Conn")
	}
	r := &Recorder{conn: p.Conn, notes: map[netip.Addr]string{}, file: evidenceFile{out: w}}
	drops, err := p.Conn.Drops()
	if err != nil {
		return nil, fmt.Errorf("arpcheck: record on %s: read the count of dropped frames: %w", p.Link, err)
	}
	r.baseDrops, r.drops = drops, drops
	r.file.begin(p.Link, p.MAC, time.Now())
	p.Conn = r
	return r, nil
}

// Conclude comments on each result where the record has a frame of its target, and
// writes what was gathered. Without results it only writes. The error is that of
// the first write that failed, and is told once.
func (r *Recorder) Conclude(results ...Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range results {
		r.note(results[i].Target, describe(&results[i]))
	}
	if r.err == nil && !r.closed {
		r.write(true)
	}
	return r.tell()
}

// Note comments on the first frame that is not written yet and has the address as
// ARP sender or target. If there is none, the record's count of drops, which follows
// the frames, gets the comment. Of text 512 bytes are kept, and the last text of an
// address.
func (r *Recorder) Note(addr netip.Addr, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(addr, text)
}

func (r *Recorder) note(addr netip.Addr, text string) {
	if r.err != nil || r.closed {
		return
	}
	if len(r.notes) >= maxNotes {
		r.write(false)
	}
	r.notes[addr.Unmap()] = strings.ToValidUTF8(text[:min(len(text), maxNote)], "\uFFFD")
}

// tell returns the error of a write once.
func (r *Recorder) tell() error {
	if r.err == nil || r.told {
		return nil
	}
	r.told = true
	return fmt.Errorf("arpcheck: write the record, which ends here: %w", r.err)
}

// Send implements Conn.
func (r *Recorder) Send(frames [][]byte) (int, error) {
	at := time.Now() // an answer may arrive before Send returns
	n, err := r.conn.Send(frames)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, data := range frames[:n] {
		r.keep(&Frame{Data: data, At: at, Type: Outgoing, Length: len(data)})
	}
	return n, err
}

// Receive implements Conn.
func (r *Recorder) Receive(frames []Frame) (int, error) { return r.receive(r.conn, frames) }

func (r *Recorder) receive(from Conn, frames []Frame) (int, error) {
	n, err := from.Receive(frames)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range frames[:n] {
		r.keep(&frames[i])
	}
	return n, err
}

// keep takes in a frame, with the VLAN tag that the kernel has taken off.
func (r *Recorder) keep(f *Frame) {
	if r.err != nil || r.closed {
		return
	}
	if len(r.pending) == maxPendingFrames || len(r.data) >= maxPendingBytes {
		r.write(false)
	}
	start, length := len(r.data), f.Length
	const addresses = 12 // the two MACs, behind which a tag stands
	if f.VLAN != 0 && len(f.Data) >= addresses {
		r.data = append(r.data, f.Data[:addresses]...)
		r.data = append(r.data, arpwire.TypeVLAN>>8, arpwire.TypeVLAN&0xff, byte(f.VLAN>>8), byte(f.VLAN))
		r.data = append(r.data, f.Data[addresses:]...)
		length += arpwire.VLANTag
	} else {
		r.data = append(r.data, f.Data...)
	}
	size := len(r.data) - start
	r.pending = append(r.pending, evidenceFrame{at: f.At, start: start, size: size, length: max(length, size), flags: evidenceFlags(f.Type)})
}

// write writes what was gathered, and with sum what is known of the interface until
// now. A record that is full grows no more, but for its end.
func (r *Recorder) write(sum bool) {
	limit := cmp.Or(r.MaxBytes, DefaultRecordBytes)
	for i := range r.pending {
		f := &r.pending[i]
		if r.file.size() >= limit {
			r.missed++
			continue
		}
		data := r.data[f.start:][:f.size]
		r.file.frame(f, data, r.noteOn(data))
	}
	r.pending, r.data = r.pending[:0], r.data[:0]
	now, lacking := time.Now(), r.drops-r.baseDrops+r.missed
	for _, addr := range slices.SortedFunc(maps.Keys(r.notes), netip.Addr.Compare) {
		if r.file.size() < limit {
			r.file.sum(now, lacking, r.notes[addr])
		}
	}
	clear(r.notes)
	if sum && (r.closed || r.file.size() < limit) {
		r.file.sum(now, lacking, "")
	}
	if r.err == nil {
		r.err = r.file.flush()
	}
}

// noteOn takes the notes that a frame gets.
func (r *Recorder) noteOn(frame []byte) string {
	if len(r.notes) == 0 {
		return ""
	}
	p, err := arpwire.Parse(frame)
	if err != nil {
		return ""
	}
	for _, addr := range []netip.Addr{p.Target, p.Sender} {
		if text, noted := r.notes[addr]; noted {
			delete(r.notes, addr)
			return text
		}
	}
	return ""
}

// SetReadDeadline implements Conn.
func (r *Recorder) SetReadDeadline(t time.Time) error { return r.conn.SetReadDeadline(t) }

// Drops implements Conn.
func (r *Recorder) Drops() (uint64, error) {
	drops, err := r.conn.Drops()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.drops = drops
	}
	return drops, err
}

// Close implements Conn: it closes the Conn that is recorded and completes the
// record.
func (r *Recorder) Close() error {
	err := r.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return err
	}
	r.closed = true
	if r.err == nil {
		r.write(true)
	}
	return errors.Join(err, r.tell())
}
