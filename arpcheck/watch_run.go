package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// coalesce is how long frames are let gather before they are read: it is the
	// wake-ups that cost, not the frames.
	coalesce = 80 * time.Millisecond
	// gatherable is the capacity that this takes; with less they are left for less time.
	gatherable = 4096
	// heartbeat is how often the interface is looked at, and how long silence may
	// last before a ClaimLost is noticed.
	heartbeat = time.Second
)

// watcher is one run of Watch.
type watcher struct {
	*Prober
	WatchOptions
	listen listener
	pause  time.Duration // after frames were read
	busy   bool          // frames were read last time
	claims claimTable
	limits limiter
	yield  func(ClaimEvent, error) bool
	link   string    // the interface's name now
	tick   time.Time // when the next heartbeat is
	drops  uint64
	down   bool
	ended  bool // yield returned false
}

func newWatcher(p *Prober, o WatchOptions, yield func(ClaimEvent, error) bool) *watcher {
	w := &watcher{Prober: p, WatchOptions: o, listen: listener{conn: p.Conn}, yield: yield, link: p.Link}
	w.pause = coalesce * time.Duration(min(capacityOf(p.Conn), gatherable)) / gatherable
	w.limits = newLimiter(o.Every, o.MaxEvents, w.send)
	w.claims = newClaimTable(o, func(e ClaimEvent) { w.limits.add(e, time.Now()) })
	return w
}

func (w *watcher) run(ctx context.Context) (err error) {
	// What waits may be of long ago, and was let in by another filter.
	if err := w.listen.drain(func(*Frame) {}); err != nil && !errors.Is(err, ErrLinkDown) {
		return err
	}
	if w.drops, err = w.Conn.Drops(); err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	for !w.ended {
		if now := time.Now(); !now.Before(w.tick) {
			w.tick = now.Add(heartbeat)
			if err := w.beat(now); err != nil || w.ended {
				return err
			}
		}
		err := w.hear(ctx)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = nil
		case errors.Is(err, ErrLinkDown):
			w.setDown(true)
			w.tick, err = time.Time{}, nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hear waits for frames, or where some came last time lets more gather.
func (w *watcher) hear(ctx context.Context) (err error) {
	if !w.busy {
		err = w.listen.receive(ctx, w.tick, w.frame)
		w.busy = err == nil
		return err
	}
	if err := pause(ctx, w.pause); err != nil {
		return err
	}
	w.busy = false
	return w.listen.drain(func(f *Frame) {
		w.busy = true
		w.frame(f)
	})
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// frame takes in a frame. Once the loop was left, what was read with it is lost.
func (w *watcher) frame(f *Frame) {
	if w.ended {
		return
	}
	if w.down && w.Host == nil && f.Type != Outgoing { // there is nobody else to tell
		w.setDown(false)
	}
	w.claims.frame(f)
}

// beat looks at all that happens without a frame.
func (w *watcher) beat(now time.Time) error {
	if err := w.look(); err != nil {
		return err
	}
	drops, err := w.Conn.Drops()
	if err != nil {
		return fmt.Errorf("read the count of dropped frames: %w", err)
	}
	if drops > w.drops {
		w.limits.add(ClaimEvent{Kind: WatchDropped, At: now, Count: int(min(drops-w.drops, 1<<31-1))}, now)
		w.drops = drops
	}
	if !w.down {
		w.claims.beat(now)
	}
	w.limits.flush(now)
	return nil
}

// look asks for the interface's state and name. Without a Host they are not known.
func (w *watcher) look() error {
	if w.Host == nil {
		return nil
	}
	state, err := w.Host.Link()
	if errors.Is(err, ErrLinkDown) {
		return fmt.Errorf("%w; when it is back, open another Prober", err)
	}
	if err != nil {
		return fmt.Errorf("read the state of the interface: %w", err)
	}
	if n, ok := w.Host.(linkNamer); ok {
		if w.link, err = n.linkName(); err != nil {
			return fmt.Errorf("read the name of the interface: %w", err)
		}
	}
	w.setDown(!state.Up)
	return nil
}

// setDown tells a change. What was claimed before stays known, but nothing is
// lost while nobody can be heard.
func (w *watcher) setDown(down bool) {
	if w.down == down || w.ended {
		return
	}
	w.down = down
	now := time.Now()
	kind := WatchLinkUp
	if down {
		kind = WatchLinkDown
	} else {
		w.claims.resume(now)
	}
	w.limits.add(ClaimEvent{Kind: kind, At: now, Count: 1}, now)
}

// send is the end of all events.
func (w *watcher) send(e ClaimEvent) {
	if w.ended {
		return
	}
	e.Interface, e.Vantage = w.link, w.Vantage
	w.ended = !w.yield(e, nil)
}
