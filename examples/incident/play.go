package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// set changes a parameter of all interfaces of a node and says what it was.
func (t *story) set(n node, param sysctl.Param, value int) error {
	before, err := n.Sysctl("all", param)
	if err != nil {
		return err
	}
	if err := n.SetSysctl("all", param, value); err != nil {
		return err
	}
	after, err := n.Sysctl("all", param)
	if err != nil {
		return err
	}
	if after != value {
		return fmt.Errorf("%s: net.ipv4.conf.all.%s is %d after %d was written", n.Name(), param, after, value)
	}
	t.note("%s: net.ipv4.conf.all.%s=%d (was %d)", n.Name(), param, after, before)
	return nil
}

func (t *story) probe(rounds int, wait time.Duration) (arpcheck.Result, error) {
	defer t.busy("asking who has %s, %d times", vip, rounds)()
	t.prober.Rounds, t.prober.Wait = rounds, wait
	return t.prober.Probe(t.ctx, vip)
}

func (t *story) wait(d time.Duration) error {
	defer t.busy("waiting %s", d)()
	select {
	case <-time.After(d):
		return nil
	case <-t.ctx.Done():
		return fmt.Errorf("interrupted: %w", t.ctx.Err())
	}
}

func (t *story) connect(c client, timeout time.Duration) error {
	defer t.busy("connecting from %s", c.Name())()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	_, err := c.Visit(ctx, service)
	return err
}

// expectLostRace expects that sooner or later a wrong node is the first to
// answer the client, and that its connection times out then.
func (t *story) expectLostRace(c client) error {
	for try := 1; ; try++ {
		if err := c.Forget(vip); err != nil {
			return err
		}
		err := t.connect(c, tcpTimeout)
		mac, known, lookUpErr := c.neighbour()
		if lookUpErr != nil {
			return lookUpErr
		}
		if known && mac == t.announcer().MAC() && try < maxTries {
			continue
		}
		if try > 1 {
			t.note("%s asked %d times until a wrong answer was first", c.Name(), try)
		}
		t.expectTimeout(c, err)
		return t.expectNeighbour(c, false)
	}
}

func (t *story) expectTCP(c client, works bool) {
	err := t.connect(c, tcpTimeout)
	if !works {
		t.expectTimeout(c, err)
		return
	}
	t.expect(err == nil, "TCP from %s to %s works%s", c.Name(), service, but(err))
}

func (t *story) expectTimeout(c client, err error) {
	what := fmt.Sprintf("TCP from %s to %s times out (after %s)", c.Name(), service, tcpTimeout)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		t.expect(true, "%s", what)
	case err == nil:
		t.expect(false, "%s, but it worked", what)
	default:
		t.expect(false, "%s%s", what, but(err))
	}
}

// but says what happened instead.
func but(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(", but: %q", err)
}

// expectNeighbour expects the client to hold the announcer's MAC, or another
// node's.
func (t *story) expectNeighbour(c client, right bool) error {
	mac, ok, err := c.neighbour()
	if err != nil {
		return err
	}
	name := t.name(mac)
	switch {
	case !ok:
		t.expect(false, "%s holds a MAC for %s (it holds none)", c.Name(), vip)
	case right:
		t.expect(mac == t.announcer().MAC(), "%s holds %s for %s: that is %s, the right one", c.Name(), mac, vip, name)
	default:
		t.expect(mac != t.announcer().MAC(), "%s holds %s for %s: that is %s, a wrong one", c.Name(), mac, vip, name)
	}
	return nil
}

// right reports whether only the announcer answers, and only once.
func (t *story) right(r arpcheck.Result) bool {
	return r.Verdict == arpcheck.Single && r.Responders[0].MAC == t.announcer().MAC() && !r.Responders[0].DoubleAnswer
}
