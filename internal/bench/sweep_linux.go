package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// linger is how long all wait for a late answer.
const linger = 100 * time.Millisecond

// sweeps is the subject of finding all who answer for many addresses.
func sweeps(c config) (*subject, error) {
	if c.targets < 1 || c.targets > maxTargets || c.nodes < 1 || c.nodes > 500 {
		return nil, fmt.Errorf("%d targets, %d nodes: want at least one of each, and at most %d targets and 500 nodes", c.targets, c.nodes, maxTargets)
	}
	begun := time.Now()
	segment, err := netnstest.NewSegment()
	if err != nil {
		return nil, err
	}
	l := &lab{config: c, segment: segment, pairs: c.held() * c.nodes}
	for addr := netip.MustParseAddr("10.1.0.1"); len(l.targets) < c.targets; addr = addr.Next() {
		l.targets = append(l.targets, addr)
	}
	if err := l.fill(); err != nil {
		return nil, errors.Join(err, segment.Close())
	}
	floor, closeFloor, err := floorOf(l)
	if err != nil {
		return nil, errors.Join(err, segment.Close())
	}
	title := fmt.Sprintf("%d targets, %d nodes; the lab took %s to make", c.targets, c.nodes, time.Since(begun).Round(time.Millisecond))
	return &subject{
		title: title, noun: "pairs", want: l.pairs, contenders: append([]contender{floor}, l.contenders()...),
		close: func() error { return errors.Join(closeFloor(), segment.Close()) },
	}, nil
}

// held is how many of the targets the nodes hold.
func (c config) held() int {
	if c.answered > 0 {
		return min(c.answered, c.targets)
	}
	return c.targets
}

// spread returns n of the targets, as far from each other as can be.
func spread(targets []netip.Addr, n int) []netip.Addr {
	some := make([]netip.Addr, 0, n)
	for i := range n {
		some = append(some, targets[i*len(targets)/n])
	}
	return some
}

// contenders are all but the floor.
func (l *lab) contenders() []contender {
	if l.ask {
		return []contender{askOf(l)}
	}
	all := []contender{
		sweepOf(l, "arpcheck.Sweep", func(*arpcheck.Prober) {}),
		sweepOf(l, "one round: arpcheck.Sweep, Rounds 1, Wait 5 ms", func(p *arpcheck.Prober) { p.Rounds, p.Wait = 1, 5*time.Millisecond }),
	}
	if l.held() < len(l.targets) {
		all = append(all, sweepOf(l, "two rounds: arpcheck.Sweep, Rounds 2", func(p *arpcheck.Prober) { p.Rounds = 2 }))
	}
	if l.slow { // the reader would have to wait
		all = append(all, wireOf(l))
	} else {
		all = append(all, readerOf(l))
	}
	all = append(all, scans(l)...)
	if l.peers {
		all = append(all, losing(l)...)
	}
	return all
}

// wireOf is what the slow port takes for the replies, by calculation.
func wireOf(l *lab) contender {
	const bits = 8 * (14 + 28) // the kernel sends replies without padding
	m := measurement{all: time.Duration(l.pairs) * bits * time.Second / portRate, found: l.pairs}
	m.end = m.all
	return contender{name: "the wire, calculated", run: func(context.Context) (measurement, error) { return m, nil }}
}

func floorOf(l *lab) (contender, func() error, error) {
	f, err := l.newFloor()
	if err != nil {
		return contender{}, nil, err
	}
	return contender{name: "floor: sends, reads nothing", run: func(context.Context) (measurement, error) {
		return alone(func() (int, error) {
			_, err := f.send(l.requests, floorBatch, false)
			return l.pairs, err
		})
	}}, func() error { return unix.Close(f.fd) }, nil
}

// readerOf is what a tool pays at least that reads all replies from a socket's queue.
// It sends no more at once than the queue holds replies to.
func readerOf(l *lab) contender {
	return contender{name: "reader: sends, reads, looks at nothing", run: func(context.Context) (m measurement, err error) {
		f, err := l.newFloor()
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, unix.Close(f.fd)) }()
		held, err := f.listen()
		if err != nil {
			return m, err
		}
		return alone(func() (int, error) { return f.send(l.requests, max(min(held, 2000)/l.nodes, 1), true) })
	}}
}

func sweepOf(l *lab, name string, change func(*arpcheck.Prober)) contender {
	return proberOf(l, name, func(ctx context.Context, p *arpcheck.Prober, seen func(arpcheck.Result)) error {
		change(p)
		for r, err := range p.Sweep(ctx, slices.Values(l.targets)) {
			if err != nil {
				return err
			}
			seen(r)
		}
		return nil
	})
}

func askOf(l *lab) contender {
	return proberOf(l, "arpcheck.AskAll", func(ctx context.Context, p *arpcheck.Prober, seen func(arpcheck.Result)) error {
		for a, err := range p.AskAll(ctx, slices.Values(l.targets), l.asked) {
			if err != nil {
				return err
			}
			seen(a.Result)
		}
		return nil
	})
}

// proberOf measures what uses a Prober that is open already, since one is kept.
func proberOf(l *lab, name string, use func(context.Context, *arpcheck.Prober, func(arpcheck.Result)) error) contender {
	return contender{name: name, run: func(ctx context.Context) (m measurement, err error) {
		p, err := l.client.Open() // only now: the others' replies would reach it too
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		p.Wait = linger
		begun := time.Now()
		var last time.Duration
		m, err = timed(func() (pairs int, err error) {
			err = use(ctx, p, func(r arpcheck.Result) {
				for _, responder := range r.Responders {
					pairs++
					last = max(last, responder.First.Sub(begun))
				}
			})
			return pairs, err
		})
		m.all = last
		return m, err
	}}
}
