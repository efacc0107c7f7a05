package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

const (
	// settle is how long after a change the node is observed, as changes come
	// several at once, and calm how long that is not done again.
	settle = time.Second
	calm   = 5 * time.Second
	// writeCalm is the time after a write before the next: pods that come and go
	// change interfaces and routes all the time.
	writeCalm = 10 * time.Second
	// probeCalm is the time from one pass of probes to the next, whatever changes.
	probeCalm = 30 * time.Second
	// apiTime is how long the API server may take for what one pass tells it.
	apiTime                = 30 * time.Second
	minBackoff, maxBackoff = time.Second, time.Minute
)

// agent is the node's agent. Everything that waits is a field, so that tests can
// put something else there. run is its only goroutine, but for the one that probes.
type agent struct {
	node    string
	log     *slog.Logger
	observe func(ctx context.Context, vips []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing)
	targets func() (vips []netip.Addr, known bool, missing []strictarp.Missing)
	// services returns what Services have; nil if that is not known.
	services func() *exchange.Services
	probe    func(ctx context.Context, facts strictarp.NodeFacts, vips []netip.Addr, rate int) (strictarp.Vantage, []strictarp.Missing)
	changed  <-chan struct{} // the node changed
	retold   <-chan struct{} // the targets changed

	publisher *exchange.Publisher
	condition *nodeCondition
	events    *exchange.Events // nil: the controller tells
	remedy    *remedy          // nil: nothing is changed
	metrics   *metrics

	every, probeEvery time.Duration
	random            func() float64 // of [0, 1), for jitter

	facts    strictarp.NodeFacts
	missing  []strictarp.Missing
	vips     []netip.Addr
	known    bool // the VIPs are
	findings []strictarp.Finding
	seen     probed
	share    []netip.Addr // of the VIPs that the last pass asked for

	observed    time.Time // the last time
	probedAt    time.Time // when the last pass began
	nextObserve time.Time
	nextProbe   time.Time
	nextBeat    time.Time
	holdUntil   time.Time // the API server is left alone
	dirty       bool      // there may be something to tell
	fresh       bool      // the node was observed since the last heartbeat
	resumed     bool      // what an agent before this one has seen was read
	asked       bool      // the API server was, once: it knows how many nodes there are
	failures    int       // in a row
	probing     chan probed
}

// probed is what a pass of probes brought.
type probed struct {
	vantage *strictarp.Vantage // nil before the first pass
	missing []strictarp.Missing
}

// run observes, probes and tells until ctx is done.
func (a *agent) run(ctx context.Context) {
	var passes sync.WaitGroup
	defer passes.Wait()
	a.probing = make(chan probed, 1)
	busy := false
	for ctx.Err() == nil {
		a.metrics.alive()
		now := time.Now()
		if !now.Before(a.nextObserve) {
			a.look(ctx)
		}
		if !busy && a.asked && a.facts.Links != nil && !now.Before(a.nextProbe) {
			busy = a.startProbe(ctx, &passes)
		}
		if now = time.Now(); (a.dirty || a.beatDue(now)) && !now.Before(a.holdUntil) {
			a.tell(ctx)
		}
		timer := time.NewTimer(time.Until(a.wake(busy)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.changed:
			a.nextObserve = earlier(a.nextObserve, later(time.Now().Add(settle), a.observed.Add(calm)))
		case <-a.retold:
			soon := time.Now().Add(settle)
			a.nextObserve = earlier(a.nextObserve, later(soon, a.observed.Add(calm)))
			if a.newShare() {
				a.nextProbe = earlier(a.nextProbe, later(soon.Add(settle), a.probedAt.Add(probeCalm)))
			}
		case a.seen = <-a.probing:
			busy, a.dirty = false, true
			a.metrics.probed(*a.seen.vantage)
		}
		timer.Stop()
	}
}

func (a *agent) beatDue(now time.Time) bool { return a.fresh && !now.Before(a.nextBeat) }

// wake returns when there is something to do again.
func (a *agent) wake(busy bool) time.Time {
	at := a.nextObserve
	if !busy && a.asked && a.facts.Links != nil {
		at = earlier(at, a.nextProbe)
	}
	if a.dirty {
		at = earlier(at, a.holdUntil)
	}
	if a.fresh {
		at = earlier(at, later(a.nextBeat, a.holdUntil))
	}
	return at
}

// look observes the node, judges what is there and mends it if it may.
func (a *agent) look(ctx context.Context) {
	now := time.Now()
	a.nextObserve = now.Add(a.next(a.every, a.observed.IsZero()))
	a.observed = now
	var missing []strictarp.Missing
	a.vips, a.known, missing = a.targets()
	a.examine(ctx, missing)
	if a.remedy != nil && a.remedy.due(a.findings) {
		a.remedy.apply(ctx, a.findings, func(ctx context.Context) []strictarp.Finding {
			a.examine(ctx, missing)
			return a.findings
		})
		a.examine(ctx, missing)
	}
	a.dirty, a.fresh = true, a.fresh || a.facts.Links != nil
}

func (a *agent) examine(ctx context.Context, missing []strictarp.Missing) {
	facts, not := a.observe(ctx, a.vips)
	if ctx.Err() != nil {
		return // what was not observed is because of that
	}
	a.facts, a.missing = facts, append(not, missing...)
	a.findings = judge(a.node, facts, a.vips)
	a.metrics.observed(facts, a.findings, len(a.vips))
}

func (a *agent) startProbe(ctx context.Context, passes *sync.WaitGroup) bool {
	now := time.Now()
	a.nextProbe = now.Add(a.next(a.probeEvery, a.probedAt.IsZero()))
	a.probedAt = now
	if len(a.vips) == 0 {
		a.share = nil
		if a.seen.vantage != nil && len(a.seen.vantage.Probes) > 0 {
			a.seen, a.dirty = probed{}, true // there is nothing left to ask for
		}
		return false
	}
	facts := a.facts
	vips, rate, beyond := shareOf(a.node, a.vips, a.condition.nodes)
	a.share = vips
	if err := a.condition.unknown; err != nil {
		beyond = append(beyond, strictarp.Missing{What: "number of nodes", Where: a.node, Err: err.Error(), Collect: "allow list of nodes: with more than a hundred, nodes share in asking for VIPs"})
	}
	passes.Go(func() {
		v, missing := a.probe(ctx, facts, vips, rate)
		missing = append(missing, beyond...)
		a.probing <- probed{&v, missing}
	})
	return true
}

// newShare reports whether the node is to ask for other VIPs than in the last pass: of
// thousands of nodes a few do for one that is new.
func (a *agent) newShare() bool {
	vips, _, _ := a.targets()
	share, _, _ := shareOf(a.node, vips, a.condition.nodes)
	return !slices.Equal(share, a.share)
}

// tell writes what has changed. What fails is tried again, after a while, with
// what is known then.
func (a *agent) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	var errs []error
	failed := func(call string, err error) {
		a.metrics.called(call, err)
		if err != nil {
			errs = append(errs, err)
		}
	}
	lookErr := a.condition.look(ctx)
	failed("get-node", lookErr)
	if !a.asked && a.condition.nodes > manyNodes { // all may have been started at once
		a.nextProbe = time.Now().Add(a.next(a.probeEvery, true))
	}
	a.asked = true
	if lookErr == nil {
		a.publisher.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: a.node, UID: a.condition.uid}
	}
	wrote := a.publish(ctx, failed)
	if lookErr == nil && a.known && a.facts.Source != "" {
		set, err := a.condition.set(ctx, conditionOf(a.facts, a.missing, a.findings))
		failed("set-condition", err)
		wrote = wrote || set
	}
	if a.events != nil && a.known && a.facts.Links != nil { // otherwise that findings are not there says nothing
		about := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.node, UID: types.UID(a.node)} // as kubelet's, by which kubectl describe finds them
		_, err := a.events.Sync(ctx, about, a.findings)
		failed("events", err)
	}
	a.told(errors.Join(errs...), wrote)
}

