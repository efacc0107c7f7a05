package ipvs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/strictarp/strictarp/ipvs/internal/rtnl"
)

// partialWait is how long a Watch whose state is Partial waits for a pause in
// the events before it reads again: longer than a read of 20,000 addresses
// takes, shorter than anybody waits.
const partialWait = 500 * time.Millisecond

// watcher is the state of a Watch.
type watcher struct {
	conn  conn
	name  string
	yield func(Event) bool

	dev     Device // without Addresses; Index 0 while it is gone
	held    map[addressKey]Address
	absent  bool // and Gone was sent
	stopped bool // yield returned false
}

func (c conn) watch(ctx context.Context, name string, yield func(Event) bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ipvs: watch %s: %w", name, err)
	}
	if err := c.events.Subscribe(); err != nil {
		return watchError(ctx, name, err)
	}
	defer func() { _ = c.events.Unsubscribe() }() // fails only if the socket is closed
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = c.events.SetDeadline(time.Unix(1, 0)) // wakes the reader; fails only if closed
	})
	defer func() {
		if !stop() {
			<-done
		}
		_ = c.events.SetDeadline(time.Time{})
	}()
	w := &watcher{conn: c, name: name, yield: yield}
	if err := w.run(ctx); err != nil {
		return watchError(ctx, name, err)
	}
	return nil
}

func watchError(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, fs.ErrClosed):
		err = errClosed
	}
	return fmt.Errorf("ipvs: watch %s: %w", name, err)
}

func (w *watcher) run(ctx context.Context) error {
	resync := false
	err := w.full(resync)
	for err == nil && !w.stopped {
		var deadline time.Time
		if w.dev.Partial {
			deadline = time.Now().Add(partialWait)
		}
		if err := w.conn.events.SetDeadline(deadline); err != nil {
			return err
		}
		// After the deadline was set: else ctx's own might be overwritten unseen.
		if err := ctx.Err(); err != nil {
			return err
		}
		err = w.next()
		if rtnl.Overrun(err) || errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			err = w.full(true)
		}
	}
	return err
}

// next waits for events and tells what they mean.
func (w *watcher) next() error {
	var failed error
	again := false
	err := w.conn.events.Read(func(m rtnl.Message) bool {
		switch m.Type {
		case rtnl.NewLink, rtnl.DelLink:
			again, failed = w.link(m)
		case rtnl.NewAddr, rtnl.DelAddr:
			if w.dev.Index != 0 && rtnl.Of(m, w.dev.Index) {
				failed = w.address(m)
			}
		}
		return !again && !w.stopped && failed == nil
	})
	switch {
	case err != nil:
		return err
	case failed != nil:
		return fail("read an event", failed)
	case again: // the rest of the events is older than what is read now
		return w.full(false)
	}
	return nil
}

// full reads the device and tells all of it.
func (w *watcher) full(resync bool) error {
	dev, err := w.conn.readDevice(w.name)
	if errors.Is(err, fs.ErrNotExist) {
		w.gone()
		return nil
	}
	if err != nil {
		return err
	}
	w.held = make(map[addressKey]Address, len(dev.Addresses))
	for _, a := range dev.Addresses {
		w.held[a.key()] = a
	}
	w.dev = dev
	w.dev.Addresses = nil
	w.absent = false
	w.send(Event{Type: Full, Device: dev, Resync: resync})
	return nil
}

func (w *watcher) gone() {
	if w.absent { // it came and went before it could be read
		return
	}
	w.dev, w.held, w.absent = Device{}, nil, true
	w.send(Event{Type: Gone, Device: Device{Name: w.name}})
}

// link looks at a link's event and reports whether the device is another one
// than before, so that it must be read.
func (w *watcher) link(m rtnl.Message) (again bool, err error) {
	link, err := rtnl.ParseLink(m)
	if err != nil {
		return false, err
	}
	ours := w.dev.Index != 0 && link.Index == w.dev.Index
	switch {
	case ours && (m.Type == rtnl.DelLink || link.Name != w.name):
		w.gone()
	case !ours && m.Type == rtnl.NewLink && link.Name == w.name:
		return true, nil
	case ours:
		w.changed(device(link))
	}
	return false, nil
}

func (w *watcher) changed(dev Device) {
	// Not in every event: a bridge's port is told of in messages of its own.
	if dev.Kind == "" {
		dev.Kind = w.dev.Kind
	}
	dev.Partial = w.dev.Partial
	old := w.dev
	w.dev = dev
	if old.Flags != dev.Flags || old.State != dev.State || old.MAC != dev.MAC || old.Master != dev.Master {
		w.send(Event{Type: Changed, Device: dev})
	}
}

func (w *watcher) address(m rtnl.Message) error {
	var d rtnl.Decoder
	decoded, err := d.Address(m)
	if err != nil {
		return err
	}
	a := address(&d, decoded)
	old, held := w.held[a.key()]
	switch {
	case m.Type == rtnl.NewAddr && (!held || old != a):
		w.held[a.key()] = a
		w.send(Event{Type: Added, Device: Device{Name: w.name}, Address: a})
	case m.Type == rtnl.DelAddr && held:
		delete(w.held, a.key())
		w.send(Event{Type: Removed, Device: Device{Name: w.name}, Address: a})
	}
	return nil
}

func (w *watcher) send(e Event) {
	if !w.stopped {
		w.stopped = !w.yield(e)
	}
}
