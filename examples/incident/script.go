package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
)

const (
	// raceRounds are enough for a share of first answers.
	raceRounds = 20
	// The lab has no proxy ARP, which alone answers later than this.
	window     = 300 * time.Millisecond
	raceWindow = 100 * time.Millisecond

	tcpTimeout = 2 * time.Second
	// unreachableTimeout is longer than Linux asks for a neighbour, 3 times in 3 s.
	unreachableTimeout = 5 * time.Second
	// maxTries is how often a client may win the race before it is odd.
	maxTries = 20
	// announceTime is how long an announcer goes on with gratuitous frames.
	announceTime = 5500 * time.Millisecond
)

// story is the incident, told and played.
type story struct {
	*stage
	*narrator
	ctx    context.Context
	soak   time.Duration
	prober *arpcheck.Prober
	names  map[arpcheck.MAC]string

	stop func() // the announcer; nil if it does not run
}

// tell plays the whole story. Its error means that it could not be played on.
func tell(ctx context.Context, s *stage, n *narrator, soak time.Duration) error {
	prober, err := s.observer.Open()
	if err != nil {
		return err
	}
	defer prober.Close()
	t := &story{stage: s, narrator: n, ctx: ctx, soak: soak, prober: prober, names: map[arpcheck.MAC]string{}}
	for _, node := range s.nodes {
		t.names[node.MAC()] = node.Name()
	}
	defer t.stopAnnouncer()
	for _, act := range []func() error{
		t.cast, t.calm, t.outage, t.accuse, t.cure, t.heal, t.endure, t.opposite, t.temptation, t.restore,
	} {
		if err := act(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted: %w", err)
		}
	}
	return nil
}

func (t *story) announcer() node { return t.nodes[0] }

func (t *story) startAnnouncer() (err error) {
	t.stop, err = t.announcer().announce()
	return err
}