func (a *agent) publish(ctx context.Context, failed func(string, error)) (wrote bool) {
	if a.facts.Source == "" {
		return false // nothing was observed yet
	}
	if err := a.resume(ctx); err != nil {
		failed("publish", err)
		return false
	}
	f := strictarp.Facts{At: a.facts.At, Nodes: map[string]strictarp.NodeFacts{a.node: a.facts}}
	f.Missing = append(append(f.Missing, a.missing...), a.seen.missing...)
	if a.seen.vantage != nil {
		f.Vantages = []strictarp.Vantage{*a.seen.vantage}
	}
	wrote, err := a.publisher.Publish(ctx, f, a.services())
	failed("publish", err)
	if wrote && err == nil {
		a.metrics.wrote()
	}
	if err == nil && a.beatDue(time.Now()) {
		err = a.publisher.Beat(ctx)
		failed("heartbeat", err)
		if err == nil {
			a.fresh, a.nextBeat = false, time.Now().Add(a.next(exchange.DefaultInterval, a.nextBeat.IsZero()))
		}
	}
	return wrote
}

// resume goes on with what an agent before this one has seen on the wire, until
// that was looked at again: so that it is started anew is no news.
func (a *agent) resume(ctx context.Context) error {
	if a.resumed {
		return nil
	}
	f, err := a.publisher.Previous(ctx)
	if err != nil {
		return err
	}
	a.resumed = true
	if a.seen.vantage == nil && len(f.Vantages) > 0 {
		a.seen.vantage = &f.Vantages[0]
	}
	return nil
}

// told notes how telling went.
func (a *agent) told(err error, wrote bool) {
	now := time.Now()
	if err != nil {
		a.dirty = true
		a.failures++
		wait := min(maxBackoff, minBackoff<<min(a.failures-1, 6))
		a.holdUntil = now.Add(wait/2 + time.Duration(a.random()*float64(wait)))
		a.log.Warn("could not tell the API server; it is tried again", "in", wait, "failures", a.failures, "error", err)
		return
	}
	if a.failures > 0 {
		a.log.Info("told the API server again", "failures", a.failures)
	}
	a.dirty, a.failures = false, 0
	if a.known {
		a.metrics.ready()
	}
	if wrote {
		a.holdUntil = now.Add(writeCalm)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// next returns when something is to be done again. The first time is anywhere up to
// then, so that agents that were started together do not go on together.
func (a *agent) next(every time.Duration, first bool) time.Duration {
	if first {
		return time.Duration(float64(every) * a.random())
	}
	return jittered(every, a.random)
}

// jittered spreads the work of many nodes.
func jittered(d time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*random()))
}
