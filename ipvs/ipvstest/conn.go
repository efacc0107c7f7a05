package ipvstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/strictarp/strictarp/ipvs"
)

// Conn reads a Node's devices as an ipvs.Conn does, with the same errors.
type Conn struct {
	node    *Node
	done    chan struct{} // closed by Close
	closed  bool          // guarded by the node's mu, as is watched
	watched bool
}

// Open returns a Conn that reads the node.
func (n *Node) Open() *Conn { return &Conn{node: n, done: make(chan struct{})} }

// Close closes the Conn and ends its Watch. The error is always nil.
func (c *Conn) Close() error {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.done)
	}
	return nil
}

// Device is what ipvs.Conn's does.
func (c *Conn) Device(name string) (ipvs.Device, error) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if err := c.usable(); err != nil {
		return ipvs.Device{}, err
	}
	return c.node.read(name)
}

// Devices is what ipvs.Conn's does.
func (c *Conn) Devices() (ipvs.Devices, error) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if err := c.usable(); err != nil {
		return ipvs.Devices{}, err
	}
	return c.node.readAll()
}

// Watch is what ipvs.Conn's does.
func (c *Conn) Watch(ctx context.Context, name string) iter.Seq2[ipvs.Event, error] {
	if name == "" {
		name = ipvs.DefaultDevice
	}
	return func(yield func(ipvs.Event, error) bool) {
		w, err := c.begin(name)
		if err == nil {
			defer c.end(w)
			err = c.run(ctx, w, func(e ipvs.Event) bool { return yield(e, nil) })
		}
		if err != nil {
			yield(ipvs.Event{}, err)
		}
	}
}

// watcher is a Watch. The node's mu guards queue, again and lost.
type watcher struct {
	name  string
	queue []ipvs.Event
	again bool          // after the queue tell all, as it is then
	lost  bool          // because events were lost
	gone  bool          // Gone was the last event
	ready chan struct{} // has room for one
}

func (w *watcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default: // it will look anyway
	}
}

func (c *Conn) begin(name string) (*watcher, error) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	w := &watcher{name: name, ready: make(chan struct{}, 1)}
	w.again = true
	if c.node.watchers == nil {
		c.node.watchers = map[*watcher]bool{}
	}
	c.node.watchers[w] = true
	c.watched = true
	return w, nil
}

func (c *Conn) end(w *watcher) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	delete(c.node.watchers, w)
	c.watched = false
}

func (c *Conn) run(ctx context.Context, w *watcher, yield func(ipvs.Event) bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ipvstest: watch %s: %w", w.name, err)
		}
		events, err := c.take(w)
		for _, e := range events {
			if !yield(e) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-c.done:
			return errClosed
		case <-w.ready:
		}
	}
}

// take returns the events that wait.
func (c *Conn) take(w *watcher) ([]ipvs.Event, error) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	events := w.queue
	w.queue = nil
	if len(events) > 0 {
		w.gone = events[len(events)-1].Type == ipvs.Gone
	}
	switch {
	case c.closed:
		return nil, errClosed
	case c.node.err != nil:
		return events, c.node.err
	case !w.again:
		return events, nil
	}
	all, err := c.node.full(w.name, w.lost)
	w.again, w.lost = false, false
	if err != nil {
		return events, err
	}
	if w.gone && all.Type == ipvs.Gone { // it came and went
		return events, nil
	}
	w.gone = all.Type == ipvs.Gone
	return append(events, all), nil
}

var errClosed = fmt.Errorf("ipvstest: the Conn is closed: %w", fs.ErrClosed)

func (c *Conn) usable() error {
	switch {
	case c.closed:
		return errClosed
	case c.watched:
		return fmt.Errorf("ipvstest: %w", ipvs.ErrBusy)
	}
	return nil
}

func (n *Node) full(name string, resync bool) (ipvs.Event, error) {
	dev, err := n.read(name)
	if errors.Is(err, fs.ErrNotExist) && n.err == nil {
		return ipvs.Event{Type: ipvs.Gone, Device: ipvs.Device{Name: name}}, nil
	}
	return ipvs.Event{Type: ipvs.Full, Device: dev, Resync: resync}, err
}

func (n *Node) read(name string) (ipvs.Device, error) {
	all, err := n.readAll()
	if err != nil {
		return ipvs.Device{}, err
	}
	return all.Named(name)
}

func (n *Node) readAll() (ipvs.Devices, error) {
	if n.err != nil {
		return ipvs.Devices{}, n.err
	}
	all := ipvs.Devices{Devices: slices.Clone(n.devices), Partial: n.partial}
	for i, dev := range all.Devices {
		all.Devices[i] = n.copy(dev)
	}
	return all, nil
}
