package arpcheck

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"time"
)

// neighbourWatch is the state of a Watch of a Neighbours. What it keeps is as
// much as the kernel does.
type neighbourWatch struct {
	cache *Neighbours
	link  string
	yield func(NeighbourEvent, error) bool

	known map[neighbourKey]Neighbour
	ended bool // yield returned false
}

// neighbourKey names an entry: an interface's name may change.
type neighbourKey struct {
	index int
	addr  netip.Addr
}

// neighbourChange is what the kernel says of an entry.
type neighbourChange struct {
	key   neighbourKey
	mac   MAC
	state NeighbourState
	gone  bool
}

// run returns nil if the loop was left.
func (w *neighbourWatch) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.cache.impl.subscribe(); err != nil {
		return err
	}
	defer w.cache.impl.unsubscribe()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		w.cache.impl.setDeadline(longAgo)
	})
	defer func() {
		if !stop() {
			<-woken
		}
		w.cache.impl.setDeadline(time.Time{})
	}()
	for again := true; !w.ended; {
		if again {
			if err := w.read(); err != nil {
				return err
			}
		}
		var err error
		if again, err = w.next(); err != nil {
			return err
		}
	}
	return nil
}

// read tells all entries. Changes that come meanwhile are told after it, even if
// it has them already.
func (w *neighbourWatch) read() error {
	var list []indexedNeighbour
	err := w.cache.use("read all", func() (err error) {
		list, err = w.cache.impl.listIndexed(w.link)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the interface may come
		}
		return err
	})
	if err != nil && len(list) == 0 {
		return err
	}
	w.known = make(map[neighbourKey]Neighbour, len(list))
	entries := make([]Neighbour, 0, len(list))
	for _, n := range list {
		w.known[neighbourKey{n.index, n.Addr}] = n.Neighbour
		entries = append(entries, n.Neighbour)
	}
	w.send(NeighbourEvent{Type: NeighboursRead, Entries: entries})
	return nil
}

// next waits for changes and tells them. It returns true if some were lost.
func (w *neighbourWatch) next() (again bool, err error) {
	changes, lost, err := w.cache.impl.changes()
	if lost || err != nil {
		return lost, err
	}
	for _, c := range changes {
		if !w.ended {
			w.change(c)
		}
	}
	return false, nil
}

func (w *neighbourWatch) change(c neighbourChange) {
	old, known := w.known[c.key]
	now := Neighbour{Addr: c.key.addr, MAC: c.mac, Link: old.Link, State: c.state}
	if name := w.name(c.key.index); name != "" {
		now.Link = name
	}
	if w.link != "" && now.Link != w.link {
		return
	}
	e := NeighbourEvent{Type: NeighbourChanged, Neighbour: now}
	if old.MAC != now.MAC {
		e.Before = old.MAC
	}
	switch {
	case c.gone && !known, !c.gone && now == old:
		return
	case c.gone:
		delete(w.known, c.key)
		e = NeighbourEvent{Type: NeighbourGone, Neighbour: old}
	default:
		w.known[c.key] = now
	}
	w.send(e)
}

// name is empty if the interface is gone.
func (w *neighbourWatch) name(index int) (name string) {
	_ = w.cache.use("look up an interface", func() (err error) { // if it is closed, the next read says so
		name, err = w.cache.impl.linkName(index)
		return err
	})
	return name
}

func (w *neighbourWatch) send(e NeighbourEvent) {
	e.At = time.Now()
	w.ended = !w.yield(e, nil)
}