func (t *story) stopAnnouncer() {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

func (t *story) cast() error {
	t.act("The cast")
	t.say("Three Kubernetes nodes (w1, w2, w3), two clients and an observer share one Ethernet segment: %s.", t.description)
	t.say("On such a segment a host that wants to send to an address first asks all others by ARP \"who has it?\", and sends to " +
		"the hardware address (MAC) in the first answer. It keeps that answer as a neighbour entry.")
	t.say("A Service of type LoadBalancer has the address %s, the VIP. Its only endpoint is on %s, and "+
		"externalTrafficPolicy is Local: other nodes have nobody to give a connection to.", vip, t.announcer().Name())
	t.say("MetalLB chose %s to announce the VIP: a program there, the announcer, is to answer when somebody asks for it. But "+
		"kube-proxy in ipvs mode puts the VIP on a device, kube-ipvs0, of every node, and strictARP is off: every node's "+
		"kernel has arp_ignore 0, the default, and answers for all addresses of the node.", t.announcer().Name())
	t.say(legend)
	return nil
}

// calm lets both clients learn the right MAC from the announcer's gratuitous
// frames, which change entries but do not make any.
func (t *story) calm() error {
	t.act("It works")
	for _, c := range t.clients {
		_ = t.connect(c, tcpTimeout) // only to make the client ask; who answers does not matter yet
	}
	if err := t.startAnnouncer(); err != nil {
		return err
	}
	t.say("The announcer starts on %s and tells everybody so, unasked, in gratuitous ARP frames, for some 5 seconds. Clients "+
		"that have an entry for the VIP correct it.", t.announcer().Name())
	if err := t.wait(announceTime); err != nil {
		return err
	}
	for _, c := range t.clients {
		if err := t.expectNeighbour(c, true); err != nil {
			return err
		}
		t.expectTCP(c, true)
	}
	return nil
}

func (t *story) outage() error {
	victim, lucky := t.clients[0], t.clients[1]
	t.act("The outage")
	t.say("Neighbour entries age. The one of %s is deleted now, as the kernel does after a while, and the client asks again. "+
		"The first answer wins.", victim.Name())
	if err := t.expectLostRace(victim); err != nil {
		return err
	}
	t.expectTCP(lucky, true)
	t.say("Nothing is logged anywhere. To %s the service is fine, so \"it must be the network\". And %s asks its wrong "+
		"entry's node again every 30 s or so; that node confirms it, so the outage stays.", lucky.Name(), victim.Name())
	return nil
}

func (t *story) accuse() error {
	t.act("Who answers, and who should?")
	result, err := t.probe(raceRounds, raceWindow)
	if err != nil {
		return err
	}
	t.table(result)
	t.expect(result.Verdict == arpcheck.Multiple && len(result.Responders) == len(t.nodes),
		"all %d nodes answer; only %s should", len(t.nodes), t.announcer().Name())
	t.expect(t.doubles(result) == t.announcer().Name(),
		"%s answers each request twice with one MAC: its kernel and its announcer", t.announcer().Name())
	t.say("FIRST is how often a node was the first to answer, as measured here. On a Linux bridge the port that joined last "+
		"answers first, and %s joined first, so it always loses; on a real switch the race is a lottery.", t.announcer().Name())
	return nil
}

func (t *story) cure() error {
	t.act("The cure: strictARP, node by node")
	t.say("strictARP makes kube-proxy set two kernel parameters on each node. arp_ignore=1: answer only for addresses of the " +
		"interface the question came in by, so not for kube-ipvs0. arp_announce=2: never ask others with the VIP as own address. " +
		"The announcer answers from a raw socket and is not affected.")
	for i := len(t.nodes) - 1; i >= 0; i-- {
		node := t.nodes[i]
		if err := t.set(node, "arp_ignore", 1); err != nil {
			return err
		}
		if err := t.set(node, "arp_announce", 2); err != nil {
			return err
		}
		result, err := t.probe(arpcheck.DefaultRounds, window)
		if err != nil {
			return err
		}
		t.table(result)
		if i > 0 {
			t.expect(len(result.Responders) == i, "%d of %d nodes still answer", i, len(t.nodes))
			continue
		}
		t.expect(t.right(result), "only %s answers, once per request", t.announcer().Name())
	}
	return nil
}

func (t *story) heal() error {
	victim := t.clients[0]
	t.act("Still broken, until the client forgets")
	if err := t.expectNeighbour(victim, false); err != nil {
		return err
	}
	t.expectTCP(victim, false)
	t.say("The nodes are cured, but %s still holds the wrong MAC. Alone, Linux needs up to a minute to notice. "+
		"Deleting the entry (ip neigh flush to %s) heals at once.", victim.Name(), vip)
	if err := victim.Forget(vip); err != nil {
		return err
	}
	t.expectTCP(victim, true)
	return t.expectNeighbour(victim, true)
}

func (t *story) endure() error {
	t.act("The proof: %s of ARP and TCP", t.soak)
	samples, right, connected := 0, 0, 0
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for end := time.Now().Add(t.soak); samples == 0 || time.Now().Before(end); samples++ {
		result, err := t.probe(1, window)
		if err != nil {
			return err
		}
		ok := t.connect(t.clients[0], tcpTimeout) == nil
		if t.right(result) {
			right++
		}
		if ok {
			connected++
		}
		t.sample(samples+1, t.who(result), ok)
		select {
		case <-ticker.C:
		case <-t.ctx.Done():
			return fmt.Errorf("interrupted: %w", t.ctx.Err())
		}
	}
	t.expect(right == samples, "%d of %d times only %s answered", right, samples, t.announcer().Name())
	t.expect(connected == samples, "%d of %d connections succeeded", connected, samples)
	return nil
}

func (t *story) opposite() error {
	victim := t.clients[0]
	t.act("The opposite failure: nobody answers")
	t.say("Another day the announcer is gone (a crashed speaker, an excluded node). The kernels are strict, so nobody answers.")
	t.stopAnnouncer()
	if err := victim.Forget(vip); err != nil {
		return err
	}
	result, err := t.probe(arpcheck.DefaultRounds, window)
	if err != nil {
		return err
	}
	t.table(result)
	t.expect(result.Verdict == arpcheck.None, "nobody answers for %s", vip)
	err = t.connect(victim, unreachableTimeout)
	t.expect(errors.Is(err, syscall.EHOSTUNREACH), "TCP from %s to %s fails: no such host on the segment%s", victim.Name(), service, but(err))
	return nil
}

// temptation loosens the nodes, as is often advised when nobody answers.
func (t *story) temptation() error {
	victim := t.clients[0]
	t.act("The tempting cure")
	t.say("\"Nobody answers, so let the kernels answer\": arp_ignore=0 again. ARP now looks fine.")
	for _, node := range t.nodes {
		if err := t.set(node, "arp_ignore", 0); err != nil {
			return err
		}
	}
	result, err := t.probe(arpcheck.DefaultRounds, window)
	if err != nil {
		return err
	}
	t.table(result)
	t.expect(len(result.Responders) == len(t.nodes), "all %d nodes answer again", len(t.nodes))
	if err := t.expectLostRace(victim); err != nil {
		return err
	}
	t.say("That is the first outage again. The parameters were right; the announcer was missing.")
	return nil
}

func (t *story) restore() error {
	victim := t.clients[0]
	t.act("Undone, and the real cause mended")
	for _, node := range t.nodes {
		if err := t.set(node, "arp_ignore", 1); err != nil {
			return err
		}
	}
	if err := t.startAnnouncer(); err != nil {
		return err
	}
	if err := t.wait(announceTime); err != nil {
		return err
	}
	result, err := t.probe(arpcheck.DefaultRounds, window)
	if err != nil {
		return err
	}
	t.table(result)
	t.expect(t.right(result), "only %s answers, once per request", t.announcer().Name())
	if err := t.expectNeighbour(victim, true); err != nil {
		return err
	}
	t.expectTCP(victim, true)
	return nil
}
